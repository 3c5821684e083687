#pragma once

#include "engine/schedule/schedule.h"

namespace planloom {

// Templates for stages that lie on ranks in turn, in waves, or in two directions. In the pictures F, B, W
// stand for forward, backward (of inputs, where W is there too) and weight gradients; r for a rank of p.

/// The order in which every rank runs its blocks under GPipe and 1F1B, with one stage each: as many forward
/// blocks as `ahead` says for it, then one backward and one forward block in turn, then the rest.
/// @param ahead  by rank; at least 1
Schedule inTurnSchedule(const ScheduleSetting &setting, const std::vector<std::int32_t> &ahead);

/// Any template as an explicit schedule: those with a `make`, and GPipe and 1F1B over one stage on each rank,
/// Sequential over one rank.
/// @return InvalidInput with what the template needs
Result<Schedule> makeSchedule(ScheduleKind kind, const ScheduleSetting &setting);

/// Eager 1F1B (Alpa's overlap-friendly schedule, arXiv:2211.05322, section 4): rank r runs 2 (p - r) - 1
/// forward blocks first, so that what they send has a block's time to arrive. It holds as many.
/// @return InvalidInput if a rank has several stages
Result<Schedule> eager1F1BSchedule(const ScheduleSetting &setting);

/// Breadth-first pipeline parallelism (arXiv:2211.05953, section 4): stage s lies on rank s mod p; every rank
/// runs all micro-batches through its first stage, then through its second, and backwards likewise from its
/// last. With v stages on each rank, all is idle for (p - 1) (F + B) of a stage's times.
/// @return InvalidInput if stages do not lie so, or there are fewer micro-batches than ranks
Result<Schedule> breadthFirstSchedule(const ScheduleSetting &setting);

/// 1F1B+ (SuperScaler, arXiv:2301.08984, section 5; Tessel calls it interlaced): 1F1B over the stages of one
/// rank; stages on all ranks run in between, forward before the stage that follows them, backward behind it;
/// those that no such stage follows (which the reference cannot place) behind the last stage's forward block,
/// their backward before its backward block. With 3 ranks and E on all of them first:
///
///     rank 0   E0 F0 E1 .  F1 E2 .  .  F2 .  E0'B0 ...
///
/// @return InvalidInput if there is no stage on one rank, or stages lie otherwise
Result<Schedule> oneFOneBPlusSchedule(const ScheduleSetting &setting);

/// v forward passes and one backward pass (3F1B where v is 3: AlphaFold's recycling, nnScaler, OSDI '24,
/// section 2.2): stage s lies on rank s mod p, and only the last p stages have backward blocks. In slots of
/// one block, micro-batches follow one another every v + 1 slots; a forward pass reaches the next rank one
/// slot later, the backward pass v slots later, which falls into the same slot of the period, so that every
/// rank is always busy with v + 1 different ones. Rank r holds at most p - r micro-batches, and one more
/// where the backward pass has to wait for its slot.
/// @return InvalidInput if stages do not lie so
Result<Schedule> recyclingSchedule(const ScheduleSetting &setting);

/// Hanayo (arXiv:2308.15762, section 3): waves of stages, down the ranks and up again: stage s lies on rank
/// s mod 2p of the way down, or 2p - 1 - s mod 2p of the way up. Blocks start as soon as they can, those of a
/// backward pass first, at most p micro-batches at once, in an order made for backward blocks that take twice
/// as long as forward blocks.
/// @return InvalidInput if stages do not lie so
Result<Schedule> hanayoSchedule(const ScheduleSetting &setting);

/// ZB-H2 (arXiv:2401.10241, section 2.2): rank r runs 2 (p - r) - 1 forward blocks first, and the gradients
/// of weights 2 r micro-batches late. Nothing is idle between a rank's first block and its last where F, B
/// and W take equally long and there are 2 p - 1 micro-batches or more; every rank holds 2 p - 1 of them.
/// @return InvalidInput if a rank has several stages
Result<Schedule> zeroBubbleH2Schedule(const ScheduleSetting &setting);

/// ZB-V (arXiv:2401.10241, section 6; arXiv:2405.15362, appendix): stages in one wave, so that rank r has
/// stages r and 2 p - 1 - r. No more memory than 1F1B, and nothing idle between a rank's first and last block
/// where F, B and W take equally long and there are 2 p micro-batches or more.
/// @return InvalidInput if stages do not lie so
Result<Schedule> zeroBubbleVSchedule(const ScheduleSetting &setting);

/// V-Half and V-Min (arXiv:2405.15362, section 3): one wave as in ZB-V, from building blocks that repeat
/// every 6 slots (two stages' F, B and W). A pass reaches the next rank `forward` slots later, a backward
/// pass `backward`: 1 and 1 for V-Min, 1 and 2 for V-Half; where the way turns, it waits until no two blocks
/// of a rank fall into the same slot. A rank holds at most (p + 4) / 3 micro-batches of its two stages
/// (V-Min), (p + 2) / 2 (V-Half), where 1F1B holds p.
/// @return InvalidInput if stages do not lie so
Result<Schedule> vHalfSchedule(const ScheduleSetting &setting);
Result<Schedule> vMinSchedule(const ScheduleSetting &setting);

/// DualPipe (DeepSeek-V3, arXiv:2412.19437, section 3.2.1): micro-batches enter at both ends of the ranks, as
/// lanes (see `chimeraSchedule`), and in the middle of a step the forward block of one direction runs beside
/// the backward block of the other. All is idle for (p / 2 - 1) (F|B + B - 3 W) of a step, where F|B is such
/// a pair and B a whole backward block.
/// @return InvalidInput if stages do not lie so, or there are fewer micro-batches (of both lanes) than ranks
Result<Schedule> dualPipeSchedule(const ScheduleSetting &setting);

/// DualPipeV (deepseek-ai/DualPipe, "cut in half"): DualPipe folded in its middle: one wave over p ranks in
/// place of two directions over 2 p.
/// @return InvalidInput if stages do not lie so, or there are fewer than 2 p micro-batches
Result<Schedule> dualPipeVSchedule(const ScheduleSetting &setting);

} // namespace planloom
