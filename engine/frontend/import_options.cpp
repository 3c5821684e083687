#include "engine/frontend/import_options.h"

namespace planloom {

Result<void> checkOptions(const ImportOptions &options, const std::string &place)
{
    if (options.dropoutRatio && !(*options.dropoutRatio >= 0 && *options.dropoutRatio < 1))
        return Error{ErrorCode::InvalidInput,
            "the dropout ratio " + std::to_string(*options.dropoutRatio) + " is not in [0, 1)",
            "give a number such as 0.1", place};
    return {};
}

} // namespace planloom
