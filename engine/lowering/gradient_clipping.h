#pragma once

#include "engine/lowering/update_inputs.h"

#include <map>
#include <vector>

namespace planloom {

/// Operators of the optimizer by block, and there by bucket of the gradients that they read.
using OperatorsByBucket = std::map<std::int32_t, std::map<std::int32_t, std::vector<OperatorId>>>;

/// Gradients are clipped by their global norm (training.h):
///
///     stage's block     squares of each gradient that the device is to count, bucket by bucket
///     last block        their sum on each device; that of all units; one all-reduce; the factor; all updates
///
/// Each box of a gradient is one summand of the sum, whoever adds its squares up: verify holds it against all
/// of them, as it does for the gradient of a weight that several operators read.
class GradientClipping
{
public:
    /// @param last  the block that runs when all gradients are reduced
    GradientClipping(LoweringWork &work, UpdateInputs &inputs, std::int32_t last);

    /// @param squares, factors  operators that add squares up, and that make factors of their sums
    Result<void> emit(const OperatorsByBucket &squares, const OperatorsByBucket &factors);

private:
    /// Sums of squares that a device has found, one per box of a gradient: of what units share out, a unit's
    /// own; of what all of them update, that of any.
    struct SummedSquares {
        struct Share {
            BufferList buffers{};
            SummandSet summands{};
        };
        Share ofUnit{};
        Share ofAll{};
    };

    Result<void> emitSquares(OperatorId id, std::int32_t block);
    void emitSum(DeviceId device, SummedSquares own, TensorId sum, OperatorId op);
    Holding sumSquares(OperatorId op, TensorId sum, DeviceId device, BufferList buffers, SummandSet summands);
    Result<void> emitFactor(OperatorId id);

    LoweringWork &m_work;
    UpdateInputs &m_inputs;
    std::int32_t m_last;
    std::map<DeviceId, SummedSquares> m_squares{};
};

} // namespace planloom
