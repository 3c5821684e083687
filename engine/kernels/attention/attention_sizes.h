#pragma once

#include <cstdint>

namespace planloom {

/// Extents of a part's attention. Heads are counted over all leading dimensions; queries and keys as they lie
/// in this part.
struct AttentionSizes {
    std::int64_t heads = 1;
    std::int64_t group = 1; ///< Query heads by key head, which follow one another.
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t width = 0; ///< Of queries and keys.
    std::int64_t firstQuery = 0; ///< In the whole operator.
    std::int64_t firstKey = 0;
    std::int64_t allKeys = 0;
};

} // namespace planloom
