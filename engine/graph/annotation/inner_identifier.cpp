#include "engine/graph/annotation/inner_identifier.h"

#include "engine/base/ids.h"
#include "engine/graph/annotation/annotation_builder.h"

#include <algorithm>
#include <vector>

namespace planloom {

std::int32_t innerOf(const Annotation &annotation, std::int32_t dimension)
{
    std::int32_t inner = -1;
    const auto look = [&](const auto &visit) {
        for (const auto *side : {&annotation.inputs, &annotation.outputs})
            for (const TensorTerms &tensor : *side)
                for (const Term &term : tensor.terms)
                    visit(term.factors);
    };
    look([&](const std::vector<std::int32_t> &factors) {
        if (factors.size() == 2 && factors[0] == dimension)
            inner = factors[1];
    });
    // A number stands for places in a row, which go on in other dimensions of the other side of a Reshape.
    if (inner < 0 || isLiteral(annotation.dimensions[at(inner)]))
        return -1;
    bool isBehind = true;
    look([&](const std::vector<std::int32_t> &factors) {
        const bool has = std::find(factors.begin(), factors.end(), inner) != factors.end();
        isBehind = isBehind && (!has || (factors.size() == 2 && factors[0] == dimension));
    });
    return isBehind && dimension != inner ? inner : -1;
}

bool dividesInto(const Annotation &annotation, std::int32_t dimension, std::int64_t parts)
{
    const auto sizeOf = [&](std::int32_t d) {
        return annotation.dimensions[static_cast<std::size_t>(d)].size;
    };
    const std::int64_t size = sizeOf(dimension);
    if (size % parts == 0)
        return true;
    if (size < 1 || parts % size != 0)
        return false;
    const std::int32_t inner = innerOf(annotation, dimension);
    return inner >= 0 && sizeOf(inner) % (parts / size) == 0;
}

} // namespace planloom
