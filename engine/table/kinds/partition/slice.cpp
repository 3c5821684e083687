#include "engine/table/kinds/partition/slice.h"

#include "engine/table/json_members.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace planloom {

Result<SliceRule> RuleTraits<SliceRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(auto read, parsePartsAlong(cursor));
    return SliceRule{std::move(read.dimension), read.parts};
}

std::string RuleTraits<SliceRule>::print(const SliceRule &rule)
{
    return planloom::print(PartsAlong{rule.dimension, rule.parts});
}

void RuleTraits<SliceRule>::write(const SliceRule &rule, nlohmann::json &json)
{
    planloom::write(PartsAlong{rule.dimension, rule.parts}, json);
}

Result<SliceRule> RuleTraits<SliceRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "dimension", "parts"}, where));
    TRY(auto read, partsAlongAt(json, where));
    return SliceRule{std::move(read.dimension), read.parts};
}

} // namespace planloom
