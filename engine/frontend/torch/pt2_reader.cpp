#include "engine/frontend/torch/pt2_reader.h"

#include "engine/frontend/torch/pt2_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSchemaMajor = 8; ///< torch/_export/serde/schema.py, SCHEMA_VERSION.
constexpr std::size_t kLargestRank = 64;
constexpr int kStrided = 7; ///< Layout.Strided

/// Turns parsed JSON into the program's structs; every value is checked before it is used.
class Decoder : private Pt2Json
{
public:
    using Pt2Json::Pt2Json;

    Result<Pt2Program> program(const Json &json);
    Result<std::map<std::string, Pt2Payload>> payloads(const Json &json);

private:
    Result<Pt2Size> size(const Json &json, const std::string &place) const;
    Result<Pt2Meta> meta(const Json &json, const std::string &place) const;
    Result<Pt2Argument> symbolic(const Json &json, const char *constant, const std::string &place) const;
    Result<Pt2Argument> numbers(const Json &json, const std::string &place) const;
    Result<Pt2Argument> tensors(const Json &json, const std::string &place) const;
    Result<Pt2Argument> argument(const Json &json, const std::string &place);
    Result<Pt2Node> node(const Json &json, const std::string &place);
    Result<std::vector<std::string>> modules(const Json &metadata, const std::string &place);
    Result<std::vector<Pt2Argument>> arguments(
        const Json &object, const char *name, const std::string &place);
    Result<Pt2Graph> graph(const Json &json, const std::string &place);
    Result<Pt2InputSpec> inputSpec(const Json &json, const std::string &place);
    Result<Pt2OutputSpec> outputSpec(const Json &json, const std::string &place);
    Result<void> checkVersion(const Json &json, Pt2Program &program) const;
    Result<void> readRanges(const Json &json, Pt2Program &program) const;

    std::map<std::string, std::string> m_moduleClasses{}; ///< Of the nodes read so far.
};

Result<Pt2Size> Decoder::size(const Json &json, const std::string &place) const
{
    Pt2Size size;
    if (const Json *value = find(json, "as_int")) {
        TRY(size.value, integer(*value, place));
        return size;
    }
    TRY(const Json *expression, member(json, "as_expr", place));
    TRY(size.expression, nameIn(*expression, "expr_str", place));
    return size;
}

Result<Pt2Meta> Decoder::meta(const Json &json, const std::string &place) const
{
    Pt2Meta meta;
    TRY(const Json *type, member(json, "dtype", place));
    TRY(const std::int64_t code, integer(*type, place + ".dtype"));
    meta.dataType = pt2DataType(code);
    meta.partType = pt2PartType(code);
    meta.typeName = pt2TypeName(code);
    const std::array<std::pair<const char *, std::vector<Pt2Size> *>, 2> lists{
        {{"sizes", &meta.sizes}, {"strides", &meta.strides}}};
    for (const auto &[key, target] : lists) {
        TRY(const Json *sizes, list(json, key, place));
        if (sizes->size() > kLargestRank)
            return wrong(place + "." + key, "a list of at most 64 extents");
        for (const Json &item : *sizes) {
            TRY(Pt2Size value, size(item, place + "." + key));
            target->push_back(std::move(value));
        }
    }
    meta.storageOffset.value = 0;
    if (const Json *offset = find(json, "storage_offset")) {
        TRY(meta.storageOffset, size(*offset, place + ".storage_offset"));
    }
    if (const Json *gradient = find(json, "requires_grad"))
        meta.requiresGradient = gradient->is_boolean() && gradient->get<bool>();
    if (const Json *layout = find(json, "layout"))
        meta.isStrided = *layout == kStrided;
    if (const Json *device = find(json, "device"); device != nullptr && device->is_object()) {
        const Json *kind = find(*device, "type");
        meta.isMeta = kind != nullptr && *kind == "meta";
    }
    return meta;
}

