#include "engine/frontend/passes/scopes/structure_scopes.h"

#include "engine/base/ids.h"
#include "engine/base/text.h"
#include "engine/frontend/passes/scopes/alikeness.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostPeriods = 64; ///< Lengths of layers that are tried.
constexpr std::size_t kFewestOperators = 3; ///< Of a layer.
constexpr std::size_t kMostLookedAt = 50'000'000; ///< Operators, while it is found where layers begin.

/// `count` stretches of `period` operators each, from operator `begin` of the sequence on.
struct Repetition {
    std::size_t begin = 0;
    std::size_t period = 0;
    std::size_t count = 0;
    std::vector<std::string> names{}; ///< Of the modules they are, by stretch; empty if names do not say.

    std::size_t end() const { return begin + period * count; }
};

/// "model.layers.0" of "model.layers.0.mlp.c_fc.weight": what ends with the last part that is a number.
std::string_view numberedPart(std::string_view name)
{
    for (std::size_t end = name.size(); end > 0;) {
        const std::size_t dot = name.rfind('.', end - 1);
        const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
        if (begin > 0 && begin < end
            && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                name.begin() + static_cast<std::ptrdiff_t>(end), isDigit))
            return name.substr(0, end);
        if (dot == std::string_view::npos)
            return {};
        end = dot;
    }
    return {};
}

/// What two dotted names have in common, in whole parts.
std::string_view commonModule(std::string_view a, std::string_view b)
{
    std::size_t same = 0;
    while (same < a.size() && same < b.size() && a[same] == b[same])
        ++same;
    const bool whole = (same == a.size() || a[same] == '.') && (same == b.size() || b[same] == '.');
    if (whole)
        return a.substr(0, same);
    const std::size_t dot = a.substr(0, same).rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : a.substr(0, dot);
}

class LayerFinder
{
public:
    explicit LayerFinder(const Graph &graph);

    /// Repetitions in the order of the sequence.
    std::vector<Repetition> find();
    OperatorId at(std::size_t position) const { return m_sequence[position]; }

private:
    std::vector<std::size_t> periods(std::size_t begin, std::size_t end) const;
    std::optional<Repetition> longest(std::size_t begin, std::size_t end) const;
    Repetition aligned(std::size_t begin, std::size_t end, std::size_t period) const;
    std::vector<std::string> namesOf(const Repetition &repetition) const;
    bool readsWeight(std::size_t begin, std::size_t end) const
    {
        return m_weightsBefore[end] > m_weightsBefore[begin];
    }

    const Graph &m_graph;
    std::vector<OperatorId> m_sequence{}; ///< Forward operators.
    std::vector<std::int32_t> m_symbols{}; ///< By position: equal for operators that are alike.
    std::vector<std::int64_t> m_passing{}; ///< By position: values made before it that are read from it on.
    std::vector<std::int64_t> m_weightsBefore{}; ///< By position: readings of weights before it.
};

LayerFinder::LayerFinder(const Graph &graph)
    : m_graph(graph)
{
    Alikeness alikeness(graph);
    Numbering<std::vector<std::int32_t>> symbols;
    std::vector<std::size_t> madeAt(graph.tensors.size(), std::numeric_limits<std::size_t>::max());
    std::vector<std::size_t> lastRead(graph.tensors.size());
    m_weightsBefore.push_back(0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        const std::size_t position = m_sequence.size();
        std::vector<std::int32_t> key{alikeness.of(op)};
        std::int64_t weights = m_weightsBefore.back();
        for (const TensorId id : op.inputs) {
            if (!id) {
                key.push_back(-1);
                continue;
            }
            const Tensor &tensor = graph.at(id);
            const TensorRole role = tensor.role == TensorRole::Input ? TensorRole::Activation : tensor.role;
            key.push_back(-2 - static_cast<std::int32_t>(role));
            key.push_back(alikeness.typeNumber(tensor.type));
            weights += role == TensorRole::Weight ? 1 : 0;
            lastRead[planloom::at(id)] = position;
        }
        for (const TensorId id : op.outputs) {
            if (id)
                madeAt[planloom::at(id)] = position;
        }
        m_sequence.push_back(OperatorId{static_cast<std::int32_t>(i)});
        m_symbols.push_back(symbols.of(key));
        m_weightsBefore.push_back(weights);
    }
    m_passing.assign(m_sequence.size() + 1, 0);
    for (std::size_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
        if (madeAt[tensor] >= m_sequence.size() || lastRead[tensor] <= madeAt[tensor])
            continue;
        ++m_passing[madeAt[tensor] + 1];
        --m_passing[lastRead[tensor] + 1];
    }
    for (std::size_t i = 1; i < m_passing.size(); ++i)
        m_passing[i] += m_passing[i - 1];
}

