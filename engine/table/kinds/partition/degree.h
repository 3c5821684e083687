#pragma once

#include "engine/table/kinds/partition/count_bound.h"
#include "engine/table/kinds/rule_traits.h"

#include <cstdint>

namespace planloom {

/// Into how many parts a plan cuts one thing.
enum class Degree : std::uint8_t {
    Data, ///< Parts of the batch on devices of their own: the mesh's data axes.
    Tensor, ///< Devices that share an operator's work: all other axes.
    Pipeline, ///< Ranks of the pipeline: the mesh's pipeline axes.
    Stages, ///< Of the pipeline, all ranks together.
    MicroBatches,
    Sequence, ///< Parts of the sequence, of every operator that has one to cut.
    Expert, ///< Likewise of the experts.
};

const char *nameOf(Degree degree); ///< "data", "tensor", "pipeline", "stages", "micro-batches", ...

/// Bounds what may be chosen of a degree (engine/search); rows that give it themselves must keep to it.
struct DegreeRule {
    Degree degree = Degree::Tensor;
    CountBound bound{};
    friend bool operator==(const DegreeRule &, const DegreeRule &) = default;
};

template<> struct RuleTraits<DegreeRule> {
    static constexpr std::array words{"degree"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "bound a degree";
    static void describe(RuleForm &form, DegreeRule &rule);
};

} // namespace planloom
