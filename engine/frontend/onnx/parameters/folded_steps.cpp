#include "engine/frontend/onnx/parameters/folded_steps.h"

#include "engine/frontend/onnx/parameters/onnx_parameters.h"

#include <algorithm>
#include <iterator>

namespace planloom {

namespace {

constexpr std::size_t kMostNamed = 3; ///< Tensors in one sentence.

using Words = std::set<std::string_view>;

bool isParameter(const OnnxGraph &graph, const std::string &name)
{
    if (const auto found = graph.signature.find(name); found != graph.signature.end())
        return found->second == OnnxSpecKind::Parameter;
    if (const auto found = graph.provenance.find(name); found != graph.provenance.end() && found->second.kind)
        return found->second.kind == OnnxSpecKind::Parameter;
    // Without a signature the names of parameters are those with dots.
    return graph.signature.empty() && isDotted(name) && !isBufferName(name);
}

/// "embedding" of "embedding_12": what exporters call the results of that operator of PyTorch.
std::string_view stemOf(std::string_view name)
{
    const std::size_t end = name.find_last_not_of("0123456789");
    return end != std::string_view::npos && end + 1 < name.size() && name[end] == '_' ? name.substr(0, end)
                                                                                      : name;
}

/// Operators that may write an element more than once.
bool repeats(std::string_view stem)
{
    static const Words kRepeating = {
        "expand", "expand_as", "repeat", "repeat_interleave", "tile", "broadcast_to", "unfold"};
    return kRepeating.count(stem) != 0;
}

/// Operators that make constants and the places at which tables are read.
bool counts(std::string_view stem)
{
    static const Words kCounting = {"arange", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like",
        "new_zeros", "new_ones", "new_full", "empty", "scalar_tensor", "scalar_tensor_default", "sym_size",
        "cumsum", "eq", "ne", "lt", "le", "gt", "ge", "where", "logical_and", "logical_or", "logical_not",
        "val"};
    return kCounting.count(stem) != 0 || stem.starts_with("lifted_tensor")
        || stem.starts_with("_tensor_constant");
}

/// Arithmetic that finds places in tables (relative ones, in logarithmic steps), but that also computes.
bool calculates(std::string_view stem)
{
    static const Words kCalculating = {"add", "sub", "rsub", "mul", "div", "floor_divide", "remainder",
        "fmod", "abs", "neg", "sign", "log", "minimum", "maximum", "clamp", "clamp_min", "clamp_max", "floor",
        "ceil", "round", "trunc", "pow", "sum"};
    return kCalculating.count(stem) != 0;
}

} // namespace

bool movesElements(std::string_view stem)
{
    static const Words kMoving = {"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "permute",
        "transpose", "t", "numpy_t", "mt", "expand", "expand_as", "repeat", "repeat_interleave", "tile",
        "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind", "getitem", "flatten",
        "unflatten", "contiguous", "clone", "alias", "detach", "detach_", "lift_fresh_copy", "to", "_to_copy",
        "type_as", "float", "flip", "roll", "cat", "stack", "broadcast_to", "movedim", "unfold", "embedding",
        "index", "index_select", "gather", "take"};
    return kMoving.count(stem) != 0;
}

bool selectsElements(std::string_view stem)
{
    static const Words kSelecting = {"embedding", "index", "index_select", "gather", "take"};
    return kSelecting.count(stem) != 0;
}

FoldedSteps stepsOf(const OnnxGraph &graph, const std::string &name, const OnnxProvenance &provenance)
{
    FoldedSteps steps;
    for (const std::string &from : provenance.foldedFrom) {
        if (isParameter(graph, from))
            steps.parameters.push_back(from);
        else if (graph.signature.count(from) != 0)
            steps.stored.push_back(from);
        else
            steps.stems.insert(stemOf(from));
    }
    steps.last = stemOf(name);
    steps.stems.insert(steps.last);
    for (const char *inner : {"val", "tmp", "value", "value_cast"})
        steps.stems.erase(
            inner); // steps inside of an operator of PyTorch, such as a Transpose, or a factor of 1
    return steps;
}

bool FoldedSteps::mayRepeat() const
{
    return std::any_of(stems.begin(), stems.end(),
        [](std::string_view stem) { return selectsElements(stem) || repeats(stem); });
}

bool isMovedOnly(const FoldedSteps &steps)
{
    const bool chosen =
        std::any_of(steps.stems.begin(), steps.stems.end(), selectsElements) && movesElements(steps.last);
    const bool plain = std::all_of(steps.stems.begin(), steps.stems.end(), [&](std::string_view stem) {
        return movesElements(stem) || counts(stem) || (calculates(stem) && chosen)
            || ((stem == "add" || stem == "sub") && steps.stored.empty());
    });
    if (!plain || (!steps.stored.empty() && !chosen && !steps.has("cat")))
        return false;
    // Several parameters are apart in what joins them, and in nothing else.
    return steps.parameters.size() == 1
        || ((steps.last == "cat" || steps.has("cat") || steps.has("stack"))
            && std::none_of(steps.stems.begin(), steps.stems.end(), calculates));
}

std::string namesInWords(const std::vector<std::string> &names)
{
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
        text += (i > 0 ? ", '" : "'") + names[i] + "'";
    if (names.size() > kMostNamed)
        text += " and " + std::to_string(names.size() - kMostNamed) + " more";
    return text;
}

bool isBufferName(std::string_view name)
{
    static const Words kNames = {"attn_mask", "mask", "masked_bias", "cos_cached", "sin_cached",
        "running_mean", "running_var", "anchors", "final_logits_bias"};
    const std::size_t separator = name.find_last_of("./");
    const std::string_view last = separator == std::string_view::npos ? name : name.substr(separator + 1);
    return kNames.count(last) != 0 || last.ends_with("inv_freq");
}

std::vector<std::string> parametersAmong(const OnnxGraph &graph, const std::vector<std::string> &names)
{
    std::vector<std::string> parameters;
    std::copy_if(names.begin(), names.end(), std::back_inserter(parameters),
        [&](const std::string &name) { return isParameter(graph, name); });
    return parameters;
}

} // namespace planloom
