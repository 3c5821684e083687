#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/infer_call.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <variant>

namespace planloom {

namespace {

bool isSane(const Shape &shape)
{
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0 || extent > kMostElements
            || __builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product)
            || product > kMostElements)
            return false;
    }
    return true;
}

Result<void> checkSane(const InferCall &call)
{
    const Arity arity = entryOf(call.kind).inputs;
    if (call.inputs.size() > arity.most) {
        return Error{ErrorCode::InvalidInput,
            std::string(nameOf(call.kind)) + " takes at most " + std::to_string(arity.most)
                + " inputs, found " + std::to_string(call.inputs.size())};
    }
    for (std::size_t slot = 0; slot < arity.required; ++slot) {
        if (!call.has(slot)) {
            return Error{ErrorCode::InvalidInput,
                std::string(nameOf(call.kind)) + " lacks its input " + std::to_string(slot), {},
                "input:" + std::to_string(slot)};
        }
    }
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (!isSane(call.in(slot)))
            return call.misfit(slot, "extents that are not negative and a product below 2^48");
    }
    for (const auto &[name, value] : call.attributes.all()) {
        const auto *list = std::get_if<std::vector<std::int64_t>>(&value);
        // Slices may name "to the end" by the largest number there is; the importer has resolved those.
        if (list != nullptr && std::any_of(list->begin(), list->end(), [](std::int64_t number) {
                return number > kMostElements || number < -kMostElements;
            }))
            return call.badAttribute(name, "numbers of magnitude below 2^48");
    }
    return {};
}

} // namespace

std::optional<Shape> broadcast(const Shape &a, const Shape &b)
{
    Shape result(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (left != right && left != 1 && right != 1)
            return std::nullopt;
        result[result.size() - 1 - i] = left == 1 ? right : left;
    }
    return result;
}

Result<void> checkSameTypes(const InferCall &call, std::size_t count)
{
    for (std::size_t slot = 1; slot < count && slot < call.inputs.size(); ++slot) {
        if (call.has(slot) && call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("the element type of input 0, ") + nameOf(call.type(0).dataType));
    }
    return {};
}

Result<void> checkFloating(const InferCall &call, std::size_t count)
{
    if (!isFloating(call.type(0).dataType))
        return call.misfit(0, "a floating element type");
    return checkSameTypes(call, count);
}

Result<std::vector<TensorType>> inferTypes(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &declared)
{
    const InferCall call{kind, attributes, inputs, present, declared};
    TRY_VOID(checkSane(call));
    TRY(auto types, entryOf(kind).types(call));
    for (const TensorType &type : types) {
        if (!isSane(type.shape)) {
            return Error{ErrorCode::ResourceLimit,
                std::string(nameOf(kind)) + " would make a tensor of shape " + toString(type.shape)
                    + "; expected fewer than 2^48 elements",
                {}, "output:0"};
        }
    }
    return types;
}

} // namespace planloom
