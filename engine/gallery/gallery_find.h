#pragma once

#include "engine/base/result.h"
#include "engine/gallery/gallery_file.h"
#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/operator_costs.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A set of operators in braces: {with vocabulary}.
struct FoundSet {
    enum class Kind : std::uint8_t { With, Behind, SharedWeights };
    Kind kind = Kind::With;
    DimensionMeaning meaning{}; ///< Of With and Behind.
    friend bool operator==(const FoundSet &, const FoundSet &) = default;
};
/// @return InvalidInput for anything else
Result<FoundSet> readFoundSet(std::string_view text);
std::string foundSetForms(); ///< "with MEANING, behind MEANING, shared weights"
/// The forward operators of a set, ascending.
std::vector<OperatorId> membersOf(const FoundSet &set, const Model &model);

/// A line that begins with `find`.
struct FindLine {
    enum class Kind : std::uint8_t {
        Pairs,
        BetweenPairs,
        Experts,
        Stages,
        BothWays,
        Passes,
        Recomputation,
        Offloading
    };
    Kind kind = Kind::Pairs;
    std::string axis{}; ///< Empty of Recomputation and Offloading.
    Selector among{}; ///< Of Stages: whose operators have stages.
    std::int32_t times = 1; ///< Of Stages: on each rank.
    bool waves = false; ///< Of Stages: down the ranks and up again (`runsInWaves`), else dealt out in turn.
    std::string modules{}; ///< Of Recomputation and Offloading: `readLayerModules`, or "full"; empty: all.
    bool versions = false; ///< Of Stages: each keeps as many versions of its weights as it has micro-batches.
    friend bool operator==(const FindLine &, const FindLine &) = default;
};
/// @return InvalidInput with what was expected
Result<FindLine> readFindLine(std::string_view text);

/// The value of a parameter, checked: "8", "0" and "1" of a switch, a word, "0-3".
/// @return InvalidInput
Result<std::string> valueOf(const GalleryParameter &parameter, std::string_view text);
/// A value that the parameter may have.
std::string exampleOf(const GalleryParameter &parameter);

/// Whether the model has what an entry needs. @return InvalidInput with what it lacks
Result<void> checkNeed(const GalleryNeed &need, const Model &model);

/// What `find` lines are read against.
struct FindSetting {
    const Model &model;
    std::int32_t deviceCount = 1;
    const OperatorCosts &costs;
    std::vector<MeshAxis> mesh{}; ///< That the entry makes; axes of one device among them.

    /// Of an axis of the mesh, or the number itself; 0 if there is no such axis.
    std::int32_t sizeOf(std::string_view axis) const;
};

/// Appends the rows that a `find` line makes. Its axis has more than one device.
/// @return InvalidInput with the reason where the model has nothing of the kind
Result<void> appendFound(const FindLine &line, const FindSetting &setting, ConstraintTable &table);

} // namespace planloom
