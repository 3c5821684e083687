#pragma once

#include "engine/graph/dimensions/batch.h"
#include "engine/lowering/program/execution_plan.h"

#include <string>

namespace planloom {

/// Holds what the plan says of its batch against its graph. Whether `microBatches` cut the batch or each are
/// a whole one (`BatchInfo::wholeBatches`) is the plan's to choose; roles, dimensions and what runs once per
/// step follow from that choice and are derived anew.
///
/// Where micro-batches are whole batches, losses and gradients are means. The factor 1 / their number enters
/// with the loss's gradient, which the runtime knows by `Tensor::of`: so every gradient has to begin there
/// and nowhere else.
/// @return why it is wrong; empty if it is right
/// O(operators + tensors).
std::string checkBatch(const ExecutionPlan &plan);

} // namespace planloom
