#include "engine/frontend/onnx/parameters/onnx_parameters.h"

#include "engine/frontend/onnx/parameters/folded_steps.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostSteps = 16; ///< Of moving a weight about before it is used.
constexpr std::int64_t kLeastWeight = 64; ///< Elements from which a node's value can be a weight anywhere.

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
        {"Gather", {0, 0}}, {"GatherND", {0, 0}}, {"Einsum", {0, 7}}, {"PRelu", {1, 1}}, {"LSTM", {1, 3}},
        {"GRU", {1, 3}}, {"RNN", {1, 3}}};
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

/// True if all elements are the same number; false if they are not at hand.
bool isUniform(const StoredTensor &tensor)
{
    if (!tensor.data || tensor.data->bytes.empty())
        return false;
    const std::vector<std::byte> &bytes = tensor.data->bytes;
    const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
    return std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

/// What an undotted tensor is, going by one operator that adds, multiplies or joins it.
enum class Operand : std::uint8_t { Parameter, Mask, Uniform, Other };

Operand operandOf(const StoredTensor &tensor, const OnnxUses::Use &use)
{
    const Shape &shape = tensor.type.shape;
    const bool adds = use.node != nullptr && (use.node->type == "Add" || use.node->type == "Concat");
    if (use.node == nullptr || shape.empty() || (!adds && use.node->type != "Mul"))
        return Operand::Other;
    const auto longer = std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; });
    if (longer == 1 && (shape.size() == 1 || !isUniform(tensor)))
        return Operand::Parameter; // a bias or scale for each channel
    if (shape.size() >= 4 && shape[1] == 1)
        return Operand::Mask; // for all heads: masks, and rotary tables
    if (use.node->type == "Add" && shape.size() >= 3 && shape[0] > 1 && shape[shape.size() - 2] == 1)
        return Operand::Mask; // for each head, the same for all queries: linear biases (ALiBi)
    if (isUniform(tensor))
        return Operand::Uniform;
    return adds ? Operand::Parameter : Operand::Other; // positions and tokens are added and joined
}

Classification taken(StoredAs as, std::string why)
{
    return {.as = as, .why = std::move(why)};
}

Classification folded(StoredAs as, std::string why)
{
    return {.as = as, .why = std::move(why), .folded = true};
}

} // namespace

bool isDotted(std::string_view name)
{
    return name.find('.') != std::string_view::npos && name.front() != '.';
}

bool isAttributeName(std::string_view name)
{
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    const bool isWord = !name.empty() && isLetter(name.front())
        && std::all_of(name.begin(), name.end(), [&](char c) { return isLetter(c) || isDigit(c); });
    const std::size_t stem = name.find_last_not_of("0123456789");
    const bool isNumbered = stem != std::string_view::npos && stem + 1 < name.size() && name[stem] == '_';
    return isWord && !isNumbered;
}

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

ParameterRules::ParameterRules(
    const OnnxGraph &graph, const OnnxUses &uses, const std::map<std::string, StoredAs> &byHand)
    : m_graph(graph)
    , m_uses(uses)
    , m_byHand(byHand)
    , m_hasDotted(
          std::any_of(graph.initializers.begin(), graph.initializers.end(), [](const StoredTensor &tensor) {
              return isFloating(tensor.type.dataType) && !tensor.type.shape.empty() && isDotted(tensor.name);
          }))
{
    const bool stores =
        std::any_of(graph.initializers.begin(), graph.initializers.end(), [](const StoredTensor &tensor) {
            return isFloating(tensor.type.dataType) && elementCount(tensor.type.shape) > 1;
        });
    for (const OnnxNode &node : graph.nodes) {
        if (node.type == "DynamicQuantizeLinear" && node.outputs.size() > 1)
            m_dynamicScales.insert(node.outputs[1]);
        m_isInNodes = m_isInNodes
            || (!stores && !node.outputs.empty()
                && (node.type == "Constant" || node.type == "ConstantOfShape")
                && uses.isInWeightPosition(node.outputs.front()));
    }
}

