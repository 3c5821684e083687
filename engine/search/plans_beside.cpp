#include "engine/search/plans_beside.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/attention.h"
#include "engine/search/partition/sharding_choice.h"
#include "engine/search/search_rows.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostShapes = 24;

} // namespace

PlansBeside::PlansBeside(
    StepEstimator &estimator, const Model &model, const SearchSpace &space, const ConstraintTable &asked)
    : m_estimator(estimator)
    , m_model(model)
    , m_space(space)
    , m_asked(asked)
{
    for (const Operator &op : model.graph->operators)
        if (attentionAxes(op)) {
            m_hasAttentions = true;
            m_hasCausalAttentions = m_hasCausalAttentions || attentionReach(op.attributes).causal;
        }
}

std::string PlansBeside::axisOfQueries(const StepEstimate &estimate) const
{
    if (!m_hasAttentions)
        return {};
    const PartitionProblem &problem = m_estimator.problemOf(estimate.configuration);
    std::string inner;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        const auto axes = attentionAxes(m_model.graph->operators[i]);
        if (!axes || axes->query < 0)
            continue;
        const OperatorChoice &choice = problem.choiceOf(i, estimate.partition->choice[i]);
        const auto cutsQueries = [&](const Split &split) {
            return split.kind == SplitKind::Dimension && split.parts > 1 && split.dimension == axes->query;
        };
        if (estimate.configuration.outerShards > 1 && cutsQueries(choice.outer))
            return m_space.outerShardAxis;
        if (cutsQueries(choice.split))
            inner = m_space.shardAxis;
    }
    return inner;
}

bool PlansBeside::mayCutOverAll() const
{
    return m_space.sharding.isLeft && !m_space.sharding.isMixed() && !m_space.ownRecompute
        && m_model.graph->loss.valid();
}

std::int64_t PlansBeside::leastShare(std::int32_t devices) const
{
    const auto all = m_estimator.weightBytesOfAll();
    return all ? *all / devices : 0;
}

std::vector<StepEstimate> PlansBeside::partitions(const std::stop_token &stop) const
{
    std::vector<std::pair<std::pair<std::int32_t, double>, Configuration>> shapes;
    for (const Configuration &each : m_space.configurations)
        if (each.zero == 0 && each.shards * each.outerShards > 1 && each.recompute == RecomputeWord::None)
            if (const auto least = m_estimator.kernelBoundOf(each))
                shapes.emplace_back(std::pair(each.stages(), *least), each);
    std::stable_sort(
        shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    shapes.resize(std::min(shapes.size(), kMostShapes));
    std::vector<StepEstimate> found;
    for (const auto &[order, shape] : shapes)
        if (auto usual = m_estimator.estimateUsual(shape, stop))
            for (StepEstimate &each : *usual)
                found.push_back(std::move(each));
    std::stable_sort(found.begin(), found.end(),
        [](const StepEstimate &a, const StepEstimate &b) { return a.seconds < b.seconds; });
    return found;
}

Result<ConstraintTable> PlansBeside::rowsOf(const StepEstimate &estimate, Choice choice) const
{
    const Configuration &configuration = estimate.configuration;
    const std::string axis = choice.goesRound || choice.isZigzag ? axisOfQueries(estimate) : "";
    TRY(ConstraintTable rows,
        planloom::rowsOf(estimate, m_estimator.problemOf(configuration), m_estimator.placedIn(configuration),
            m_model, m_space, m_asked, choice.isZigzag ? axis : ""));
    const auto add = [&](Selector selector, Rule rule) {
        rows.rows.push_back(templateRow(std::move(selector), std::move(rule)));
        rows.rows.back().origin = RowOrigin::Solver;
    };
    if (choice.goesRound)
        add({.kind = SelectorKind::Kind, .text = nameOf(OperatorKind::Attention)}, RingRule{axis});
    if (choice.cutsOverAll)
        for (Row &row : shardingChoice(m_model, m_asked, 3, "").rows)
            add(row.selector.kind == SelectorKind::All ? Selector{.kind = SelectorKind::Weight, .text = "*"}
                                                       : std::move(row.selector),
                std::move(row.rule));
    return rows;
}

} // namespace planloom
