#pragma once

#include <QtGui/QColor>

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom {

/// Eyes that lack one kind of cones, and eyes that lack none.
enum class ColourVision { Normal, Protan, Deutan, Tritan };
constexpr std::array<ColourVision, 4> kColourVisions{
    ColourVision::Normal, ColourVision::Protan, ColourVision::Deutan, ColourVision::Tritan};

using LinearColour = std::array<double, 3>;

inline double linearChannel(double channel)
{
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

/// How `colour` looks to such eyes (Machado, Oliveira and Fernandes 2009, severity 1), in linear RGB.
inline LinearColour simulated(const QColor &colour, ColourVision vision)
{
    using Matrix = std::array<std::array<double, 3>, 3>;
    static constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    static constexpr Matrix kProtan{
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
    static constexpr Matrix kDeutan{
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
    static constexpr Matrix kTritan{
        {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
    const Matrix &matrix = vision == ColourVision::Protan ? kProtan
        : vision == ColourVision::Deutan                  ? kDeutan
        : vision == ColourVision::Tritan                  ? kTritan
                                                          : kNormal;
    const LinearColour in{
        linearChannel(colour.redF()), linearChannel(colour.greenF()), linearChannel(colour.blueF())};
    LinearColour out{};
    for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 3; ++column)
            out[row] += matrix[row][column] * in[column];
        out[row] = std::clamp(out[row], 0.0, 1.0);
    }
    return out;
}

/// CIELAB (D65) of a linear colour.
inline std::array<double, 3> labOf(const LinearColour &c)
{
    const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
    const double x = f((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.9505);
    const double y = f(0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]);
    const double z = f((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.089);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// CIE 1976 difference of two colours as such eyes see them; about 2 can just be told side by side.
inline double colourDistance(const QColor &a, const QColor &b, ColourVision vision)
{
    const auto first = labOf(simulated(a, vision));
    const auto second = labOf(simulated(b, vision));
    return std::hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
}

} // namespace planloom