/// A number that codes and numbers are told from one another by: learnt by counting, not by gradients.
bool ParameterRules::isScaleOfQuantizer(const StoredTensor &tensor) const
{
    // From which slot on an operator takes such numbers; floating ones before are what it computes with.
    static const std::map<std::string_view, std::set<std::size_t>> kSlots = {{"QuantizeLinear", {1, 2}},
        {"DequantizeLinear", {1, 2}}, {"QAttention", {3, 4}}, {"QGemm", {1, 4, 7}},
        {"DynamicQuantizeMatMul", {2}}, {"MatMulIntegerToFloat", {2, 3}}, {"MatMulNBits", {2}}};
    const auto &list = m_uses.usesOf(tensor.name);
    return !list.empty() && std::all_of(list.begin(), list.end(), [&](const OnnxUses::Use &use) {
        if (use.node == nullptr)
            return false;
        const auto found = kSlots.find(use.node->type);
        const bool scalesDynamic = use.node->type == "Mul" && use.node->inputs.size() == 2
            && m_dynamicScales.count(use.node->inputs[1 - use.slot]) != 0;
        return scalesDynamic || use.node->type.starts_with("QLinear")
            || (found != kSlots.end() && found->second.count(use.slot) != 0);
    });
}

/// True if the tensor has the name that the exported module gave it.
bool ParameterRules::isOwnName(const StoredTensor &tensor) const
{
    // Where exporters say what tensors are, names without dots are those that they made.
    const bool isSilent = m_graph.signature.empty() && m_graph.provenance.empty();
    return isDotted(tensor.name) || (m_hasDotted && isSilent && isAttributeName(tensor.name));
}

std::optional<Classification> ParameterRules::byMetadata(const StoredTensor &tensor) const
{
    const auto found = m_graph.provenance.find(tensor.name);
    const auto listed = m_graph.signature.find(tensor.name);
    if (found == m_graph.provenance.end() && listed == m_graph.signature.end())
        return std::nullopt;
    OnnxProvenance provenance;
    if (found != m_graph.provenance.end())
        provenance = found->second;
    else
        provenance.kind = listed->second;
    if (!provenance.insteadOf.empty()) {
        const std::vector<std::string> &lost = provenance.insteadOf;
        Classification instead = folded(StoredAs::Parameter,
            "the exporter worked the parameter '" + lost.front() + "'"
                + (lost.size() > 1 ? " and " + std::to_string(lost.size() - 1) + " more" : "")
                + " into it, and left it out");
        instead.insteadOf = lost;
        return instead;
    }
    if (provenance.kind) {
        switch (*provenance.kind) {
        case OnnxSpecKind::Parameter:
            return taken(StoredAs::Parameter, "the exporter says that it is a parameter");
        case OnnxSpecKind::Buffer:
            return taken(StoredAs::Buffer, "the exporter says that it is a buffer");
        case OnnxSpecKind::ConstantTensor:
            return taken(StoredAs::Constant, "the exporter says that it is a constant");
        case OnnxSpecKind::UserInput:
            return std::nullopt;
        }
    }
    const std::vector<std::string> parameters = parametersAmong(m_graph, provenance.foldedFrom);
    if (parameters.empty())
        return folded(StoredAs::Constant, "the exporter folded it from values that are no parameters");
    return folded(StoredAs::Parameter,
        "the exporter folded it from the parameter '" + parameters.front() + "'"
            + (parameters.size() > 1 ? " and " + std::to_string(parameters.size() - 1) + " more" : ""));
}

/// Tensors that operators take as numbers, whatever their names.
std::optional<Classification> ParameterRules::byUseAsNumber(const StoredTensor &tensor) const
{
    static const std::set<std::string_view> kArithmetic = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max",
        "Mod", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
    // Of these, what a module's own scale or offset of one number goes into.
    static const std::set<std::string_view> kScaling = {"Add", "Sub", "Mul", "Div"};
    // Operators that take numbers, not parameters, in the inputs after the first.
    static const std::set<std::string_view> kNumbers = {
        "Resize", "Upsample", "Clip", "Dropout", "Pad", "OneHot", "Range", "TopK", "Expand", "Tile", "Slice"};
    const auto &list = m_uses.usesOf(tensor.name);
    const auto all = [&](auto predicate) {
        return !list.empty() && std::all_of(list.begin(), list.end(), [&](const OnnxUses::Use &use) {
            return use.node != nullptr && predicate(use);
        });
    };
    if (all([](const OnnxUses::Use &use) { return use.node->type == "BatchNormalization" && use.slot >= 3; }))
        return taken(StoredAs::Buffer, "batch normalisation reads it as a statistic");
    if (isScaleOfQuantizer(tensor))
        return taken(StoredAs::Constant, "a quantizer reads it as a scale");
    const bool isOwn =
        isOwnName(tensor) && !isDotted(tensor.name); // a module's number is a fixed one more often
    if (tensor.type.shape.empty() && all([&](const OnnxUses::Use &use) {
            return isOneOf(use.node->type, kArithmetic) && !(isOwn && isOneOf(use.node->type, kScaling));
        }))
        return taken(StoredAs::Constant, "it is one number, which arithmetic reads");
    if (all([](const OnnxUses::Use &use) {
            return (use.slot > 0 || use.node->type == "Range") && isOneOf(use.node->type, kNumbers);
        }))
        return taken(StoredAs::Constant, "operators read it as a setting");
    return std::nullopt;
}

