#include "engine/frontend/torch/pt2_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kDeepestJson = 256; ///< Graphs in graphs take some ten levels each.
constexpr std::size_t kLongestName = 4096;

/// A ScalarType of PyTorch's schema.
struct ScalarType {
    int code;
    const char *name;
    std::optional<DataType> type{}; ///< That it is here,
    std::optional<DataType> part{}; ///< or that the parts of its complex numbers are.
};

constexpr std::array<ScalarType, 22> kScalarTypes{{{0, "unknown"}, {1, "uint8", DataType::UInt8},
    {2, "int8", DataType::Int8}, {3, "int16", DataType::Int16}, {4, "int32", DataType::Int32},
    {5, "int64", DataType::Int64}, {6, "float16", DataType::Float16}, {7, "float32", DataType::Float32},
    {8, "float64", DataType::Float64}, {9, "complex32", {}, DataType::Float16},
    {10, "complex64", {}, DataType::Float32}, {11, "complex128", {}, DataType::Float64},
    {12, "bool", DataType::Bool}, {13, "bfloat16", DataType::BFloat16}, {28, "uint16"}, {29, "float8_e4m3fn"},
    {30, "float8_e5m2"}, {31, "float8_e4m3fnuz"}, {32, "float8_e5m2fnuz"}, {33, "float8_e8m0fnu"},
    {34, "uint32"}, {35, "uint64"}}};

/// Null where the schema has no such code.
const ScalarType *findScalarType(std::int64_t code)
{
    const auto found = std::find_if(kScalarTypes.begin(), kScalarTypes.end(),
        [code](const ScalarType &type) { return type.code == code; });
    return found == kScalarTypes.end() ? nullptr : &*found;
}

/// How deep brackets and braces lie in one another at most.
std::size_t depthOfJson(std::string_view text)
{
    std::size_t depth = 0;
    std::size_t deepest = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\' ? 1 : 0;
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            deepest = std::max(deepest, ++depth);
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return deepest;
}

} // namespace

std::optional<DataType> pt2DataType(std::int64_t code)
{
    const ScalarType *known = findScalarType(code);
    return known ? known->type : std::nullopt;
}

std::optional<DataType> pt2PartType(std::int64_t code)
{
    const ScalarType *known = findScalarType(code);
    return known ? known->part : std::nullopt;
}

std::string pt2TypeName(std::int64_t code)
{
    const ScalarType *known = findScalarType(code);
    return known ? known->name : "number " + std::to_string(code);
}

bool isPlainPt2Name(const std::string &name)
{
    return name.size() <= kLongestName && std::none_of(name.begin(), name.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20U || byte == 0x7fU;
    });
}

Result<nlohmann::json> parsePt2Json(std::string_view text, const std::string &where)
{
    const Error broken{
        ErrorCode::InvalidInput, "the file holds no sound JSON", "export the model anew", where};
    if (depthOfJson(text) > kDeepestJson)
        return Error{ErrorCode::InvalidInput,
            "the JSON is nested deeper than " + std::to_string(kDeepestJson) + " levels",
            "export the model anew", where};
    try {
        return nlohmann::json::parse(text.begin(), text.end());
    } catch (const nlohmann::json::exception &failure) {
        Error error = broken;
        error.message += std::string(": ") + failure.what();
        return error;
    }
}

Error Pt2Json::wrong(const std::string &place, const std::string &expected) const
{
    return {
        ErrorCode::InvalidInput, "'" + place + "' should be " + expected, "export the model anew", m_where};
}

const Pt2Json::Json *Pt2Json::find(const Json &object, const char *name)
{
    if (!object.is_object())
        return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

Result<const Pt2Json::Json *> Pt2Json::member(
    const Json &object, const char *name, const std::string &place) const
{
    const Json *found = find(object, name);
    if (found == nullptr)
        return wrong(place, std::string("an object with '") + name + "'");
    return found;
}

Result<const Pt2Json::Json *> Pt2Json::list(
    const Json &object, const char *name, const std::string &place) const
{
    TRY(const Json *found, member(object, name, place));
    if (!found->is_array())
        return wrong(place + "." + name, "a list");
    return found;
}

Result<std::string> Pt2Json::name(const Json &json, const std::string &place) const
{
    if (!json.is_string() || !isPlainPt2Name(json.get_ref<const std::string &>()))
        return wrong(place, "a name without control characters, of at most 4096 bytes");
    return json.get<std::string>();
}

Result<std::string> Pt2Json::nameIn(const Json &object, const char *key, const std::string &place) const
{
    TRY(const Json *found, member(object, key, place));
    return name(*found, place + "." + key);
}

Result<std::int64_t> Pt2Json::integer(const Json &json, const std::string &place) const
{
    if (!json.is_number_integer()
        || (json.is_number_unsigned()
            && json.get<std::uint64_t>()
                > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())))
        return wrong(place, "an integer");
    return json.get<std::int64_t>();
}

Result<double> Pt2Json::real(const Json &json, const std::string &place) const
{
    if (json.is_number())
        return json.get<double>();
    // What JSON has no numbers for.
    if (json == "Infinity")
        return std::numeric_limits<double>::infinity();
    if (json == "-Infinity")
        return -std::numeric_limits<double>::infinity();
    if (json == "NaN")
        return std::numeric_limits<double>::quiet_NaN();
    return wrong(place, "a number");
}

} // namespace planloom
