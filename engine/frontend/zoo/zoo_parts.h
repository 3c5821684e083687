#pragma once

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/graph/capacity.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Checked parameters of a zoo model, by name.
class ZooValues
{
public:
    explicit ZooValues(std::string family = {})
        : m_family(std::move(family))
    {
    }
    void set(std::string_view name, double value) { m_values.insert_or_assign(std::string(name), value); }
    /// The value; the family must have the parameter.
    std::int64_t integer(std::string_view name) const { return static_cast<std::int64_t>(real(name)); }
    double real(std::string_view name) const;
    /// Room that was asked for beside the parameters, by operator.
    void setCapacities(Capacities capacities) { m_capacities = std::move(capacities); }
    const Capacities &capacities() const { return m_capacities; }
    /// An error about parameter `name`.
    Error wrong(std::string_view name, std::string message) const;

private:
    std::string m_family{};
    std::map<std::string, double, std::less<>> m_values{};
    Capacities m_capacities{};
};

/// What a zoo model's attention is beside its queries, keys and values.
struct ZooAttention {
    double scale = 1;
    bool causal = false;
    std::vector<TensorId> masks{}; ///< Added to the scores.
    std::int64_t window = 0; ///< Keys that a query sees, its own with them; 0: no limit.
    bool drops = false; ///< The model's dropout applies to the probabilities.
};

/// A GraphBuilder with the parts that models of the zoo share. Dropouts get numbers 1, 2, ... as seeds.
class ZooBuilder final : public GraphBuilder
{
public:
    /// @param dropout  ratio of all dropouts; 0 leaves them out
    explicit ZooBuilder(std::string modelName, double dropout = 0)
        : GraphBuilder(std::move(modelName))
        , m_dropout(dropout)
    {
    }

    /// x [.. k] -> [.. n] with weights "<name>.weight" [n k] (as torch.nn.Linear; [k n] if not `transposed`).
    TensorId linear(
        TensorId x, std::int64_t n, std::string_view name, bool bias = true, bool transposed = true);
    /// Normalises the last dimension, with scale and bias.
    TensorId layerNorm(TensorId x, std::string_view name, double epsilon = 1e-5);
    /// Normalises the last dimension, with scale.
    TensorId rmsNorm(TensorId x, std::string_view name, double epsilon = 1e-6);
    /// Rows of the table `weight` [v e].
    TensorId embedding(TensorId table, TensorId indices, std::string_view name);
    TensorId dropout(TensorId x, std::string_view name);
    TensorId transpose(TensorId x, std::vector<std::int64_t> permutation, std::string_view name = {});
    TensorId softmax(TensorId x, std::string_view name = {}); ///< Over the last dimension.
    TensorId scaled(TensorId x, double factor, std::string_view name = {}); ///< x times a constant.
    /// start, start + 1, ... [n].
    TensorId range(DataType type, std::int64_t n, std::string_view name);
    /// [b s (h d)] -> [b h s d]
    TensorId splitHeads(TensorId x, std::int64_t heads, std::string_view name);
    /// [b h s d] -> [b s (h d)]
    TensorId mergeHeads(TensorId x, std::string_view name);
    /// query [.. H s e], key [.. G t e], value [.. G t f] -> [.. H s f] (engine/graph/operators/attention.h).
    TensorId attention(TensorId query, TensorId key, TensorId value, const ZooAttention &form);
    /// Where the classes stand among the logits' dimensions.
    enum class ClassesStand : std::uint8_t {
        Last,
        Second, ///< As the channels of an image or volume do.
    };
    /// Mean cross-entropy of logits [.. c] (or [n c ..]) and labels [..], over the labels other than -100.
    TensorId meanLoss(TensorId logits, TensorId labels, ClassesStand classes = ClassesStand::Last);
    /// Mean of the squares of all elements, in operators called "<name>.square" and "<name>.mean".
    TensorId meanSquare(TensorId x, const std::string &name);

private:
    double m_dropout = 0;
    std::int64_t m_dropouts = 0;
};

/// One builder per family; parameters have passed their ranges, not yet what must hold between them.
Result<Graph> buildGpt(const ZooValues &values);
Result<Graph> buildLlama(const ZooValues &values);
Result<Graph> buildDeepSeek(const ZooValues &values);
Result<Graph> buildMixture(const ZooValues &values);
Result<Graph> buildT5(const ZooValues &values);
Result<Graph> buildEvoformer(const ZooValues &values);
Result<Graph> buildSwin(const ZooValues &values);
Result<Graph> buildResNet(const ZooValues &values);
Result<Graph> buildVgg(const ZooValues &values);
Result<Graph> buildUnet3d(const ZooValues &values);
Result<Graph> buildCosmoFlow(const ZooValues &values);
Result<Graph> buildMlp(const ZooValues &values);

} // namespace planloom
