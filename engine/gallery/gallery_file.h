#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/dimension_classes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// A gallery entry as a text file:
//
//     entry tensor-parallel
//     meaning weights cut into columns and rows, as in Megatron-LM
//     paper arXiv:1909.08053
//     picture
//         device 0  [ W0 ]--[ V0 ]--+
//         device 1  [ W1 ]--[ V1 ]--+
//     needs heads                            # or: axial-attention, experts, weights
//     parameter tp : count = rest            # devices that share every product
//     parameter micro-batches : micro-batches = chosen
//     parameter sequence : switch = off      # what lies between the pairs is cut along the sequence
//     parameter schedule : word = 1f1b among 1f1b, gpipe
//     parameter first : layers = 0-3         # layers that ...
//     parameter layout : layout = none       # stages as Et*4|t*4L
//     parameter recompute : modules = none   # core_attn+mlp, or full
//     rows
//         mesh tp={tp}
//         micro-batches {micro-batches}
//         find pairs over tp
//         when sequence : find sequence between pairs over tp
//         where it divides : split all : sequence over cp
//         otherwise : split {with vocabulary} : vocabulary over tp
//
// `#` begins a note, which is a parameter's meaning behind one. What is indented below `picture` and `rows`
// belongs to it. A row is a row of the constraint table (table/table_text.h) with {PARAMETER} in it, and with
// sets of operators that the engine finds from dimension classes and data flow:
//
//     {with MEANING}     that have such a dimension to cut (dimension_classes.h): {with vocabulary}
//     {behind MEANING}   behind the last of those, without the dimension: {behind height}
//     {shared weights}   that read a weight which another one reads, too
//
// and {devices} is their number.
//
// `when CONDITION :` makes a row depend on a parameter: `sequence`, `zero > 0`, `schedule = gpipe`, several
// joined by `and`; `otherwise :` is for when the row before it was left out. `where it divides :` makes rows
// for those operators that can be cut so, and passes the others by. What takes a search of its own begins
// with `find`:
//
//     find pairs over AXIS                      columns and rows of weights (tensor_parallel_region.h)
//     find sequence between pairs over AXIS     what lies between those, along the sequence
//     find experts over AXIS                    experts on devices of their own
//     find stages over AXIS [of SELECTOR] [times N] [for SCHEDULE] [keeping versions]
//                                               consecutive stages, balanced by time, N on each rank: dealt
//                                               out in turn, or for schedules that run in waves down the
//                                               ranks and up again, at least once
//     find stages both ways over NUMBER         two pipelines in opposite directions
//     find recomputation                        layers, and what lies between them (usual_rows.h)
//     find recomputation of {recompute}         these modules of the layers
//     find passes over AXIS                     stages of passes that share their weights, alike in each
//
// Rows and steps over an axis of one device, or of none, are left out, and so are rows that use a parameter
// which is left to the solver. Every file is checked row by row when it is read.

constexpr std::size_t kMostGalleryFileBytes = 256 << 10;
constexpr const char *kGalleryFileEnding = ".gallery";
constexpr std::string_view kNoneWord = "none"; ///< No layout, no modules.
constexpr const char *kDevicesWord = "devices"; ///< The number of devices, in rows and conditions.

/// What a parameter of an entry is.
enum class GalleryParameterKind : std::uint8_t {
    Count, ///< A whole number.
    Switch, ///< 0 or 1; "on" and "off" in files.
    Word, ///< One of `words`.
    Layers, ///< "0-3", "2", "*".
    MicroBatches, ///< A count that divides the batch; `chosen` takes as many as suit the pipeline.
    Updates, ///< Micro-batches of an update; `chosen` takes the fewest that two versions of weights do for.
    Layout, ///< Stages in Megatron-LM's notation (layer_layout.h), or "none".
    Modules, ///< What is recomputed: "none", "full", or some of `recomputedModules` joined by '+'
             ///< (usual_rows.h).
};
const char *nameOf(GalleryParameterKind kind); ///< "count", "switch", ...

