#include "widgets/common/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace planloom {

TimeUnit timeUnitFor(double extentSeconds)
{
    const double extent = std::abs(extentSeconds);
    if (extent >= 1 || !(extent > 0))
        return {1, "s"};
    if (extent >= 1e-3)
        return {1e-3, "ms"};
    if (extent >= 1e-6)
        return {1e-6, "µs"};
    return {1e-9, "ns"};
}

std::string formatInUnit(double seconds, TimeUnit unit, double stepSeconds)
{
    const double step = std::abs(stepSeconds) / unit.seconds;
    int decimals = 0;
    if (step > 0 && step < 1)
        decimals = std::min(9, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
    std::array<char, 64> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, seconds / unit.seconds);
    return buffer.data();
}

std::string formatShape(const Shape &shape)
{
    if (shape.empty())
        return "scalar";
    std::string text;
    for (const auto extent : shape) {
        if (!text.empty())
            text += " × ";
        text += std::to_string(extent);
    }
    return text;
}

std::string formatType(const Tensor &tensor)
{
    return tensor.typeKnown ? formatType(tensor.type) : "type unknown";
}

std::string formatType(const TensorType &type)
{
    return std::string(nameOf(type.dataType)) + " " + formatShape(type.shape);
}

std::string shortName(const Graph &graph, const Operator &op)
{
    if (!op.scope.valid())
        return op.name;
    const std::string path = pathOf(graph, op.scope);
    if (!path.empty() && op.name.size() > path.size() + 1 && op.name.compare(0, path.size(), path) == 0
        && op.name[path.size()] == '.')
        return op.name.substr(path.size() + 1);
    return op.name;
}

std::string elided(const std::string &text, std::size_t most)
{
    // Offsets of code points: bytes of the form 10xxxxxx continue one.
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U)
            starts.push_back(i);
    }
    if (starts.size() <= most)
        return text;
    if (most == 0)
        return {};
    const std::size_t kept = most - 1;
    const std::size_t head = (kept + 1) / 2;
    const std::size_t tail = kept - head;
    const std::size_t tailStart = tail == 0 ? text.size() : starts[starts.size() - tail];
    return text.substr(0, starts[head]) + "…" + text.substr(tailStart);
}

} // namespace planloom
