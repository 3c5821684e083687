#include "engine/table/kinds/partition/follow.h"

#include "engine/table/json_members.h"

namespace planloom {

Result<FollowRule> RuleTraits<FollowRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type"}, where));
    return FollowRule{};
}

} // namespace planloom
