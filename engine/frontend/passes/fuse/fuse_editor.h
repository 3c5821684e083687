#pragma once

#include "engine/frontend/unique_names.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// A forward graph while patterns in it are replaced: knows who makes and who uses each activation, keeps the
/// topological order, and drops what is no longer used at the end.
class FuseEditor
{
public:
    explicit FuseEditor(Graph graph);

    /// Positions of operators; replaced ones stay in place as dead until `finish`.
    std::size_t operatorCount() const { return m_graph.operators.size(); }
    bool isAlive(std::size_t position) const { return m_alive[position]; }
    const Operator &op(std::size_t position) const { return m_graph.operators[position]; }
    const Tensor &tensor(TensorId id) const { return m_graph.at(id); }
    const Shape &shape(TensorId id) const { return m_graph.at(id).type.shape; }

    /// The live operator of this kind that makes `id`, or nothing.
    const Operator *madeBy(TensorId id, OperatorKind kind) const;
    /// The live operator that makes `id`, or nothing.
    const Operator *maker(TensorId id) const;
    /// The only operator that uses `id`, if there is one, it does so in one slot, and `id` is no output of
    /// the model.
    const Operator *onlyUser(TensorId id) const;
    /// All that use an activation, in order of position; nothing if it is an output of the model, too.
    std::vector<const Operator *> users(TensorId id) const;
    /// True if all users of `id` are among `users` and `id` is no output of the model.
    bool usedOnlyBy(TensorId id, std::initializer_list<const Operator *> users) const;
    bool isModelOutput(TensorId id) const { return m_isOutput[index(id)]; }

    /// The value of a constant with one element.
    std::optional<double> constant(TensorId id) const;
    /// True if `id` is a constant equal to `value` up to the rounding of float.
    bool isConstant(TensorId id, double value) const;
    /// True for weights and buffers: their values do not depend on the inputs.
    bool isParameter(TensorId id) const;

    /// Replaces the live operators `old` by `fused`, which takes the place of `old`'s member that makes
    /// `fused.outputs.front()`. Sources are collected, in order of position; the name is chosen by `finish`.
    void replace(const std::vector<const Operator *> &old, Operator fused);

    /// The same where several operators stand for `old`: the last of `made` takes the place, the others stand
    /// right before it, in order. Those others are looked at by no pass.
    void replace(const std::vector<const Operator *> &old, std::vector<Operator> made);

    /// A new activation, whose name begins like that of `like`.
    TensorId addTensor(TensorType type, TensorId like, const std::string &suffix);
    /// Says that a weight is none: it is dropped if nothing uses it.
    void makeBuffer(TensorId id) { m_graph.at(id).role = TensorRole::Buffer; }

    /// Removes `old`, whose users read `instead` in place of its output. Does nothing if that is a model
    /// output.
    /// @return true if it was removed
    bool bypass(const Operator &old, TensorId instead);

    /// The graph with dead operators and unused constants and activations removed, and fused operators named.
    Graph finish();

private:
    static std::size_t index(TensorId id) { return static_cast<std::size_t>(id.index); }
    std::size_t positionOf(const Operator &op) const;
    void addUser(TensorId id, std::int32_t user);
    /// The operator behind a number in m_users; null for one that was inserted.
    const Operator *userAt(std::int32_t number) const
    {
        const auto at = static_cast<std::size_t>(number);
        return at < m_graph.operators.size() ? &m_graph.operators[at] : nullptr;
    }
    void placeInserted();
    bool isTracked(TensorId id) const;
    void remove(std::size_t position);
    void nameFused();
    void compact();

    Graph m_graph;
    std::vector<bool> m_alive{};
    std::vector<bool> m_fused{};
    std::vector<bool> m_isOutput{};
    std::vector<std::int32_t> m_maker{}; ///< Position by tensor; -1 where none.
    /// Positions by activation, each once; empty for other roles. Inserted operators follow the last
    /// position.
    std::vector<std::vector<std::int32_t>> m_users{};
    struct Inserted {
        std::size_t before = 0; ///< Position.
        Operator op{};
    };
    std::vector<Inserted> m_inserted{};
    std::optional<UniqueNames> m_tensorNames{}; ///< Once a tensor was added.
};

/// Each pass looks for one family of patterns; O(operators).
void removeNoOperations(FuseEditor &editor); ///< Casts, reshapes, slices ... that change nothing.
void untangleSamples(FuseEditor &editor); ///< What mixes samples only as it is written.
void mergeReshapes(
    FuseEditor &editor); ///< A reshape of a reshape is one; after fuseProducts, which looks for them.
void fuseProducts(FuseEditor &editor); ///< Linear, Embedding.
void fuseNormalizations(FuseEditor &editor); ///< LayerNorm, RmsNorm, GroupNorm, Softmax, CrossEntropy.
void fuseActivations(FuseEditor &editor); ///< Gelu, Silu, Rotary.
void fuseAttentions(FuseEditor &editor); ///< Attention; after fuseNormalizations, which finds its Softmax.

} // namespace planloom
