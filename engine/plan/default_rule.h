#pragma once

#include "engine/plan/bind.h"

namespace planloom {

/// Decides partition and devices of every forward operator: the rows' part of it by the rows, the rest like
/// this. A search takes this rule's place later; it needs nothing but the state.
///
/// Devices. An operator runs where the producer of its largest activation input runs; one without activation
/// inputs (or with producers that have no place themselves) where its first consumer runs; others on all
/// devices, or the mesh.
///
/// Partition, per mesh axis no row speaks of. Where that producer cuts the dimension of its output which
/// leads an identifier of this operator, this operator cuts that identifier alike, and where it makes
/// replicas, replicas: no communication then. Where following is not possible (the producer makes summands,
/// the identifier is frozen, or does not divide) the operator cuts its batch if a row cuts the batch over
/// this axis, else it is replicated. On a list of devices the same for the producer's splits one by one, if
/// it has the same list.
///
/// Coshard steps stay inside what one device has, and are not followed.
///
/// Fails rows whose parts and devices do not fit together. O(operators x (inputs + parts)).
void applyDefaultRule(CompletionState &state);

/// Partition and devices of one operator from its steps in `domain`, as `applyDefaultRule` does it,
/// replicating what no row decides (optimizer operators that rows place or split themselves).
void decideByRowsAlone(CompletionState &state, OperatorId op, std::int32_t domain);

} // namespace planloom
