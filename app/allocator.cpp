// Compiled into every program that links `planloom_allocator`, where mimalloc was found.

#include <mimalloc.h>

namespace {

/// Planning again takes about the memory that planning before gave back. By default that has gone to the
/// system after 25 ms and comes back page by page: a sixth of the time to lower and simulate GPT-3 on 64
/// devices went there. What is free for this many milliseconds still goes.
constexpr long kKeptFree = 2000;

[[maybe_unused]] const bool kSet = [] {
#if MI_MALLOC_VERSION >= 210
    mi_option_set_default(mi_option_purge_delay, kKeptFree);
#else
    mi_option_set_default(mi_option_decommit_delay, kKeptFree);
#endif
    return true;
}();

} // namespace
