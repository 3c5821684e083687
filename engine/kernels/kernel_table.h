#pragma once

#include "engine/kernels/kernel.h"

#include <array>
#include <initializer_list>

namespace planloom {

/// The implementation of one operator kind in one direction.
using Kernel = Result<void> (*)(const KernelCall &);

/// Implementations by kind and direction.
class KernelTable
{
public:
    void add(OperatorKind kind, Direction direction, Kernel kernel)
    {
        m_kernels[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)] = kernel;
    }
    /// The same of several kinds in both directions.
    void add(std::initializer_list<OperatorKind> kinds, Kernel forward, Kernel backward)
    {
        for (const OperatorKind kind : kinds) {
            add(kind, Direction::Forward, forward);
            add(kind, Direction::Backward, backward);
        }
    }
    /// Null where there is none.
    Kernel find(OperatorKind kind, Direction direction) const
    {
        return m_kernels[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)];
    }

private:
    std::array<std::array<Kernel, kOperatorKindCount>, 3> m_kernels{};
};

// Each family adds its own kinds.
void addUnaryKernels(KernelTable &table); ///< unary.cpp
void addCastKernels(KernelTable &table); ///< cast.cpp: Identity, Cast, Dropout, Not, IsInf, IsNaN
void addBinaryKernels(KernelTable &table); ///< binary.cpp: arithmetic with gradients, PRelu, Where
void addLogicKernels(KernelTable &table); ///< logic.cpp: comparisons, logic, Mod, bits
void addMatMulKernels(KernelTable &table); ///< matmul.cpp
void addEinsumKernels(KernelTable &table); ///< einsum.cpp
void addConvKernels(KernelTable &table); ///< conv.cpp
void addPoolKernels(KernelTable &table); ///< pool.cpp
void addNormKernels(KernelTable &table); ///< norm.cpp: LayerNorm, RmsNorm, InstanceNorm
void addBatchNormKernels(KernelTable &table); ///< batch_norm.cpp
void addSoftmaxKernels(KernelTable &table); ///< softmax.cpp
void addLpKernels(KernelTable &table); ///< lp_norm.cpp: LpNormalize, LocalResponseNorm
void addLossKernels(KernelTable &table); ///< loss.cpp
void addReduceKernels(KernelTable &table); ///< reduce.cpp
void addMovementKernels(KernelTable &table); ///< movement.cpp
void addPieceKernels(KernelTable &table); ///< pieces.cpp: Slice, Concat, Split, Pad
void addGatherKernels(KernelTable &table); ///< gather.cpp
void addScatterKernels(KernelTable &table); ///< scatter.cpp
void addPlacesKernels(KernelTable &table); ///< places.cpp: NonZero
void addSequenceKernels(KernelTable &table); ///< sequence.cpp: along one axis: ArgMax, TopK, CumSum, ...
void addGenerateKernels(KernelTable &table); ///< generate.cpp: OneHot, Range, Fill, EyeLike, Trilu
void addResizeKernels(KernelTable &table); ///< resize.cpp
void addGridSampleKernels(KernelTable &table); ///< grid_sample.cpp
void addRotaryKernels(KernelTable &table); ///< rotary.cpp
void addAttentionKernels(KernelTable &table); ///< attention.cpp
void addRecurrentKernels(KernelTable &table); ///< recurrent.cpp
void addOptimizerKernels(KernelTable &table); ///< optimizer.cpp
void addCustomKernels(KernelTable &table); ///< custom.cpp: what operator files define

/// True if the definition of a Custom operator says how it is computed in its direction.
bool hasCustomKernel(const Operator &op);

} // namespace planloom
