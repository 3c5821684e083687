#include "engine/table/kinds/order/block_part.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<BlockPart> parseBlockPart(TextCursor &cursor)
{
    BlockPart part;
    if (!cursor.takeWord("in"))
        return part;
    const auto take = [&](const char *word, const char *expected, std::int32_t &into) -> Result<bool> {
        if (!cursor.takeWord(word))
            return false;
        TRY(const auto number, cursor.integer(expected, 0, kMostCount));
        into = static_cast<std::int32_t>(number);
        return true;
    };
    TRY(const bool lane, take("lane", "the number of a lane", part.lane));
    TRY(const bool slice, take("slice", "the number of a slice", part.slice));
    if (!lane && !slice)
        return cursor.expected("'lane' or 'slice' and its number");
    return part;
}

std::string toString(const BlockPart &part)
{
    if (part.isAll())
        return {};
    std::string text = " in";
    if (part.lane >= 0)
        text += " lane " + std::to_string(part.lane);
    if (part.slice >= 0)
        text += " slice " + std::to_string(part.slice);
    return text;
}

void writeBlockPart(const BlockPart &part, const std::string &prefix, nlohmann::json &json)
{
    if (part.lane >= 0)
        json[prefix + "lane"] = part.lane;
    if (part.slice >= 0)
        json[prefix + "slice"] = part.slice;
}

Result<BlockPart> blockPartAt(const nlohmann::json &json, const std::string &prefix, const std::string &where)
{
    BlockPart part;
    TRY(part.lane, countAt(json, (prefix + "lane").c_str(), where, 0, -1));
    TRY(part.slice, countAt(json, (prefix + "slice").c_str(), where, 0, -1));
    return part;
}

} // namespace planloom
