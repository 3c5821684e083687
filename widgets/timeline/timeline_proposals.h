#pragma once

#include "engine/gesture/gesture.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// Gestures of the timeline that are made of several of engine/gesture's, and what they are about.

/// Forward operators of `operators` (backward ones stand for theirs, optimizer ones for none), ascending,
/// each once.
std::vector<OperatorId> forwardOperators(const Graph &graph, const std::vector<OperatorId> &operators);

/// `first`, and what `second` makes of the design it leaves, as one proposal. Either's refusal refuses the
/// whole; a `first` that changes nothing is left out.
Proposal joinedProposal(const GestureContext &context, const Proposal &first,
    const std::function<Proposal(const GestureContext &)> &second);

/// Dimensions by which operators may be split into `parts`: one chip for each dimension that a digit key can
/// name.
std::vector<DimensionChip> splitChoices(const GestureContext &context, OperatorId op, std::int32_t parts);

/// A span pulled over further lanes.
struct SpreadGesture {
    std::vector<OperatorId> operators{}; ///< Forward ones.
    OperatorId on{};
    std::vector<DeviceId> devices{}; ///< All that it would run on; one takes the split away.
    std::int32_t choice = 0; ///< Index into `splitChoices`.
};
/// Splits the operators into as many parts as there are devices and places them there.
Proposal proposeSpread(const GestureContext &context, const SpreadGesture &gesture);

/// Two blocks of one device change places: `between` are the blocks from `first` to `second` in their present
/// order, both among them.
Proposal proposeSwap(const GestureContext &context, const std::vector<BlockRef> &between, bool onlyThis);

/// A mesh axis dropped on a lane: splits the operators over it, by the first dimension that its size divides.
Proposal proposeAxis(
    const GestureContext &context, const std::vector<OperatorId> &operators, const std::string &axis);

/// Removes whole rows that act on one of `operators`, apart from those that select everything.
Proposal proposeRemovingRows(const GestureContext &context, const std::vector<OperatorId> &operators);

} // namespace planloom
