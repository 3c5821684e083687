#pragma once

#include "engine/base/result.h"
#include "engine/table/table_document.h"

#include <string>

namespace planloom {

/// The table that a file holds, as text or as JSON (told apart by its first character).
/// @return as `readFile`; InvalidInput for the first line that is no row, `where` "PATH:line:LINE:COLUMN"
/// Waits for the disk.
Result<TableDocument> readTableFile(const std::string &path);

} // namespace planloom
