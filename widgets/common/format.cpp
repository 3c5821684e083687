#include "widgets/common/format.h"

#include <algorithm>
#include <array>
#include <cctype>
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

namespace {

bool isSameWord(std::string_view a, std::string_view b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
        [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// A name that an exporter made of the kind, a number, or both: "node_linear_13", "MatMul", "node_embedding".
bool saysOnlyItsKind(std::string_view name, const Operator &op)
{
    const std::size_t end = name.find_last_not_of("0123456789");
    if (end == std::string_view::npos || (end + 1 < name.size() && name[end] == '_'))
        return true; // it is numbered
    const std::string_view word = name.substr(name.find_last_of("_/.:") + 1);
    return isSameWord(word, nameOf(op.kind))
        || std::any_of(op.sources.begin(), op.sources.end(),
            [word](const SourceNode &node) { return isSameWord(word, node.type); });
}

/// The module of the weight that `op` alone reads: "lm_head" for "model.lm_head.weight"; empty if there is
/// none.
std::string_view moduleOf(const Graph &graph, const Operator &op)
{
    const auto isWeight = [&](TensorId id) { return id.valid() && graph.at(id).role == TensorRole::Weight; };
    const auto weight = std::find_if(op.inputs.begin(), op.inputs.end(), isWeight);
    if (weight == op.inputs.end())
        return {};
    const std::string_view path = graph.at(*weight).name;
    const std::size_t end = path.rfind('.');
    if (end == std::string_view::npos || end == 0)
        return {};
    std::size_t begin = path.rfind('.', end - 1) + 1; // from 0 where there is no other
    // A number alone says nothing: "mlp.0".
    if (begin > 1
        && path.substr(begin, end - begin).find_first_not_of("0123456789") == std::string_view::npos)
        begin = path.rfind('.', begin - 2) + 1;
    for (const Operator &other : graph.operators) {
        if (other.direction != Direction::Forward)
            break;
        if (&other != &op
            && std::find(other.inputs.begin(), other.inputs.end(), *weight) != other.inputs.end())
            return {}; // it is tied: whose it is, is not said
    }
    return path.substr(begin, end - begin);
}

} // namespace

std::string shortName(const Graph &graph, const Operator &op)
{
    std::string own = op.name;
    if (const std::string path = op.scope.valid() ? pathOf(graph, op.scope) : std::string(); !path.empty()
        && own.size() > path.size() + 1 && own.compare(0, path.size(), path) == 0 && own[path.size()] == '.')
        own.erase(0, path.size() + 1);
    if (op.direction != Direction::Forward || !saysOnlyItsKind(own, op))
        return own;
    const std::string_view module = moduleOf(graph, op);
    return module.empty() || op.name.find(module) != std::string::npos ? own : std::string(module);
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
