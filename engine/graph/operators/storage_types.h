#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/precision.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The types that values lie in memory in, which follow from the graph and from the operators' precisions.
///
/// 1. Only Float32 pTensors take other types. Scalars and what carries statistics stay Float32 wherever they
/// are:
///    means, variances, counts, losses, values computed from those alone, and gradients of all these.
/// 2. What is computed from constants alone (positions, masks) stays Float32 until another operator reads it.
/// 3. Every other forward or backward operator reads and makes its own `Precision::storage`.
/// 4. An optimizer operator reads and makes its own `Precision::optimizer`; gradients of its weight are added
/// up
///    in its `gradient` and communicated in its `reduction`.
class StorageTypes
{
public:
    /// @param precisions  by operator index; empty is Float32 everywhere
    StorageTypes(const Graph &graph, const std::vector<Precision> &precisions);

    /// Adds a tensor behind all others, of the types of `weight`, whose older version it is.
    void addVersion(TensorId weight);

    /// Type of the buffer that `op` reads as input `slot`, which is present.
    DataType read(OperatorId op, std::size_t slot) const { return m_read[at(op)][slot]; }
    /// Type of the buffer that `op` makes as output `slot`, which is present.
    DataType made(OperatorId op, std::size_t slot) const { return m_made[at(op)][slot]; }
    /// In which a tensor that operators make is kept and sent to those that read it so: what they all make,
    /// or the widest of it. Of weights, states, buffers and inputs: what an optimizer, or else their first
    /// reader, reads.
    DataType carried(TensorId tensor) const { return m_carried[at(tensor)]; }
    /// Of a weight's gradient: the type it is added up in over micro-batches. `carried` for other tensors.
    DataType accumulated(TensorId tensor) const { return m_accumulated[at(tensor)]; }
    /// Of a weight's gradient: the type in which it is communicated. `carried` for other tensors.
    DataType reduced(TensorId tensor) const { return m_reduced[at(tensor)]; }

    /// Some operator of `tensor`'s readers reads it in `type`.
    bool isRead(TensorId tensor, DataType type) const;
    /// Some forward or backward operator does.
    bool isReadByModel(TensorId tensor, DataType type) const;
    /// A weight is kept in `type` for its optimizer alone, while the model reads copies of another type.
    bool isMaster(TensorId weight, DataType type) const;
    /// Some operator makes `tensor` in `type`.
    bool isMade(TensorId tensor, DataType type) const;

private:
    void findFloat32(const Graph &graph, const Uses &uses);
    void findSettings(const Graph &graph, const Uses &uses, const std::vector<Precision> &precisions);

    std::vector<bool> m_keeps{}; ///< By tensor: is as in the graph everywhere.
    std::vector<bool> m_constant{}; ///< By operator: reads constants alone.
    std::vector<std::vector<DataType>> m_read{}; ///< By operator and slot.
    std::vector<std::vector<DataType>> m_made{};
    std::vector<DataType> m_carried{};
    std::vector<DataType> m_accumulated{};
    std::vector<DataType> m_reduced{};
    /// By tensor, one bit a type: how it is read by anybody, by the model, and how it is made.
    std::vector<std::uint32_t> m_readTypes{};
    std::vector<std::uint32_t> m_modelTypes{};
    std::vector<std::uint32_t> m_madeTypes{};
};

/// The loss scale of a plan: that of the operator that makes the loss; 1 without one.
double lossScaleOf(const Graph &graph, const std::vector<Precision> &precisions);

/// The constant of the host that the backward pass begins with (the loss's gradient).
bool isLossGradient(const Graph &graph, TensorId tensor);

} // namespace planloom
