#pragma once

#include "engine/search/bounds/least_reductions.h"
#include "engine/search/time/link_times.h"

#include <array>
#include <utility>
#include <vector>

namespace planloom {

/// The steps that are bounded: those of all partitions of a pipeline's stages. All of it must outlive what is
/// made of it.
struct BoundedStep {
    const Configuration &configuration;
    const PartitionProblem &problem;
    const StagePlan &plan;
    const Reductions &reductions;
    const LinkTimes links;
    const std::vector<LeastStage> &least; ///< Of the same stages.
    bool trains = false;
    bool splits = false; ///< Gradients of weights are a pass of their own.

    std::int32_t stageOf(std::size_t op) const { return plan.stageOf[op]; }
};

/// How often each of a stage's doings lies on a way through a step.
struct StageCounts : StageVisits {
    double gathering = 0; ///< In place of a forward pass that takes less (ZeRO-3).
    double reducing = 0; ///< In place of a backward pass that takes less (ZeRO-2 and 3).
    std::array<double, kReducedAs> reductions{}; ///< At the end of a step, by how it is bounded.
    double update = 0;
    double gather = 0;

    void add(const StageCounts &other, double times);
    bool hasTraffic() const; ///< Anything but blocks.
};

/// What a block does before it comes to what was sent last: only what follows is on a way.
struct SkippedPart {
    std::int32_t reader = -1; ///< That operator.
    bool backward = false;
    double counts = 0; ///< How often.
};

/// A tensor that is sent from stage to stage, by numbers, and how often that is on a way.
struct SentOn {
    std::size_t link = 0;
    std::size_t number = 0;
    bool backward = false;
    double counts = 0;
};

/// The longest way to the end of a step.
struct StepWay {
    std::vector<StageCounts> stages{};
    LongestWay blocks{};
    std::vector<SkippedPart> skipped{};
    std::vector<SentOn> sent{};
    std::size_t rank = 0; ///< That ends last.
    double constant = 0; ///< Seconds that do not depend on the partition.
    /// The operator, if not -1, whose gradients of weights the last backward block (or pass for them) of its
    /// stage makes last on this way: reductions of those, and of what comes behind, follow.
    std::int32_t behind = -1;
    bool behindAll = false; ///< That is all that the block does.
    std::vector<std::int32_t> later{}; ///< The rank's stages whose last block is behind that.
    ReducedAs as{}; ///< How those are bounded.
    bool shared = false; ///< Those of weights that the rank shares with others' stages follow,
    bool sharedUpdate = false; ///< and what is updated then.
    /// Readers that gathering ahead waits for, and how often that counts.
    std::vector<std::pair<std::int32_t, double>> ahead{};
};

/// @param figures  of the stages under a partition; @param played  with these; @param sends  how many links
/// there are
StepWay longestStepWay(const BoundedStep &step, const std::vector<StageFigures> &figures,
    const PipelineTime &played, const std::vector<PlayedBlock> &blocks, std::size_t sends);

} // namespace planloom
