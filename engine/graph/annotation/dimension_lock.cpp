#include "engine/graph/annotation/dimension_lock.h"

namespace planloom {

std::string sentenceOf(DimensionLock lock, const std::string &words)
{
    switch (lock) {
    case DimensionLock::Whole:
        break;
    case DimensionLock::Reduced:
        return words + " reduces over this dimension";
    case DimensionLock::Statistics:
        return words + " takes its statistics over this dimension";
    case DimensionLock::Classes:
        return words + " compares all classes with one another";
    case DimensionLock::Borders:
        return words + " reads over the borders of parts here";
    case DimensionLock::Steps:
        return "each step along this dimension needs the one before";
    case DimensionLock::Mixed:
        return words + " mixes this dimension with others";
    case DimensionLock::Along:
        return words + " works along this dimension";
    case DimensionLock::LookedUp:
        return words + " looks up anywhere along this dimension";
    case DimensionLock::WithinHead:
        return words + " sums over this dimension within a head";
    case DimensionLock::SharedKeys:
        return "query heads that share a key head stay together";
    case DimensionLock::MaskedKeys:
        return "additive masks may hide all keys of a part, whose weights are lost then";
    }
    return words + " needs this dimension whole";
}

} // namespace planloom
