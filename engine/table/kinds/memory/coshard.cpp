#include "engine/table/kinds/memory/coshard.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace planloom {

Result<CoshardRule> RuleTraits<CoshardRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(auto read, parsePartsAlong(cursor));
    return CoshardRule{std::move(read.dimension), read.parts, cursor.takeWord("keep")};
}

std::string RuleTraits<CoshardRule>::print(const CoshardRule &rule)
{
    return planloom::print(PartsAlong{rule.dimension, rule.parts}) + (rule.keep ? " keep" : "");
}

void RuleTraits<CoshardRule>::write(const CoshardRule &rule, nlohmann::json &json)
{
    planloom::write(PartsAlong{rule.dimension, rule.parts}, json);
    if (rule.keep)
        json["keep"] = true;
}

Result<CoshardRule> RuleTraits<CoshardRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "dimension", "parts", "keep"}, where));
    TRY(auto read, partsAlongAt(json, where));
    TRY(const bool keep, flagAt(json, "keep", where, false));
    return CoshardRule{std::move(read.dimension), read.parts, keep};
}

} // namespace planloom
