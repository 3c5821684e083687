#pragma once

#include "engine/table/kinds/order/block_order.h"
#include "engine/table/kinds/rule_traits.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The order of a pipeline's blocks.
enum class ScheduleKind : std::uint8_t {
    Sequential, ///< Every micro-batch forward then backward before the next (gradient accumulation).
    GPipe, ///< All forward blocks before any backward block (arXiv:1811.06965).
    OneFOneB, ///< Unless a row says otherwise, stage s holds at most S - s micro-batches, then alternates
              ///< (PipeDream-Flush, arXiv:2104.04473).
    Interleaved, ///< 1F1B over several stages on each rank (arXiv:2104.04473, section 2.2).
    CombinedOneFOneB, ///< 1F1B whose forward and backward blocks run side by side, in slices.
    ZeroBubbleH1, ///< 1F1B with weight gradients where ranks would wait (arXiv:2401.10241, section 2.1).
    Chimera, ///< Two pipelines in opposite directions, with a copy of the weights each (arXiv:2107.06925).
    Eager1F1B, ///< 1F1B with twice the forward blocks ahead, so that what is sent has time
               ///< (arXiv:2211.05322).
    BreadthFirst, ///< All micro-batches through each stage of a rank in turn (arXiv:2211.05953).
    OneFOneBPlus, ///< 1F1B with stages on all ranks in between (arXiv:2301.08984).
    Recycling, ///< Several forward passes and one backward pass: 3F1B (nnScaler, OSDI '24).
    Hanayo, ///< Waves of stages down the ranks and up again (arXiv:2308.15762).
    ZeroBubbleH2, ///< No idle time for twice the memory of 1F1B (arXiv:2401.10241, section 2.2).
    ZeroBubbleV, ///< No idle time for the memory of 1F1B, over one wave (arXiv:2401.10241, section 6).
    VHalf, ///< Half the memory of 1F1B, over one wave (arXiv:2405.15362).
    VMin, ///< A third of the memory of 1F1B, over one wave (arXiv:2405.15362).
    DualPipe, ///< Chimera's directions, forward beside backward (arXiv:2412.19437, section 3.2.1).
    DualPipeV, ///< DualPipe folded into one wave.
    Listed, ///< None that has a name: its blocks are listed.
};
/// Those with a name.
inline constexpr std::array kAllSchedules{ScheduleKind::Sequential, ScheduleKind::GPipe,
    ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::CombinedOneFOneB,
    ScheduleKind::ZeroBubbleH1, ScheduleKind::Chimera, ScheduleKind::Eager1F1B, ScheduleKind::BreadthFirst,
    ScheduleKind::OneFOneBPlus, ScheduleKind::Recycling, ScheduleKind::Hanayo, ScheduleKind::ZeroBubbleH2,
    ScheduleKind::ZeroBubbleV, ScheduleKind::VHalf, ScheduleKind::VMin, ScheduleKind::DualPipe,
    ScheduleKind::DualPipeV};

const char *nameOf(ScheduleKind kind); ///< "gpipe", "1f1b", "sequential", ...; "order" where they are listed.
/// Gradients of weights have a pass of their own in this schedule, whatever rows say.
bool splitsBackward(ScheduleKind kind);
bool splitsBackward(const Schedule &listed);
/// Its stages go down the ranks and up again, so that a rank has several.
bool runsInWaves(ScheduleKind kind);
/// The schedule of this name, if there is one.
std::optional<ScheduleKind> scheduleNamed(std::string_view name);
/// "sequential, gpipe, 1f1b, interleaved, ... or dualpipev"
std::string scheduleNames();

/// Those that the search chooses from, where there is a pipeline.
inline constexpr std::array kSearchedSchedules{
    ScheduleKind::OneFOneB, ScheduleKind::GPipe, ScheduleKind::Interleaved, ScheduleKind::ZeroBubbleH1};

/// The order in which the pipeline runs its blocks, or that the search chooses it.
struct ScheduleRule {
    ScheduleKind kind = ScheduleKind::Sequential;
    /// Of Listed: the order of each rank's blocks; what it does not name runs where it can.
    Schedule order{};
    /// It is for this number of micro-batches alone, and comes before one for any number; 0: for any. A table
    /// has one of each, so that a plan keeps the schedules that were found or made for other numbers.
    std::int32_t microBatches = 0;
    bool holdsAt(std::int32_t count) const { return microBatches == 0 || microBatches == count; }
    /// Left to the search; Sequential, as without a row, where nothing is searched. Another row may give what
    /// was chosen.
    bool chosen = false;
    std::vector<ScheduleKind> among{}; ///< Of chosen: one of these `kSearchedSchedules`; empty is any.
    friend bool operator==(const ScheduleRule &, const ScheduleRule &) = default;
};

/// Whether a plan's schedule may be `kind` where `rule` leaves it to the search.
bool allows(const ScheduleRule &rule, ScheduleKind kind);

template<> struct RuleTraits<ScheduleRule> {
    static constexpr std::array words{"schedule"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give the schedule";
    static void describe(RuleForm &form, ScheduleRule &rule);
};

} // namespace planloom
