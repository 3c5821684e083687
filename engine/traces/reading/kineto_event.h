#pragma once

#include "engine/traces/reading/json_scanner.h"
#include "engine/traces/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// What kind of event a category of Kineto says.
enum class KinetoCategory : std::uint8_t {
    Other, ///< Not read.
    Kernel,
    Copy, ///< Memory is copied or set on the device.
    Runtime, ///< The host calls the device's runtime or driver.
    HostOperator,
    Annotation,
    Metadata, ///< Names of processes and threads.
};

/// One event as it stands in the file, as far as anything of it is used. Kept by the reader, so that its
/// texts keep their memory from event to event.
struct KinetoEvent {
    KinetoCategory category{};
    bool isComplete = false; ///< Phase "X": it has a duration.
    std::string name{};
    std::string thread{};
    std::int64_t start = kNoTime; ///< Nanoseconds; kNoTime: none, or no number.
    std::int64_t duration = kNoTime;
    bool isOutOfRange = false; ///< A time that 64 bits don't hold.
    std::int64_t device = -1;
    std::int64_t stream = -1;
    std::int64_t correlation = -1; ///< Of a kernel with the call that launched it.
    std::int64_t external = -1; ///< Of a kernel with the operator that launched it.
    std::string collective{}; ///< "allreduce"; empty for what is none.
    std::string dataType{}; ///< "BFloat16"
    std::int64_t inElements = -1;
    std::int64_t outElements = -1;
    std::int64_t sequence = -1;
    std::int64_t source = -1; ///< Ranks of a message.
    std::int64_t target = -1;
    TraceGroup group{};

    void clear();
};

/// Reads the event whose object has just begun.
/// @return false where the text ends before the object does
bool readKinetoEvent(JsonScanner &scanner, KinetoEvent &event);

/// Reads the ranks of a group, which are a text, or an array of numbers; none for anything else.
/// @return false where the text ends before they do
bool readGroupRanks(JsonScanner &scanner, std::vector<std::int32_t> &ranks);

/// "1740461679479712.125" microseconds as nanoseconds; kNoTime for what is no number.
/// @param isOutOfRange  set where 64 bits don't hold it
std::int64_t nanosecondsOf(std::string_view microseconds, bool &isOutOfRange);

/// A whole number; -1 for anything else, and for what 64 bits don't hold.
std::int64_t numberOrMinusOne(std::string_view text);

/// The ranks of "[0, 1, 2]"; none if the list is shortened ("..."), not of ranks, or longer than 65,536.
std::vector<std::int32_t> ranksIn(std::string_view text);

/// Bytes of one element of a type as PyTorch calls it: "BFloat16", "Half", "long int"; 0 if unknown.
std::int64_t elementBytesOf(std::string_view dataType);

} // namespace planloom
