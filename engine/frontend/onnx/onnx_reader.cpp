#include "engine/frontend/onnx/onnx_reader.h"

#include "engine/frontend/file_kind.h"
#include "engine/frontend/onnx/onnx_external.h"
#include "engine/frontend/onnx/onnx_metadata.h"
#include "engine/frontend/onnx/onnx_operators.h"
#include "engine/frontend/onnx/onnx_wire.h"
#include "engine/frontend/writer/tensor_values.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// A file may hold this many records more than one for every eight of its bytes.
constexpr std::size_t kFreeRecords = 200'000;
constexpr int kLargestRank = 64;

std::string nameOfElementType(std::int32_t type)
{
    using onnx::TensorProto;
    static const std::map<std::int32_t, std::string> kNames = {{TensorProto::UNDEFINED, "none"},
        {TensorProto::UINT16, "uint16"}, {TensorProto::STRING, "string"}, {TensorProto::UINT32, "uint32"},
        {TensorProto::UINT64, "uint64"}, {TensorProto::COMPLEX64, "complex64"},
        {TensorProto::COMPLEX128, "complex128"}};
    const auto found = kNames.find(type);
    return found == kNames.end() ? "number " + std::to_string(type) : found->second;
}

/// True if one of the IEEE numbers in `bytes`, `size` bytes each with the given exponent bits, is NaN or
/// infinite.
template<typename Word> bool anyNonFinite(const std::vector<std::byte> &bytes, Word exponent)
{
    for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
        Word word = 0;
        std::memcpy(&word, bytes.data() + i, sizeof(Word));
        if ((word & exponent) == exponent)
            return true;
    }
    return false;
}

bool hasNonFinite(const TensorData &data)
{
    switch (data.type.dataType) {
    case DataType::Float32:
        return anyNonFinite<std::uint32_t>(data.bytes, 0x7f800000U);
    case DataType::Float64:
        return anyNonFinite<std::uint64_t>(data.bytes, 0x7ff0000000000000U);
    case DataType::Float16:
        return anyNonFinite<std::uint16_t>(data.bytes, 0x7c00U);
    case DataType::BFloat16:
        return anyNonFinite<std::uint16_t>(data.bytes, 0x7f80U);
    default:
        return false;
    }
}

/// Writes each element of a repeated field as a `Stored`, little-endian as the machine is.
template<typename Stored, typename Field> std::vector<std::byte> packed(const Field &field)
{
    std::vector<std::byte> bytes(static_cast<std::size_t>(field.size()) * sizeof(Stored));
    std::size_t at = 0;
    for (const auto element : field) {
        const auto stored = static_cast<Stored>(element);
        std::memcpy(bytes.data() + at, &stored, sizeof(Stored));
        at += sizeof(Stored);
    }
    return bytes;
}

/// Calls `visit(key, value)` for each entry of a message's `metadata_props`, which is its field `number`.
/// Versions of onnx.proto that do not know the field keep its entries among the unknown ones.
template<typename Message, typename Visit>
void forEachEntry(const Message &message, int number, const Visit &visit)
{
    if constexpr (requires { message.metadata_props(); }) {
        for (const auto &entry : message.metadata_props())
            visit(entry.key(), entry.value());
    } else {
        const auto &unknown = message.unknown_fields();
        onnx::StringStringEntryProto entry;
        for (int i = 0; i < unknown.field_count(); ++i) {
            const auto &field = unknown.field(i);
            if (field.number() == number
                && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED
                && entry.ParseFromString(field.length_delimited()))
                visit(entry.key(), entry.value());
        }
    }
}

/// The attributes of a function that have values where nodes do not give them: its field `attribute_proto`,
/// which older versions of onnx.proto do not know.
template<typename Message> std::vector<onnx::AttributeProto> defaultsOf(const Message &function)
{
    std::vector<onnx::AttributeProto> defaults;
    if constexpr (requires { function.attribute_proto(); }) {
        defaults.assign(function.attribute_proto().begin(), function.attribute_proto().end());
    } else {
        constexpr int kAttributeProto = 11;
        constexpr std::size_t kMostBytes = std::size_t{1} << 16; // numbers and names
        const auto &unknown = function.unknown_fields();
        onnx::AttributeProto attribute;
        for (int i = 0; i < unknown.field_count(); ++i) {
            const auto &field = unknown.field(i);
            if (field.number() == kAttributeProto
                && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED
                && field.length_delimited().size() <= kMostBytes
                && attribute.ParseFromString(field.length_delimited()))
                defaults.push_back(attribute);
        }
    }
    return defaults;
}

