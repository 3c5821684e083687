#include "engine/table/kinds/memory/recompute.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr RecomputePer kAllPer[] = {RecomputePer::Selection, RecomputePer::Layer, RecomputePer::Operator};

} // namespace

const char *nameOf(RecomputePer per)
{
    switch (per) {
    case RecomputePer::Selection:
        return "selection";
    case RecomputePer::Layer:
        return "layer";
    case RecomputePer::Operator:
        return "operator";
    }
    return "";
}

Result<RecomputeRule> RuleTraits<RecomputeRule>::parse(TextCursor &cursor, std::string_view)
{
    if (cursor.takeWord("never"))
        return RecomputeRule{.when = Switched::Never};
    if (cursor.takeWord("solver"))
        return RecomputeRule{.when = Switched::Chosen};
    if (!cursor.takeWord("per"))
        return RecomputeRule{};
    for (const RecomputePer per : kAllPer) {
        if (cursor.takeWord(nameOf(per)))
            return RecomputeRule{per};
    }
    return cursor.expected("selection, layer or operator");
}

std::string RuleTraits<RecomputeRule>::print(const RecomputeRule &rule)
{
    if (rule.when != Switched::Always)
        return rule.when == Switched::Never ? "never" : "solver";
    return rule.per == RecomputePer::Selection ? "" : std::string("per ") + nameOf(rule.per);
}

void RuleTraits<RecomputeRule>::write(const RecomputeRule &rule, nlohmann::json &json)
{
    if (rule.when == Switched::Always)
        json["per"] = nameOf(rule.per);
    else
        json["when"] = rule.when == Switched::Never ? "never" : "solver";
}

Result<RecomputeRule> RuleTraits<RecomputeRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "per", "when"}, where));
    TRY(const std::string when, textAt(json, "when", where, "always"));
    if (when == "never" || when == "solver") {
        if (json.contains("per"))
            return wrong(where + "/per", "expected it only for what is recomputed");
        return RecomputeRule{.when = when == "never" ? Switched::Never : Switched::Chosen};
    }
    if (when != "always")
        return wrong(where + "/when", "expected always, never or solver");
    TRY(const std::string name, textAt(json, "per", where, "selection"));
    for (const RecomputePer per : kAllPer) {
        if (name == nameOf(per))
            return RecomputeRule{per};
    }
    return wrong(where + "/per", "expected selection, layer or operator");
}

} // namespace planloom