/// A tensor whose name is that of the outermost module's: of a parameter, or of a buffer that was never
/// trained.
Classification ParameterRules::byPlainName(const StoredTensor &tensor) const
{
    static const std::set<std::string_view> kChoosing = {
        "Pow", "Min", "Max", "Mod", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
    const auto &list = m_uses.usesOf(tensor.name);
    const bool isMany = elementCount(tensor.type.shape) > 1;
    const bool shifts = std::all_of(list.begin(), list.end(), [&](const OnnxUses::Use &use) {
        const bool normalizes = use.node != nullptr && isMany && use.slot == 1
            && (use.node->type == "Sub" || use.node->type == "Div");
        return normalizes || (use.node != nullptr && isOneOf(use.node->type, kChoosing));
    });
    if (tensor.hasNonFinite)
        return taken(StoredAs::Constant, "it holds numbers that no training leaves");
    if (shifts)
        return taken(
            StoredAs::Constant, "it is only subtracted, divided by or compared, as fixed statistics are");
    // What an exporter made of others for itself may be called so, too: masks, and tokens of every sample.
    constexpr std::size_t kMaskRank = 4;
    const Shape &shape = tensor.type.shape;
    if (shape.size() == kMaskRank && byPosition(tensor).as == StoredAs::Constant)
        return byPosition(tensor);
    Classification found =
        taken(StoredAs::Parameter, "its name is that of a parameter of the outermost module");
    found.folded = shape.size() + 1 >= kMaskRank;
    return found;
}

std::optional<Classification> ParameterRules::classifyNode(const StoredTensor &tensor) const
{
    if (!isFloating(tensor.type.dataType) || elementCount(tensor.type.shape) == 0)
        return std::nullopt;
    if (const auto chosen = chosenFor(tensor))
        return Classification{.as = *chosen, .why = "chosen by hand", .byHand = true, .folded = true};
    const auto fills = [](Classification found) {
        found.why = "it fills the place where an operator has its weights";
        return std::optional(std::move(found));
    };
    if (m_uses.isInWeightPosition(tensor.name) && elementCount(tensor.type.shape) >= kLeastWeight)
        return fills({});
    if (!m_isInNodes || byUseAsNumber(tensor))
        return std::nullopt;
    const Classification found = byPosition(tensor);
    return found.as == StoredAs::Parameter ? fills(found) : std::nullopt;
}

Classification ParameterRules::byPosition(const StoredTensor &tensor) const
{
    if (m_uses.isInWeightPosition(tensor.name))
        return folded(StoredAs::Parameter, "it stands where operators have their weights");
    const auto &list = m_uses.usesOf(tensor.name);
    Operand all = list.empty() ? Operand::Other : Operand::Parameter;
    for (const OnnxUses::Use &use : list) {
        if (use.node != nullptr && isWeightSlot(use.node->type, use.slot))
            continue;
        all = std::max(all, operandOf(tensor, use));
    }
    switch (all) {
    case Operand::Parameter:
        return folded(
            StoredAs::Parameter, "it is added, multiplied or joined as biases, scales and tokens are");
    case Operand::Mask:
        return folded(
            StoredAs::Constant, "it has the shape of a mask or rotary table, and no name of a module");
    case Operand::Uniform:
        return folded(StoredAs::Constant, "all its elements are equal, and it has no name of a module");
    case Operand::Other:
        break;
    }
    return folded(StoredAs::Constant, "it does not stand where parameters do, and has no name of a module");
}

std::optional<StoredAs> ParameterRules::chosenFor(const StoredTensor &tensor) const
{
    if (m_byHand.empty())
        return std::nullopt;
    auto found = m_byHand.find(tensor.name);
    if (found == m_byHand.end())
        found = m_byHand.find(nameOf(tensor));
    return found == m_byHand.end() ? std::nullopt : std::optional(found->second);
}

Classification ParameterRules::classify(const StoredTensor &tensor) const
{
    const bool mayTrain = isFloating(tensor.type.dataType);
    if (const auto chosen = chosenFor(tensor); chosen && (mayTrain || *chosen != StoredAs::Parameter))
        return {.as = *chosen, .why = "chosen by hand", .byHand = true, .folded = !isDotted(tensor.name)};
    if (!mayTrain)
        return taken(StoredAs::Constant, "it holds no floating numbers");
    if (auto said = byMetadata(tensor))
        return *std::move(said);
    if (isBufferName(tensor.name))
        return taken(StoredAs::Buffer, "its name is that of a buffer");
    if (isConstantName(lastPart(tensor.name)))
        return taken(StoredAs::Constant, "its name is that of a constant");
    if (auto number = byUseAsNumber(tensor))
        return *std::move(number);
    if (isDotted(tensor.name))
        return taken(StoredAs::Parameter, "its name is that of a module's parameter");
    if (isOwnName(tensor))
        return byPlainName(tensor);
    if (m_hasDotted)
        return byPosition(tensor);
    return taken(StoredAs::Parameter, "it holds floating numbers, and names here say nothing");
}

std::string ParameterRules::nameOf(const StoredTensor &tensor) const
{
    constexpr std::size_t kMostJoined = 4;
    const auto found = m_graph.provenance.find(tensor.name);
    if (found == m_graph.provenance.end() || found->second.kind)
        return tensor.name;
    const std::vector<std::string> parameters = parametersAmong(m_graph, found->second.foldedFrom);
    std::string name;
    for (std::size_t i = 0; i < std::min(parameters.size(), kMostJoined); ++i)
        name += (i > 0 ? "+" : "") + parameters[i];
    if (parameters.size() > kMostJoined)
        name += "+" + std::to_string(parameters.size() - kMostJoined);
    return name.empty() ? tensor.name : name;
}

std::unordered_map<std::string, Classification> parameterInputs(const OnnxGraph &graph, const OnnxUses &uses,
    const ParameterRules &rules, const std::set<std::string> &asInputs)
{
    std::unordered_map<std::string, Classification> parameters;
    for (const OnnxValue &input : graph.inputs) {
        const StoredTensor tensor{
            input.name, {input.dataType.value_or(DataType::Bool), {}}, nullptr, {}, false};
        if (rules.chosenFor(tensor) && asInputs.count(input.name) == 0)
            parameters.emplace(input.name, rules.classify(tensor));
    }
    for (const StoredTensor &tensor : graph.initializers) {
        if (rules.classify(tensor).as == StoredAs::Parameter)
            return parameters;
    }
    const std::size_t byHand = parameters.size();
    // One-dimensional values in sums and products are biases and scales only beside other parameters.
    bool hasOthers = false;
    for (const bool oneDimensional : {false, true}) {
        for (const OnnxValue &input : graph.inputs) {
            const bool isStatic = input.shape
                && std::all_of(input.shape->begin(), input.shape->end(),
                    [](const OnnxDimension &d) { return d.size.has_value(); });
            const std::size_t rank = input.shape ? input.shape->size() : 0;
            if (!input.dataType || !isStatic || (oneDimensional && (rank != 1 || !hasOthers))
                || asInputs.count(input.name) != 0 || parameters.count(input.name) != 0)
                continue;
            const auto said = graph.provenance.find(input.name);
            if (said != graph.provenance.end() && said->second.kind == OnnxSpecKind::UserInput)
                continue;
            const bool dotted = isDotted(input.name) || (said != graph.provenance.end() && said->second.kind);
            const bool placed = isFloating(*input.dataType) && rank >= 1
                && uses.isInWeightPosition(input.name, oneDimensional ? 1 : -1);
            if (dotted || placed) {
                const StoredTensor tensor{input.name, {*input.dataType, Shape(rank, 1)}, nullptr, {}, false};
                parameters.emplace(input.name, rules.classify(tensor));
                hasOthers = true;
            }
        }
    }
    const bool plainLeft = parameters.size() < graph.inputs.size();
    if (!plainLeft && parameters.size() > byHand)
        std::erase_if(parameters, [](const auto &each) { return !each.second.byHand; });
    return parameters;
}

} // namespace planloom
