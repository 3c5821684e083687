#include "engine/gallery/gallery_experts.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/graph/operators/places.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace planloom {

namespace {

std::size_t at(OperatorId id)
{
    return static_cast<std::size_t>(id.index);
}

std::size_t at(TensorId id)
{
    return static_cast<std::size_t>(id.index);
}

/// The forward operators that belong to experts.
class ExpertFinder
{
public:
    explicit ExpertFinder(const Model &model)
        : m_graph(*model.graph)
        , m_classes(model.index->dimensions())
        , m_producers(m_graph.tensors.size())
        , m_fed(m_graph.tensors.size())
        , m_isTaken(m_graph.operators.size())
    {
        for (const TensorId input : m_graph.inputs)
            m_fed[at(input)] = true;
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            if (op.direction != Direction::Forward)
                continue;
            const bool fed = std::any_of(
                op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && m_fed[at(id)]; });
            for (const TensorId output : op.outputs) {
                if (!output)
                    continue;
                m_producers[at(output)] = OperatorId{static_cast<std::int32_t>(i)};
                m_fed[at(output)] = fed;
            }
        }
    }

    /// Operators with the weights of several experts, and what lies between them.
    std::vector<OperatorId> joint();
    /// By expert: operators between rows that its NonZero chose and what they are added to; the experts of
    /// each mixture one after the other, with how many its mixture has.
    struct Block {
        std::vector<OperatorId> operators{};
        std::size_t number = 0;
        std::size_t ofMany = 1;
    };
    std::vector<Block> separate();

private:
    bool forward(std::size_t i) const { return m_graph.operators[i].direction == Direction::Forward; }
    std::int32_t expertOf(std::size_t i) const;
    bool hasExpertWeights(std::size_t i) const;
    OperatorId chooserOf(OperatorId id) const;
    void addWeights(std::vector<OperatorId> &operators);

    const Graph &m_graph;
    const DimensionClasses &m_classes;
    std::vector<OperatorId> m_producers; ///< By tensor.
    std::vector<bool> m_fed; ///< By tensor: depends on an input of the model.
    std::vector<bool> m_isTaken; ///< By operator: makes weights for an expert's operators.
};

/// The identifier of the experts; -1 if the operator has none that can be cut.
std::int32_t ExpertFinder::expertOf(std::size_t i) const
{
    return findMeant(m_classes, m_graph, OperatorId{static_cast<std::int32_t>(i)}, DimensionMeaning::Expert)
        .identifier;
}

/// True if weights, what they are applied to and the result all come expert by expert.
bool ExpertFinder::hasExpertWeights(std::size_t i) const
{
    const Operator &op = m_graph.operators[i];
    const std::int32_t expert = expertOf(i);
    if (expert < 0 || op.outputs.empty() || !mentions(op.annotation.outputs[0], expert))
        return false;
    bool weights = false;
    bool rows = false;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot] || !mentions(op.annotation.inputs[slot], expert))
            continue;
        const bool fed = m_fed[at(op.inputs[slot])];
        weights = weights || (!fed && m_graph.at(op.inputs[slot]).role != TensorRole::Buffer);
        rows = rows || fed;
    }
    return weights && rows;
}

std::vector<OperatorId> ExpertFinder::joint()
{
    // Behind a first operator with experts' weights, and before a last one, all with an expert dimension.
    const std::size_t count = m_graph.operators.size();
    std::vector<char> behind(m_graph.tensors.size(), 0);
    std::vector<char> before(m_graph.tensors.size(), 0);
    std::vector<char> seed(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const Operator &op = m_graph.operators[i];
        if (!forward(i) || expertOf(i) < 0)
            continue;
        seed[i] = hasExpertWeights(i) ? 1 : 0;
        const bool reached = seed[i] != 0
            || std::any_of(
                op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && behind[at(id)] != 0; });
        for (const TensorId output : op.outputs) {
            if (output && reached)
                behind[at(output)] = 1;
        }
    }
    std::vector<OperatorId> found;
    for (std::size_t i = count; i-- > 0;) {
        const Operator &op = m_graph.operators[i];
        if (!forward(i) || expertOf(i) < 0)
            continue;
        const bool leads =
            seed[i] != 0 || std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
                // What is made of weights alone goes with those who read it.
                return id && before[at(id)] != 0 && (behind[at(id)] != 0 || !m_fed[at(id)]);
            });
        if (!leads)
            continue;
        found.push_back(OperatorId{static_cast<std::int32_t>(i)});
        for (const TensorId input : op.inputs) {
            if (input)
                before[at(input)] = 1;
        }
    }
    std::reverse(found.begin(), found.end());
    return found;
}

