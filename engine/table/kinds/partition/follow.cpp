#include "engine/table/kinds/meaning.h"

namespace planloom {

Result<std::optional<OperatorMeaning>> RuleMeaning<FollowRule>::of(
    const RowSetting &, const FollowRule &, OperatorId)
{
    return std::optional(OperatorMeaning{.follows = true});
}

} // namespace planloom
