#pragma once

#include "engine/hardware/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

// How figures of a cluster are found that explain times: for those that fit one.

/// A figure that is looked for, from `least` to `most`, both above 0.
struct FreeFigure {
    double *value = nullptr;
    double least = 0;
    double most = std::numeric_limits<double>::infinity();
};

/// Moves the figures, one after the other and in ever smaller steps, while `loss` becomes less.
inline void fitFigures(const std::vector<FreeFigure> &figures, const std::function<double()> &loss)
{
    constexpr double kFirstStep = 1.4;
    constexpr double kLastStep = 1.004;
    double best = loss();
    for (double step = kFirstStep; step > kLastStep; step = std::sqrt(step))
        for (int again = 0; again < 2; ++again)
            for (const FreeFigure &figure : figures)
                for (const double factor : {step, 1 / step})
                    while (true) {
                        const double before = *figure.value;
                        *figure.value = std::clamp(before * factor, figure.least, figure.most);
                        const double now = *figure.value == before ? best : loss();
                        if (now >= best) {
                            *figure.value = before;
                            break;
                        }
                        best = now;
                    }
}

/// Mean distance of predictions from times: a factor counts alike both ways, and no single row for much.
template<typename Rows, typename Predict> double fitDistance(const Rows &rows, const Predict &predict)
{
    double sum = 0;
    for (const auto &row : rows)
        sum += std::abs(std::log(predict(row) / row.seconds));
    return sum / static_cast<double>(std::max<std::size_t>(rows.size(), 1));
}

template<typename Rows, typename Predict>
FitError fitErrorOf(std::string kind, const Rows &rows, const Predict &predict)
{
    std::vector<double> errors;
    for (const auto &row : rows)
        errors.push_back(std::abs(predict(row) / row.seconds - 1));
    std::sort(errors.begin(), errors.end());
    if (errors.empty())
        return {std::move(kind)};
    return {std::move(kind), errors.size(), errors[errors.size() / 2], errors.back()};
}

/// Three digits that count: no more of a fit are known.
inline double roundedFigure(double value)
{
    if (value <= 0)
        return value;
    const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
    return std::round(value * scale) / scale;
}

} // namespace planloom