/// {"as_name": ...} or a constant.
Result<Pt2Argument> Decoder::symbolic(const Json &json, const char *constant, const std::string &place) const
{
    if (find(json, "as_name") != nullptr) {
        TRY(std::string symbol, nameIn(json, "as_name", place));
        return Pt2Argument(Pt2Symbol{std::move(symbol)});
    }
    TRY(const Json *value, member(json, constant, place));
    if (value->is_boolean())
        return Pt2Argument(value->get<bool>());
    if (value->is_number_integer() && std::string_view(constant) == "as_int") {
        TRY(const std::int64_t number, integer(*value, place));
        return Pt2Argument(number);
    }
    TRY(const double number, real(*value, place));
    return Pt2Argument(number);
}

/// A list of numbers, of which some may be named.
Result<Pt2Argument> Decoder::numbers(const Json &json, const std::string &place) const
{
    if (!json.is_array())
        return wrong(place, "a list");
    std::vector<Pt2Number> result;
    result.reserve(json.size());
    for (const Json &item : json) {
        if (find(item, "as_name") != nullptr) {
            TRY(std::string symbol, nameIn(item, "as_name", place));
            result.emplace_back(Pt2Symbol{std::move(symbol)});
            continue;
        }
        const Json *inner = item.is_object() && item.size() == 1 ? &*item.begin() : &item;
        if (inner->is_boolean()) {
            result.emplace_back(std::int64_t{inner->get<bool>() ? 1 : 0});
        } else if (inner->is_number_integer()) {
            TRY(const std::int64_t number, integer(*inner, place));
            result.emplace_back(number);
        } else {
            TRY(const double number, real(*inner, place));
            result.emplace_back(number);
        }
    }
    return Pt2Argument(std::move(result));
}

/// A list of tensors, of which some may be absent.
Result<Pt2Argument> Decoder::tensors(const Json &json, const std::string &place) const
{
    if (!json.is_array())
        return wrong(place, "a list");
    std::vector<Pt2Tensor> result;
    result.reserve(json.size());
    for (const Json &item : json) {
        if (find(item, "as_none") != nullptr) {
            result.emplace_back();
            continue;
        }
        const Json *inner = find(item, "as_tensor");
        TRY(std::string tensor, nameIn(inner != nullptr ? *inner : item, "name", place));
        result.push_back({std::move(tensor)});
    }
    return Pt2Argument(std::move(result));
}

Result<Pt2Argument> Decoder::argument(const Json &json, const std::string &place)
{
    if (!json.is_object() || json.size() != 1)
        return wrong(place, "an argument: an object with one member");
    const std::string &kind = json.begin().key();
    const Json &value = *json.begin();
    const std::string here = place + "." + kind.substr(0, 32);
    if (kind == "as_none")
        return Pt2Argument(Pt2None{});
    if (kind == "as_tensor") {
        TRY(std::string tensor, nameIn(value, "name", here));
        return Pt2Argument(Pt2Tensor{std::move(tensor)});
    }
    if (kind == "as_optional_tensor")
        return argument(value, here);
    if (kind == "as_tensors" || kind == "as_optional_tensors")
        return tensors(value, here);
    if (kind == "as_int") {
        TRY(const std::int64_t number, integer(value, here));
        return Pt2Argument(number);
    }
    if (kind == "as_float") {
        TRY(const double number, real(value, here));
        return Pt2Argument(number);
    }
    if (kind == "as_complex") {
        TRY(const Json *realPart, member(value, "real", here));
        TRY(const Json *imaginaryPart, member(value, "imag", here));
        TRY(const double re, real(*realPart, here + ".real"));
        TRY(const double im, real(*imaginaryPart, here + ".imag"));
        return Pt2Argument(std::complex<double>(re, im));
    }
    if (kind == "as_bool" && value.is_boolean())
        return Pt2Argument(value.get<bool>());
    if (kind == "as_string") {
        TRY(std::string text, name(value, here));
        return Pt2Argument(std::move(text));
    }
    if (kind == "as_sym_int")
        return symbolic(value, "as_int", here);
    if (kind == "as_sym_float")
        return symbolic(value, "as_float", here);
    if (kind == "as_sym_bool")
        return symbolic(value, "as_bool", here);
    if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools" || kind == "as_sym_ints"
        || kind == "as_sym_floats" || kind == "as_sym_bools")
        return numbers(value, here);
    if (kind == "as_scalar_type") {
        TRY(const std::int64_t code, integer(value, here));
        return Pt2Argument(Pt2DataType{pt2DataType(code), pt2TypeName(code), pt2PartType(code)});
    }
    if (kind == "as_graph") {
        TRY(const Json *inner, member(value, "graph", here));
        TRY(Pt2Graph result, graph(*inner, here));
        return Pt2Argument(std::make_shared<const Pt2Graph>(std::move(result)));
    }
    if (!isPlainPt2Name(kind))
        return wrong(place, "an argument of a known kind");
    return Pt2Argument(Pt2Unreadable{kind.substr(0, 3) == "as_" ? kind.substr(3) : kind});
}

