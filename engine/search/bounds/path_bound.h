#pragma once

#include "engine/search/bounds/least_stages.h"
#include "engine/search/memory/held_limits.h"
#include "engine/search/time/reductions.h"

#include <array>
#include <map>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace planloom {

/// A bound of all partitions of a pipeline's stages: no step is shorter than any one way through its blocks,
/// so none is shorter than what the mean of some ways takes under the partition that is cheapest for it.
///
/// Ways are added that are longest for one partition after the other: the cheapest for the best mean of the
/// ways so far, where who chooses the mean looks at the partitions so far alone (cutting planes: Kelley, The
/// Cutting-Plane Method for Solving Convex Programs, 1960).
class PathBound
{
public:
    /// @param least  of the same stages; @param waits  per operator, for other replicas, at least; may be
    /// empty. All must outlive it.
    PathBound(const Configuration &configuration, const PartitionProblem &problem, const StagePlan &plan,
        const Reductions &reductions, const std::vector<LeastStage> &least, const OperatorTimes &waits,
        bool trains);

    /// Bounds partitions that keep to limits alone, from now on: what they hold beyond is weighed against
    /// ways (the dual of both). @param limits  may be added to; must outlive it
    void keepTo(const HeldLimits &limits) { m_limits = &limits; }

    /// Adds the way that is longest for a partition.
    /// @param choice  of that partition; @param figures  of its stages; @param links  between them
    Result<void> add(const std::vector<std::int32_t> &choice, const std::vector<StageFigures> &figures,
        const std::vector<StageLink> &links);

    struct Answer {
        double bound = 0; ///< Seconds of a step; infinite where no partition keeps to the limits.
        /// The next to look at: that which is cheapest for the ways so far, or, where that was looked at, a
        /// mixture of those.
        std::vector<std::int32_t> choice{};
    };
    /// Of the ways so far, at least one. One elimination of all operators (cost_network.h).
    /// @return Cancelled if stopped
    Result<Answer> solve(const std::stop_token &stop);

private:
    /// How often each of a stage's doings lies on the ways, in the mean.
    struct Weights : StageVisits {
        double gathering = 0; ///< In place of a forward pass that takes less (ZeRO-3).
        double reducing = 0; ///< In place of a backward pass that takes less (ZeRO-2 and 3).
        double reduction = 0; ///< At the end of a step, by how it is bounded, as the next ones.
        double reductionApart = 0;
        double reductionFilled = 0;
        double reductionAsOne = 0;
        double update = 0;
        double gather = 0;
    };
    /// What a block does before it comes to what was sent last: only what follows is on a way.
    struct Skipped {
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
    /// A mean of some ways.
    struct Mean {
        std::vector<Weights> stages{};
        /// By operator: times its backward pass counts in a last block, or what it makes for weights.
        std::vector<double> lastPass{};
        /// Likewise its forward pass in a first block, less where a block waits for what it reads later
        /// alone,
        std::vector<double> firstPass{};
        std::vector<double> skipped{}; ///< and its backward pass, without what it makes for weights.
        /// By tensor: reductions of weights behind the former, as they are bounded,
        std::array<std::vector<double>, kReducedAs> reduced{};
        std::vector<double> shared{}; ///< those of weights that several stages read,
        std::vector<double> sharedUpdate{}; ///< what is updated behind them,
        std::vector<double> gathered{}; ///< and gathering of weights before the latter.
        std::map<std::size_t, std::vector<SentOn>> sent{}; ///< By the operator that makes it.
        double constant = 0; ///< What does not depend on the partition.
    };
    struct Shared { ///< A weight that several stages read and whose gradient they add up.
        TensorId weight{};
        std::vector<std::int32_t> stages{}; ///< Ascending.
    };
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const Mean &mean) const;
    bool hasTraffic(std::size_t op, const Mean &mean) const;
    bool isSharedBy(const Shared &shared, std::size_t rank) const;
    /// How often what a meeting communicates counts, forward and backward.
    std::pair<double, double> countsOf(const Meeting &meeting, std::size_t reader, const Mean &mean) const;
    double countsBack(std::size_t op, const Mean &mean) const;
    double waitSeconds(const Mean &mean) const;
    static const std::array<double Weights::*, 11> kParts;
    static const std::array<double Weights::*, kReducedAs> kReductions; ///< By `ReducedAs`.
    struct Way {
        std::vector<Weights> stages{};
        LongestWay blocks{};
        std::vector<Skipped> skipped{};
        std::vector<SentOn> sent{};
        std::size_t rank = 0; ///< That ends last.
        double constant = 0; ///< Seconds that do not depend on the partition.
        /// The operator, if not -1, whose gradients of weights the last backward block (or pass for them) of
        /// its stage makes last on this way: reductions of those, and of what comes behind, follow.
        std::int32_t behind = -1;
        bool behindAll = false; ///< That is all that the block does.
        std::vector<std::int32_t> later{}; ///< The rank's stages whose last block is behind that.
        ReducedAs as{}; ///< How those are bounded.
        bool shared = false; ///< Those of weights that the rank shares with others' stages follow,
        bool sharedUpdate = false; ///< and what is updated then.
        /// Readers that gathering ahead waits for, and how often that counts.
        std::vector<std::pair<std::int32_t, double>> ahead{};
    };
    Mean nothing() const;
    void add(const Way &way, double counts, Mean &mean) const;
    void addReductions(const Way &way, double counts, Mean &mean) const;
    void addGathering(std::int32_t reader, double counts, Mean &mean) const;
    void skip(const Skipped &skipped, double counts, Mean &mean) const;
    std::size_t makerOf(const SentOn &sent) const;
    double sendingSeconds(const OperatorChoice &choice, const std::vector<SentOn> &sent) const;
    void addSends(const std::vector<StageLink> &links, const std::vector<bool> &isOwn, Way &way) const;
    /// A partition that was looked at, and what it communicates: seconds by meeting.
    struct Partition {
        std::vector<std::int32_t> choice{};
        std::vector<std::pair<double, double>> meetings{};
    };
    Partition partitionOf(const std::vector<std::int32_t> &choice) const;
    double secondsOf(const Partition &partition, const Mean &mean) const;
    struct Shares {
        std::vector<double> ways{}; ///< Of each, in the mean whose least time is longest.
        std::vector<double> partitions{}; ///< Of each, in the mixture that the mean cannot tell apart.
        std::vector<double> prices{}; ///< Seconds of a byte, by limit.
    };
    Shares bestShares();
    void holdAgainstLimits();
    /// What the mixture comes to where no operator can be partitioned in two ways: one of its partitions up
    /// to some layer, another from there on. Of those that were not looked at the one whose longest way so
    /// far is shortest.
    std::optional<std::vector<std::int32_t>> mixtureByLayers(const Shares &shares) const;
    bool isKnown(const std::vector<std::int32_t> &choice) const;
    Way longestWayOf(const std::vector<StageFigures> &figures, const PipelineTime &played,
        const std::vector<PlayedBlock> &blocks) const;

