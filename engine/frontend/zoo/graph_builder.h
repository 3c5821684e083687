#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// Attributes from a list: `attributesOf({{"axis", 1}, {"epsilon", 1e-5}})`.
Attributes attributesOf(std::initializer_list<std::pair<std::string_view, Attribute>> values);

/// Values of a float32 tensor as `Tensor::data` keeps them. `values` has one element per element of `shape`.
std::shared_ptr<const TensorData> floatData(const Shape &shape, const std::vector<float> &values);

/// Values of an int64 tensor as `Tensor::data` keeps them.
std::shared_ptr<const TensorData> integerData(const Shape &shape, const std::vector<std::int64_t> &values);

/// Writes a forward graph operator by operator: types are inferred as operators are added, names are made
/// unique, scopes follow C++ blocks, annotations are computed by `finish`. Used by the model zoo and by
/// tests.
///
/// The first failure is kept and returned by `finish`; after it `add` returns invalid ids, so that code which
/// builds a model needs no check of its own. Not thread-safe.
class GraphBuilder
{
public:
    /// Leaves its scope when it goes out of scope. Made by `GraphBuilder::scope`.
    class [[nodiscard]] ScopedScope
    {
    public:
        ScopedScope(const ScopedScope &) = delete;
        ScopedScope &operator=(const ScopedScope &) = delete;
        ~ScopedScope() { m_writer.m_scope = m_outer; }

    private:
        friend class GraphBuilder;
        ScopedScope(GraphBuilder &builder, ScopeId outer)
            : m_writer(builder)
            , m_outer(outer)
        {
        }
        GraphBuilder &m_writer;
        ScopeId m_outer;
    };

    explicit GraphBuilder(std::string modelName = "model");

    /// Enters the module `name` ("h.3", "attn") of the current one until the returned object dies. Entering a
    /// name again continues the same module.
    ScopedScope scope(std::string_view name);

    /// A tensor that is fed anew for every mini-batch. Its name is taken as it is.
    TensorId input(std::string name, TensorType type);

    /// A float32 trainable parameter called "<scope path>.<name>". Without `values` it has no data.
    TensorId weight(std::string_view name, Shape shape, const std::vector<float> &values = {});

    /// From here on passes run with one set of weights: in outermost modules whose names begin with `prefix`,
    /// and outside of those, a weight that was asked for before (by its name within the pass) is that one.
    void shareWeights(std::string prefix) { m_sharing = std::move(prefix); }

    /// A float32 Buffer called "<scope path>.<name>". Without `values` it has no data.
    TensorId buffer(std::string_view name, Shape shape, const std::vector<float> &values = {});

    /// A Buffer with the given values, called "<scope path>.<name>".
    TensorId constant(std::string_view name, std::shared_ptr<const TensorData> data);

    /// A float32 scalar Buffer; equal values share one tensor.
    TensorId scalar(float value);

    /// Appends a forward operator and returns its outputs, in slot order.
    ///
    /// @param inputs    by slot; an invalid id is an absent optional input
    /// @param name      last part of the operator's name; its kind's name if empty
    /// @param declared  output types where the kind does not determine them (see `inferTypes`)
    std::vector<TensorId> add(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::string_view name = {}, std::vector<TensorType> declared = {});

    /// As `add`, for operators with one output.
    TensorId one(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::string_view name = {}, std::vector<TensorType> declared = {});

    /// Reshape to `shape`.
    TensorId reshape(TensorId x, Shape shape, std::string_view name = {});

    /// Shape of a tensor; empty for an invalid id.
    Shape shape(TensorId id) const;

    /// "h.3.attn.": what the names of new weights and operators begin with.
    std::string prefix() const;

    /// The failure so far, if any.
    const std::optional<Error> &failure() const { return m_failure; }

    /// The graph, annotated, with repeated scopes marked as copies. The builder is empty afterwards.
    ///
    /// @param outputs  what the model returns; the loss is added if it is not among them
    /// @param loss     a scalar, or invalid
    /// @return the first failure of `add`; InvalidInput if an output is invalid or the loss is not a scalar
    Result<Graph> finish(std::vector<TensorId> outputs, TensorId loss = {});

private:
    TensorId addTensor(
        std::string name, TensorType type, TensorRole role, std::shared_ptr<const TensorData> data = {});
    std::string uniqueName(std::string name);
    void fail(Error error);

    Graph m_graph{};
    ScopeId m_scope{0};
    std::vector<std::string> m_prefixes{std::string{}}; ///< By scope.
    std::map<std::pair<ScopeId, std::string>, ScopeId> m_scopes{};
    std::unordered_map<std::string, std::int32_t> m_names{}; ///< How often a name was asked for.
    std::map<float, TensorId> m_scalars{};
    std::optional<std::string> m_sharing{}; ///< What names of passes begin with, where weights are shared.
    std::map<std::string, TensorId> m_shared{}; ///< By name within a pass.
    std::optional<Error> m_failure{};
};

} // namespace planloom
