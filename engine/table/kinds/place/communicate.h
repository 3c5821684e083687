#pragma once

#include "engine/table/kinds/rule_traits.h"
#include "engine/table/selector.h"

namespace planloom {

/// What operators communicate beside what they compute.
enum class CommunicationPart : std::uint8_t {
    None, ///< What they compute.
    Sends, ///< What their stage's pass sends to other stages; the receives are one with it.
    Gathers, ///< Their sharded weights, gathered before their use (ZeRO-3).
    Reductions, ///< The gradients of their weights over the replicas, once in a step, with those of the
                ///< bucket.
};
const char *nameOf(CommunicationPart part); ///< "sends"; "" for None

/// op-order of communication: what the row's selection communicates comes after, or before, what `second`
/// computes or communicates. What comes after a computation waits for it; communications of one queue run in
/// their order; what comes before a computation is issued before it, which does not wait.
struct CommunicateRule {
    CommunicationPart part = CommunicationPart::Sends; ///< Of the row's selection. Never None.
    bool before = false;
    Selector second{};
    /// As `part`, of Sends and Reductions; else None.
    CommunicationPart secondPart = CommunicationPart::None;
    /// `second` is that of the micro-batch so many later; 0 where a side has Reductions, whose only run
    /// counts as one of the last micro-batch.
    std::int32_t microBatchOffset = 0;
    std::int32_t microBatch = -1; ///< Of the row's selection: only this one, from 0; -1 means all.
    friend bool operator==(const CommunicateRule &, const CommunicateRule &) = default;
};

template<> struct RuleTraits<CommunicateRule> {
    static constexpr std::array words{"communicate"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "order the communication of";
    static void describe(RuleForm &form, CommunicateRule &rule);
};

} // namespace planloom
