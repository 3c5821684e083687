#pragma once

#include "engine/base/result.h"
#include "engine/interop/npy.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace planloom {

/// Reads every `.npy` member of an `.npz` archive (a zip), by name without ".npy". Members may be stored or,
/// where Planloom was built with zlib, deflated; checksums are verified.
///
/// Safe for any bytes: members together may take at most 256 MiB or 20 times the archive, whichever is more.
/// @param where  named in errors
/// @return InvalidInput naming what is wrong; NotSupported for encryption and other
/// compressions
Result<NamedArrays> parseNpz(std::span<const std::byte> bytes, std::string_view where);

/// Reads an `.npz` file. @return as `parseNpz`; NotFound or Io if it cannot be read
Result<NamedArrays> readNpz(const std::string &path);

/// Archive with one stored member per array, in order of name.
/// @return NotSupported from 4 GiB on (which needs zip64)
Result<std::vector<std::byte>> formatNpz(const NamedArrays &arrays);

/// Writes `formatNpz` to a file. @return as it; Io
Result<void> writeNpz(const std::string &path, const NamedArrays &arrays);

/// Inputs of a run: an `.npz` whose members are called `in.<name>` (if any is, others are left out) or
/// `<name>`, or a folder of `<name>.npy`, in subfolders where names have slashes.
/// @return InvalidInput if there are none; errors of the readers
Result<NamedArrays> readInputs(const std::string &path);

} // namespace planloom
