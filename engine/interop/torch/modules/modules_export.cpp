#include "engine/interop/torch/modules/modules_export.h"

#include "engine/base/words.h"
#include "engine/interop/configs/rows_config.h"
#include "engine/interop/torch/modules/modules_text.h"
#include "engine/interop/torch/modules/plan_words.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr std::size_t kMostReasons = 8; ///< That are told of what can't be said.
constexpr int kMostRounds = 64; ///< Of rows that are left out, one round after another.

/// What was read off a plan, and planned again.
struct Round {
    PlanAnswerSnapshot answer{};
    ReadWords read{};
    ConstraintTable made{};
    std::set<RowId> unsaid{};
    std::vector<std::string> reasons{};
};

bool speaksOf(const Row &row, const std::string &axis)
{
    if (axis.empty())
        return true;
    const auto isOver = [&axis](const SplitStep &step) { return step.axis == axis; };
    if (const auto *split = std::get_if<OpTransRule>(&row.rule))
        return std::any_of(split->steps.begin(), split->steps.end(), isOver);
    if (const auto *place = std::get_if<OpAssignRule>(&row.rule))
        return std::any_of(place->coordinates.begin(), place->coordinates.end(),
            [&axis](const AxisCoordinate &each) { return each.axis == axis; });
    if (const auto *ring = std::get_if<RingRule>(&row.rule))
        return ring->axis == axis;
    return std::holds_alternative<StageRule>(row.rule) || std::holds_alternative<LayoutRule>(row.rule)
        || std::holds_alternative<SpreadRule>(row.rule);
}

/// Finds the rows behind what differs.
class RowsBehind
{
public:
    explicit RowsBehind(Round &round)
        : m_round(round)
        , m_plan(*round.answer->plan)
        , m_graph(*m_plan.graph)
        , m_table(round.answer->table.table())
    {
    }

    /// The rows that an operator follows from, or, where the default decided, those of what it reads, then
    /// any that speak of the axis.
    void add(OperatorId op, const std::string &axis)
    {
        if (addOf(op, axis))
            return;
        for (const TensorId input : m_graph.at(op).inputs)
            for (std::size_t o = 0; input.valid() && o < m_graph.operators.size(); ++o) {
                const auto &outputs = m_graph.operators[o].outputs;
                if (std::find(outputs.begin(), outputs.end(), input) != outputs.end()
                    && addOf(OperatorId{static_cast<std::int32_t>(o)}, axis))
                    return;
            }
        addIf([&axis](const Row &row) { return !axis.empty() && speaksOf(row, axis); });
    }

    template<typename Asked> void addIf(const Asked &isAsked)
    {
        for (std::size_t i = 0; i < m_table.rows.size(); ++i)
            if (m_table.rows[i].enabled && isAsked(m_table.rows[i]))
                m_round.unsaid.insert(RowId{static_cast<std::int32_t>(i)});
    }