/// The operator whose choice a NonZero's mask shows: the TopK or ArgMax before it, else the NonZero itself.
OperatorId ExpertFinder::chooserOf(OperatorId id) const
{
    std::vector<OperatorId> open{id};
    std::vector<bool> seen(m_graph.operators.size());
    while (!open.empty()) {
        const OperatorId next = open.back();
        open.pop_back();
        if (seen[at(next)])
            continue;
        seen[at(next)] = true;
        const Operator &op = m_graph.at(next);
        if (op.kind == OperatorKind::TopK || op.kind == OperatorKind::ArgMax)
            return next;
        if (categoryOf(op.kind) == OperatorCategory::Product)
            continue;
        for (const TensorId input : op.inputs) {
            if (input && m_producers[at(input)])
                open.push_back(m_producers[at(input)]);
        }
    }
    return id;
}

/// What is made of weights alone for these operators goes with them.
void ExpertFinder::addWeights(std::vector<OperatorId> &operators)
{
    std::vector<OperatorId> open = operators;
    while (!open.empty()) {
        const Operator &op = m_graph.at(open.back());
        open.pop_back();
        for (const TensorId input : op.inputs) {
            const OperatorId maker = input ? m_producers[at(input)] : OperatorId{};
            if (!maker || m_fed[at(input)] || m_isTaken[at(maker)])
                continue;
            m_isTaken[at(maker)] = true;
            operators.push_back(maker);
            open.push_back(maker);
        }
    }
}

std::vector<ExpertFinder::Block> ExpertFinder::separate()
{
    // By tensor: the NonZero whose places it holds, or whose rows it has; and whether it is rows.
    std::vector<OperatorId> chosenBy(m_graph.tensors.size());
    std::vector<char> isRows(m_graph.tensors.size(), 0);
    std::map<OperatorId, std::vector<OperatorId>> between; // by NonZero
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const Operator &op = m_graph.operators[i];
        if (!forward(i))
            continue;
        const OperatorId id{static_cast<std::int32_t>(i)};
        OperatorId chosen =
            op.kind == OperatorKind::NonZero && op.attributes.integer("kept") == 0 ? id : OperatorId{};
        bool rows = false;
        for (const TensorId input : op.inputs) {
            if (!input || !chosenBy[at(input)])
                continue;
            chosen = chosenBy[at(input)];
            rows = rows || isRows[at(input)] != 0;
        }
        if (!chosen || op.kind == OperatorKind::ScatterND)
            continue; // what is written back is nobody's row any more
        const bool picks = hasPlaces(op.attributes) && op.kind != OperatorKind::NonZero;
        if (rows && !picks)
            between[chosen].push_back(id);
        for (const TensorId output : op.outputs) {
            if (output) {
                chosenBy[at(output)] = chosen;
                isRows[at(output)] = rows || picks ? 1 : 0;
            }
        }
    }
    std::map<OperatorId, std::vector<Block>> mixtures; // by chooser
    for (auto &[chosen, operators] : between) {
        // Up to the last operator with weights.
        while (!operators.empty()) {
            const Operator &op = m_graph.at(operators.back());
            const bool weighs = std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) {
                return id && !m_fed[at(id)] && m_graph.at(id).role != TensorRole::Buffer;
            });
            if (weighs)
                break;
            operators.pop_back();
        }
        addWeights(operators);
        if (!operators.empty())
            mixtures[chooserOf(chosen)].push_back({std::move(operators), 0, 1});
    }
    std::vector<Block> blocks;
    for (auto &[chooser, experts] : mixtures) {
        if (experts.size() < 2)
            continue; // rows that data choose, but nobody chooses among
        for (std::size_t e = 0; e < experts.size(); ++e) {
            experts[e].number = e;
            experts[e].ofMany = experts.size();
            blocks.push_back(std::move(experts[e]));
        }
    }
    return blocks;
}

Error noExperts(const std::string &why)
{
    return {ErrorCode::InvalidInput, why, "use data-parallel, or another number of devices",
        "gallery/expert-parallel"};
}

