#pragma once

#include "engine/base/result.h"
#include "engine/traces/trace.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <stop_token>
#include <string_view>

namespace planloom {

/// Whether the first bytes of a file are those of an SQLite database.
bool isSqlite(std::string_view beginning);

/// Reads what `nsys export --type sqlite` writes: kernels, copies, calls of the runtime and NVTX ranges, from
/// whichever tables and columns the file has.
///
/// Safe for any file: it is opened to read alone, with nothing of its schema trusted; only tables are read,
/// no views; what a column has of another type than it should is left out with a remark. Memory is bounded by
/// a multiple of the file's size.
/// @param mostRows  of each table; less than all makes a first picture
/// @return InvalidInput if it is no such file or has no kernel; Cancelled; Io
Result<RankTrace> readNsight(const std::filesystem::path &path, const std::stop_token &stop = {},
    std::int64_t mostRows = std::numeric_limits<std::int64_t>::max());

} // namespace planloom
