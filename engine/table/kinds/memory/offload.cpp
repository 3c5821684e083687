#include "engine/table/kinds/memory/offload.h"

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
        if (!cursor.takeWord(nameOf(kind)))
            continue;
        if (cursor.takeWord("never"))
            return OffloadRule{kind, Switched::Never};
        if (kind == OffloadedKind::Activations && cursor.takeWord("solver"))
            return OffloadRule{kind, Switched::Chosen};
        return OffloadRule{kind};
    }
    return cursor.expected("states or activations");
}

std::string RuleTraits<OffloadRule>::print(const OffloadRule &rule)
{
    return nameOf(rule.what)
        + std::string(rule.when == Switched::Always ? ""
                : rule.when == Switched::Never      ? " never"
                                                    : " solver");
}

void RuleTraits<OffloadRule>::write(const OffloadRule &rule, nlohmann::json &json)
{
    json["what"] = nameOf(rule.what);
    if (rule.when != Switched::Always)
        json["when"] = rule.when == Switched::Never ? "never" : "solver";
}

Result<OffloadRule> RuleTraits<OffloadRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "what", "when"}, where));
    TRY(const std::string when, textAt(json, "when", where, "always"));
    if (when != "always" && when != "never" && when != "solver")
        return wrong(where + "/when", "expected always, never or solver");
    TRY(const std::string name, textAt(json, "what", where));
    for (const OffloadedKind kind : kAllOffloaded) {
        if (name != nameOf(kind))
            continue;
        if (kind == OffloadedKind::States && when == "solver")
            return wrong(
                where + "/when", "expected always or never: the search leaves states where they are");
        return OffloadRule{kind,
            when == "always"      ? Switched::Always
                : when == "never" ? Switched::Never
                                  : Switched::Chosen};
    }
    return wrong(where + "/what", "expected states or activations");
}

} // namespace planloom
