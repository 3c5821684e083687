#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/table/kinds/order/block_order.h"
#include "engine/table/kinds/order/schedule.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace planloom {

/// What a template makes a schedule for.
struct ScheduleSetting {
    /// By stage, that of its first lane; ranks are numbered from 0 in the order of their first stages.
    std::vector<std::int32_t> rankOf{};
    /// By stage and lane, where stages run in lanes: what `rankOf` says of the first, and those of the
    /// others.
    std::vector<std::vector<std::int32_t>> laneRanks{};
    std::int32_t rankCount = 1;
    std::int32_t microBatches = 1;
    bool backward = true; ///< There is a backward pass.
    std::vector<std::int32_t> slices{}; ///< By stage: into how many it is cut; empty where none is.
    /// By stage: it runs on all ranks at once, and `rankOf` it is -1; empty where none does.
    std::vector<bool> wide{};
    bool isWide(std::int32_t stage) const { return !wide.empty() && wide[static_cast<std::size_t>(stage)]; }
};

/// A schedule of whole blocks, with their slices in place of those that are sliced: ascending in the forward
/// pass, descending in backward passes. Two that are interleaved are so slice by slice, which takes as many
/// of both.
Schedule inSlices(const Schedule &schedule, const std::vector<std::int32_t> &slices);

/// A named schedule.
struct ScheduleTemplate {
    ScheduleKind kind{};
    const char *meaning = ""; ///< One line for a person.
    const char *paper = ""; ///< Where it comes from.
    /// The schedule of a setting; null for templates that only say what goes first among blocks that could
    /// start (see `orderBlocks`).
    /// @return InvalidInput with what the template needs
    Result<Schedule> (*make)(const ScheduleSetting &setting) = nullptr;
};

/// All templates, in the order of `kAllSchedules`.
std::span<const ScheduleTemplate> scheduleTemplates();

/// Megatron-LM's interleaved 1F1B (arXiv:2104.04473, section 2.2). With p ranks and v stages on each, stage s
/// lies on rank s mod p. Rank r runs its v chunks in turn for p micro-batches at a time:
///
///     forward    number k is chunk (k / p) mod v of micro-batch (k / (p v)) p + k mod p
///     backward   the same, chunks from the last to the first
///
/// min(2 (p - r - 1) + (v - 1) p, m v) forward blocks come first, then one forward and one backward block in
/// turn.
/// @return InvalidInput if stages do not lie so, or p does not divide the micro-batches
Result<Schedule> interleavedSchedule(const ScheduleSetting &setting);

/// 1F1B whose forward and backward block run side by side, as Megatron-LM's combined 1F1B and the chunks of
/// DualPipe (DeepSeek-V3, arXiv:2412.19437, section 3.2.1) do to hide what they communicate. Two blocks that
/// run so cannot wait for one another: rank r runs p - r forward blocks first, one more than under 1F1B. With
/// 2 ranks and 4 micro-batches:
///
///     rank 0   F0 F1    F2|B0 F3|B1 B2    B3
///     rank 1      F0    F1|B0 F2|B1 F3|B2 B3
///
/// @return InvalidInput if a rank has several stages
Result<Schedule> combined1F1BSchedule(const ScheduleSetting &setting);

/// ZB-H1 (zero bubble, arXiv:2401.10241, section 2.1): 1F1B over split backward passes, where rank r runs the
/// gradients of weights r micro-batches late. No rank holds more micro-batches than under 1F1B, p of them,
/// and the stage before waits for the gradients of inputs alone. With 3 ranks and 4 micro-batches:
///
///     rank 0   F0 F1 F2       B0 W0 F3 B1 W1 B2 W2 B3 W3
///     rank 1      F0 F1    B0 F2 B1 W0 F3 B2 W1 B3 W2 W3
///     rank 2         F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
///
/// Every rank is idle for (p - 1) (F + B - W) of a step, under 1F1B for (p - 1) (F + B + W), where W takes no
/// longer than F and there are p micro-batches or more.
/// @return InvalidInput if a rank has several stages
Result<Schedule> zeroBubbleH1Schedule(const ScheduleSetting &setting);

/// The interlaced pipeline (nnScaler, OSDI '24, section 6): the first stages and the last ones may be wide,
/// on the devices of all the stages between them (a vocabulary that all devices share). All wide blocks of a
/// period run together, so that devices wait for one another once a period; between, every rank runs one
/// backward and one forward block, of micro-batches that the period before brought to it. With wide stages
/// E and H around 2 ranks, H both passes in one:
///
///     rank 0   E0        F0 E1        F1 E2 H0        F2 E3 H1    B0 F3 E4 H2 e0 B1 F4 ...
///     rank 1   E0           E1        F0 E2 H0     B0 F1 E3 H1    B1 F2 E4 H2 e0 B2 F3 ...
///
/// Departure from nnScaler's 1f1b_plus, which gives wide blocks steps of their own between those of 1F1B:
/// there devices wait for one another at every forward and every backward block. The price is memory: rank r
/// of p holds up to 2 (p - r) - 1 micro-batches, not p - r.
/// @return nothing if the stages do not lie so: no wide one, one between others, or ranks with several stages
std::optional<Schedule> interlacedSchedule(const ScheduleSetting &setting);

/// Chimera (arXiv:2107.06925, section 3): two pipelines run in opposite directions over the same devices,
/// with a copy of the weights each. A lane is one half of the batch of every micro-batch: stage s of S lies
/// with its first half on one device and with its second half where the first half of stage S - 1 - s lies.
/// What the two copies' gradients come to is reduced like that of any replicas. In lanes (lanes rows) rank r
/// has stage r of the first lane and stage S - 1 - r of the second; without them it is both devices, and a
/// block is what both halves do at the same time. In slots of one block, S / 2 micro-batches take
///
///     forward    of stage s, micro-batch i    s + 2 i
///     backward                                2 S - 1 - s + 2 i
///
/// so that with 4 stages, where a stands for the first lane and b for the second:
///
///     rank 0   F0a  .  F1a F0b B0b F1b B1b B0a  .  B1a
///     rank 1    .  F0a F0b F1a F1b B0b B0a B1b B1a  .
///     rank 2    .  F0b F0a F1b F1a B0a B0b B1a B1b  .
///     rank 3   F0b  .  F1b F0a B0a F1a B1a B0b  .  B1b
///
/// and every further S / 2 follow 2 S slots behind: S - 2 slots of a step are idle where forward and backward
/// blocks take equally long.
/// @return InvalidInput if stages do not lie so
Result<Schedule> chimeraSchedule(const ScheduleSetting &setting);

} // namespace planloom
