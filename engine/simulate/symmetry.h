#pragma once

#include "engine/base/result.h"
#include "engine/hardware/nccl_model.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/shared_links.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// A place where devices meet: a communicator, the two ends of a tag, or a device with itself in other scale
/// units.
struct Channel {
    std::int32_t group = -1; ///< Index into `ExecutionPlan::groups`; -1 for a tag, and across units.
    std::int32_t tag = -1;
    GroupShape shape{}; ///< Of the devices that meet: members, and those of other units.

    /// Who takes part: devices and which of their channels this is (-1: a member that never comes).
    struct Member {
        std::int32_t device = -1;
        std::int32_t slot = -1;
        friend auto operator<=>(const Member &, const Member &) = default;
    };
    std::vector<Member> members{};
};

/// Stores of `segment` that cannot be seen in time: they take none, nothing keeps them waiting, and what they
/// store dies when the instruction before them ends. Of symmetric devices only one stores the loss; left out,
/// they stay symmetric. Indices of instructions, ascending.
std::vector<std::int32_t> hiddenStores(const Segment &segment);

/// Devices sorted into classes whose programs are equal up to the names of groups, tags and peers and to
/// hidden stores, which are of one device class, and which meet equal classes at equal places and share links
/// with them. All devices of a class have the same timeline.
struct Symmetry {
    std::vector<Channel> channels{};
    /// By device: its channels in the order in which its segments first name them ("slots").
    std::vector<std::vector<std::int32_t>> slots{};
    /// By channel: channels of one class connect the same slots of the same device classes.
    std::vector<std::int32_t> channelClass{};
    std::int32_t channelClassCount = 0;
    /// By device. Classes are numbered in the order of their first devices.
    std::vector<std::int32_t> deviceClass{};
    std::vector<std::int32_t> representative{}; ///< By class: its first device.
    std::vector<bool> hidesStores{}; ///< By device: some segment has hidden stores.
    std::vector<SharedLevel> shared{}; ///< Devices of a class share links with equal classes.
    /// By shared level and link: links of one class have as many users of the same classes.
    std::vector<std::vector<std::int32_t>> linkClass{};
};

struct ProgramReading;
/// By device.
using ProgramReadings = std::vector<std::shared_ptr<const ProgramReading>>;

/// Colour refinement over devices and channels. Also checks that every index in `plan` is in range, that
/// groups are used by their members, and that each tag has one sender and one receiver.
///
/// @param merge  false: every device is a class of its own
/// @param known  in: readings of these devices, or none; out: what was read, by device
/// @return InvalidInput naming the instruction that is wrong
/// O(instructions of the programs, unrolled over nothing, plus rounds x channels); rounds <= classes.
Result<Symmetry> findSymmetry(
    const ExecutionPlan &plan, const Cluster &cluster, bool merge = true, ProgramReadings *known = nullptr);

/// "device:3/segment:1/instruction:7", as in `Error::where`.
std::string placeOf(std::int32_t device, std::int32_t segment, std::int32_t instruction);

} // namespace planloom
