#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/machine/machine_profile.h"

#include <cstdint>

namespace planloom {

/// What one training step works through, whatever plan it runs by.
struct StepWork {
    std::int64_t samples = 0; ///< 0 for a model without a batch.
    std::int64_t tokens = 0; ///< That embeddings look up, of the input that has most; 0 without any.
    double flops = 0; ///< Of forward and backward operators, each once: nothing that is made again.
    friend bool operator==(const StepWork &, const StepWork &) = default;
};

/// O(operators).
StepWork stepWorkOf(const ExecutionPlan &plan);

/// The fastest that a kernel of `profile` computed, in FLOP/s: what this machine can do, as far as it was
/// measured; all cores together. 0 for an empty profile.
double fastestRate(const MachineProfile &profile);

/// Model FLOPs utilisation: work of the step in `seconds`, as a share of `rate` (PaLM, arXiv:2204.02311,
/// appendix B). 0 where one of them is unknown.
double modelFlopsUtilization(const StepWork &work, double seconds, double rate);

} // namespace planloom
