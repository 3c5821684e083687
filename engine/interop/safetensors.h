#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace planloom {

/// A tensor of a safetensors file.
struct SafetensorsEntry {
    TensorType type{};
    std::uint64_t offset = 0; ///< In the file.
    std::uint64_t bytes = 0;
    friend bool operator==(const SafetensorsEntry &, const SafetensorsEntry &) = default;
};

/// Words beside the tensors: "format" is "pt" for what PyTorch's users load.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// A safetensors file that is open to be read: eight bytes of length, a header in JSON, and the tensors'
/// bytes, row-major and little-endian (https://github.com/huggingface/safetensors, "Format").
///
/// Safe for any bytes: the header is limited in length and depth, and tensors have to take just the bytes
/// that their types and shapes ask for, one behind the other, without overlaps, holes, or a rest.
class SafetensorsFile
{
public:
    /// @return NotFound, Io; InvalidInput saying what is wrong, with path and tensor in `where`; NotSupported
    /// for types that no tensor of ours has
    static Result<SafetensorsFile> open(const std::filesystem::path &path);

    const std::map<std::string, SafetensorsEntry> &tensors() const { return m_tensors; }
    const SafetensorsMetadata &metadata() const { return m_metadata; }

    /// Fills `bytes` from those of `entry`, from `first` on. Thread-safe. @return InvalidInput beyond the
    /// end; Io
    Result<void> read(const SafetensorsEntry &entry, std::uint64_t first, std::span<std::byte> bytes) const;

private:
    std::shared_ptr<const ByteSource> m_source{};
    std::map<std::string, SafetensorsEntry> m_tensors{};
    SafetensorsMetadata m_metadata{};
};

/// A safetensors file as it is written, piece by piece in any order: beside its place, under the name with
/// ".part", and moved there in one step once it is whole and on the disk. So a full disk, or a program that
/// ends halfway, leaves an older file as it was; the writer that made it leaves nothing when it is dropped.
/// Several processes may write their pieces: one makes the file and commits it, the others join in between.
class SafetensorsWriter
{
public:
    /// Makes missing folders, and reserves all the room that the file takes.
    /// @return Io, also if the disk has too little room
    static Result<SafetensorsWriter> create(const std::filesystem::path &path,
        const std::map<std::string, TensorType> &tensors, const SafetensorsMetadata &metadata);

    /// Opens the file that another writer is making at `path`, to write pieces of it.
    /// @return as `SafetensorsFile::open`; Io
    static Result<SafetensorsWriter> join(const std::filesystem::path &path);

    SafetensorsWriter(SafetensorsWriter &&other) noexcept;
    SafetensorsWriter &operator=(SafetensorsWriter &&) = delete;
    ~SafetensorsWriter();

    /// Writes `bytes` to those of tensor `name`, from `first` on. Thread-safe where pieces do not overlap.
    /// @return Io; InvalidInput for what no tensor has room for
    Result<void> write(const std::string &name, std::uint64_t first, std::span<const std::byte> bytes);

    /// The file is whole: it takes its place, and stays there when the power goes. Only of the writer that
    /// made it, when all that joined have written. @return Io
    Result<void> commit();

private:
    SafetensorsWriter(std::filesystem::path path, int descriptor, bool made);

    std::filesystem::path m_path;
    std::filesystem::path m_fresh;
    int m_descriptor;
    bool m_made; ///< Here, and not by the writer that was joined.
    std::map<std::string, SafetensorsEntry> m_tensors{};
};

/// Writes whole tensors by their names. @return as `SafetensorsWriter`
Result<void> writeSafetensors(
    const std::filesystem::path &path, const std::map<std::string, TensorData> &tensors);

} // namespace planloom
