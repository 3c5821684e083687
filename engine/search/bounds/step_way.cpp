#include "engine/search/bounds/step_way.h"

#include <algorithm>

namespace planloom {

void StageCounts::add(const StageCounts &other, double times)
{
    forward += times * other.forward;
    backward += times * other.backward;
    weights += times * other.weights;
    gathering += times * other.gathering;
    reducing += times * other.reducing;
    for (std::size_t as = 0; as < kReducedAs; ++as)
        reductions[as] += times * other.reductions[as];
    update += times * other.update;
    gather += times * other.gather;
}

bool StageCounts::hasTraffic() const
{
    return gathering + reducing + update + gather != 0
        || std::any_of(reductions.begin(), reductions.end(), [](double each) { return each > 0; });
}

namespace {

/// How a step ends, by the rank that ends last: through what that does behind its last block, or beside.
struct StepEnd {
    enum class Through { Updates, Gathering, Reductions, Behind, Shared };
    std::size_t rank = 0;
    Ending its{};
    double behind = 0; ///< What is left of reductions at least.
    double sharedUpdate = 0; ///< Of what is updated behind reductions of what several ranks add up.
    Through through = Through::Updates;
};

StepEnd stepEnd(const BoundedStep &step, const std::vector<StageFigures> &figures, const PipelineTime &played)
{
    double most = -1;
    StepEnd end;
    for (std::size_t rank = 0; rank < at(step.configuration.ranks); ++rank) {
        const Ending ending = step.reductions.endingOf(rank, figures, played);
        if (ending.seconds() > most) {
            most = ending.seconds();
            end.rank = rank;
            end.its = ending;
        }
    }
    if (!step.trains)
        end.its = {.begin = 0, .computed = end.its.computed};
    const Ending &its = end.its;
    end.behind = step.trains && its.reduction > 0 ? leastBehind(step.reductions, step.least, end.rank) : 0;
    double longest = its.computed + its.update;
    const auto consider = [&](double seconds, StepEnd::Through through) {
        if (seconds > longest) {
            longest = seconds;
            end.through = through;
        }
    };
    consider(its.computed + end.behind + its.gather, StepEnd::Through::Gathering);
    consider(its.reduction > its.shared ? its.begin + its.leastReduction + its.gather : 0,
        StepEnd::Through::Reductions);
    // What several ranks add up is reduced behind all others.
    end.sharedUpdate = its.shared > 0 && its.gather == 0 ? its.updatedLast - its.reduced : 0;
    const double after = its.shared + std::max(its.gather, end.sharedUpdate);
    consider(its.behind >= 0 ? its.leastReduced + after : 0, StepEnd::Through::Behind);
    consider(its.shared > 0 ? played.makespan + after : 0, StepEnd::Through::Shared);
    return end;
}

} // namespace

StepWay longestStepWay(const BoundedStep &step, const std::vector<StageFigures> &figures,
    const PipelineTime &played, const std::vector<PlayedBlock> &blocks, std::size_t sends)
{
    using enum StepEnd::Through;
    const std::size_t ranks = at(step.configuration.ranks);
    const StepEnd end = stepEnd(step, figures, played);
    const Ending &its = end.its;
    // To the last block of all where all make some of a gradient, to the one beside which gradients are
    // reduced, or to the rank's last.
    std::size_t beside = figures.size(); // the stage whose last backward block begins first
    for (std::size_t s = end.rank; s < figures.size(); s += ranks)
        if (beside == figures.size() || played.lastBackward[s] < played.lastBackward[beside])
            beside = s;
    if (end.through == Behind)
        beside = at(step.stageOf(at(its.behind)));
    std::size_t latest = end.rank;
    for (std::size_t s = 0; s < figures.size(); ++s)
        if (end.through == Shared && played.end[s] > played.end[latest])
            latest = s;
    std::int32_t to = -1;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const std::size_t stage = at(blocks[b].block.block.stage);
        const bool isLast = end.through == Reductions || end.through == Behind
            ? stage == beside && blocks[b].block.block.pass != SegmentKind::Forward
            : stage % ranks == latest % ranks;
        if (isLast)
            to = static_cast<std::int32_t>(b);
    }
    const bool including = end.through != Reductions && (end.through != Behind || its.behindAll);
    StepWay way{.blocks = longestWay(blocks, to, including, figures.size(), sends), .rank = end.rank};
    for (const StageVisits &visits : way.blocks.stages)
        way.stages.push_back({visits});
    way.constant = end.through == Gathering ? end.behind : 0;
    way.shared = its.shared > 0 && end.through != Updates && end.through != Gathering;
    way.sharedUpdate = way.shared && end.sharedUpdate > 0;
    for (std::size_t s = end.rank; s < way.stages.size() && step.trains; s += ranks) {
        if (end.through == Reductions)
            way.stages[s].reductions[static_cast<std::size_t>(its.allAs)] = 1;
        (end.through == Updates ? way.stages[s].update : way.stages[s].gather) = 1;
    }
    way.behind = end.through == Behind ? its.behind : -1;
    way.behindAll = its.behindAll;
    for (std::size_t s = end.rank; s < figures.size() && way.behind >= 0; s += ranks)
        if (played.end[s] > played.end[beside]) // in the order of the rank's blocks
            way.later.push_back(static_cast<std::int32_t>(s));
    way.as = its.as;
    if ((way.behind >= 0 && its.as == ReducedAs::AsOne)
        || (end.through == Reductions && its.allAs == ReducedAs::AsOne))
        way.constant += step.reductions.leastLaunch();
    if (end.through != Updates && its.gather > 0)
        way.constant += step.reductions.leastGatheringLaunch();
    return way;
}

} // namespace planloom
