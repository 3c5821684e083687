#pragma once

#include "engine/graph/annotation/combination.h"
#include "engine/graph/operator.h"
#include "engine/graph/operators/attention.h"
#include "engine/graph/tensor.h"
#include "engine/hardware/cost.h"
#include "engine/hardware/nccl_model.h"

#include <functional>
#include <vector>

namespace planloom {

/// What a device is asked to run: an operator on local types.
struct KernelQuery {
    const Operator &op;
    const std::vector<TensorType> &inputs; ///< By slot; `{}` where the operator has none.
    const std::vector<TensorType> &outputs; ///< As `inputs`.
    DataType computeType = DataType::Float32; ///< That its arithmetic runs in.
    bool joined = false; ///< Runs in the launch of the kernel before it.
    Bytes spared{}; ///< Of its operands, what the launch keeps in registers: neither read nor written.
    AttentionMode attention = AttentionMode::Fused; ///< Of an attention operator.
    std::int32_t deviceClass = 0; ///< Of the device that runs it.
    /// Of a part of an attention: how many of its keys a query sees on average. Below 0: as of queries that
    /// stand behind `offset` keys one by one.
    double seenKeys = -1;
};

/// What everything costs, in seconds: the one home of times. Layout search, stage balancing, order estimates,
/// bounds and simulation all ask it; nobody else has constants. Measured figures are another
/// implementation, and so are the made-up ones of tests.
///
/// The functions depend on their arguments alone and may be called from several threads.
struct CostModel {
    std::function<double(const KernelQuery &query)> kernel{};
    /// One collective of a group of this shape; `bytes` as `collectiveSeconds` takes them.
    std::function<double(CollectiveKind kind, Bytes bytes, GroupShape shape)> collective{};
    /// Reading and writing `bytes` within a device of this class.
    std::function<double(Bytes bytes, std::int32_t deviceClass)> copy{};
    /// What the parts of a kernel take together at least, however it is partitioned: no launches, the best
    /// rates. Missing where nothing is known.
    std::function<double(const KernelQuery &query)> leastKernel{};
    /// What that collective asks of links that others use too; latency is at most its time. Missing where
    /// nothing is known: then nothing slows anything down.
    std::function<CommunicationLoad(CollectiveKind kind, Bytes bytes, GroupShape shape)> load{};
    /// By device of the whole cluster; empty where all are of class 0.
    std::vector<std::int32_t> deviceClasses{};

    /// Copying `bytes` between a device of this class and its host, either way.
    std::function<double(Bytes bytes, std::int32_t deviceClass)> hostCopy{};

    /// @param device  by its number in the whole cluster
    std::int32_t classOf(DeviceId device) const
    {
        const auto index = static_cast<std::size_t>(device.index);
        return index < deviceClasses.size() ? deviceClasses[index] : 0;
    }
};

/// Seconds of an AllReduce or ReduceScatter that combines what members have by `combination`.
///
/// NCCL sums and takes maxima. Of logarithms it does in two what Megatron-LM does for its vocabulary-parallel
/// loss (core/tensor_parallel/cross_entropy.py): an all-reduce of the maxima, then the collective itself for
/// the sums of what lies below them; the element-wise steps between are launches of the kernels around.
double reductionSeconds(
    const CostModel &costs, CollectiveKind kind, Bytes bytes, GroupShape shape, Combination combination);

/// Seconds of a copy between a device and its host; as within the device where `costs` does not know the
/// host.
double hostCopySeconds(const CostModel &costs, Bytes bytes, std::int32_t deviceClass = 0);

/// What no device of these classes does faster: of everything the least that one of them takes.
/// @param classes  as in `GroupShape::classes`; not empty
CostModel fastestOf(const CostModel &costs, std::uint32_t classes);

/// By the figures of `cluster`: `operatorSeconds`, `collectiveSeconds`, `copySeconds`. Keeps a copy of what
/// it needs.
CostModel costModelOf(const Cluster &cluster);

/// The data type that `query.op` computes in where nothing else is said: that of its first floating output,
/// or else input, in which a scalar does not count; Float32 if there is none.
DataType computeTypeOf(const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

} // namespace planloom
