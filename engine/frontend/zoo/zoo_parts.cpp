#include "engine/frontend/zoo/zoo_parts.h"

#include <numeric>

namespace planloom {

namespace {

/// Labels with this value are left out of the loss, as in PyTorch.
constexpr std::int64_t kIgnoredLabel = -100;

std::string joined(std::string_view name, std::string_view suffix)
{
    return std::string(name) + std::string(suffix);
}

} // namespace

double ZooValues::real(std::string_view name) const
{
    const auto found = m_values.find(name);
    assert(found != m_values.end());
    return found->second;
}

Error ZooValues::wrong(std::string_view name, std::string message) const
{
    return Error{ErrorCode::InvalidInput, std::move(message), "", joined("zoo:" + m_family + "/", name)};
}

TensorId ZooBuilder::linear(TensorId x, std::int64_t n, std::string_view name, bool bias, bool transposed)
{
    const Shape in = shape(x);
    const std::int64_t k = in.empty() ? 1 : in.back();
    std::vector<TensorId> inputs{x, weight(joined(name, ".weight"), transposed ? Shape{n, k} : Shape{k, n})};
    if (bias)
        inputs.push_back(weight(joined(name, ".bias"), {n}));
    return one(
        OperatorKind::Linear, std::move(inputs), attributesOf({{"transposed", transposed ? 1 : 0}}), name);
}

TensorId ZooBuilder::layerNorm(TensorId x, std::string_view name, double epsilon)
{
    const Shape in = shape(x);
    const Shape last{in.empty() ? 1 : in.back()};
    const auto axis = static_cast<std::int64_t>(in.size()) - 1;
    return one(OperatorKind::LayerNorm,
        {x, weight(joined(name, ".weight"), last), weight(joined(name, ".bias"), last)},
        attributesOf({{"axis", axis}, {"epsilon", epsilon}}), name);
}

TensorId ZooBuilder::rmsNorm(TensorId x, std::string_view name, double epsilon)
{
    const Shape in = shape(x);
    const auto axis = static_cast<std::int64_t>(in.size()) - 1;
    return one(OperatorKind::RmsNorm, {x, weight(joined(name, ".weight"), {in.empty() ? 1 : in.back()})},
        attributesOf({{"axis", axis}, {"epsilon", epsilon}}), name);
}

TensorId ZooBuilder::embedding(TensorId table, TensorId indices, std::string_view name)
{
    return one(OperatorKind::Embedding, {table, indices}, {}, name);
}

TensorId ZooBuilder::dropout(TensorId x, std::string_view name)
{
    if (m_dropout <= 0)
        return x;
    ++m_dropouts;
    return one(OperatorKind::Dropout, {x}, attributesOf({{"ratio", m_dropout}, {"seed", m_dropouts}}), name);
}

TensorId ZooBuilder::transpose(TensorId x, std::vector<std::int64_t> permutation, std::string_view name)
{
    return one(OperatorKind::Transpose, {x}, attributesOf({{"permutation", std::move(permutation)}}), name);
}

TensorId ZooBuilder::softmax(TensorId x, std::string_view name)
{
    return one(OperatorKind::Softmax, {x},
        attributesOf({{"axis", static_cast<std::int64_t>(shape(x).size()) - 1}}), name);
}

TensorId ZooBuilder::scaled(TensorId x, double factor, std::string_view name)
{
    return one(OperatorKind::Mul, {x, scalar(static_cast<float>(factor))}, {}, name);
}

TensorId ZooBuilder::range(DataType type, std::int64_t n, std::string_view name)
{
    const Attributes steps = isFloating(type) ? attributesOf({{"start", 0.0}, {"delta", 1.0}})
                                              : attributesOf({{"start", 0}, {"delta", 1}});
    return one(OperatorKind::Range, {}, steps, name, {{type, {n}}});
}

TensorId ZooBuilder::splitHeads(TensorId x, std::int64_t heads, std::string_view name)
{
    const Shape in = shape(x);
    if (in.size() != 3)
        return x; // an earlier failure, which finish() reports
    const TensorId apart = reshape(x, {in[0], in[1], heads, in[2] / heads}, joined(name, ".heads"));
    return transpose(apart, {0, 2, 1, 3}, joined(name, ".transpose"));
}

TensorId ZooBuilder::mergeHeads(TensorId x, std::string_view name)
{
    const Shape in = shape(x);
    if (in.size() != 4)
        return x;
    const TensorId turned = transpose(x, {0, 2, 1, 3}, joined(name, ".transpose"));
    return reshape(turned, {in[0], in[2], in[1] * in[3]}, joined(name, ".merge"));
}

TensorId ZooBuilder::attention(TensorId query, TensorId key, TensorId value, const ZooAttention &form)
{
    Attributes attributes = attributesOf({{"scale", form.scale}});
    if (form.causal)
        attributes.set("causal", std::int64_t{1});
    if (form.window > 0)
        attributes.set("window", form.window);
    if (form.drops && m_dropout > 0) {
        attributes.set("dropout", m_dropout);
        attributes.set("seed", ++m_dropouts);
    }
    std::vector<TensorId> inputs{query, key, value};
    inputs.insert(inputs.end(), form.masks.begin(), form.masks.end());
    return one(OperatorKind::Attention, std::move(inputs), std::move(attributes), "attention");
}

TensorId ZooBuilder::meanSquare(TensorId x, const std::string &name)
{
    std::vector<std::int64_t> axes(shape(x).size());
    std::iota(axes.begin(), axes.end(), 0);
    const TensorId square = one(OperatorKind::Pow, {x, scalar(2)}, {}, name + ".square");
    return one(OperatorKind::ReduceMean, {square},
        attributesOf({{"axes", axes}, {"keepdims", 0}, {"count", elementCount(shape(x))}}), name + ".mean");
}

TensorId ZooBuilder::meanLoss(TensorId logits, TensorId labels, ClassesStand classes)
{
    const auto inside = scope("loss");
    const std::size_t rank = shape(logits).size();
    if (rank == 0)
        return {};
    Attributes attributes = attributesOf({{"ignore_index", kIgnoredLabel}});
    if (rank > 2 && classes == ClassesStand::Last)
        attributes.set("axis", static_cast<std::int64_t>(rank) - 1);
    const auto statistics = add(OperatorKind::ClassStatistics, {logits, labels}, attributes, "statistics");
    const TensorId sum = one(OperatorKind::ClassLoss, {statistics[0], statistics[1], labels},
        attributesOf({{"reduction", "sum"}, {"ignore_index", kIgnoredLabel}}), "cross_entropy");
    const TensorId count =
        one(OperatorKind::CountValid, {labels}, attributesOf({{"ignore_index", kIgnoredLabel}}), "count");
    return one(OperatorKind::Div, {sum, count}, {}, "mean");
}

} // namespace planloom