// Numbers of the fields `metadata_props` in onnx.proto.
constexpr int kNodeMetadata = 9;
constexpr int kValueMetadata = 4;
constexpr int kTensorMetadata = 16;
constexpr int kGraphMetadata = 16;

/// Takes one entry of a value's metadata. @return false if it is not well formed
bool takeProvenance(OnnxProvenance &provenance, const std::string &key, const std::string &value)
{
    if (key == kSpecKindKey) {
        provenance.kind = specKindNamed(value);
        return provenance.kind.has_value();
    }
    if (key != kFoldedFromKey)
        return true;
    auto list = parseTextList(value);
    if (!list || !std::all_of(list->begin(), list->end(), isPlainName))
        return false;
    provenance.foldedFrom = *std::move(list);
    return true;
}

class Reader
{
public:
    Reader(const std::filesystem::path &folder, std::string_view name)
        : m_external(folder)
        , m_name(name)
    {
    }

    Result<OnnxModel> model(onnx::ModelProto &proto);

private:
    Error error(ErrorCode code, std::string message, std::string advice, const std::string &place) const
    {
        return Error{
            code, std::move(message), std::move(advice), m_name + (place.empty() ? "" : ":" + place)};
    }
    Result<StoredTensor> tensor(onnx::TensorProto &proto, const std::string &name);
    Result<std::vector<std::byte>> inlineValues(
        onnx::TensorProto &proto, const TensorType &type, const std::string &name);
    OnnxValue value(const onnx::ValueInfoProto &proto) const;
    Result<OnnxAttribute> attribute(onnx::AttributeProto &proto, const std::string &node);
    Result<OnnxNode> node(onnx::NodeProto &proto);
    Result<OnnxGraph> graph(onnx::GraphProto &proto);
    template<typename Message>
    void addProvenance(OnnxGraph &graph, const std::string &value, const Message &proto, int field) const;

    ExternalFiles m_external;
    std::string m_name;
};

Result<std::vector<std::byte>> Reader::inlineValues(
    onnx::TensorProto &proto, const TensorType &type, const std::string &name)
{
    const auto expected = static_cast<std::size_t>(*checkedByteCount(type));
    std::vector<std::byte> bytes;
    if (proto.has_raw_data()) {
        std::string raw;
        raw.swap(*proto.mutable_raw_data()); // so that no more than one tensor is held twice at a time
        if (raw.size() == expected) {
            bytes.resize(raw.size());
            if (!raw.empty())
                std::memcpy(bytes.data(), raw.data(), raw.size());
        } else {
            return error(ErrorCode::InvalidInput,
                "tensor '" + name + "' (" + nameOf(type.dataType) + toString(type.shape) + ") takes "
                    + std::to_string(expected) + " bytes, but the file holds " + std::to_string(raw.size()),
                "export the model anew", "tensor:" + name);
        }
    } else {
        switch (type.dataType) {
        case DataType::Float32:
            bytes = packed<float>(proto.float_data());
            break;
        case DataType::Float64:
            bytes = packed<double>(proto.double_data());
            break;
        case DataType::Int64:
            bytes = packed<std::int64_t>(proto.int64_data());
            break;
        case DataType::Int32:
            bytes = packed<std::int32_t>(proto.int32_data());
            break;
        case DataType::Int16:
        case DataType::Float16:
        case DataType::BFloat16:
            bytes = packed<std::uint16_t>(proto.int32_data());
            break;
        case DataType::Int8:
        case DataType::UInt8:
            bytes = packed<std::uint8_t>(proto.int32_data());
            break;
        case DataType::Bool:
            bytes = packed<std::uint8_t>(proto.int32_data());
            break;
        default: // of no pTensor
            break;
        }
        if (bytes.size() != expected)
            return error(ErrorCode::InvalidInput,
                "tensor '" + name + "' (" + nameOf(type.dataType) + toString(type.shape) + ") has "
                    + std::to_string(expected / static_cast<std::size_t>(sizeOf(type.dataType)))
                    + " elements, but the file holds "
                    + std::to_string(bytes.size() / static_cast<std::size_t>(sizeOf(type.dataType))),
                "export the model anew", "tensor:" + name);
    }
    if (type.dataType == DataType::Bool) {
        for (std::byte &byte : bytes)
            byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
    }
    return bytes;
}

