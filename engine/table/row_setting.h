#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace planloom {

/// What rows about operators are read against: the model, the devices, and the mesh that counts
/// (`PlanMeaning::mesh`). A value that shares the model. Thread-safe to read.
struct RowSetting {
    Model model{}; ///< Not empty.
    std::int32_t deviceCount = 1;
    std::vector<MeshAxis> mesh{}; ///< Empty if no row makes one.

    const Graph &graph() const { return *model.graph; }
    const SelectorIndex &index() const { return *model.index; }
    const BatchInfo &batch() const { return *model.batch; }
    /// Identifier of the operator's annotation that is the batch; -1 if none is.
    std::int32_t batchOf(OperatorId op) const
    {
        return model.batch->operatorDimension[static_cast<std::size_t>(op.index)];
    }
};

/// The axis of `mesh` with this name; null if there is none.
const MeshAxis *findAxis(const std::vector<MeshAxis> &mesh, std::string_view name);
/// Position of an axis in the mesh; behind all of them for a name that is none ("" for a step over no axis).
std::size_t meshPosition(const std::vector<MeshAxis> &mesh, std::string_view axis);

/// True for a step that cuts the mini-batch.
bool isBatch(const SplitStep &step);

/// The identifier that `ref` names in `op`; -1 if the operator has no such identifier, position or batch, or
/// none of that meaning that may be cut.
/// @return InvalidInput if it has the position, but cannot be split there
Result<std::int32_t> resolveDimension(const RowSetting &setting, OperatorId op, const DimensionRef &ref);

/// Gives `split` the identifier that `ref` names in `op`; false if it names none. By meaning, the parts
/// divide what is meant, not what it lies in: 4 heads of 16 are cut into 2 or 4 parts, although the
/// identifier has 64. Sizes count heads then, too. A mere piece of what is meant (a sequence without its last
/// token) that does not divide is passed by.
/// @return InvalidInput as `resolveDimension`, and if the parts do not divide the heads
Result<bool> bindDimension(const RowSetting &setting, OperatorId op, const DimensionRef &ref, Split &split);

/// What one step of an op-trans row makes of an operator, with its identifier, parts and sizes filled in.
/// Whether the operator may be split so is `checkPartition`'s to say.
/// @return parts of 0 where the step passes the operator by; InvalidInput if the mesh has no such axis, the
/// parts do not
///   fit it, or the operator is needed whole there
Result<Split> splitOf(const RowSetting &setting, OperatorId op, const SplitStep &step);

/// The operators of `selected` that a rule about forward operators acts on: the forward ones; if there are
/// none, the optimizer ones; if there are only backward ones, none.
std::vector<OperatorId> actedOn(const Graph &graph, const std::vector<OperatorId> &selected);
/// The operators of the first direction that occurs (forward, backward, optimizer), ascending, each once;
/// those that the graph does not have are left out.
std::vector<OperatorId> ofOneDirection(const Graph &graph, const std::vector<OperatorId> &operators);
/// Optimizer operators of the weights that forward operators among `operators` read, ascending.
std::vector<OperatorId> optimizersOf(const SelectorIndex &index, const std::vector<OperatorId> &operators);

} // namespace planloom