    /// What two plans differ in.
    void addDifferences(const Plan &made)
    {
        for (std::size_t o = 0; o < m_plan.decisions.size() && o < made.decisions.size(); ++o) {
            OperatorDecision mine = m_plan.decisions[o];
            OperatorDecision theirs = made.decisions[o];
            for (OperatorDecision *each : {&mine, &theirs}) {
                each->rows.clear();
                each->precisionRows.clear();
                each->why.clear();
            }
            if (mine != theirs)
                addDecision(OperatorId{static_cast<std::int32_t>(o)}, mine, theirs);
        }
        addIf([this, &made](const Row &row) {
            return (std::holds_alternative<MicroBatchesRule>(row.rule)
                       && (m_plan.microBatches != made.microBatches || m_plan.updates != made.updates
                           || m_plan.wholeBatches != made.wholeBatches))
                || (std::holds_alternative<ScheduleRule>(row.rule)
                    && (m_plan.schedule != made.schedule || m_plan.order != made.order))
                || (std::holds_alternative<OverlapRule>(row.rule) && m_plan.overlap != made.overlap)
                || (std::holds_alternative<InFlightRule>(row.rule) && m_plan.inFlight != made.inFlight)
                || (std::holds_alternative<OpOrderRule>(row.rule)
                    && m_plan.orders.size() != made.orders.size())
                || (std::holds_alternative<CommunicateRule>(row.rule)
                    && m_plan.communicationOrders.size() != made.communicationOrders.size())
                || (std::holds_alternative<InterleaveRule>(row.rule)
                    && m_plan.interleaved.size() != made.interleaved.size());
        });
    }

private:
    /// The rows of the kind that what differs is of; where there are none of it, all that it follows from.
    void addDecision(OperatorId op, const OperatorDecision &mine, const OperatorDecision &theirs)
    {
        const OperatorDecision &own = m_plan.decisions[at(op)];
        if (mine.precision != theirs.precision)
            m_round.unsaid.insert(own.precisionRows.begin(), own.precisionRows.end());
        const std::size_t before = m_round.unsaid.size();
        for (const RowId id : own.rows) {
            const Rule &rule = m_table.rows[at(id)].rule;
            const bool isBehind =
                (mine.partition != theirs.partition
                    && (std::holds_alternative<OpTransRule>(rule) || std::holds_alternative<SliceRule>(rule)
                        || std::holds_alternative<LanesRule>(rule)
                        || std::holds_alternative<CoshardRule>(rule)
                        || std::holds_alternative<RingRule>(rule)))
                || (mine.sharding != theirs.sharding && std::holds_alternative<OptimizerShardingRule>(rule))
                || (mine.recomputeGroup != theirs.recomputeGroup
                    && std::holds_alternative<RecomputeRule>(rule))
                || (mine.devices != theirs.devices && std::holds_alternative<OpAssignRule>(rule))
                || (mine.attention != theirs.attention && std::holds_alternative<AttentionRule>(rule))
                || (mine.offloaded != theirs.offloaded && std::holds_alternative<OffloadRule>(rule))
                || (mine.weightVersions != theirs.weightVersions
                    && std::holds_alternative<WeightVersionsRule>(rule))
                || (mine.splitBackward != theirs.splitBackward
                    && std::holds_alternative<SplitBackwardRule>(rule));
            if (isBehind)
                m_round.unsaid.insert(id);
        }
        if (m_round.unsaid.size() == before && m_round.unsaid.empty())
            m_round.unsaid.insert(own.rows.begin(), own.rows.end());
    }

    bool addOf(OperatorId op, const std::string &axis)
    {
        bool isAny = false;
        const OperatorDecision &decision = m_plan.decisions[at(op)];
        for (const std::vector<RowId> *rows : {&decision.rows, &decision.precisionRows})
            for (const RowId id : *rows)
                if (speaksOf(m_table.rows[at(id)], axis)) {
                    m_round.unsaid.insert(id);
                    isAny = true;
                }
        return isAny;
    }

    Round &m_round;
    const Plan &m_plan;
    const Graph &m_graph;
    ConstraintTable m_table{};
};

Result<Round> roundOf(const PlanRequest &request)
{
    Round round;
    TRY(round.answer, plannedAsTheyAre(request, PlanGrade::Lowered));
    TRY(round.read, readPlanWords(*round.answer, *request.model));
    RowsBehind behind(round);
    for (const Refusal &refusal : round.read.refused) {
        behind.add(refusal.op, refusal.axis);
        const std::string reason = round.answer->plan->graph->at(refusal.op).name + ": " + refusal.why;
        if (round.reasons.size() < kMostReasons
            && std::find(round.reasons.begin(), round.reasons.end(), reason) == round.reasons.end())
            round.reasons.push_back(reason);
    }
    // What was read is planned again: only what comes back is said.
    round.made = rowsOfWords(round.read, *round.answer);
    PlanRequest again = request;
    again.table = TableDocument(print(round.made));
    const auto said = plannedAsTheyAre(again, PlanGrade::Planned);
    if (said && !decidesAlike(*round.answer->plan, *(*said)->plan))
        behind.addDifferences(*(*said)->plan);
    const bool isSame =
        said && decidesAlike(*round.answer->plan, *(*said)->plan) && round.read.refused.empty();
    if (!isSame && round.unsaid.empty())
        return Error{ErrorCode::NotSupported,
            "the plan can't be said in PyTorch's own words, and no row is behind it: "
                + (!round.reasons.empty() ? round.reasons.front()
                        : said            ? std::string("what was read off it is another plan")
                                          : describe(said.error())),
            "--format torch writes every plan", "--format"};
    return round;
}