Result<StoredTensor> Reader::tensor(onnx::TensorProto &proto, const std::string &name)
{
    const auto dataType = onnxElementType(proto.data_type());
    if (!dataType)
        return error(ErrorCode::NotSupported,
            "tensor '" + name + "' has the element type " + nameOfElementType(proto.data_type())
                + ", which Planloom does not compute with",
            "convert it to a float or an integer type", "tensor:" + name);
    StoredTensor tensor;
    tensor.name = name;
    tensor.type.dataType = *dataType;
    tensor.type.shape.assign(proto.dims().begin(), proto.dims().end());
    if (proto.dims_size() > kLargestRank || !checkedByteCount(tensor.type))
        return error(ErrorCode::InvalidInput,
            "tensor '" + name + "' has the shape " + toString(tensor.type.shape)
                + ", where at most 64 extents from 0 up and a size below 2^62 bytes were expected",
            "export the model anew", "tensor:" + name);
    if (proto.has_segment())
        return error(ErrorCode::NotSupported, "tensor '" + name + "' is stored in segments",
            "export the model anew", "tensor:" + name);
    if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
        std::string location;
        std::string offset;
        std::string length;
        for (const auto &entry : proto.external_data()) {
            if (entry.key() == "location")
                location = entry.value();
            else if (entry.key() == "offset")
                offset = entry.value();
            else if (entry.key() == "length")
                length = entry.value();
        }
        TRY(tensor.external, m_external.locate(name, tensor.type, location, offset, length));
        return tensor;
    }
    auto data = std::make_shared<TensorData>();
    data->type = tensor.type;
    TRY(data->bytes, inlineValues(proto, tensor.type, name));
    tensor.hasNonFinite = hasNonFinite(*data);
    tensor.data = std::move(data);
    return tensor;
}

OnnxValue Reader::value(const onnx::ValueInfoProto &proto) const
{
    OnnxValue value;
    value.name = proto.name();
    if (!proto.type().has_tensor_type()) {
        value.reason = proto.type().has_sequence_type() ? "a sequence"
            : proto.type().has_map_type()               ? "a map"
            : proto.type().has_optional_type()          ? "an optional value"
            : proto.type().has_sparse_tensor_type()     ? "a sparse tensor"
                                                        : "of no type";
        return value;
    }
    const auto &type = proto.type().tensor_type();
    value.dataType = onnxElementType(type.elem_type());
    if (!value.dataType)
        value.reason = "of element type " + nameOfElementType(type.elem_type());
    if (type.has_shape()) {
        value.shape.emplace();
        for (const auto &dim : type.shape().dim()) {
            OnnxDimension dimension;
            const std::string &symbol = dim.dim_param();
            const bool isNamed = std::any_of(symbol.begin(), symbol.end(),
                [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; });
            if (dim.has_dim_value() && dim.dim_value() >= 0)
                dimension.size = dim.dim_value();
            else if (isNamed
                && symbol != "None") // "-1" and "?" are no names, as one may stand for many sizes
                dimension.symbol = symbol;
            value.shape->push_back(std::move(dimension));
        }
    }
    return value;
}

