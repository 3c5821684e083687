#pragma once

#include <string>

namespace planloom {

/// What NCCL writes in this process, kept in memory that has no name in any file system.
class NcclLog
{
public:
    /// Asks NCCL, before it is opened, to write its warnings here, and to launch kernels in the order in
    /// which they are issued: by the variables NCCL_DEBUG, NCCL_DEBUG_FILE and NCCL_LAUNCH_ORDER_IMPLICIT,
    /// unless the user has set them.
    NcclLog();
    NcclLog(const NcclLog &) = delete;
    NcclLog &operator=(const NcclLog &) = delete;
    ~NcclLog();

    /// The last few warnings, one a line without where in NCCL they come from; empty if there are none.
    std::string warnings() const;

private:
    int m_file = -1;
};

} // namespace planloom
