#pragma once

// What the ranks of a run tell each other, as it goes through their inboxes.

#include "engine/runtime/communication/communicator.h"
#include "engine/runtime/communication/shared_memory.h"
#include "engine/runtime/processes/process_world.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include <unistd.h>

namespace planloom {

constexpr std::size_t kMostDimensions = 32; ///< Of a buffer in a collective.

struct FlatBuffer {
    std::byte *data = nullptr;
    DataType type = DataType::Float32;
    std::int32_t dimensions = 0;
    std::array<std::int64_t, kMostDimensions> extents{};
};

enum class RankNoticeKind : std::uint8_t {
    Joined, ///< `member` of `group` has come to its `sequence`-th collective.
    DidPart, ///< All members of rank `from` have done their parts.
    Message, ///< From device `sender` to device `receiver`, in a parcel.
    Bytes, ///< The `sequence`-th exchange of bytes, in a parcel.
    Posted, ///< In a parcel.
    Failed, ///< An error as JSON, in a parcel.
    Leave, ///< From a rank to itself: its end goes.
};

/// What goes through an inbox: the same for all kinds, so that nothing has to be taken apart.
struct RankNotice {
    RankNoticeKind kind{};
    std::int32_t from = 0; ///< Rank.
    std::int32_t group = 0;
    std::int64_t sequence = 0;
    std::int32_t member = 0;
    InstructionKind collective{};
    Combination combination{};
    std::int32_t dimension = -1;
    std::int32_t gatherDimension = -1;
    FlatBuffer in{};
    FlatBuffer out{};
    std::int32_t receiver = 0;
    std::int32_t sender = 0;
    std::int32_t tag = 0;
    std::int32_t microBatch = 0;
    std::byte *parcel = nullptr; ///< Null for no bytes.
    std::size_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<RankNotice>);

inline FlatBuffer flat(const CollectiveBuffer &buffer)
{
    FlatBuffer made{buffer.data, buffer.type, static_cast<std::int32_t>(buffer.shape.size()), {}};
    std::copy(buffer.shape.begin(), buffer.shape.end(), made.extents.begin());
    return made;
}

inline CollectiveBuffer bufferOf(const FlatBuffer &flat)
{
    return {flat.data, flat.type, Shape(flat.extents.begin(), flat.extents.begin() + flat.dimensions)};
}

inline CollectiveCall callOf(const RankNotice &notice)
{
    CollectiveCall call;
    call.kind = notice.collective;
    call.group = notice.group;
    call.sequence = notice.sequence;
    call.in = bufferOf(notice.in);
    call.out = bufferOf(notice.out);
    call.dimension = notice.dimension;
    call.gatherDimension = notice.gatherDimension;
    call.combination = notice.combination;
    return call;
}

inline std::string_view textOf(const RankNotice &notice)
{
    return {reinterpret_cast<const char *>(notice.parcel), notice.bytes};
}

inline Error stopped()
{
    return cancelled("the run was stopped");
}

inline Error noSharedMemory()
{
    return {ErrorCode::ResourceLimit, "no memory for what goes from process to process",
        "use fewer processes, or more micro-batches", {}};
}

/// The two ends of an inbox.
struct Inbox {
    int reading = -1;
    int writing = -1;
};

inline void closeEnd(int &descriptor)
{
    if (descriptor >= 0)
        ::close(descriptor);
    descriptor = -1;
}

struct WorldShared {
    RankLayout layout{};
    std::vector<std::vector<DeviceId>> groups{};
    std::vector<std::vector<std::int32_t>> ranksOf{}; ///< By group, ascending.
    SharedMemory memory{};
    std::vector<Inbox> inboxes{}; ///< By rank.

    ~WorldShared()
    {
        for (Inbox &inbox : inboxes) {
            closeEnd(inbox.reading);
            closeEnd(inbox.writing);
        }
    }
};

} // namespace planloom