Result<OnnxAttribute> Reader::attribute(onnx::AttributeProto &proto, const std::string &node)
{
    const std::string place = "node:" + node + "/" + proto.name();
    if (!proto.ref_attr_name().empty())
        return OnnxAttribute(OnnxReference{proto.ref_attr_name()});
    switch (proto.type()) {
    case onnx::AttributeProto::INT:
        if (proto.has_i())
            return OnnxAttribute(static_cast<std::int64_t>(proto.i()));
        break;
    case onnx::AttributeProto::FLOAT:
        if (proto.has_f())
            return OnnxAttribute(proto.f());
        break;
    case onnx::AttributeProto::STRING:
        if (proto.has_s())
            return OnnxAttribute(proto.s());
        break;
    case onnx::AttributeProto::INTS:
        return OnnxAttribute(std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end()));
    case onnx::AttributeProto::FLOATS:
        return OnnxAttribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case onnx::AttributeProto::STRINGS:
        return OnnxAttribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case onnx::AttributeProto::TENSOR:
        if (proto.has_t()) {
            if (!onnxElementType(proto.t().data_type()))
                return OnnxAttribute(OnnxUnreadable{"its element type is "
                    + nameOfElementType(proto.t().data_type()) + ", which Planloom has not"});
            TRY(StoredTensor value, tensor(*proto.mutable_t(), node + "/" + proto.name()));
            return OnnxAttribute(std::move(value));
        }
        break;
    case onnx::AttributeProto::GRAPH:
        if (proto.has_g()) {
            TRY(OnnxGraph value, graph(*proto.mutable_g()));
            return OnnxAttribute(std::make_shared<const OnnxGraph>(std::move(value)));
        }
        break;
    default:
        return OnnxAttribute(OnnxUnreadable{"its kind (" + std::to_string(proto.type()) + ") is not known"});
    }
    return error(ErrorCode::InvalidInput,
        "attribute '" + proto.name() + "' of node '" + node + "' says it has a value of kind "
            + onnx::AttributeProto::AttributeType_Name(proto.type()) + ", but has none",
        "export the model anew", place);
}

Result<OnnxNode> Reader::node(onnx::NodeProto &proto)
{
    OnnxNode node;
    node.name = proto.name();
    node.type = proto.op_type();
    node.domain = proto.domain() == "ai.onnx" ? std::string{} : proto.domain();
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    const std::string &label = node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name;
    if (node.type.empty())
        return error(ErrorCode::InvalidInput, "node '" + label + "' does not say what it computes",
            "export the model anew", "node:" + label);
    for (auto &attributeProto : *proto.mutable_attribute()) {
        TRY(OnnxAttribute value, attribute(attributeProto, label));
        if (!node.attributes.emplace(attributeProto.name(), std::move(value)).second)
            return error(ErrorCode::InvalidInput,
                "node '" + label + "' has the attribute '" + attributeProto.name() + "' twice",
                "export the model anew", "node:" + label);
    }
    forEachEntry(proto, kNodeMetadata, [&](const std::string &key, const std::string &text) {
        if (key == kNameScopesKey)
            node.modules = modulesOf(text);
    });
    return node;
}

template<typename Message>
void Reader::addProvenance(OnnxGraph &graph, const std::string &value, const Message &proto, int field) const
{
    OnnxProvenance provenance;
    forEachEntry(proto, field, [&](const std::string &key, const std::string &text) {
        graph.unreadMetadata += takeProvenance(provenance, key, text) ? 0 : 1;
    });
    if (provenance.kind || !provenance.foldedFrom.empty())
        graph.provenance.insert_or_assign(value, std::move(provenance));
}

Result<OnnxGraph> Reader::graph(onnx::GraphProto &proto)
{
    OnnxGraph graph;
    graph.name = proto.name();
    if (proto.sparse_initializer_size() > 0)
        return error(
            ErrorCode::NotSupported, "the model has sparse initializers", "store them as dense tensors", "");
    graph.initializers.reserve(static_cast<std::size_t>(proto.initializer_size()));
    for (auto &initializer : *proto.mutable_initializer()) {
        TRY(StoredTensor value, tensor(initializer, initializer.name()));
        addProvenance(graph, value.name, initializer, kTensorMetadata);
        graph.initializers.push_back(std::move(value));
    }
    graph.nodes.reserve(static_cast<std::size_t>(proto.node_size()));
    for (auto &nodeProto : *proto.mutable_node()) {
        TRY(OnnxNode value, node(nodeProto));
        graph.nodes.push_back(std::move(value));
    }
    for (const auto &input : proto.input()) {
        graph.inputs.push_back(value(input));
        if (auto &shape = graph.inputs.back().shape) {
            for (OnnxDimension &dimension : *shape) {
                if (dimension.size == std::optional<std::int64_t>(0)) // how some tools write an open size
                    dimension.size.reset();
            }
        }
        addProvenance(graph, input.name(), input, kValueMetadata);
    }
    for (const auto &output : proto.output())
        graph.outputs.push_back(value(output));
    for (const auto &info : proto.value_info()) {
        graph.values.push_back(value(info));
        addProvenance(graph, info.name(), info, kValueMetadata);
    }
    forEachEntry(proto, kGraphMetadata, [&](const std::string &key, const std::string &text) {
        if (key == kSignatureKey)
            graph.signature = signatureOf(text);
    });
    return graph;
}

