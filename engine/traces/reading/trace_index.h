#pragma once

#include "engine/base/result.h"
#include "engine/traces/trace.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// What was read of a trace file, in a form that is read again in no time. It is kept in the user's cache
// folder, where anybody may have written over it: it is read as every other file is.

/// @param key  of the file and the version of what reads it (open_trace.h): only who asks for the same one
///   gets it back
std::string printTraceIndex(const std::vector<RankTrace> &ranks, std::string_view key);

/// @return InvalidInput if `bytes` are no index, are damaged (their checksum is wrong), or say what can't be;
///   NotFound for another key. O(bytes)
Result<std::vector<RankTrace>> readTraceIndex(std::string_view bytes, std::string_view key);

} // namespace planloom
