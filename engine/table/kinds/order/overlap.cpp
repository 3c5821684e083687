#include "engine/table/kinds/order/overlap.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

const char *nameOf(CollectiveOverlap overlap)
{
    return overlap == CollectiveOverlap::Tensor ? "tensor" : "none";
}

Result<OverlapRule> RuleTraits<OverlapRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const CollectiveOverlap overlap : {CollectiveOverlap::None, CollectiveOverlap::Tensor})
        if (cursor.takeWord(nameOf(overlap)))
            return OverlapRule{overlap};
    return cursor.expected("tensor or none");
}

std::string RuleTraits<OverlapRule>::print(const OverlapRule &rule)
{
    return nameOf(rule.overlap);
}

void RuleTraits<OverlapRule>::write(const OverlapRule &rule, nlohmann::json &json)
{
    json["overlap"] = nameOf(rule.overlap);
}

Result<OverlapRule> RuleTraits<OverlapRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "overlap"}, where));
    TRY(const std::string name, textAt(json, "overlap", where));
    for (const CollectiveOverlap overlap : {CollectiveOverlap::None, CollectiveOverlap::Tensor})
        if (name == nameOf(overlap))
            return OverlapRule{overlap};
    return wrong(where + "/overlap", "expected tensor or none");
}

} // namespace planloom
