#include "engine/search/partition/sharding_choice.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// By optimizer operator: whether rows leave it to the search, and what stage they give it; -1 is none.
struct ShardedUpdates {
    std::vector<bool> left{};
    std::vector<std::int32_t> given{};
    bool hasChosen = false; ///< Some row leaves weights to the search: then the others are not.
    bool hasGiven = false;
};

ShardedUpdates shardedUpdates(const Model &model, const ConstraintTable &rows)
{
    const std::size_t count = model.graph->operators.size();
    ShardedUpdates updates{std::vector<bool>(count, false), std::vector<std::int32_t>(count, -1)};
    const RowSetting setting{model, 1, {}};
    for (const Row &row : rows.rows) {
        const auto *rule = std::get_if<OptimizerShardingRule>(&row.rule);
        if (!rule || !row.enabled)
            continue;
        (rule->chosen ? updates.hasChosen : updates.hasGiven) = true;
        const auto acted =
            RuleMeaning<OptimizerShardingRule>::actsOn(setting, *rule, model.index->select(row.selector));
        for (std::size_t i = 0; acted && i < acted->size(); ++i) {
            if (rule->chosen)
                updates.left[at((*acted)[i])] = true;
            else
                updates.given[at((*acted)[i])] = rule->stage;
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        const bool isFree = updates.hasChosen ? updates.left[i] : !updates.hasGiven;
        updates.left[i] = isFree && updates.given[i] < 0 && updatesWeight(model.graph->operators[i]);
    }
    return updates;
}

/// Of the weight that `step` updates.
double weightBytesOf(const Graph &graph, const Operator &step)
{
    for (const TensorId input : step.inputs)
        if (input && graph.at(input).role == TensorRole::Weight)
            return static_cast<double>(elementCount(graph.at(input).type.shape));
    return 0;
}

} // namespace

double ShardingLeft::keptShare(std::int32_t zero, std::int32_t from, std::int32_t replicas) const
{
    if (!isMixed())
        return zero >= from ? 1.0 / replicas : 1;
    const double cut = (isLeft && zero >= from ? left : 0) + (own >= from ? given : 0);
    return 1 - cut + cut / replicas;
}

std::string ShardingLeft::key() const
{
    return isMixed() ? "z" + std::to_string(own) + "/" + std::to_string(left) + "/" + std::to_string(given)
                     : std::string{};
}

ShardingLeft shardingLeft(const Model &model, const ConstraintTable &rows)
{
    const ShardedUpdates updates = shardedUpdates(model, rows);
    ShardingLeft found{.isLeft = updates.hasChosen || !updates.hasGiven};
    for (const std::int32_t stage : updates.given) {
        found.differs = found.differs || (stage > 0 && found.own > 0 && stage != found.own);
        found.own = std::max(found.own, stage);
    }
    double all = 0;
    double left = 0;
    double given = 0;
    for (std::size_t i = 0; i < updates.left.size(); ++i) {
        const Operator &step = model.graph->operators[i];
        if (!updatesWeight(step))
            continue;
        const double bytes = weightBytesOf(*model.graph, step);
        all += bytes;
        left += updates.left[i] ? bytes : 0;
        given += updates.given[i] > 0 ? bytes : 0;
    }
    if (all > 0) {
        found.left = left / all;
        found.given = given / all;
    }
    return found;
}

ConstraintTable shardingChoice(
    const Model &model, const ConstraintTable &rows, std::int32_t stage, const std::string &axis)
{
    const ShardedUpdates updates = shardedUpdates(model, rows);
    const OptimizerShardingRule rule{.stage = stage, .axis = axis};
    ConstraintTable chosen;
    if (!updates.hasChosen && !updates.hasGiven) {
        chosen.rows.push_back(templateRow({}, rule));
        return chosen;
    }
    const RowSetting setting{model, 1, {}};
    for (const Row &row : rows.rows) {
        const auto *asked = std::get_if<OptimizerShardingRule>(&row.rule);
        if (!asked || !row.enabled || !asked->chosen)
            continue;
        const auto acted =
            RuleMeaning<OptimizerShardingRule>::actsOn(setting, *asked, model.index->select(row.selector));
        if (!acted)
            continue;
        std::vector<std::string> names;
        for (const OperatorId op : *acted)
            if (updates.left[at(op)])
                names.push_back(model.graph->at(op).name);
        if (names.empty())
            continue;
        const bool all = names.size() == acted->size();
        chosen.rows.push_back(templateRow(all ? row.selector : selectSet(std::move(names)), rule));
    }
    return chosen;
}

} // namespace planloom