    const Configuration &m_configuration;
    const PartitionProblem &m_problem;
    const StagePlan &m_plan;
    const Reductions &m_reductions;
    const OperatorTimes &m_waits;
    const bool m_trains;
    const bool m_splits;
    std::vector<Way> m_ways{};
    std::vector<Partition> m_partitions{}; ///< One for each way.
    int m_mixtures = 0; ///< That were looked for.
    std::vector<std::vector<double>> m_seconds{}; ///< Of each way under each partition.
    const HeldLimits *m_limits = nullptr;
    std::vector<std::vector<double>> m_beyond{}; ///< Bytes beyond each limit under each partition.
    double m_expected = 0; ///< What the bound of the partitions so far comes to.
    struct Read {
        std::int32_t reader = -1; ///< The first forward operator of the stage that reads it.
        TensorId weight{};
        bool isLast = false; ///< Its gradient is complete in the stage's last block.
    };
    std::vector<std::vector<Read>> m_read{}; ///< By stage: weights.
    /// With ZeRO-2 and 3, what nothing that is computed hides: of a stage's weights those that are read first
    /// are gathered before a forward pass, and reduced behind a backward pass; those that are read last are
    /// gathered before the latter.
    struct AtEnds {
        bool first = false;
        bool last = false;
    };
    void findAtEnds();
    std::vector<AtEnds> m_atEnds{}; ///< By tensor; empty where there is nothing of the kind.
    std::vector<StageLink> m_links{};
    std::vector<StageSend> m_leastSends{}; ///< By link, as the next: seconds of each tensor at least.
    std::vector<Reductions::Sending> m_leastSending{};
    /// By the parts that each tensor is sent in (`partsSent`), as if all were.
    std::map<std::int64_t, std::vector<Reductions::Sending>> m_sending{};
    std::vector<bool> m_recomputes{}; ///< By stage: something.
    std::vector<double> m_leastBehind{}; ///< By rank: what is left of its reductions at least.
    std::vector<std::size_t> m_charged{}; ///< By meeting: the reader that waits for it.
    std::vector<std::int32_t> m_readers{}; ///< By tensor: slots of forward operators that read it.
    std::vector<bool> m_isShared{}; ///< By tensor: several stages do.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> m_readersIn{}; ///< And stage, of those.
    std::vector<Shared> m_shared{};
    std::vector<std::int32_t> m_sharedBy{}; ///< By tensor: its number among those; -1.
};

} // namespace planloom