Result<OnnxModel> Reader::model(onnx::ModelProto &proto)
{
    if (!proto.has_graph())
        return error(ErrorCode::InvalidInput, "the file holds no ONNX graph", "give a .onnx file", "");
    OnnxModel model;
    model.producer = proto.producer_name();
    model.irVersion = proto.ir_version();
    for (const auto &set : proto.opset_import()) {
        if (set.domain().empty() || set.domain() == "ai.onnx")
            model.opset = set.version();
    }
    TRY(model.graph, graph(*proto.mutable_graph()));
    for (auto &functionProto : *proto.mutable_functions()) {
        OnnxFunction function;
        function.name = functionProto.name();
        function.domain = functionProto.domain();
        function.graph.name = functionProto.name();
        for (const std::string &input : functionProto.input())
            function.graph.inputs.push_back(OnnxValue{input, {}, {}, "without a type"});
        for (const std::string &output : functionProto.output())
            function.graph.outputs.push_back(OnnxValue{output, {}, {}, "without a type"});
        for (auto &nodeProto : *functionProto.mutable_node()) {
            TRY(OnnxNode value, node(nodeProto));
            function.graph.nodes.push_back(std::move(value));
        }
        for (onnx::AttributeProto &attributeProto : defaultsOf(functionProto)) {
            TRY(OnnxAttribute value, attribute(attributeProto, function.name));
            function.defaults.insert_or_assign(attributeProto.name(), std::move(value));
        }
        model.functions.push_back(std::move(function));
    }
    return model;
}

/// Why bytes that can't be read as a model are none: what they are instead, or where they are damaged.
/// @param problem  "a number is cut off"
/// @param position  of the problem, in bytes
Error noModel(
    std::string_view bytes, const std::string &file, const std::string &problem, std::size_t position)
{
    const auto kind = findFileKind(bytes);
    if (kind && kind != FileKind::OnnxModel)
        return {ErrorCode::InvalidInput,
            std::string("this is ") + nameOf(*kind) + ", where an ONNX model was expected", adviceFor(*kind),
            file};
    return {ErrorCode::InvalidInput,
        "this is no ONNX model, or one that is cut off or damaged: " + problem + ", at byte "
            + std::to_string(position),
        "copy or export it again, and give a .onnx file", file};
}

} // namespace

Result<OnnxModel> readOnnx(std::string_view bytes, const std::filesystem::path &folder, std::string_view name)
{
    const std::string file(name);
    if (bytes.empty())
        return Error{ErrorCode::InvalidInput, "the file is empty, where an ONNX model was expected",
            "give a .onnx file", file};
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        return Error{ErrorCode::ResourceLimit,
            "the file has " + std::to_string(bytes.size()) + " bytes; a protobuf file has less than 2 GiB",
            "store the weights as external data", file};
    const OnnxWireScan scan = scanOnnxWire(bytes);
    if (!scan.problem.empty())
        return noModel(bytes, file, scan.problem, scan.position);
    if (scan.records > kFreeRecords + bytes.size() / 8)
        return Error{ErrorCode::ResourceLimit,
            "the file consists of " + std::to_string(scan.records) + " records in "
                + std::to_string(bytes.size()) + " bytes, far more than a model of its size",
            "the file is damaged or hostile", file};

    google::protobuf::LogSilencer silence; // protobuf writes what it dislikes to standard error
    google::protobuf::Arena arena;
    auto *proto = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t *>(bytes.data()),
        static_cast<int>(bytes.size())); // bytes as protobuf has them
    if (!proto->ParseFromCodedStream(&input))
        return noModel(bytes, file, "protobuf can't read on",
            static_cast<std::size_t>(std::max(0, input.CurrentPosition())));
    return Reader(folder, file).model(*proto);
}

} // namespace planloom