/// The paths of "KEY,PATH,CLASS;KEY,PATH,CLASS": each module's own, outermost first.
Result<std::vector<std::string>> Decoder::modules(const Json &metadata, const std::string &place)
{
    std::vector<std::string> paths;
    const Json *stack = find(metadata, "nn_module_stack");
    if (stack == nullptr || !stack->is_string())
        return paths;
    const std::string &text = stack->get_ref<const std::string &>();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(';', begin), text.size());
        const std::string entry = text.substr(begin, end - begin);
        const std::size_t first = entry.find(',');
        const std::size_t last = entry.rfind(',');
        begin = end + 1;
        if (first == std::string::npos || last == first)
            continue;
        std::string path = entry.substr(first + 1, last - first - 1);
        if (!isPlainPt2Name(path))
            return wrong(place + ".nn_module_stack", "names without control characters");
        std::string name = entry.substr(last + 1);
        if (!isPlainPt2Name(name))
            return wrong(place + ".nn_module_stack", "names without control characters");
        // Nodes that no module's code made have a marker in place of a path.
        if (entry.substr(0, first) == path)
            continue;
        m_moduleClasses.try_emplace(path, std::move(name));
        if (!path.empty() && paths.size() < kLargestRank)
            paths.push_back(std::move(path));
    }
    return paths;
}

Result<std::vector<Pt2Argument>> Decoder::arguments(
    const Json &object, const char *key, const std::string &place)
{
    TRY(const Json *items, list(object, key, place));
    std::vector<Pt2Argument> result;
    result.reserve(items->size());
    for (const Json &item : *items) {
        TRY(Pt2Argument value, argument(item, place + "." + key));
        result.push_back(std::move(value));
    }
    return result;
}

Result<Pt2Node> Decoder::node(const Json &json, const std::string &place)
{
    Pt2Node node;
    TRY(node.target, nameIn(json, "target", place));
    TRY(const Json *inputs, list(json, "inputs", place));
    node.inputs.reserve(inputs->size());
    for (const Json &item : *inputs) {
        Pt2NamedArgument input;
        TRY(input.name, nameIn(item, "name", place + ".inputs"));
        TRY(const Json *value, member(item, "arg", place + ".inputs"));
        TRY(input.value, argument(*value, place + ".inputs." + input.name));
        node.inputs.push_back(std::move(input));
    }
    TRY(node.outputs, arguments(json, "outputs", place));
    if (const Json *metadata = find(json, "metadata")) {
        TRY(node.modules, modules(*metadata, place));
    }
    if (const Json *given = find(json, "name"); given != nullptr && given->is_string()) {
        TRY(node.name, name(*given, place + ".name"));
    } else if (!node.outputs.empty()) { // versions before 8.7 name the values alone
        if (const auto *tensor = std::get_if<Pt2Tensor>(&node.outputs.front()))
            node.name = tensor->name;
    }
    return node;
}

Result<Pt2Graph> Decoder::graph(const Json &json, const std::string &place)
{
    Pt2Graph graph;
    TRY(graph.inputs, arguments(json, "inputs", place));
    TRY(graph.outputs, arguments(json, "outputs", place));
    TRY(const Json *nodes, list(json, "nodes", place));
    graph.nodes.reserve(nodes->size());
    for (std::size_t i = 0; i < nodes->size(); ++i) {
        TRY(Pt2Node value, node((*nodes)[i], place + ".nodes[" + std::to_string(i) + "]"));
        graph.nodes.push_back(std::move(value));
    }
    TRY(const Json *tensors, member(json, "tensor_values", place));
    if (!tensors->is_object())
        return wrong(place + ".tensor_values", "an object");
    for (const auto &[key, value] : tensors->items()) {
        if (!isPlainPt2Name(key))
            return wrong(place + ".tensor_values", "named without control characters");
        TRY(Pt2Meta described, meta(value, place + ".tensor_values." + key));
        graph.tensors.emplace(key, std::move(described));
    }
    return graph;
}

