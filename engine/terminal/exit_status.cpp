#include "engine/terminal/exit_status.h"

namespace planloom {

int exitStatusOf(ErrorCode code)
{
    switch (code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::NotSupported:
    case ErrorCode::NotFound:
        return kExitUsage;
    case ErrorCode::Conflict:
        return kExitConflict;
    case ErrorCode::ResourceLimit:
    case ErrorCode::Cancelled:
    case ErrorCode::Io:
    case ErrorCode::CheckFailed:
    case ErrorCode::Internal:
        break;
    }
    return kExitFailed;
}

const std::vector<std::pair<int, std::string>> &exitStatuses()
{
    static const std::vector<std::pair<int, std::string>> kStatuses{{kExitDone, "done"},
        {kExitFailed,
            "the work failed: a check or a limit did not hold, a run broke or was stopped, memory or a disk "
            "was "
            "full"},
        {kExitUsage, "wrong usage or bad input: what was typed, or a file that was named, has to be changed"},
        {kExitConflict, "the rows of the table conflict"}};
    return kStatuses;
}

} // namespace planloom
