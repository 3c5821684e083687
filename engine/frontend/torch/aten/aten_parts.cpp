#include "engine/frontend/torch/aten/aten_parts.h"

#include <complex>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// One part of an argument; other arguments are those of both parts.
Result<AtenValue> partOf(
    AtenContext &context, const std::string &name, const AtenValue &value, ComplexPart part)
{
    // Numbers that stand for elements; others are factors, places and sizes.
    static const std::set<std::string_view> kElements = {"value", "fill_value", "other", "self", "src", "s"};
    const bool isReal = part == ComplexPart::Real;
    const auto of = [&](const AtenComplex &complex) -> Result<TensorId> {
        if (isReal || complex.imaginary)
            return isReal ? complex.real : complex.imaginary;
        return context.filled(context.typeOf(complex.real), AtenValue(0.0), "zero");
    };
    if (const auto *complex = std::get_if<AtenComplex>(&value)) {
        TRY(const TensorId id, of(*complex));
        return AtenValue(id);
    }
    if (const auto *list = std::get_if<std::vector<AtenComplex>>(&value)) {
        std::vector<TensorId> ids;
        for (const AtenComplex &complex : *list) {
            TRY(const TensorId id, of(complex));
            ids.push_back(id);
        }
        return AtenValue(std::move(ids));
    }
    if (const auto *number = std::get_if<std::complex<double>>(&value))
        return AtenValue(isReal ? number->real() : number->imag());
    if (const auto *type = std::get_if<Pt2DataType>(&value); type != nullptr && type->partType)
        return AtenValue(Pt2DataType{type->partType, type->name, {}});
    const bool isNumber =
        std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    if (isNumber && !isReal && kElements.count(name) != 0)
        return AtenValue(0.0);
    const auto *id = std::get_if<TensorId>(&value);
    const bool isElements = kElements.count(name) != 0 || name == "values" || name == "source";
    if (id != nullptr && !isReal && isElements) { // real numbers among complex ones
        TRY(const TensorId zero, context.filled(context.typeOf(*id), AtenValue(0.0), "zero"));
        return AtenValue(zero);
    }
    return value;
}

} // namespace

Result<std::vector<AtenValue>> ofPart(AtenContext &context, const std::string &name, ComplexPart part)
{
    AtenArguments arguments;
    for (const auto &[key, value] : context.arguments()) {
        TRY(AtenValue own, partOf(context, key, value, part));
        arguments.emplace(key, std::move(own));
    }
    return context.otherMany(
        name, std::move(arguments), context.resultCount(), part == ComplexPart::Real ? "real" : "imaginary");
}

Result<void> partByPart(AtenContext &context)
{
    const std::string name = context.name();
    TRY(const auto reals, ofPart(context, name, ComplexPart::Real));
    TRY(const auto imaginaries, ofPart(context, name, ComplexPart::Imaginary));
    for (std::size_t slot = 0; slot < reals.size(); ++slot) {
        const auto *real = std::get_if<TensorId>(&reals[slot]);
        const auto *imaginary = std::get_if<TensorId>(&imaginaries[slot]);
        if (real == nullptr || imaginary == nullptr)
            return context.unsupported("its parts are complex");
        TRY_VOID(context.bindComplex(slot, {*real, *imaginary}));
    }
    return {};
}

bool isAtenByPart(std::string_view name)
{
    static const std::set<std::string_view> kNames = {"view", "reshape", "_unsafe_view", "view_copy",
        "view_as", "reshape_as", "flatten", "unflatten", "squeeze", "squeeze_copy", "unsqueeze",
        "unsqueeze_copy", "expand", "expand_copy", "broadcast_to", "expand_as", "broadcast_tensors", "repeat",
        "tile", "repeat_interleave", "permute", "permute_copy", "transpose", "swapdims", "swapaxes", "t",
        "mT", "numpy_T", "movedim", "moveaxis", "flip", "roll", "cat", "concat", "stack", "split",
        "split_with_sizes", "split_with_sizes_copy", "chunk", "unbind", "slice", "slice_copy", "narrow",
        "select", "select_copy", "diff", "slice_scatter", "select_scatter", "pad", "constant_pad_nd",
        "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "gather",
        "index_select", "index", "_unsafe_index", "index_put", "_unsafe_index_put", "index_add", "index_copy",
        "index_fill", "scatter", "scatter_add", "embedding", "tril", "triu", "diagonal", "unfold", "clone",
        "contiguous", "alias", "lift_fresh", "lift_fresh_copy", "detach", "detach_copy", "positive", "neg",
        "negative", "_neg_view", "sum", "mean", "cumsum", "where", "masked_fill", "zeros", "zeros_like",
        "new_zeros", "empty", "empty_like", "new_empty", "full", "full_like", "new_full", "fill", "zero",
        "copy", "scalar_tensor", "real_copy", "fft_fftshift", "fft_ifftshift"};
    return kNames.count(name) != 0;
}

} // namespace planloom