/// A table with rows switched off, so that the others keep their numbers.
ConstraintTable without(ConstraintTable table, const std::set<RowId> &rows)
{
    for (const RowId row : rows)
        table.rows[at(row)].enabled = false;
    return table;
}

std::vector<std::string> linesOf(const ConstraintTable &table)
{
    std::vector<std::string> lines;
    for (const Row &row : table.rows)
        if (row.enabled)
            lines.push_back(print(row));
    return lines;
}

} // namespace

Result<ModulesExport> modulesExport(const PlanRequest &request, const ModulesOptions &options)
{
    TRY_VOID(requireTrainingStep(*request.model));
    ModulesExport made;
    const ConstraintTable table = request.table.table();
    PlanRequest reduced = request;
    std::set<RowId> unsaid;
    TRY(Round round, roundOf(reduced));
    made.said.notes = round.reasons;
    for (int i = 0; !round.unsaid.empty() && i < kMostRounds; ++i) {
        unsaid.insert(round.unsaid.begin(), round.unsaid.end());
        reduced.table = TableDocument(print(without(table, unsaid)));
        if (!options.leaveOut)
            break;
        TRY(round, roundOf(reduced));
    }
    made.said.isWhole = unsaid.empty();
    for (const RowId row : unsaid)
        made.said.unsaid.push_back({row, print(table.rows[at(row)])});
    if (!made.said.isWhole)
        timeUnsaid(request, reduced, made.said);
    if (!made.said.isWhole && !options.leaveOut)
        return made;
    std::vector<std::string> notes;
    for (const UnsaidRow &row : made.said.unsaid)
        notes.push_back("Left out, since PyTorch has no words for it: " + rowWords(row.row.index) + ", `"
            + row.text + "`.");
    if (!round.read.words.madeInside.empty())
        notes.emplace_back(
            "The model makes constants from the length of what it is given, which is a part of the "
            "sequence here: let it take positions as an input.");
    if (!round.read.words.localSizes.empty())
        notes.emplace_back(
            "Where heads or columns are shared out, forward has to shape what it computes by `-1`, or by "
            "attributes: "
            "those that it uses and that are listed in `LOCAL_SIZES` are made those of one device.");
    made.folder.files = filesOf({.words = round.read.words,
        .answer = *round.answer,
        .model = *request.model,
        .module = options.module,
        .rows = linesOf(without(table, unsaid)),
        .notes = std::move(notes)});
    made.folder.world = round.answer->deviceCount;
    made.folder.programs = 1;
    return made;
}

Error unsaidError(const ModulesExport &made)
{
    std::string list;
    for (const UnsaidRow &row : made.said.unsaid)
        list += "\n  " + rowWords(row.row.index) + ": " + row.text
            + (row.secondsWithout > 0 ? " (a step without it: " + formatSeconds(row.secondsWithout)
                        + " in place of " + formatSeconds(made.said.planSeconds) + ")"
                                      : "");
    for (const std::string &reason : made.said.notes)
        list += "\n  " + reason;
    return {ErrorCode::NotSupported,
        "PyTorch's own words don't say all of the plan, and nothing was written:" + list,
        "--format torch writes the plan whole; --leave-out writes it without these rows", "--leave-out"};
}

} // namespace planloom
