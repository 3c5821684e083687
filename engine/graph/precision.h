#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/shape.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

/// In which types an operator works: where its pTensors are Float32. Tensors of any other type are left as
/// they are, and so are the values that carry statistics (see `StorageTypes`).
struct Precision {
    /// What products see of their operands; sums are always Float32. TensorFloat32 and Float8E4M3 round the
    /// operands and leave what lies in memory alone. Other operators compute in Float32.
    DataType compute = DataType::Float32;
    /// Of what it reads and makes: activations, their gradients, and the copies of weights that it reads.
    DataType storage = DataType::Float32;
    /// Where the gradients of a weight are added up over micro-batches. As the next two, the optimizer's say.
    DataType gradient = DataType::Float32;
    DataType reduction =
        DataType::Float32; ///< In which gradients of a weight are sent and summed over devices.
    DataType optimizer = DataType::Float32; ///< Of the weights (masters) and states that the optimizer keeps.
    /// The loss's gradient is multiplied by it, and what reaches the optimizer divided: small gradients then
    /// stay above what Float16 can hold (Micikevicius et al., arXiv:1710.03740, section 3.2). A power of two
    /// is exact.
    double lossScale = 1;
    friend bool operator==(const Precision &, const Precision &) = default;
};

/// Precisions that go by a name.
enum class PrecisionPreset : std::uint8_t {
    Float32,
    TensorFloat32, ///< Products see 10 bits of mantissa; all else is Float32.
    BFloat16, ///< Stored and computed in bfloat16; gradients add up, meet and are applied in Float32.
    Float16, ///< The same with Float16, and a loss scale.
    /// As BFloat16, and products round their operands: to E4M3, gradients to E5M2 (arXiv:2209.05433), each
    /// tensor scaled by its own largest value (Transformer Engine's current scaling).
    Float8,
};
inline constexpr std::array kAllPrecisionPresets{PrecisionPreset::Float32, PrecisionPreset::TensorFloat32,
    PrecisionPreset::BFloat16, PrecisionPreset::Float16, PrecisionPreset::Float8};

/// Of the Float16 preset: within the 8 to 32 K that NVIDIA's training guide recommends, and low enough that a
/// gradient of 32 does not overflow.
constexpr double kUsualLossScale = 1024;
constexpr std::int64_t kMostLossScale = 1 << 24;

const char *nameOf(PrecisionPreset preset); ///< "fp32", "tf32", "bf16", "fp16", "fp8"
std::optional<PrecisionPreset> precisionPresetNamed(std::string_view name);

Precision precisionOf(PrecisionPreset preset);

/// The short name of a type that a precision may have: "fp32", "tf32", "bf16", "fp16", "fp8" (Float8E4M3);
/// null for other types.
const char *shortNameOf(DataType type);
/// Its inverse.
std::optional<DataType> dataTypeOfShortName(std::string_view name);

/// Types that values may lie in memory in.
bool isStorageType(DataType type);
/// Types that products may see.
bool isComputeType(DataType type);

/// "bf16", or "bf16 compute=fp32" and the like where it is no preset: as `precision` rows are written.
std::string toString(const Precision &precision);

/// The type that the arithmetic of `op` runs in under `precision`, for the price of a kernel: that of
/// products; Float32 for everything else. Where its pTensors are of another type than Float32, that type.
DataType arithmeticOf(const Graph &graph, const Operator &op, const Precision &precision);

} // namespace planloom
