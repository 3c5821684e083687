#include "engine/table/kinds/offload.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr OffloadedKind kAllOffloaded[] = {OffloadedKind::States, OffloadedKind::Activations};

} // namespace

const char *nameOf(OffloadedKind kind)
{
    return kind == OffloadedKind::States ? "states" : "activations";
}

Result<OffloadRule> RuleTraits<OffloadRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const OffloadedKind kind : kAllOffloaded) {
        if (cursor.takeWord(nameOf(kind)))
            return OffloadRule{kind};
    }
    return cursor.expected("states or activations");
}

std::string RuleTraits<OffloadRule>::print(const OffloadRule &rule)
{
    return nameOf(rule.what);
}

void RuleTraits<OffloadRule>::write(const OffloadRule &rule, nlohmann::json &json)
{
    json["what"] = nameOf(rule.what);
}

Result<OffloadRule> RuleTraits<OffloadRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "what"}, where));
    TRY(const std::string name, textAt(json, "what", where));
    for (const OffloadedKind kind : kAllOffloaded) {
        if (name == nameOf(kind))
            return OffloadRule{kind};
    }
    return wrong(where + "/what", "expected states or activations");
}

} // namespace planloom
