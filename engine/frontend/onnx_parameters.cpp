#include "engine/frontend/onnx_parameters.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

constexpr int kMostSteps = 16; ///< Of moving a weight about before it is used.

bool isOneOf(std::string_view text, const std::set<std::string_view> &set)
{
    return set.count(text) != 0;
}

/// Inputs of operators where weights stand.
bool isWeightSlot(std::string_view type, std::size_t slot)
{
    static const std::map<std::string_view, std::pair<std::size_t, std::size_t>> kSlots = {{"Conv", {1, 2}},
        {"ConvTranspose", {1, 2}}, {"Gemm", {1, 2}}, {"BatchNormalization", {1, 2}},
        {"InstanceNormalization", {1, 2}}, {"LayerNormalization", {1, 2}}, {"GroupNormalization", {1, 2}},
        {"RMSNormalization", {1, 1}}, {"SimplifiedLayerNormalization", {1, 1}}, {"MatMul", {1, 1}},
        {"Gather", {0, 0}}, {"PRelu", {1, 1}}, {"LSTM", {1, 3}}, {"GRU", {1, 3}}, {"RNN", {1, 3}}};
    const auto found = kSlots.find(type);
    return found != kSlots.end() && slot >= found->second.first && slot <= found->second.second;
}

/// The last part of "layers.0.blocks.1.attn_mask".
std::string_view lastPart(std::string_view name)
{
    const std::size_t separator = name.find_last_of("./");
    return separator == std::string_view::npos ? name : name.substr(separator + 1);
}

/// "Constant_4_output_0": how exporters call the value of a Constant node that a tool made an initializer.
bool isConstantName(std::string_view name)
{
    return name.substr(0, 8) == "Constant" && name.find("_output_") != std::string_view::npos;
}

} // namespace

void collectNamesRead(const OnnxGraph &graph, std::unordered_set<std::string_view> &names)
{
    for (const OnnxNode &node : graph.nodes) {
        for (const std::string &input : node.inputs)
            names.insert(input);
        for (const auto &[name, attribute] : node.attributes) {
            if (const auto *inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute))
                collectNamesRead(**inner, names);
        }
    }
    for (const OnnxValue &output : graph.outputs)
        names.insert(output.name);
}

OnnxUses::OnnxUses(const OnnxGraph &graph)
{
    m_uses.reserve(2 * graph.nodes.size());
    for (const OnnxNode &node : graph.nodes) {
        for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
            if (!node.inputs[slot].empty())
                m_uses[node.inputs[slot]].push_back({&node, slot});
        }
        for (const auto &[name, attribute] : node.attributes) {
            if (const auto *inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute)) {
                std::unordered_set<std::string_view> read;
                collectNamesRead(**inner, read);
                for (const std::string_view value : read)
                    m_uses[value].push_back({});
            }
        }
    }
    for (const OnnxValue &output : graph.outputs)
        m_outputs.insert(output.name);
}

const std::vector<OnnxUses::Use> &OnnxUses::usesOf(std::string_view value) const
{
    static const std::vector<Use> kNone;
    const auto found = m_uses.find(value);
    return found == m_uses.end() ? kNone : found->second;
}

bool OnnxUses::isInWeightPosition(std::string_view value, std::int64_t rank, int depth) const
{
    static const std::set<std::string_view> kMoving = {
        "Transpose", "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze"};
    const auto &uses = usesOf(value);
    if (uses.empty() || isOutput(value) || depth > kMostSteps)
        return false;
    return std::all_of(uses.begin(), uses.end(), [&](const Use &use) {
        if (use.node == nullptr)
            return false;
        if (use.slot == 0 && isOneOf(use.node->type, kMoving))
            return use.node->outputs.size() == 1
                && isInWeightPosition(use.node->outputs.front(), -1, depth + 1);
        if (rank == 1 && (use.node->type == "Add" || use.node->type == "Mul"))
            return true;
        return isWeightSlot(use.node->type, use.slot);
    });
}

TensorRole roleOfStored(const OnnxTensor &tensor, const OnnxUses &uses)
{
    static const std::set<std::string_view> kBufferNames = {"attn_mask", "mask", "masked_bias", "inv_freq",
        "cos_cached", "sin_cached", "running_mean", "running_var", "anchors"};
    static const std::set<std::string_view> kArithmetic = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max",
        "Mod", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
    // Operators that take numbers, not parameters, in the inputs after the first.
    static const std::set<std::string_view> kNumbers = {
        "Resize", "Upsample", "Clip", "Dropout", "Pad", "OneHot", "Range", "TopK", "Expand", "Tile", "Slice"};
    const std::string_view last = lastPart(tensor.name);
    if (!isFloating(tensor.type.dataType) || isOneOf(last, kBufferNames) || isConstantName(last))
        return TensorRole::Buffer;
    const auto &list = uses.usesOf(tensor.name);
    const auto all = [&](auto predicate) {
        return !list.empty() && std::all_of(list.begin(), list.end(), [&](const OnnxUses::Use &use) {
            return use.node != nullptr && predicate(use);
        });
    };
    if (all([](const OnnxUses::Use &use) { return use.node->type == "BatchNormalization" && use.slot >= 3; }))
        return TensorRole::Buffer;
    if (tensor.type.shape.empty()
        && all([](const OnnxUses::Use &use) { return isOneOf(use.node->type, kArithmetic); }))
        return TensorRole::Buffer;
    if (all([](const OnnxUses::Use &use) {
            return (use.slot > 0 || use.node->type == "Range") && isOneOf(use.node->type, kNumbers);
        }))
        return TensorRole::Buffer;
    return TensorRole::Weight;
}

std::unordered_map<std::string, TensorRole> parameterInputs(const OnnxGraph &graph, const OnnxUses &uses)
{
    std::unordered_map<std::string, TensorRole> parameters;
    for (const OnnxTensor &tensor : graph.initializers) {
        if (roleOfStored(tensor, uses) == TensorRole::Weight)
            return {};
    }
    // One-dimensional values in sums and products are biases and scales only beside other parameters.
    bool hasOthers = false;
    for (const bool oneDimensional : {false, true}) {
        for (const OnnxValue &input : graph.inputs) {
            const bool isStatic = input.shape
                && std::all_of(input.shape->begin(), input.shape->end(),
                    [](const OnnxDimension &d) { return d.size.has_value(); });
            const std::size_t rank = input.shape ? input.shape->size() : 0;
            if (!input.dataType || !isStatic || (oneDimensional && (rank != 1 || !hasOthers)))
                continue;
            const bool dotted = input.name.find('.') != std::string::npos && input.name.front() != '.';
            const bool placed = isFloating(*input.dataType) && rank >= 1
                && uses.isInWeightPosition(input.name, oneDimensional ? 1 : -1);
            if (dotted || placed) {
                const OnnxTensor tensor{input.name, {*input.dataType, Shape(rank, 1)}, nullptr, {}, false};
                parameters.emplace(input.name, roleOfStored(tensor, uses));
                hasOthers = true;
            }
        }
    }
    const bool plainLeft = parameters.size() < graph.inputs.size();
    if (!plainLeft)
        parameters.clear();
    return parameters;
}

} // namespace planloom