/// Lengths that layers may have: how far like operators stand apart, those that account for most first.
std::vector<std::size_t> LayerFinder::periods(std::size_t begin, std::size_t end) const
{
    std::map<std::int32_t, std::size_t> last; // by symbol
    std::map<std::size_t, std::size_t> covered; // by distance
    for (std::size_t i = begin; i < end; ++i) {
        const auto [found, isNew] = last.emplace(m_symbols[i], i);
        if (!isNew)
            covered[i - found->second] += i - found->second;
        found->second = i;
    }
    std::vector<std::size_t> list;
    for (const auto &[distance, total] : covered) {
        if (distance >= kFewestOperators)
            list.push_back(distance);
    }
    std::stable_sort(
        list.begin(), list.end(), [&](std::size_t a, std::size_t b) { return covered[a] > covered[b]; });
    list.resize(std::min(list.size(), kMostPeriods));
    return list;
}

/// The names that the weights of each stretch agree on; empty unless each has one of its own.
std::vector<std::string> LayerFinder::namesOf(const Repetition &repetition) const
{
    std::vector<std::string> names;
    std::set<std::string_view> different;
    for (std::size_t i = 0; i < repetition.count; ++i) {
        std::optional<std::string_view> common;
        const std::size_t begin = repetition.begin + i * repetition.period;
        for (std::size_t position = begin; position < begin + repetition.period; ++position) {
            for (const TensorId id : m_graph.at(m_sequence[position]).inputs) {
                if (!id || m_graph.at(id).role != TensorRole::Weight)
                    continue;
                const std::string_view name = m_graph.at(id).name;
                if (name.find('.') != std::string_view::npos)
                    common = common ? commonModule(*common, name) : name;
            }
        }
        const std::string_view name = common ? numberedPart(*common) : std::string_view{};
        if (name.empty() || !different.insert(name).second)
            return {};
        names.emplace_back(name);
    }
    return names;
}

/// The repetition of `period` in a run, where every operator is like the one a period behind it.
Repetition LayerFinder::aligned(std::size_t begin, std::size_t end, std::size_t period) const
{
    Repetition best;
    std::int64_t fewest = 0;
    const std::size_t count = (end - begin) / period;
    const std::size_t most = begin + kMostLookedAt / (end - begin);
    for (std::size_t first = begin; first + count * period <= end && first <= most; ++first) {
        Repetition repetition{.begin = first, .period = period, .count = count};
        repetition.names = namesOf(repetition);
        std::int64_t passing = 0;
        for (std::size_t i = 0; i <= count; ++i)
            passing += m_passing[first + i * period];
        const bool named = !repetition.names.empty();
        const bool wasNamed = !best.names.empty();
        if (best.count == 0 || (named && !wasNamed) || (named == wasNamed && passing < fewest)) {
            best = std::move(repetition);
            fewest = passing;
        }
    }
    return best;
}

std::optional<Repetition> LayerFinder::longest(std::size_t begin, std::size_t end) const
{
    struct Run {
        std::size_t begin = 0;
        std::size_t end = 0;
        std::size_t period = 0;
        std::size_t covered = 0;
    } best;
    for (const std::size_t period : periods(begin, end)) {
        for (std::size_t i = begin; i + period < end;) {
            std::size_t same = i;
            while (same + period < end && m_symbols[same] == m_symbols[same + period])
                ++same;
            const std::size_t covered = (same + period - i) / period * period;
            const bool better = covered > best.covered || (covered == best.covered && period < best.period);
            if (same - i >= period && better && readsWeight(i, i + period))
                best = {i, same + period, period, covered};
            i = same + 1;
        }
    }
    if (best.period == 0)
        return std::nullopt;
    return aligned(best.begin, best.end, best.period);
}

std::vector<Repetition> LayerFinder::find()
{
    std::vector<Repetition> found;
    std::vector<std::pair<std::size_t, std::size_t>> open{{0, m_sequence.size()}};
    while (!open.empty()) {
        const auto [begin, end] = open.back();
        open.pop_back();
        auto repetition = longest(begin, end);
        if (!repetition)
            continue;
        open.emplace_back(begin, repetition->begin);
        open.emplace_back(repetition->end(), end);
        found.push_back(*std::move(repetition));
    }
    std::sort(found.begin(), found.end(),
        [](const Repetition &a, const Repetition &b) { return a.begin < b.begin; });
    return found;
}

} // namespace

void scopesFromStructure(Graph &graph)
{
    LayerFinder finder(graph);
    std::set<std::string> taken;
    std::size_t number = 0;
    for (const Repetition &repetition : finder.find()) {
        for (std::size_t i = 0; i < repetition.count; ++i) {
            std::string name = repetition.names.empty() ? std::string{} : repetition.names[i];
            while (name.empty() || !taken.insert(name).second)
                name = "layer." + std::to_string(number++);
            const ScopeId scope{static_cast<std::int32_t>(graph.scopes.size())};
            graph.scopes.push_back({.name = std::move(name), .parent = ScopeId{0}});
            const std::size_t begin = repetition.begin + i * repetition.period;
            for (std::size_t position = begin; position < begin + repetition.period; ++position)
                graph.at(finder.at(position)).scope = scope;
        }
    }
}

} // namespace planloom
