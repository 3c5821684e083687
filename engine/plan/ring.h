#pragma once

#include "engine/plan/plan_draft.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Ring Attention (arXiv:2310.01889): an attention cut n x n, along its queries over n devices and, last,
/// along its keys into n parts that each of them takes in turns. In turn t device i runs part (i, (i - t) mod
/// n):
///
///              device 0    device 1    device 2
///     turn 0     0, 0        1, 1        2, 2       keys and values as they lie
///     turn 1     0, 2        1, 0        2, 1       those of the device before
///     turn 2     0, 1        1, 2        2, 0
///
/// So part j of keys and values goes from device j to j + 1 and on, and is dropped behind its turn.
struct Ring {
    std::vector<std::vector<std::int32_t>> parts{}; ///< [i][j]: part numbers of the operator.

    std::size_t size() const { return parts.size(); }
    /// Of which keys member `member` has its part of in turn `turn`.
    std::size_t keysOf(std::size_t member, std::size_t turn) const
    {
        return (member + size() - turn) % size();
    }
    std::int32_t partOf(std::size_t member, std::size_t turn) const
    {
        return parts[member][keysOf(member, turn)];
    }
};

/// The rings of an operator: one for each combination of its other splits' digits. Empty without a ring.
std::vector<Ring> ringsOf(const OperatorDecision &decision);

/// Makes rings where rows ask for them.
void chooseRings(PlanDraft &draft);

/// Rings are of attentions that do not keep their probabilities, and lie on as many devices as they have
/// members. @return InvalidInput naming an operator
Result<void> checkRings(const Plan &plan);

} // namespace planloom