Result<Pt2InputSpec> Decoder::inputSpec(const Json &json, const std::string &place)
{
    if (!json.is_object() || json.size() != 1)
        return wrong(place, "an input: an object with one member");
    const std::string &kind = json.begin().key();
    const Json &value = *json.begin();
    Pt2InputSpec spec;
    const auto stored = [&](Pt2InputKind which, const char *key) -> Result<Pt2InputSpec> {
        spec.kind = which;
        TRY(const Json *argumentJson, member(value, "arg", place));
        TRY(std::string tensor, nameIn(*argumentJson, "name", place));
        spec.argument = Pt2Tensor{std::move(tensor)};
        TRY(spec.target, nameIn(value, key, place));
        return spec;
    };
    if (kind == "parameter")
        return stored(Pt2InputKind::Parameter, "parameter_name");
    if (kind == "buffer")
        return stored(Pt2InputKind::Buffer, "buffer_name");
    if (kind == "tensor_constant")
        return stored(Pt2InputKind::Constant, "tensor_constant_name");
    if (kind == "user_input") {
        TRY(const Json *argumentJson, member(value, "arg", place));
        TRY(spec.argument, argument(*argumentJson, place));
        return spec;
    }
    if (kind == "constant_input") {
        spec.kind = Pt2InputKind::Fixed;
        TRY(spec.target, nameIn(value, "name", place));
        return spec;
    }
    spec.kind = Pt2InputKind::Unreadable;
    spec.target = isPlainPt2Name(kind) ? kind : std::string("unknown");
    return spec;
}

Result<Pt2OutputSpec> Decoder::outputSpec(const Json &json, const std::string &place)
{
    if (!json.is_object() || json.size() != 1)
        return wrong(place, "an output: an object with one member");
    const std::string &kind = json.begin().key();
    const Json &value = *json.begin();
    Pt2OutputSpec spec;
    if (kind == "user_output") {
        TRY(const Json *argumentJson, member(value, "arg", place));
        TRY(spec.argument, argument(*argumentJson, place));
        return spec;
    }
    spec.kind = Pt2OutputKind::Other;
    const Json *argumentJson = find(value, "arg");
    if (argumentJson != nullptr && find(*argumentJson, "name") != nullptr) {
        TRY(std::string tensor, nameIn(*argumentJson, "name", place));
        spec.argument = Pt2Tensor{std::move(tensor)};
    }
    const std::array<std::pair<const char *, const char *>, 3> mutations{{{"buffer_mutation", "buffer_name"},
        {"parameter_mutation", "parameter_name"}, {"user_input_mutation", "user_input_name"}}};
    for (const auto &[mutation, key] : mutations) {
        if (kind == mutation) {
            spec.kind = Pt2OutputKind::Mutation;
            TRY(spec.target, nameIn(value, key, place));
        }
    }
    if (kind == "loss_output")
        spec.kind = Pt2OutputKind::Loss;
    if (kind.substr(0, 9) == "gradient_")
        spec.kind = Pt2OutputKind::Gradient;
    return spec;
}

Result<void> Decoder::checkVersion(const Json &json, Pt2Program &program) const
{
    TRY(const Json *version, member(json, "schema_version", "the program"));
    TRY(const Json *major, member(*version, "major", "schema_version"));
    TRY(const Json *minor, member(*version, "minor", "schema_version"));
    TRY(program.schemaMajor, integer(*major, "schema_version.major"));
    TRY(program.schemaMinor, integer(*minor, "schema_version.minor"));
    if (const Json *torch = find(json, "torch_version"); torch != nullptr && torch->is_string()) {
        TRY(program.torchVersion, name(*torch, "torch_version"));
    }
    const Json *verifiers = find(json, "verifiers");
    program.isCore =
        verifiers != nullptr && verifiers->is_array() && !verifiers->empty() && verifiers->front() == "ATEN";
    if (program.schemaMajor == kSchemaMajor)
        return {};
    return Error{ErrorCode::NotSupported,
        "the program is written in version " + std::to_string(program.schemaMajor) + "."
            + std::to_string(program.schemaMinor) + " of PyTorch's schema"
            + (program.torchVersion.empty() ? "" : " (PyTorch " + program.torchVersion + ")")
            + ", where version 8 was expected",
        "save it anew with PyTorch 2.6 or newer, or export the model to ONNX", where()};
}

