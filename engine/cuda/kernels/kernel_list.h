#pragma once

#include "engine/cuda/kernels/attention_kernels.h"
#include "engine/cuda/kernels/channel_kernels.h"
#include "engine/cuda/kernels/clip_kernels.h"
#include "engine/cuda/kernels/element_kernels.h"
#include "engine/cuda/kernels/matrix_attention_kernels.h"
#include "engine/cuda/kernels/pick_kernels.h"
#include "engine/cuda/kernels/row_kernels.h"
#include "engine/cuda/kernels/window_kernels.h"

#include <cstdint>

namespace planloom {

// All kernels of the device. `items` of a launch are elements, or rows and tiles; each kernel's arguments are
// the object that its header declares.

// One thread an item. (The formatter would lay such lists out anew each time.)
// clang-format off
#define PLANLOOM_ELEMENT_KERNELS(KERNEL)                                                                     \
    KERNEL(Move)                                                                                             \
    KERNEL(Combine) KERNEL(Weigh) KERNEL(Merge) KERNEL(AdamW) KERNEL(Sgd) KERNEL(Embed) KERNEL(EmbedChain)             \
            KERNEL(EmbedSum) KERNEL(Rotary) KERNEL(Spread) KERNEL(PlainProduct) KERNEL(Unfold) KERNEL(Fold)     \
                KERNEL(Pool) KERNEL(PoolSlope) KERNEL(ChannelSpread) KERNEL(ChannelNormalize) KERNEL(Pair)   \
                    KERNEL(WhereSlope) KERNEL(Pick) KERNEL(PickSum)             \
                        KERNEL(Range) KERNEL(Scan) KERNEL(ClassLoss) KERNEL(ClipFactor)
// clang-format on

// One thread an item, too; and such as can be made one with others (element_chain.h).
#define PLANLOOM_CHAIN_KERNELS(KERNEL)                                                                       \
    KERNEL(Convert) KERNEL(Add) KERNEL(Unary) KERNEL(Binary) KERNEL(Where) KERNEL(Dropout)

// One team an item.
// clang-format off
#define PLANLOOM_TEAM_KERNELS(KERNEL)                                                                        \
    KERNEL(Softmax)                                                                                          \
    KERNEL(Norm) KERNEL(NormAffine) KERNEL(Reduce) KERNEL(CrossEntropy) KERNEL(Sum)                          \
        KERNEL(CrossEntropySlope) KERNEL(ClassStatistics) KERNEL(ClassStatisticsSlope) KERNEL(Attention)     \
            KERNEL(AttentionRows) KERNEL(AttentionSlope) KERNEL(ChannelStatistic)                            \
                KERNEL(ChannelVarianceMean) KERNEL(ChannelSlopes) KERNEL(WhereSum) KERNEL(CountValid) KERNEL(Squares)  \
                    KERNEL(SquareSum)
// clang-format on

// One block of warps an item, where there are tensor cores: `CudaFunctions::codeArchitecture`.
// clang-format off
#define PLANLOOM_MATRIX_KERNELS(KERNEL)                                                                      \
    KERNEL(MatrixAttention) KERNEL(MatrixAttentionKeys) KERNEL(MatrixAttentionQueries)
// clang-format on

enum class DeviceKernel : std::int32_t {
#define PLANLOOM_NAME_KERNEL(Name) Name,
    PLANLOOM_ELEMENT_KERNELS(PLANLOOM_NAME_KERNEL) PLANLOOM_CHAIN_KERNELS(PLANLOOM_NAME_KERNEL)
        PLANLOOM_TEAM_KERNELS(PLANLOOM_NAME_KERNEL) PLANLOOM_MATRIX_KERNELS(PLANLOOM_NAME_KERNEL)
};

/// Which kernel takes arguments of type T.
template<typename T> struct KernelOf;
#define PLANLOOM_FIND_KERNEL(Name)                                                                           \
    template<> struct KernelOf<Name##Kernel> {                                                               \
        static constexpr DeviceKernel kKernel = DeviceKernel::Name;                                          \
    };
PLANLOOM_ELEMENT_KERNELS(PLANLOOM_FIND_KERNEL)
PLANLOOM_CHAIN_KERNELS(PLANLOOM_FIND_KERNEL)
PLANLOOM_TEAM_KERNELS(PLANLOOM_FIND_KERNEL)
PLANLOOM_MATRIX_KERNELS(PLANLOOM_FIND_KERNEL)

} // namespace planloom
