#pragma once

// Private to the graph room: what rules of output types (`KindEntry::types`) are asked, and what they share.

#include "engine/base/result.h"
#include "engine/graph/attributes.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Extents and attributes beyond these are no model's; products of two extents still fit 64 bits.
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 31;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

using TypesOutcome = Result<std::vector<TensorType>>;

/// The arguments of `inferTypes`, with the checks that many kinds share.
struct InferCall {
    OperatorKind kind;
    const Attributes &attributes;
    const std::vector<TensorType> &inputs;
    const std::vector<bool> &present;
    const std::vector<TensorType> &declared;

    bool has(std::size_t slot) const
    {
        return slot < inputs.size() && (slot >= present.size() || present[slot]);
    }
    const TensorType &type(std::size_t slot) const { return inputs[slot]; }
    const Shape &in(std::size_t slot) const { return inputs[slot].shape; }
    std::size_t rank(std::size_t slot) const { return inputs[slot].shape.size(); }

    /// "MatMul's input 1 is float32[3 4]; expected `expected`".
    Error misfit(std::size_t slot, const std::string &expected) const
    {
        return {ErrorCode::InvalidInput,
            std::string(nameOf(kind)) + "'s input " + std::to_string(slot) + " is "
                + nameOf(inputs[slot].dataType) + toString(inputs[slot].shape) + "; expected " + expected,
            {}, "input:" + std::to_string(slot)};
    }
    /// "Split's attribute 'axis' ..."
    Error badAttribute(const std::string &name, const std::string &expected) const
    {
        return {ErrorCode::InvalidInput,
            std::string(nameOf(kind)) + "'s attribute '" + name + "' does not fit; expected " + expected, {},
            "attribute:" + name};
    }
    Error badOutput(const std::string &expected) const
    {
        const std::string found = declared.empty()
            ? "has no declared type"
            : std::string("is declared as ") + nameOf(declared[0].dataType) + toString(declared[0].shape);
        return {ErrorCode::InvalidInput,
            std::string(nameOf(kind)) + "'s output " + found + "; expected " + expected, {}, "output:0"};
    }

    /// The attribute `axis`, as an index of a dimension of `rank`.
    Result<std::size_t> axis(std::size_t rank, const char *name = "axis") const
    {
        const std::int64_t value = attributes.integer(name);
        if (value < 0 || static_cast<std::size_t>(value) >= rank)
            return badAttribute(
                name, "a dimension below " + std::to_string(rank) + ", found " + std::to_string(value));
        return static_cast<std::size_t>(value);
    }
};

inline bool isIndexType(DataType type)
{
    return type == DataType::Int64 || type == DataType::Int32;
}

/// The types of an operator with one output.
inline std::vector<TensorType> one(DataType type, Shape shape)
{
    std::vector<TensorType> types;
    types.push_back({type, std::move(shape)});
    return types;
}

/// NumPy broadcasting of two shapes, if they fit.
std::optional<Shape> broadcast(const Shape &a, const Shape &b);

/// The present ones among the first `count` inputs have input 0's element type.
Result<void> checkSameTypes(const InferCall &call, std::size_t count);
/// The same, and it is floating.
Result<void> checkFloating(const InferCall &call, std::size_t count);

} // namespace planloom
