#pragma once

#include "engine/runtime/communication/communicator.h"

#include <cstddef>
#include <string>
#include <vector>

namespace planloom {

/// The error of a plan that cannot be carried out as it is.
Error damagedPlan(std::string message);
Error noSuchDevice(DeviceId device);

/// Which member of the call's group a device is.
/// @return InvalidInput if there is no such group, or the device is not in it
Result<std::size_t> memberOf(
    const std::vector<std::vector<DeviceId>> &groups, const CollectiveCall &call, DeviceId device);

/// @return InvalidInput unless `bytes` that were sent are as many as `to` expects
Result<void> checkLength(std::size_t bytes, const MessageCall &to);

/// What is wrong with the members' buffers of one collective; empty if they fit. Reads all of them, so that
/// whoever asks gets the same answer.
/// @param calls  by member of the group
std::string misfit(const std::vector<CollectiveCall> &calls);

/// What member `member` of a collective makes of all members' buffers, once `misfit` has nothing to say. The
/// parts of all members together are the collective; they may be done side by side, in any order and by
/// anybody who reaches the buffers.
void memberPart(const std::vector<CollectiveCall> &calls, std::size_t member);

} // namespace planloom
