#include "engine/frontend/onnx/onnx_wire.h"

#include <utility>

namespace planloom {

namespace {

/// Messages of onnx.proto whose fields matter to the walk; Leaf stands for all without inner messages.
enum class Message {
    Leaf,
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    TensorType,
    ElementType,
    MapType,
    Shape,
};

constexpr int kDeepest = 90; // below protobuf's own limit of 100, so that the walk is what reports it

/// The message that field `number` of `message` holds; nothing if it holds a string, numbers or is unknown.
std::optional<Message> messageOf(Message message, std::uint64_t number)
{
    using enum Message;
    switch (message) {
    case Model:
        return number == 7                ? std::optional(Graph)
            : number == 8 || number == 14 ? std::optional(Leaf)
            : number == 20                ? std::optional(Training)
            : number == 25                ? std::optional(Function)
                                          : std::nullopt;
    case Training:
        return number == 1 || number == 2 ? std::optional(Graph)
            : number == 3 || number == 4  ? std::optional(Leaf)
                                          : std::nullopt;
    case Function:
        return number == 7 ? std::optional(Node) : number == 9 ? std::optional(Leaf) : std::nullopt;
    case Graph:
        return number == 1                 ? std::optional(Node)
            : number == 5                  ? std::optional(Tensor)
            : number >= 11 && number <= 13 ? std::optional(ValueInfo)
            : number == 14                 ? std::optional(Leaf)
            : number == 15                 ? std::optional(SparseTensor)
                                           : std::nullopt;
    case Node:
        return number == 5 ? std::optional(Attribute) : std::nullopt;
    case Attribute:
        return number == 5 || number == 10 ? std::optional(Tensor)
            : number == 6 || number == 11  ? std::optional(Graph)
            : number == 14 || number == 15 ? std::optional(Type)
            : number == 22 || number == 23 ? std::optional(SparseTensor)
                                           : std::nullopt;
    case Tensor:
        return number == 3 || number == 13 ? std::optional(Leaf) : std::nullopt;
    case SparseTensor:
        return number == 1 || number == 2 ? std::optional(Tensor) : std::nullopt;
    case ValueInfo:
        return number == 2 ? std::optional(Type) : std::nullopt;
    case Type:
        return number == 1 || number == 8 ? std::optional(TensorType)
            : number == 4 || number == 9  ? std::optional(ElementType)
            : number == 5                 ? std::optional(MapType)
                                          : std::nullopt;
    case TensorType:
        return number == 2 ? std::optional(Shape) : std::nullopt;
    case ElementType:
        return number == 1 ? std::optional(Type) : std::nullopt;
    case MapType:
        return number == 2 ? std::optional(Type) : std::nullopt;
    case Shape:
        return number == 1 ? std::optional(Leaf) : std::nullopt;
    case Leaf:
        return std::nullopt;
    }
    return std::nullopt;
}

class Walk
{
public:
    explicit Walk(std::string_view bytes)
        : m_bytes(bytes)
    {
    }

    OnnxWireScan run()
    {
        message(Message::Model, m_bytes.size(), 0);
        return std::move(m_scan);
    }

private:
    bool fail(std::string problem)
    {
        m_scan.problem = std::move(problem);
        m_scan.position = m_position;
        return false;
    }

    bool varint(std::size_t end, std::uint64_t &value)
    {
        value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            if (m_position >= end)
                return fail("a number is cut off");
            const auto byte = static_cast<unsigned char>(m_bytes[m_position++]);
            if (shift < 64)
                value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if (byte < 0x80U)
                return true;
        }
        return fail("a number is longer than 10 bytes");
    }

    bool skip(std::size_t end, std::uint64_t count)
    {
        if (count > end - m_position)
            return fail("a field of " + std::to_string(count) + " bytes does not fit into the "
                + std::to_string(end - m_position) + " that are left");
        m_position += static_cast<std::size_t>(count);
        return true;
    }

    bool message(Message kind, std::size_t end, int depth)
    {
        if (depth > kDeepest)
            return fail("messages are nested deeper than " + std::to_string(kDeepest));
        while (m_position < end) {
            std::uint64_t tag = 0;
            std::uint64_t value = 0;
            if (!varint(end, tag))
                return false;
            if (tag >> 3U == 0)
                return fail("a field has the number 0");
            switch (tag & 7U) {
            case 0:
                if (!varint(end, value))
                    return false;
                break;
            case 1:
                if (!skip(end, 8))
                    return false;
                break;
            case 2: {
                if (!varint(end, value))
                    return false;
                ++m_scan.records;
                const std::size_t begin = m_position;
                if (!skip(end, value))
                    return false;
                if (const auto inner = messageOf(kind, tag >> 3U)) {
                    m_position = begin;
                    if (!message(*inner, begin + static_cast<std::size_t>(value), depth + 1))
                        return false;
                }
                break;
            }
            case 5:
                if (!skip(end, 4))
                    return false;
                break;
            default:
                return fail(
                    "a field has the wire type " + std::to_string(tag & 7U) + ", which ONNX does not use");
            }
        }
        return true;
    }

    std::string_view m_bytes;
    std::size_t m_position = 0;
    OnnxWireScan m_scan{};
};

} // namespace

OnnxWireScan scanOnnxWire(std::string_view bytes)
{
    return Walk(bytes).run();
}

} // namespace planloom
