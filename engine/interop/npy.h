#pragma once

#include "engine/base/result.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Values by tensor name.
using NamedArrays = std::map<std::string, TensorData>;

/// What the head of a `.npy` file says, before any element is read.
struct NpyHead {
    TensorType type{};
    bool isColumnMajor = false;
    std::uint64_t begin = 0; ///< Of the elements, in bytes.
};

/// Most bytes that a head of ours takes: `parseNpyHead` needs no more of a file than these.
constexpr std::size_t kMostNpyHeadBytes = std::size_t{1} << 16U;

/// Reads the head of a `.npy` file of `size` bytes.
/// @param bytes  its first ones, or all of them
/// @return as `parseNpy`
Result<NpyHead> parseNpyHead(std::span<const std::byte> bytes, std::uint64_t size, std::string_view where);

/// Reads one array in NumPy's `.npy` format (versions 1 to 3): little-endian, of one of our data types;
/// Fortran order is turned into row-major order. `|V2` is read as bfloat16, which is what the ml_dtypes
/// package writes.
///
/// Safe for any bytes: nothing is allocated beyond the size of `bytes`.
/// @param where  named in errors: a path or "file.npz/member"
/// @return InvalidInput saying what is wrong with the header or the number of bytes; NotSupported for other
/// types
Result<TensorData> parseNpy(std::span<const std::byte> bytes, std::string_view where);

/// `array` in `.npy` format, version 1, row-major.
std::vector<std::byte> formatNpy(const TensorData &array);

/// Reads a `.npy` file. @return as `parseNpy`; NotFound or Io if it cannot be read
Result<TensorData> readNpy(const std::string &path);

/// Writes `array` to `path`, making missing folders. @return Io if the operating system refuses
Result<void> writeNpy(const std::string &path, const TensorData &array);

/// Whole content of a regular file. @return NotFound if there is none; Io if it cannot be read
Result<std::vector<std::byte>> readBytes(const std::string &path);

/// Writes a file, making missing folders. @return Io
Result<void> writeBytes(const std::string &path, std::span<const std::byte> bytes);

} // namespace planloom
