#include "engine/runtime/machine/bench_caches.h"

#include "engine/base/work_pool.h"

#include <atomic>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace planloom {

namespace {
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kStretch = std::int64_t{64} << 10; ///< Bytes.
}

void dropFromCaches(const std::byte *data, std::size_t bytes)
{
#ifdef __SSE2__
    for (std::size_t at = 0; at < bytes; at += kLine)
        _mm_clflush(data + at);
    _mm_mfence();
#else
    (void)data;
    (void)bytes;
#endif
}

void bringToCaches(const std::byte *data, std::size_t bytes)
{
    std::atomic<unsigned> seen{0}; // else nothing would need to be read
    forEachStretch(static_cast<std::int64_t>(bytes), kStretch, [&](std::int64_t begin, std::int64_t end) {
        unsigned sum = 0;
        for (std::int64_t at = begin; at < end; at += kLine)
            sum += std::to_integer<unsigned>(data[at]);
        seen += sum;
    });
}

} // namespace planloom
