#include "engine/search/memory/turn_units.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/plan/complete.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// As in the gallery's coshard: of attentions, and of products between two of the model's width.
constexpr std::array kMeanings{DimensionMeaning::Heads, DimensionMeaning::FeedForward};

/// Whether something takes turns is seen from two of them.
constexpr std::int32_t kFewest = 2;

CoshardRule ruleOf(DimensionMeaning meaning, std::int32_t parts)
{
    return {{.kind = DimensionRef::Kind::Meaning, .meaning = meaning}, parts};
}

/// By layer the operators that a row about a meaning would cut; without layers in which it would fail.
std::map<std::int32_t, std::vector<std::pair<OperatorId, Split>>> cutBy(
    const Model &model, const StagePlan &plan, DimensionMeaning meaning)
{
    const RowSetting setting{model, 1, {}};
    std::map<std::int32_t, std::vector<std::pair<OperatorId, Split>>> layers;
    std::set<std::int32_t> refused;
    for (std::size_t i = 0; i < plan.recomputed.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        const std::int32_t layer = model.index->layerOf(op);
        if (layer < 0)
            continue;
        const auto made = RuleMeaning<CoshardRule>::of(setting, ruleOf(meaning, kFewest), op);
        if (made && !*made)
            continue;
        if (!made || !plan.recomputed[i] || plan.recomputedWith[i] != layer)
            refused.insert(layer);
        else
            layers[layer].emplace_back(op, *(*made)->coshard.preferred());
    }
    for (const std::int32_t layer : refused)
        layers.erase(layer);
    return layers;
}

} // namespace

TurnUnits turnUnits(const Model &model, const StagePlan &plan, const ConstraintTable &kernels)
{
    const std::size_t operators = plan.recomputed.size();
    TurnUnits found{.unitOf = std::vector<std::int32_t>(operators, -1),
        .regionOf = std::vector<std::int32_t>(operators, -1),
        .splits = std::vector<Split>(operators)};
    std::int32_t regions = 0;
    for (const DimensionMeaning meaning : kMeanings) {
        auto layers = cutBy(model, plan, meaning);
        std::erase_if(layers, [&](const auto &each) { // another unit has some of it
            return std::any_of(each.second.begin(), each.second.end(),
                [&](const auto &op) { return found.unitOf[at(op.first)] >= 0; });
        });
        std::vector<TurnUnit> units;
        for (const auto &[layer, cut] : layers) {
            TurnUnit &unit = units.emplace_back(TurnUnit{layer, meaning});
            for (const auto &[op, split] : cut)
                unit.operators.push_back(op);
        }
        if (units.empty())
            continue;
        ConstraintTable table = kernels;
        const ConstraintTable rows = turnRows(model, units, std::vector<std::int32_t>(units.size(), kFewest));
        table.rows.insert(table.rows.end(), rows.rows.begin(), rows.rows.end());
        const auto completion = completePlan(model, 1, table);
        if (!completion || firstError(*completion))
            continue;
        const auto regionOf = [&](OperatorId op) { return completion->plan.decisions[at(op)].coshardRegion; };
        std::int32_t most = -1;
        for (TurnUnit &unit : units) {
            if (std::none_of(unit.operators.begin(), unit.operators.end(),
                    [&](OperatorId op) { return regionOf(op) >= 0; }))
                continue;
            for (const auto &[op, split] : layers.at(unit.layer)) {
                found.unitOf[at(op)] = static_cast<std::int32_t>(found.units.size());
                found.splits[at(op)] = split;
                if (regionOf(op) >= 0)
                    found.regionOf[at(op)] = regions + regionOf(op);
                most = std::max(most, regionOf(op));
            }
            found.units.push_back(std::move(unit));
        }
        regions += most + 1;
    }
    return found;
}

ConstraintTable turnRows(
    const Model &model, const std::vector<TurnUnit> &units, const std::vector<std::int32_t> &turns)
{
    std::map<std::pair<DimensionMeaning, std::int32_t>, std::set<std::int32_t>> layers; // by rule
    for (std::size_t u = 0; u < units.size(); ++u)
        if (turns[u] > 1)
            layers[{units[u].meaning, turns[u]}].insert(units[u].layer);
    ConstraintTable table;
    for (const auto &[rule, own] : layers) {
        std::vector<OperatorId> operators; // all of these layers: a row passes by what has no such dimension
        for (std::size_t i = 0; i < model.index->forwardCount(); ++i)
            if (const OperatorId op{static_cast<std::int32_t>(i)}; own.contains(model.index->layerOf(op)))
                operators.push_back(op);
        table.rows.push_back(
            templateRow(stageSelector(*model.index, operators), ruleOf(rule.first, rule.second)));
    }
    return table;
}

} // namespace planloom