Result<void> Decoder::readRanges(const Json &json, Pt2Program &program) const
{
    const Json *ranges = find(json, "range_constraints");
    if (ranges == nullptr || !ranges->is_object())
        return {};
    for (const auto &[symbol, bounds] : ranges->items()) {
        if (!isPlainPt2Name(symbol))
            return wrong("range_constraints", "named without control characters");
        Pt2Range range;
        const Json *least = find(bounds, "min_val");
        const Json *most = find(bounds, "max_val");
        if (least != nullptr && least->is_number_integer()) {
            TRY(range.least, integer(*least, "range_constraints." + symbol));
        }
        if (most != nullptr && most->is_number_integer()) {
            TRY(range.most, integer(*most, "range_constraints." + symbol));
        }
        program.ranges.emplace(symbol, range);
    }
    return {};
}

Result<Pt2Program> Decoder::program(const Json &json)
{
    Pt2Program program;
    TRY_VOID(checkVersion(json, program));
    TRY(const Json *module, member(json, "graph_module", "the program"));
    TRY(const Json *graphJson, member(*module, "graph", "graph_module"));
    TRY(program.graph, graph(*graphJson, "graph"));
    program.moduleClasses = std::move(m_moduleClasses);
    TRY(const Json *signature, member(*module, "signature", "graph_module"));
    TRY(const Json *inputs, list(*signature, "input_specs", "signature"));
    for (std::size_t i = 0; i < inputs->size(); ++i) {
        TRY(Pt2InputSpec spec, inputSpec((*inputs)[i], "signature.input_specs[" + std::to_string(i) + "]"));
        program.inputs.push_back(std::move(spec));
    }
    TRY(const Json *outputs, list(*signature, "output_specs", "signature"));
    for (std::size_t i = 0; i < outputs->size(); ++i) {
        TRY(Pt2OutputSpec spec,
            outputSpec((*outputs)[i], "signature.output_specs[" + std::to_string(i) + "]"));
        program.outputs.push_back(std::move(spec));
    }
    TRY_VOID(readRanges(json, program));
    return program;
}

Result<std::map<std::string, Pt2Payload>> Decoder::payloads(const Json &json)
{
    TRY(const Json *config, member(json, "config", "the list"));
    if (!config->is_object())
        return wrong("config", "an object");
    std::map<std::string, Pt2Payload> result;
    for (const auto &[key, value] : config->items()) {
        if (!isPlainPt2Name(key))
            return wrong("config", "named without control characters");
        const std::string place = "config." + key;
        Pt2Payload payload;
        TRY(payload.path, nameIn(value, "path_name", place));
        const Json *pickled = find(value, "use_pickle");
        const Json *parameter = find(value, "is_param");
        payload.isPickled = pickled != nullptr && pickled->is_boolean() && pickled->get<bool>();
        payload.isParameter = parameter != nullptr && parameter->is_boolean() && parameter->get<bool>();
        if (const Json *described = find(value, "tensor_meta");
            described != nullptr && described->is_object()) {
            TRY(payload.meta, meta(*described, place + ".tensor_meta"));
        }
        result.emplace(key, std::move(payload));
    }
    return result;
}

} // namespace

Result<Pt2Program> readPt2Program(std::string_view text, const std::string &where)
{
    TRY(const Json json, parsePt2Json(text, where));
    return Decoder(where).program(json);
}

Result<std::map<std::string, Pt2Payload>> readPt2Payloads(std::string_view text, const std::string &where)
{
    TRY(const Json json, parsePt2Json(text, where));
    return Decoder(where).payloads(json);
}

} // namespace planloom
