#include "engine/table/kinds/partition/mesh.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/partition/joined.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<MeshRule> RuleTraits<MeshRule>::parse(TextCursor &cursor, std::string_view)
{
    MeshRule rule;
    do {
        MeshAxis axis;
        TRY(axis.name, cursor.word("a mesh axis as dp=2"));
        TRY_VOID(cursor.require('=', "and the size of the axis"));
        TRY(const auto size, cursor.integer("the size of the axis", 1, kMostCount));
        axis.size = static_cast<std::int32_t>(size);
        rule.axes.push_back(std::move(axis));
    } while (!cursor.atEnd() && cursor.peek() != '@');
    return rule;
}

std::string RuleTraits<MeshRule>::print(const MeshRule &rule)
{
    return joined(rule.axes, " ",
        [](const MeshAxis &axis) { return asWord(axis.name) + "=" + std::to_string(axis.size); });
}

void RuleTraits<MeshRule>::write(const MeshRule &rule, nlohmann::json &json)
{
    auto &axes = json["axes"] = nlohmann::json::array();
    for (const MeshAxis &axis : rule.axes)
        axes.push_back({{"name", axis.name}, {"size", axis.size}});
}

Result<MeshRule> RuleTraits<MeshRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axes"}, where));
    MeshRule rule;
    TRY(const nlohmann::json *axes, listAt(json, "axes", where));
    for (const nlohmann::json &axis : *axes) {
        TRY_VOID(requireObject(axis, where + "/axes"));
        TRY(std::string name, textAt(axis, "name", where + "/axes"));
        TRY(const auto size, countAt(axis, "size", where + "/axes", 1));
        rule.axes.push_back({std::move(name), size});
    }
    return rule;
}

} // namespace planloom
