#pragma once

#include "engine/graph/annotation/annotation.h"
#include "engine/graph/graph.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

using Integers = std::vector<std::int64_t>;

constexpr auto kFloat = DataType::Float32;
constexpr auto kInt = DataType::Int64;

inline TensorType floats(Shape shape)
{
    return {kFloat, std::move(shape)};
}

inline TensorType integers(Shape shape)
{
    return {kInt, std::move(shape)};
}

inline Attribute list(Integers values)
{
    return Attribute{std::move(values)};
}

inline Attribute number(std::int64_t value)
{
    return Attribute{value};
}

/// Shapes of tensors; empty for an id that names none.
inline std::vector<Shape> shapesOf(const Graph &graph, const std::vector<TensorId> &tensors)
{
    std::vector<Shape> shapes;
    for (TensorType &type : typesOf(graph, tensors))
        shapes.push_back(std::move(type.shape));
    return shapes;
}

/// The annotation, or a failed test.
inline Annotation parsed(
    std::string_view text, const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
{
    auto result = parseAnnotation(text, inputs, outputs);
    if (!result) {
        ADD_FAILURE() << describe(result.error());
        return {};
    }
    return *result;
}

} // namespace planloom
