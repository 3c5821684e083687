#include "engine/design/explain/row_reasons.h"

#include "engine/base/words.h"
#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::size_t kShortSelector = 28; ///< Characters that are read at once.
constexpr std::size_t kShortRow = 96;

/// What people ask first of an operator comes first.
int rankOf(const Rule &rule)
{
    if (std::holds_alternative<OpAssignRule>(rule) || std::holds_alternative<SpreadRule>(rule)
        || std::holds_alternative<LayoutRule>(rule) || std::holds_alternative<DeviceSharingRule>(rule))
        return 0;
    if (std::holds_alternative<OpTransRule>(rule) || std::holds_alternative<PartsRule>(rule)
        || std::holds_alternative<AlikeRule>(rule) || std::holds_alternative<FollowRule>(rule)
        || std::holds_alternative<CoshardRule>(rule))
        return 1;
    return std::holds_alternative<StageRule>(rule) ? 2 : 3;
}

/// What a selector stands for: its forward operators, or others where it has none.
std::vector<OperatorId> namedBy(const PlanAnswer &answer, const Selector &selector)
{
    std::vector<OperatorId> selected = answer.model->index->select(selector);
    const auto isForward = [&](OperatorId op) { return at(op) < answer.model->index->forwardCount(); };
    if (std::any_of(selected.begin(), selected.end(), isForward))
        std::erase_if(selected, [&](OperatorId op) { return !isForward(op); });
    return selected;
}

/// "stage 3 (47 operators)", "5 operators of stage 3", "47 operators"
std::string whoOf(const PlanAnswer &answer, const std::vector<OperatorId> &selected)
{
    const Plan &plan = *answer.plan;
    const std::string count = counted(static_cast<std::int64_t>(selected.size()), "operator");
    if (selected.empty() || plan.stageCount < 2)
        return count;
    const StageId stage = plan.decisions[at(selected.front())].stage;
    const auto isOfStage = [&](OperatorId op) { return plan.decisions[at(op)].stage == stage; };
    if (!stage.valid() || !std::all_of(selected.begin(), selected.end(), isOfStage))
        return count;
    std::size_t forward = 0; // of the stage
    for (std::size_t i = 0; i < answer.model->index->forwardCount(); ++i)
        forward += isOfStage({static_cast<std::int32_t>(i)}) ? 1 : 0;
    const std::string name = "stage " + std::to_string(stage.index);
    return forward == selected.size() ? name + " (" + count + ')' : count + " of " + name;
}

std::string cutOff(const std::string &text)
{
    if (text.size() <= kShortRow)
        return text;
    std::size_t end = kShortRow; // not within a character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
        --end;
    return text.substr(0, end) + "...";
}

RowReason reasonOf(const PlanAnswer &answer, const ConstraintTable &table, RowId id)
{
    const Row &row = table.rows[at(id)];
    const RowLine &line = answer.rows[at(id)];
    RowReason reason{id, line.line, line.text};
    if (hasSelector(row.rule) && toString(row.selector).size() > kShortSelector) {
        const std::string rule = print(row.rule);
        const std::vector<OperatorId> named = namedBy(answer, row.selector);
        reason.words = std::string(nameOf(row.rule)) + ' ';
        if (std::holds_alternative<StageRule>(row.rule))
            reason.words += rule + ": " + counted(static_cast<std::int64_t>(named.size()), "operator");
        else
            reason.words += whoOf(answer, named)
                + (rule.empty()                                          ? ""
                        : std::holds_alternative<OpAssignRule>(row.rule) ? " on " + rule
                                                                         : ": " + rule);
    }
    reason.words = cutOff(reason.words);
    reason.isShortened = reason.words != line.text;
    return reason;
}

} // namespace

std::vector<RowReason> rowReasons(const PlanAnswer &answer, OperatorId op)
{
    std::vector<RowReason> reasons;
    if (!answer.plan)
        return reasons;
    const ConstraintTable table = answer.table.table();
    const OperatorDecision &decision = answer.plan->decisions[at(op)];
    const auto add = [&](const std::vector<RowId> &rows) {
        for (const RowId row : rows) {
            const auto is = [row](const RowReason &reason) { return reason.row == row; };
            if (at(row) < answer.rows.size() && std::none_of(reasons.begin(), reasons.end(), is))
                reasons.push_back(reasonOf(answer, table, row));
        }
    };
    add(decision.rows);
    std::stable_sort(reasons.begin(), reasons.end(), [&](const RowReason &a, const RowReason &b) {
        return rankOf(table.rows[at(a.row)].rule) < rankOf(table.rows[at(b.row)].rule);
    });
    add(decision.precisionRows);
    return reasons;
}

} // namespace planloom