/// One parameter of an entry.
struct GalleryParameter {
    std::string name{};
    GalleryParameterKind kind{};
    /// What it is if nothing is said: a value of its kind; "devices", all of them; "rest", what the mesh's
    /// other axes leave of them; "outermost", the rest if it is the first of space that the model has, else
    /// 1; "chosen"; "solver".
    std::string fallback{};
    std::int64_t least = 1;
    std::int64_t most = 65536;
    std::vector<std::string> words{}; ///< Of Word, at least one.
    std::string meaning{}; ///< For a person; may be empty.
    friend bool operator==(const GalleryParameter &, const GalleryParameter &) = default;

    bool maySolve() const { return fallback == "solver"; } ///< The solver may choose it.
};
/// "stages=N", "ring=0|1", "schedule=1f1b|gpipe": how it is written behind an entry's name.
std::string formOf(const GalleryParameter &parameter);

/// "zero > 0"
struct GalleryCondition {
    enum class Kind : std::uint8_t { IsOn, Is, IsNot, More };
    Kind kind = Kind::IsOn;
    std::string parameter{};
    std::string value{}; ///< Of Is, IsNot and More.
    friend bool operator==(const GalleryCondition &, const GalleryCondition &) = default;
};

/// One line below `rows`.
struct GalleryLine {
    enum class Kind : std::uint8_t { Row, WhereItDivides, Find };
    Kind kind = Kind::Row;
    std::vector<GalleryCondition> conditions{}; ///< All must hold.
    bool otherwise = false; ///< The line before must have been left out by its conditions.
    std::string text{}; ///< Without conditions and the words of `kind`.
    std::int32_t line = 0; ///< In the file, from 1.
    std::int32_t column = 0; ///< Where `text` begins, from 1.
    friend bool operator==(const GalleryLine &, const GalleryLine &) = default;
};

/// What a model must have for an entry to make sense.
struct GalleryNeed {
    enum class Kind : std::uint8_t { Dimension, AxialAttention, Experts, Weights, Passes, NoBackward };
    Kind kind = Kind::Dimension;
    DimensionMeaning meaning{}; ///< Of Dimension.
    friend bool operator==(const GalleryNeed &, const GalleryNeed &) = default;
};

/// One plan, or space of plans, of the gallery.
struct GalleryEntry {
    std::string name{}; ///< "tensor-parallel"
    std::string meaning{}; ///< One line for a person.
    std::string paper{}; ///< Where it comes from; may be empty.
    std::vector<std::string> picture{}; ///< A drawing of characters, by line, without common indentation.
    std::vector<GalleryNeed> needs{};
    std::vector<GalleryParameter> parameters{}; ///< In the order of the file.
    std::vector<GalleryLine> lines{};
    std::string file{}; ///< Where it was read; empty for those that come with Planloom.
    friend bool operator==(const GalleryEntry &, const GalleryEntry &) = default;

    const GalleryParameter *find(std::string_view parameter) const; ///< Null if there is none.
};

/// Reads one file. O(length).
/// @param file  for `Error::where`: "FILE:LINE:COLUMN"
/// @return InvalidInput with what was expected, what was found, and what to do; ResourceLimit beyond
///   `kMostGalleryFileBytes`
Result<GalleryEntry> readGalleryFile(std::string_view text, const std::string &file);

/// A piece of a row's text: as it stands, or in braces.
struct GalleryPiece {
    std::string text{}; ///< In braces: what stands between them.
    bool inBraces = false;
    std::size_t at = 0; ///< Where it begins in the row's text.
};
/// The pieces of a row that was read. @return InvalidInput, `where` the 1-based column, for braces without
/// their like
Result<std::vector<GalleryPiece>> piecesOf(std::string_view text);

} // namespace planloom
