#include "engine/table/kinds/order/segment_kind.h"

#include <cstddef>

namespace planloom {

const char *nameOf(SegmentKind kind)
{
    static constexpr std::array<const char *, 8> kNames{"prologue", "forward", "backward", "input-gradient",
        "weight-gradient", "transfer", "reduce", "optimizer"};
    return kNames[static_cast<std::size_t>(kind)];
}

} // namespace planloom
