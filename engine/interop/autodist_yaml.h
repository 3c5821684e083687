#pragma once

#include "engine/base/result.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Partition constraints of nnScaler's autodist (microsoft/nnscaler, docs of autodist), as YAML:
//
//     - name: torch.nn.functional.linear        # the operator's signature
//       parent_module: attn                     # may be missing: part of the path of its module
//       allowed_partition_dims: ["0,0", "1,0"]  # "input,dimension"; outputs count on behind the inputs
//       replica_allowed: false                  # default: true
//
// The entry with the longest `parent_module` counts for an operator. Several positions may be one identifier
// of an annotation; they are one choice then. nnScaler looks for `parent_module` in the classes of modules; a
// .pt2 file says those. It is looked for in paths such as "h.3.attn.c_proj", too.
//
// What PyTorch has as several operators may be one here: a constraint on the torch.softmax inside an
// attention is one on the attention.

constexpr std::size_t kMostAutodistBytes = 1 << 20;
constexpr const char *kAutodistAxis = "tp"; ///< Where nobody says otherwise.
/// The axis of a mesh that constraints are about: `kAutodistAxis` if it has it or there is no mesh, else the
/// first that shares operators' work (`AxisRole::Shards`).
std::string autodistAxis(const std::vector<MeshAxis> &mesh);
bool isAutodistFile(std::string_view path); ///< By its ending: ".yaml", ".yml".

/// Rows for one set of constraints.
struct AutodistRows {
    ConstraintTable table{};
    /// Entries that stand twice: "line 3: ...".
    std::vector<std::string> notes{};
};

/// Reads constraints as rows over the mesh axis `axis`: "split ... : in1.0 over tp or in1.1 over tp or
/// replicate over tp", of which the search chooses; copies without positions are a replication.
/// @param classes  of modules, by path (`moduleClassesOf`); empty where the model's file says none
/// @return InvalidInput with line and column, `where` "FILE:LINE:COLUMN": no YAML, a member that is missing,
///   of another type or nobody's, an entry that is about no operator (naming those that there are), positions
///   none of which an operator has or may be cut at; ResourceLimit beyond `kMostAutodistBytes`
Result<AutodistRows> readAutodist(std::string_view text, const std::string &file, const Model &model,
    const std::string &axis, const std::map<std::string, std::string> &classes = {});

/// Constraints for a table.
struct AutodistText {
    std::string yaml{};
    std::vector<std::string>
        notes{}; ///< Rows, or operators of them, that the format cannot say: "row 3: ...".
};

/// Writes the op-trans rows that are on and speak of `axis`. `readAutodist` of the text gives rows that split
/// the same operators alike. The format knows operators by kind and module alone: rows that pick some of such
/// operators are noted, and left out.
AutodistText writeAutodist(
    const ConstraintTable &table, const Model &model, std::int32_t deviceCount, const std::string &axis);

/// "torch.nn.functional.linear": what PyTorch calls operators of a kind.
std::string torchNameOf(OperatorKind kind);

} // namespace planloom
