#include "engine/table/kinds/meaning.h"

namespace planloom {

Result<std::optional<OperatorMeaning>> RuleMeaning<SplitBackwardRule>::of(
    const RowSetting &, const SplitBackwardRule &, OperatorId)
{
    return std::optional(OperatorMeaning{.splitBackward = true});
}

} // namespace planloom
