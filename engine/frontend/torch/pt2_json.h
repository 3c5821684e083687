#pragma once

#include "engine/base/result.h"
#include "engine/graph/shape.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

/// The element type that PyTorch's schema calls `code` (ScalarType); nothing if Planloom has none such.
std::optional<DataType> pt2DataType(std::int64_t code);
/// The type of the parts of a type of complex numbers; nothing for others.
std::optional<DataType> pt2PartType(std::int64_t code);
/// "float32"; "number 99" for codes that are not known.
std::string pt2TypeName(std::int64_t code);

/// True for names of at most 4096 bytes without control characters.
bool isPlainPt2Name(const std::string &name);

/// Parses JSON of limited depth. @param where  named in errors. @return InvalidInput
Result<nlohmann::json> parsePt2Json(std::string_view text, const std::string &where);

/// Takes values out of JSON that may be any: what is missing or of another kind is an error that names its
/// place in the document.
class Pt2Json
{
public:
    /// @param where  named in errors
    explicit Pt2Json(std::string where)
        : m_where(std::move(where))
    {
    }

protected:
    using Json = nlohmann::json;

    const std::string &where() const { return m_where; }
    Error wrong(const std::string &place, const std::string &expected) const;
    /// The member, or null.
    static const Json *find(const Json &object, const char *name);
    Result<const Json *> member(const Json &object, const char *name, const std::string &place) const;
    Result<const Json *> list(const Json &object, const char *name, const std::string &place) const;
    Result<std::string> name(const Json &json, const std::string &place) const;
    Result<std::string> nameIn(const Json &object, const char *key, const std::string &place) const;
    Result<std::int64_t> integer(const Json &json, const std::string &place) const;
    /// Also "Infinity", "-Infinity" and "NaN", which JSON has no numbers for.
    Result<double> real(const Json &json, const std::string &place) const;

private:
    std::string m_where;
};

} // namespace planloom
