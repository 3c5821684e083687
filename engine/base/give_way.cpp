#include "engine/base/give_way.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace planloom {

void giveWay()
{
#ifdef __linux__
    constexpr int kNiceness = 5;
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
#endif
}

} // namespace planloom