Selector both(Selector a, Selector b)
{
    Selector selector{.kind = SelectorKind::And};
    selector.children = {std::move(a), std::move(b)};
    return selector;
}

Selector allBut(Selector selected)
{
    Selector selector{.kind = SelectorKind::Not};
    selector.children.push_back(std::move(selected));
    return selector;
}

/// Appends rows that place operators at coordinates of an axis, within their stages where rows place those,
/// and all others on the whole axis. @return selectors of what is placed so
std::vector<Selector> placeExperts(const SelectorIndex &index, const std::string &axis,
    std::map<std::int32_t, std::vector<OperatorId>> placed, ConstraintTable &table)
{
    std::vector<Selector> all;
    std::map<std::int32_t, Selector> at;
    for (auto &[coordinate, operators] : placed) {
        std::sort(operators.begin(), operators.end());
        std::vector<Selector> selectors = selectorsByName(index, operators);
        all.insert(all.end(), selectors.begin(), selectors.end());
        at[coordinate] = selectAny(std::move(selectors));
    }
    if (all.empty())
        return all;
    std::vector<Row> rows;
    const auto placeAt = [&](const Selector &among, const std::vector<AxisCoordinate> &coordinates) {
        for (const auto &[coordinate, selector] : at) {
            const Selector own = among.kind == SelectorKind::All ? selector : both(among, selector);
            if (index.select(own).empty())
                continue;
            OpAssignRule rule{{}, coordinates};
            rule.coordinates.push_back({axis, coordinate});
            rows.push_back(templateRow(own, std::move(rule)));
        }
    };
    bool staged = false;
    for (Row &row : table.rows) {
        auto *rule = std::get_if<OpAssignRule>(&row.rule);
        if (rule == nullptr || rule->coordinates.empty())
            continue;
        staged = true;
        placeAt(row.selector, rule->coordinates);
        row.selector = both(row.selector, allBut(selectAny(all)));
    }
    if (!staged) {
        placeAt({}, {});
        rows.push_back(templateRow(allBut(selectAny(all)), OpAssignRule{}));
    }
    std::move(rows.begin(), rows.end(), std::back_inserter(table.rows));
    return all;
}

} // namespace

bool hasExperts(const Model &model)
{
    ExpertFinder finder(model);
    return !finder.joint().empty() || !finder.separate().empty();
}

Result<void> appendExpertParallel(
    const Model &model, const std::string &axis, std::int32_t parts, ConstraintTable &table)
{
    const SelectorIndex &index = *model.index;
    ExpertFinder finder(model);
    const std::vector<OperatorId> joint = finder.joint();
    const auto blocks = finder.separate();
    if (joint.empty() && blocks.empty())
        return noExperts("the model has no experts among which data choose");
    for (const OperatorId op : joint) {
        const auto meant = findMeant(model.index->dimensions(), *model.graph, op, DimensionMeaning::Expert);
        if (meant.extent % parts != 0)
            return noExperts("'" + model.graph->at(op).name + "' has " + counted(meant.extent, "expert")
                + ", which " + std::to_string(parts) + " does not divide");
    }
    std::vector<Selector> experts = joint.empty() ? std::vector<Selector>{} : selectorsByName(index, joint);
    const SplitStep alongExperts{.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Expert},
        .parts = 0,
        .sizes = {},
        .axis = axis};
    for (const Selector &selector : experts)
        table.rows.push_back(templateRow(selector, OpTransRule{{alongExperts}}));
    std::map<std::int32_t, std::vector<OperatorId>> placed; // by coordinate on the axis
    for (const auto &block : blocks) {
        if (block.ofMany % static_cast<std::size_t>(parts) != 0)
            return noExperts("a mixture has " + counted(static_cast<std::int64_t>(block.ofMany), "expert")
                + ", which " + std::to_string(parts) + " does not divide");
        auto &there =
            placed[static_cast<std::int32_t>(block.number * static_cast<std::size_t>(parts) / block.ofMany)];
        there.insert(there.end(), block.operators.begin(), block.operators.end());
    }
    for (Selector &selector : placeExperts(index, axis, std::move(placed), table))
        experts.push_back(std::move(selector));
    const SplitStep alongBatch{.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Meaning},
        .parts = 0,
        .sizes = {},
        .axis = axis};
    table.rows.push_back(templateRow(allBut(selectAny(std::move(experts))), OpTransRule{{alongBatch}}));
    return {};
}

} // namespace planloom
