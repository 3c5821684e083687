#include "engine/table/kinds/meaning.h"

namespace planloom {

namespace {

/// Visits what a kind says of each operator by itself.
template<typename RuleType, typename Visit>
void askOneByOne(
    const RowSetting &setting, const RuleType &rule, const std::vector<OperatorId> &acted, Visit visit)
{
    using Meaning = RuleMeaning<RuleType>;
    Result<SharedMeaning> said = SharedMeaning{};
    for (const OperatorId op : acted) {
        if (!Meaning::sameForAll || !said || !*said) {
            auto meaning = Meaning::of(setting, rule, op);
            if (!meaning)
                said = std::move(meaning).error();
            else if (*meaning)
                said = std::make_shared<const OperatorMeaning>(**std::move(meaning));
            else
                said = SharedMeaning{};
        }
        if (!visit(op, said))
            return;
    }
}

} // namespace

Result<void> askEach(const RowSetting &setting, const Rule &rule, const std::vector<OperatorId> &selected,
    const std::function<bool(OperatorId, Result<SharedMeaning>)> &visit)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &own) -> Result<void> {
            if constexpr (MeansOfOperators<RuleType> || MeansOfSelections<RuleType>) {
                TRY_VOID(RuleMeaning<RuleType>::check(setting, own));
                TRY(const auto acted, RuleMeaning<RuleType>::actsOn(setting, own, selected));
                if constexpr (MeansOfOperators<RuleType>) {
                    askOneByOne(setting, own, acted, visit);
                } else {
                    auto meanings = RuleMeaning<RuleType>::ofEach(setting, own, acted);
                    for (std::size_t i = 0; i < acted.size(); ++i)
                        if (!visit(acted[i], std::make_shared<const OperatorMeaning>(std::move(meanings[i]))))
                            break;
                }
            }
            return {};
        },
        rule);
}

Result<std::optional<OperatorMeaning>> meaningOf(const RowSetting &setting, const Rule &rule, OperatorId op)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &own) -> Result<std::optional<OperatorMeaning>> {
            if constexpr (MeansOfOperators<RuleType>)
                return RuleMeaning<RuleType>::of(setting, own, op);
            else
                return std::optional<OperatorMeaning>{};
        },
        rule);
}

Result<std::vector<OperatorId>> actsOn(
    const RowSetting &setting, const Rule &rule, const std::vector<OperatorId> &selected)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &own) -> Result<std::vector<OperatorId>> {
            if constexpr (MeansOfOperators<RuleType> || MeansOfSelections<RuleType>)
                return RuleMeaning<RuleType>::actsOn(setting, own, selected);
            else
                return std::vector<OperatorId>{};
        },
        rule);
}

RuleSides sidesOf(const RowSetting &setting, const std::vector<OperatorId> &selected, const Selector &second)
{
    RuleSides sides{ofOneDirection(setting.graph(), selected),
        ofOneDirection(setting.graph(), setting.index().select(second))};
    return sides.first.empty() || sides.second.empty() ? RuleSides{} : sides;
}

Result<void> checkForward(const RowSetting &setting, const RuleSides &sides, const std::string &what)
{
    for (const auto *side : {&sides.first, &sides.second})
        if (!side->empty() && setting.graph().at(side->front()).direction != Direction::Forward)
            return Error{ErrorCode::InvalidInput,
                "operator '" + setting.graph().at(side->front()).name + "' " + what,
                "select forward operators", ""};
    return {};
}

Result<void> checkMicroBatches(std::int32_t microBatch, std::int32_t offset, std::int32_t microBatches)
{
    for (const std::int32_t named : {microBatch, microBatch + offset})
        if (microBatch >= 0 && (named < 0 || named >= microBatches))
            return Error{ErrorCode::InvalidInput,
                "there is no micro-batch " + std::to_string(named) + ": the plan has "
                    + std::to_string(microBatches) + ", numbered from 0",
                "", ""};
    return {};
}

std::optional<std::int32_t> givenMicroBatches(const ConstraintTable &table)
{
    for (const Row &row : table.rows)
        if (const auto *rule = std::get_if<MicroBatchesRule>(&row.rule); rule && row.enabled)
            return rule->count;
    return std::nullopt;
}

std::optional<RowId> scheduleRowAt(const ConstraintTable &table, std::int32_t microBatches)
{
    std::optional<RowId> found;
    bool own = false;
    for (std::size_t i = 0; i < table.rows.size() && !own; ++i) {
        const auto *rule = std::get_if<ScheduleRule>(&table.rows[i].rule);
        if (!rule || !table.rows[i].enabled || rule->chosen || !rule->holdsAt(microBatches))
            continue;
        own = rule->microBatches > 0;
        if (own || !found)
            found = RowId{static_cast<std::int32_t>(i)};
    }
    return found;
}

RowSetting settingOf(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    return {model, deviceCount, planMeaning(model, deviceCount, table).mesh};
}

} // namespace planloom
