#pragma once

#include "engine/frontend/passes/fuse/fuse_editor.h"
#include "engine/graph/operators/attention.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace planloom {

/// Scores at or below this have no weight beside any that a model makes: what hides a key.
constexpr double kHidingScore = -1e4;

/// What a mask of known values says.
struct KnownMask {
    bool seesAll = false; ///< It hides nothing.
    AttentionReach reach{}; ///< Else it hides exactly what this does not reach.
};

/// Reads masks, each once: layers share theirs. One thread.
class KnownMasks
{
public:
    explicit KnownMasks(const FuseEditor &editor)
        : m_editor(editor)
    {
    }

    /// Reads a mask of [.. queries keys], in which every query sees at least one key, and all leading indices
    /// say the same: from its values (Bool: true is seen; floating: 0 is seen, kHidingScore or less is not),
    /// or from numbers of keys and of queries that are compared; both may be computed from constants.
    /// @param isHidden  true where a Bool mask says what is hidden, instead
    /// @return nothing if it says anything else than `KnownMask` can, or is not known
    std::optional<KnownMask> of(TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden);

private:
    using Values = std::shared_ptr<const TensorData>;
    /// Numbers of keys, or of queries, by leading index.
    struct Numbers {
        std::vector<std::int64_t> values{};
        std::int64_t count = 0; ///< In each leading index.
        bool ofKeys = false; ///< Along the last dimension, rather than the one before.
        std::int64_t at(std::int64_t leading, std::int64_t index) const;
    };

    std::optional<KnownMask> read(TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden);
    std::optional<KnownMask> compared(
        const Operator &comparison, std::int64_t queries, std::int64_t keys, bool isHidden);
    std::optional<Numbers> numbers(TensorId id);
    Values values(TensorId id);

    const FuseEditor &m_editor;
    std::map<std::tuple<TensorId, std::int64_t, std::int64_t, bool>, std::optional<KnownMask>> m_masks{};
    std::map<TensorId, Values> m_values{}; ///< Of what is computed from constants; null for what is not.
};

} // namespace planloom
