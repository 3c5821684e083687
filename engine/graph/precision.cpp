#include "engine/graph/precision.h"

#include "engine/graph/operators/operator_kind.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace planloom {

namespace {

constexpr std::array<std::pair<DataType, const char *>, 5> kShortNames{
    {{DataType::Float32, "fp32"}, {DataType::TensorFloat32, "tf32"}, {DataType::BFloat16, "bf16"},
        {DataType::Float16, "fp16"}, {DataType::Float8E4M3, "fp8"}}};

/// How many members differ.
int distance(const Precision &a, const Precision &b)
{
    return (a.compute != b.compute) + (a.storage != b.storage) + (a.gradient != b.gradient)
        + (a.reduction != b.reduction) + (a.optimizer != b.optimizer) + (a.lossScale != b.lossScale);
}

} // namespace

const char *nameOf(PrecisionPreset preset)
{
    constexpr std::array kNames{"fp32", "tf32", "bf16", "fp16", "fp8"};
    return kNames[static_cast<std::size_t>(preset)];
}

std::optional<PrecisionPreset> precisionPresetNamed(std::string_view name)
{
    for (const PrecisionPreset preset : kAllPrecisionPresets)
        if (name == nameOf(preset))
            return preset;
    return std::nullopt;
}

Precision precisionOf(PrecisionPreset preset)
{
    switch (preset) {
    case PrecisionPreset::Float32:
        return {};
    case PrecisionPreset::TensorFloat32:
        return {.compute = DataType::TensorFloat32};
    case PrecisionPreset::BFloat16:
        return {.compute = DataType::BFloat16, .storage = DataType::BFloat16};
    case PrecisionPreset::Float16:
        return {.compute = DataType::Float16, .storage = DataType::Float16, .lossScale = kUsualLossScale};
    case PrecisionPreset::Float8:
        return {.compute = DataType::Float8E4M3, .storage = DataType::BFloat16};
    }
    return {};
}

const char *shortNameOf(DataType type)
{
    for (const auto &[known, name] : kShortNames)
        if (known == type)
            return name;
    return nullptr;
}

std::optional<DataType> dataTypeOfShortName(std::string_view name)
{
    for (const auto &[type, known] : kShortNames)
        if (name == known)
            return type;
    return std::nullopt;
}

bool isStorageType(DataType type)
{
    return type == DataType::Float32 || type == DataType::BFloat16 || type == DataType::Float16;
}

bool isComputeType(DataType type)
{
    return isStorageType(type) || type == DataType::TensorFloat32 || type == DataType::Float8E4M3;
}

std::string toString(const Precision &precision)
{
    PrecisionPreset nearest = PrecisionPreset::Float32;
    for (const PrecisionPreset preset : kAllPrecisionPresets)
        if (distance(precision, precisionOf(preset)) < distance(precision, precisionOf(nearest)))
            nearest = preset;
    const Precision base = precisionOf(nearest);
    std::string text = nameOf(nearest);
    const auto add = [&](const char *name, DataType own, DataType usual) {
        if (own != usual)
            text += std::string(" ") + name + "=" + (shortNameOf(own) ? shortNameOf(own) : nameOf(own));
    };
    add("compute", precision.compute, base.compute);
    add("storage", precision.storage, base.storage);
    add("gradient", precision.gradient, base.gradient);
    add("reduction", precision.reduction, base.reduction);
    add("optimizer", precision.optimizer, base.optimizer);
    if (precision.lossScale != base.lossScale)
        text += " scale=" + std::to_string(std::llround(precision.lossScale));
    return text;
}

DataType arithmeticOf(const Graph &graph, const Operator &op, const Precision &precision)
{
    const OperatorCategory category = categoryOf(op.kind);
    const bool product = category == OperatorCategory::Product || category == OperatorCategory::Recurrent
        || category == OperatorCategory::Attention;
    // Attention has no products of 8 bits: what it multiplies is as wide as what it reads.
    const bool narrow =
        precision.compute == DataType::Float8E4M3 || precision.compute == DataType::Float8E5M2;
    const DataType compute =
        category == OperatorCategory::Attention && narrow ? precision.storage : precision.compute;
    // That of the first floating output, or else input; scalars do not count.
    for (const auto *tensors : {&op.outputs, &op.inputs})
        for (const TensorId id : *tensors) {
            if (!id || !isFloating(graph.at(id).type.dataType) || graph.at(id).type.shape.empty())
                continue;
            const DataType type = graph.at(id).type.dataType;
            return type == DataType::Float32 && product ? compute : type;
        }
    return DataType::Float32;
}

} // namespace planloom
