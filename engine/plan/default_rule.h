#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// The decider without a search: the rows' part of partition and devices by the rows, the rest like this.
///
/// Devices. An operator runs where the producer of its largest activation input runs; one without activation
/// inputs (or with producers that have no place themselves) where its first consumer runs; others on all
/// devices, or the mesh.
///
/// Partition, per mesh axis no row speaks of. Where that producer cuts the dimension of its output which
/// leads an identifier of this operator, this operator cuts that identifier alike, and where it makes
/// replicas, replicas: no communication then. Where following is not possible (the producer makes summands,
/// the identifier is frozen, or does not divide) the operator is split by value where it only adds such
/// summands up, so that they are reduced once (open_sums.h); else it cuts its batch if a row cuts the batch
/// over this axis, else it is replicated. Of several axes that cut one dimension, those over which the
/// producer cuts it alike lie outside of others, nested as there; else the order is that of the mesh. On a
/// list of devices the same for the producer's splits one by one, if it has the same list.
///
/// Coshard steps stay inside what one device has, and are not followed.
///
/// Fails rows whose parts and devices do not fit together. O(operators x (inputs + parts)).
const Decider &defaultDecider();

/// Partition and devices of one operator from its steps in `domain`, as `defaultDecider` does it,
/// replicating what no row decides (optimizer operators that rows place or split themselves).
void decideByRowsAlone(PlanDraft &draft, OperatorId op, std::int32_t domain);

} // namespace planloom
