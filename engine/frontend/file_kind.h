#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace planloom {

/// What a file is, as its content tells: Planloom's own, and what people take for a model.
enum class FileKind : std::uint8_t {
    OnnxModel,
    ExportedProgram, ///< Of torch.export.save (.pt2).
    ExecutionPlan, ///< JSON that `solve --out` writes.
    Table, ///< Rows as JSON.
    Rows, ///< Rows as text.
    Cluster,
    Session, ///< SQLite: a session, or another program's database.
    Trace, ///< A timeline for ui.perfetto.dev.
    Npy,
    Npz,
    Archive, ///< Another zip: PyTorch keeps its checkpoints in such.
    Safetensors,
    Hdf5,
    Compressed,
    Json,
    Text,
};

/// Recognises a file by its bytes, never by its name. A file is taken for text if its first 4 KiB are; for
/// rows if its first line that holds something begins as a row does.
/// @return nothing if it is none of these, an empty one too. O(bytes), no allocation; thread-safe
std::optional<FileKind> findFileKind(std::string_view bytes);

/// "an execution plan of Planloom", "plain text": what follows "this is".
const char *nameOf(FileKind kind);
/// What a person can do who has such a file and wants to see a model: "open a model, then import the rows:
/// ...".
const char *adviceFor(FileKind kind);

} // namespace planloom
