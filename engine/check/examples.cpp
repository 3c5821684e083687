#include "engine/check/examples.h"

#include "engine/graph/operators/places.h"

#include <utility>

namespace planloom {

namespace {

/// Attributes written one after another.
struct With {
    Attributes made{};

    With &&integer(std::string_view name, std::int64_t value) &&
    {
        made.set(name, value);
        return std::move(*this);
    }
    With &&real(std::string_view name, double value) &&
    {
        made.set(name, value);
        return std::move(*this);
    }
    With &&text(std::string_view name, const char *value) &&
    {
        made.set(name, std::string(value));
        return std::move(*this);
    }
    With &&list(std::string_view name, std::vector<std::int64_t> values) &&
    {
        made.set(name, std::move(values));
        return std::move(*this);
    }
    With &&reals(std::string_view name, std::vector<double> values) &&
    {
        made.set(name, std::move(values));
        return std::move(*this);
    }
};

class Collector
{
    using enum OperatorKind;

public:
    explicit Collector(DataType real)
        : m_real(real)
    {
    }

    ExampleInput x(Shape shape, double low = -1, double high = 1) const
    {
        return {{m_real, std::move(shape)}, true, low, high, {}};
    }
    static ExampleInput i(Shape shape, double low, double high)
    {
        return {{DataType::Int64, std::move(shape)}, true, low, high, {}};
    }
    static ExampleInput absent() { return {{DataType::Float32, {}}, false, 0, 1, {}}; }
    static ExampleInput b(Shape shape) { return {{DataType::Bool, std::move(shape)}, true, 0, 2, {}}; }
    static ExampleInput given(DataType type, Shape shape, std::vector<double> values)
    {
        return {{type, std::move(shape)}, true, 0, 1, std::move(values)};
    }
    static ExampleInput none() { return {{}, false, 0, 1, {}}; }
    TensorType real(Shape shape) const { return {m_real, std::move(shape)}; }

    void add(
        OperatorKind kind, With with, std::vector<ExampleInput> inputs, std::vector<TensorType> outputs = {})
    {
        OperatorExample example;
        example.kind = kind;
        example.attributes = std::move(with.made);
        example.inputs = std::move(inputs);
        example.outputs = std::move(outputs);
        example.optimizer = categoryOf(kind) == OperatorCategory::Optimizer;
        example.name = nameOf(kind);
        for (const ExampleInput &input : example.inputs)
            example.name += input.present ? " " + toString(input.type.shape) : " -";
        example.name += " #" + std::to_string(m_made.size());
        m_made.push_back(std::move(example));
    }

    std::vector<OperatorExample> take() { return std::move(m_made); }

private:
    DataType m_real;
    std::vector<OperatorExample> m_made;
};

void addElementwise(Collector &c)
{
    using enum OperatorKind;
    const Shape s{2, 4, 6};
    for (const OperatorKind kind : {Abs, Asinh, Atan, Ceil, Cos, Cosh, Erf, Exp, Floor, Identity, Neg, Relu,
             Round, Sigmoid, Sign, Sin, Sinh, Softplus, Softsign, Tan, Tanh, Mish, HardSwish, Silu, Elu, Celu,
             LeakyRelu, Selu, HardSigmoid, IsInf, IsNaN})
        c.add(kind, {}, {c.x(s, -4, 4)});
    for (const OperatorKind kind : {Acos, Asin, Atanh})
        c.add(kind, {}, {c.x(s, -0.9, 0.9)});
    c.add(Acosh, {}, {c.x(s, 1.1, 3)});
    for (const OperatorKind kind : {Log, Sqrt, Reciprocal})
        c.add(kind, {}, {c.x(s, 0.3, 2)});
    c.add(Tan, {}, {c.x(s, -1, 1)});
    c.add(Not, {}, {Collector::b(s)});
    c.add(Gelu, With{}.text("approximate", "none"), {c.x(s, -4, 4)});
    c.add(Gelu, With{}.text("approximate", "tanh"), {c.x(s, -4, 4)});
    c.add(ThresholdedRelu, With{}.real("alpha", 0.4), {c.x(s)});
    c.add(LeakyRelu, With{}.real("alpha", 0.2), {c.x(s)});
    c.add(Celu, With{}.real("alpha", 0.7), {c.x(s)});
    c.add(Clip, With{}.real("min", -0.5), {c.x(s)});
    c.add(Clip, With{}.real("min", -0.5).real("max", 0.25), {c.x(s)});
    c.add(Cast, {}, {c.x(s)}, {c.real(s)});
    c.add(Cast, {}, {Collector::i(s, -5, 5)}, {c.real(s)});
    c.add(Dropout, With{}.real("ratio", 0.4).integer("seed", 7), {c.x(s)});
    c.add(Dropout, With{}.real("ratio", 0), {c.x(s)});

    const std::vector<std::pair<Shape, Shape>> pairs{{{4, 6}, {4, 6}}, {{2, 4, 6}, {6}}, {{2, 4, 6}, {4, 1}},
        {{4, 6}, {}}, {{2, 1, 6}, {4, 6}}, {{6}, {2, 4, 6}}};
    for (const auto &[a, b] : pairs) {
        for (const OperatorKind kind : {Add, Sub, Mul, Min, Max})
            c.add(kind, {}, {c.x(a), c.x(b)});
        c.add(Div, {}, {c.x(a), c.x(b, 0.5, 2)});
        c.add(Pow, {}, {c.x(a, 0.4, 2), c.x(b, -2, 2)});
        c.add(Mod, {}, {c.x(a, -3, 3), c.x(b, 0.7, 2)});
        for (const OperatorKind kind : {Equal, Greater, GreaterOrEqual, Less, LessOrEqual})
            c.add(kind, {}, {Collector::i(a, 0, 3), Collector::i(b, 0, 3)});
        for (const OperatorKind kind : {And, Or, Xor})
            c.add(kind, {}, {Collector::b(a), Collector::b(b)});
        c.add(Add, {}, {Collector::i(a, -9, 9), Collector::i(b, -9, 9)});
        c.add(Where, {}, {Collector::b(a), c.x(b), c.x(a)});
    }
    c.add(Pow, {}, {c.x({4, 6}), Collector::given(DataType::Int64, {}, {2})});
    c.add(Mod, With{}.integer("fmod", 1), {c.x({4, 6}, -3, 3), c.x({6}, 0.7, 2)});
    c.add(BitShift, With{}.text("direction", "LEFT"), {Collector::i({4, 6}, 0, 99), Collector::i({6}, 0, 5)});
    c.add(BitShift, With{}.text("direction", "RIGHT"),
        {Collector::i({4, 6}, 0, 99), Collector::i({4, 1}, 0, 5)});
    for (const OperatorKind kind : {BitwiseAnd, BitwiseOr, BitwiseXor})
        c.add(kind, {}, {Collector::i({4, 6}, -99, 99), Collector::i({6}, -99, 99)});
    c.add(PRelu, {}, {c.x({2, 4, 6}), c.x({4, 1})});
    c.add(Where, {}, {Collector::b({4, 1}), c.x({4, 6}), c.x({})});
}

void addProducts(Collector &c)
{
    using enum OperatorKind;
    c.add(MatMul, {}, {c.x({4, 6}), c.x({6, 8})});
    c.add(MatMul, {}, {c.x({2, 4, 6}), c.x({6, 4})});
    c.add(MatMul, {}, {c.x({2, 3, 4, 6}), c.x({2, 3, 6, 4})});
    c.add(MatMul, {}, {c.x({4, 6}), c.x({2, 3, 6, 4})});
    c.add(MatMul, {}, {c.x({2, 1, 4, 6}), c.x({3, 6, 4})});
    c.add(MatMul, {}, {c.x({6}), c.x({6})});
    c.add(MatMul, {}, {c.x({2, 4, 6}), c.x({6})});
    c.add(MatMul, {}, {c.x({6}), c.x({2, 6, 4})});
    for (const std::int64_t transposed : {0, 1}) {
        const Shape w = transposed != 0 ? Shape{8, 6} : Shape{6, 8};
        c.add(Linear, With{}.integer("transposed", transposed), {c.x({2, 4, 6}), c.x(w), c.x({8})});
        c.add(Linear, With{}.integer("transposed", transposed), {c.x({4, 6}), c.x(w)});
        c.add(Linear, With{}.integer("transposed", transposed), {c.x({6}), c.x(w), Collector::none()});
        const Shape parts = transposed != 0 ? Shape{3, 4, 6} : Shape{6, 3, 4};
        c.add(Linear, With{}.integer("transposed", transposed), {c.x({2, 4, 6}), c.x(parts), c.x({3, 4})});
        c.add(Linear, With{}.integer("transposed", transposed), {c.x({4, 6}), c.x(parts)});
    }
    for (const auto &[equation, a, b] : std::vector<std::tuple<const char *, Shape, Shape>>{
             {"ij,jk->ik", {4, 6}, {6, 3}}, {"bij,bkj->bik", {2, 4, 6}, {2, 3, 6}},
             {"abc, ade -> bdce", {4, 2, 3}, {4, 2, 4}}, {"bhid,bhjd->bijh", {2, 2, 3, 4}, {2, 2, 4, 4}},
             {"i,j->ij", {4}, {3}}, {"ij,ij->", {4, 6}, {4, 6}}, {"ij,k->i", {4, 3}, {2}},
             {"ii,ij->j", {4, 4}, {4, 2}}, {"aij,bjk->kab", {2, 3, 4}, {3, 4, 2}}})
        c.add(Einsum, With{}.text("equation", equation), {c.x(a), c.x(b)});
    c.add(Einsum, With{}.text("equation", "ij->ji"), {c.x({4, 6})});
    c.add(Einsum, With{}.text("equation", "ii->i"), {c.x({4, 4})});
    c.add(Einsum, With{}.text("equation", "ij->i"), {c.x({4, 6})});
    c.add(Einsum, With{}.text("equation", "ij,jk,kl->il"), {c.x({4, 2}), c.x({2, 3}), c.x({3, 2})});

    c.add(Conv, {}, {c.x({2, 4, 5, 6}), c.x({6, 4, 3, 2}), c.x({6})});
    c.add(Conv, With{}.list("strides", {2, 1}).list("pads", {1, 0, 2, 1}).list("dilations", {1, 2}),
        {c.x({2, 4, 5, 6}), c.x({4, 4, 3, 2})});
    c.add(Conv, With{}.integer("group", 2), {c.x({2, 4, 6}), c.x({6, 2, 3}), c.x({6})});
    c.add(Conv, With{}.integer("group", 4).list("pads", {1, 1}), {c.x({2, 4, 6}), c.x({4, 1, 3}), c.x({4})});
    c.add(Conv, {}, {c.x({2, 4, 3, 4}), c.x({6, 4, 1, 1}), c.x({6})});
    c.add(Conv, With{}.list("pads", {0, 1, 1, 0, 1, 1}),
        {c.x({1, 2, 3, 3, 4}), c.x({4, 2, 2, 3, 3}), c.x({4})});
    c.add(ConvTranspose, {}, {c.x({2, 4, 3}), c.x({4, 2, 3}), c.x({2})});
    c.add(ConvTranspose,
        With{}.list("strides", {2, 2}).list("pads", {1, 0, 1, 1}).list("output_padding", {1, 0}),
        {c.x({2, 4, 3, 4}), c.x({4, 2, 3, 2}), c.x({2})});
    c.add(ConvTranspose, With{}.integer("group", 2).list("dilations", {2}),
        {c.x({2, 4, 5}), c.x({4, 3, 2}), c.x({6})});
}

void addNorms(Collector &c)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {MaxPool, AveragePool, LpPool}) {
        c.add(kind, With{}.list("kernel_shape", {2, 2}).list("strides", {2, 2}), {c.x({2, 4, 4, 6})});
        c.add(kind, With{}.list("kernel_shape", {3, 2}).list("strides", {1, 2}).list("pads", {1, 0, 1, 1}),
            {c.x({2, 4, 4, 5})});
        c.add(kind, With{}.list("kernel_shape", {3}).list("strides", {2}), {c.x({2, 4, 7})});
    }
    c.add(AveragePool, With{}.list("kernel_shape", {3}).list("pads", {1, 1}).integer("count_include_pad", 1),
        {c.x({2, 4, 6})});
    c.add(MaxPool, With{}.list("kernel_shape", {2}).list("strides", {2}).integer("ceil_mode", 1),
        {c.x({2, 4, 7})});
    c.add(LpPool, With{}.list("kernel_shape", {3}).integer("p", 3), {c.x({2, 4, 6})});
    c.add(BatchMean, With{}.integer("count", 24), {c.x({4, 6, 2, 3})});
    c.add(BatchVariance, With{}.integer("count", 24), {c.x({4, 6, 2, 3}), c.x({6})});
    c.add(BatchNormalize, With{}.real("epsilon", 1e-3),
        {c.x({4, 6, 2, 3}), c.x({6}), c.x({6}, 0.5, 2), c.x({6}), c.x({6})});
    for (const std::int64_t groups : {2, 6}) { // of every sample: group norm, instance norm
        const std::int64_t count = 6 / groups * 6;
        c.add(BatchMean, With{}.integer("groups", groups).integer("count", count), {c.x({4, 6, 2, 3})});
        c.add(BatchVariance, With{}.integer("groups", groups).integer("count", count),
            {c.x({4, 6, 2, 3}), c.x({4, groups})});
        c.add(BatchNormalize, With{}.integer("groups", groups).real("epsilon", 1e-3),
            {c.x({4, 6, 2, 3}), c.x({4, groups}), c.x({4, groups}, 0.5, 2), c.x({6}), c.x({6})});
    }
    c.add(InstanceNorm, With{}.real("epsilon", 1e-3), {c.x({4, 2, 3, 2}), c.x({2}), c.x({2})});
    c.add(LayerNorm, With{}.integer("axis", 2).real("epsilon", 1e-3), {c.x({2, 4, 6}), c.x({6}), c.x({6})});
    c.add(LayerNorm, With{}.integer("axis", 1).real("epsilon", 1e-3), {c.x({4, 3, 2}), c.x({3, 2})});
    c.add(LayerNorm, With{}.integer("axis", 1).real("epsilon", 1e-3), {c.x({4, 6})});
    c.add(RmsNorm, With{}.integer("axis", 2).real("epsilon", 1e-3), {c.x({2, 4, 6}), c.x({6})});
    c.add(RmsNorm, With{}.integer("axis", 1).real("epsilon", 1e-3), {c.x({4, 6})});
    c.add(
        LocalResponseNorm, With{}.integer("size", 3).real("alpha", 0.5).real("beta", 0.6), {c.x({2, 5, 4})});
    c.add(
        LocalResponseNorm, With{}.integer("size", 4).real("alpha", 0.5).real("bias", 2), {c.x({2, 6, 3, 2})});
    for (const OperatorKind kind : {Softmax, LogSoftmax}) {
        c.add(kind, With{}.integer("axis", 2), {c.x({2, 4, 6}, -3, 3)});
        c.add(kind, With{}.integer("axis", 1), {c.x({2, 4, 6}, -3, 3)});
    }
    c.add(LpNormalize, With{}.integer("axis", 1).integer("p", 2), {c.x({4, 3, 2})});
    c.add(LpNormalize, With{}.integer("axis", 1).integer("p", 1), {c.x({4, 6})});
    const auto labels = [](Shape shape) { return Collector::i(std::move(shape), 0, 5); };
    for (const OperatorKind kind : {CrossEntropy, NegativeLogLikelihood}) {
        for (const char *reduction : {"sum", "none"}) {
            c.add(kind, With{}.text("reduction", reduction), {c.x({4, 5}, -3, 3), labels({4})});
            c.add(kind, With{}.text("reduction", reduction).integer("ignore_index", 2),
                {c.x({4, 5, 3}, -3, 3), labels({4, 3}), c.x({5}, 0.5, 2)});
        }
    }
    c.add(ClassStatistics, {}, {c.x({4, 5}, -3, 3), labels({4})});
    c.add(ClassStatistics, With{}.integer("ignore_index", 2), {c.x({4, 5, 3}, -3, 3), labels({4, 3})});
    c.add(ClassStatistics, With{}.integer("axis", 2), {c.x({4, 3, 5}, -3, 3), labels({4, 3})});
    for (const char *reduction : {"sum", "none"}) {
        c.add(ClassLoss, With{}.text("reduction", reduction), {c.x({4}), c.x({4}), labels({4})});
        c.add(ClassLoss, With{}.text("reduction", reduction).integer("ignore_index", 2),
            {c.x({4, 3}), c.x({4, 3}), labels({4, 3}), c.x({5}, 0.5, 2)});
    }
    c.add(CountValid, With{}.integer("ignore_index", 2), {labels({4, 6})}, {c.real({})});
    c.add(CountValid, {}, {labels({4, 6}), c.x({5}, 0.5, 2)}, {c.real({})});
}

void addReductions(Collector &c)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1,
             ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare}) {
        const double low = kind == ReduceLogSum ? 0.2 : -1;
        const auto with = [kind](std::vector<std::int64_t> axes, std::int64_t keep, std::int64_t count) {
            With made = With{}.list("axes", std::move(axes)).integer("keepdims", keep);
            return kind == ReduceMean ? std::move(made).integer("count", count) : std::move(made);
        };
        c.add(kind, with({1}, 1, 4), {c.x({2, 4, 6}, low, 1)});
        c.add(kind, with({0, 2}, 0, 12), {c.x({2, 4, 6}, low, 1)});
        c.add(kind, with({0, 1}, 0, 24), {c.x({4, 6}, low, 1)});
    }
    c.add(ReduceProd, With{}.list("axes", {1}),
        {Collector::given(DataType::Float64, {2, 3}, {1, 0, 2, 0, 3, 0})});
    c.add(ReduceSum, With{}.list("axes", {0}).integer("keepdims", 0), {Collector::i({4, 6}, -9, 9)});
    c.add(ArgMax, With{}.integer("axis", 1).integer("keepdims", 1), {c.x({4, 6, 2})});
    c.add(ArgMin, With{}.integer("axis", 1).integer("keepdims", 0), {c.x({4, 6, 2})});
}

void addShaping(Collector &c)
{
    using enum OperatorKind;
    c.add(Reshape, {}, {c.x({4, 6, 2})}, {c.real({4, 12})});
    c.add(Reshape, {}, {c.x({4, 6})}, {c.real({2, 2, 3, 2})});
    c.add(Reshape, {}, {c.x({4, 1, 6})}, {c.real({4, 6})});
    c.add(Reshape, {}, {c.x({4, 6})}, {c.real({8, 3})});
    c.add(Transpose, With{}.list("permutation", {1, 0}), {c.x({4, 6})});
    c.add(Transpose, With{}.list("permutation", {0, 2, 1, 3}), {c.x({2, 3, 4, 6})});
    c.add(Transpose, With{}.list("permutation", {2, 0, 1}), {c.x({2, 18, 20})});
    c.add(Expand, {}, {c.x({4, 1, 6})}, {c.real({2, 4, 3, 6})});
    c.add(Expand, {}, {c.x({})}, {c.real({4})});
    c.add(Tile, With{}.list("repeats", {2, 1, 3}), {c.x({3, 4, 2})});
    c.add(Concat, With{}.integer("axis", 1), {c.x({4, 2, 3}), c.x({4, 5, 3}), c.x({4, 1, 3})});
    c.add(Split, With{}.integer("axis", 1).list("sizes", {2, 1, 3}), {c.x({4, 6, 2})},
        {c.real({4, 2, 2}), c.real({4, 1, 2}), c.real({4, 3, 2})});
    c.add(Slice, With{}.list("starts", {0, 1}).list("steps", {1, 2}), {c.x({4, 6})}, {c.real({4, 3})});
    c.add(Slice, With{}.list("starts", {3, 5}).list("steps", {-1, -2}), {c.x({4, 6})}, {c.real({4, 2})});
    c.add(Pad, With{}.list("pads", {0, 1, 0, 2}).real("value", 0.5), {c.x({4, 6})});
    c.add(Pad, With{}.list("pads", {0, 1, 0, 2}), {c.x({4, 6})});
    c.add(Pad, With{}.list("pads", {0, 2, 0, 1}).text("mode", "reflect"), {c.x({4, 6})});
    c.add(Pad, With{}.list("pads", {0, 2, 0, 3}).text("mode", "edge"), {c.x({4, 6})});
    c.add(Pad, With{}.list("pads", {0, 7, 0, 8}).text("mode", "wrap"), {c.x({4, 6})});
}

void addPicking(Collector &c)
{
    using enum OperatorKind;
    c.add(Gather, With{}.integer("axis", 1), {c.x({4, 5, 2}), Collector::i({2, 3}, -5, 5)});
    c.add(Gather, With{}.integer("axis", 0), {c.x({5, 4}), Collector::i({}, 0, 5)});
    c.add(Embedding, {}, {c.x({8, 6}), Collector::i({2, 4}, 0, 8)});
    c.add(GatherElements, With{}.integer("axis", 1), {c.x({4, 6, 2}), Collector::i({4, 3, 2}, -6, 6)});
    c.add(GatherND, With{}.integer("batch_dims", 0), {c.x({3, 4, 6}), Collector::i({2, 4, 2}, 0, 3)});
    c.add(GatherND, With{}.integer("batch_dims", 1), {c.x({2, 4, 6}), Collector::i({2, 3, 1}, -4, 4)});
    for (const char *reduction : {"none", "add", "mul", "max", "min"}) {
        c.add(ScatterElements, With{}.integer("axis", 1).text("reduction", reduction),
            {c.x({2, 5, 4}),
                Collector::given(
                    DataType::Int64, {2, 2, 4}, {0, 1, 2, 3, 4, 0, 1, 2, 4, 3, 2, 1, -5, 1, -4, 0}),
                c.x({2, 2, 4})});
        c.add(ScatterND, With{}.text("reduction", reduction),
            {c.x({5, 4}), Collector::given(DataType::Int64, {2, 1}, {3, -5}), c.x({2, 4})});
    }
}

void addPlaces(Collector &c)
{
    using enum OperatorKind;
    // Places in two groups, some of which are none; in the last two, three sets of them.
    constexpr auto kNone = static_cast<double>(kNoPlace);
    const auto places = [](std::int64_t grouped) {
        return With{}.integer("groups", 2).integer("grouped", grouped);
    };
    c.add(Gather, places(0).integer("axis", 1),
        {c.x({3, 4, 2}), Collector::given(DataType::Int64, {6}, {1, 0, kNone, 3, kNone, kNone})});
    c.add(Gather, places(1).integer("axis", 0),
        {c.x({4, 5}),
            Collector::given(DataType::Int64, {3, 4}, {0, 1, 3, kNone, kNone, kNone, 2, 3, 1, -3, -1, 2})});
    c.add(GatherND, places(0),
        {c.x({4, 3, 2}), Collector::given(DataType::Int64, {4, 2}, {1, 2, 0, kNone, 3, 0, kNone, kNone})});
    for (const char *reduction : {"none", "add"}) {
        c.add(ScatterND, places(0).text("reduction", reduction),
            {c.x({4, 3}), Collector::given(DataType::Int64, {4, 1}, {1, kNone, 3, 2}), c.x({4, 3})});
    }
    c.add(ScatterND, places(1).text("reduction", "add"),
        {c.x({4, 2}),
            Collector::given(DataType::Int64, {3, 4, 1}, {0, 1, 3, kNone, kNone, 0, 2, 3, 1, 1, kNone, 2}),
            c.x({3, 4, 2})});
    c.add(NonZero,
        With{}.integer("kept", 0).integer("group_axis", 1).integer("groups", 3).integer("capacity", 9),
        {Collector::i({2, 6}, 0, 2)});
    c.add(NonZero,
        With{}.integer("kept", 1).integer("group_axis", 1).integer("groups", 2).integer("capacity", 6),
        {Collector::i({3, 8}, 0, 2)});
}

void addAlongAxes(Collector &c)
{
    using enum OperatorKind;
    c.add(OneHot, With{}.integer("axis", 1).integer("depth", 5).real("on", 2).real("off", -1),
        {Collector::i({4, 6}, -5, 5)}, {c.real({4, 5, 6})});
    c.add(TopK, With{}.integer("axis", 1).integer("k", 3).integer("largest", 1).integer("sorted", 1),
        {c.x({4, 6, 2})});
    c.add(TopK, With{}.integer("axis", 1).integer("k", 2).integer("largest", 0).integer("sorted", 1),
        {c.x({4, 6})});
    for (const std::int64_t exclusive : {0, 1}) {
        for (const std::int64_t reverse : {0, 1})
            c.add(CumSum,
                With{}.integer("axis", 1).integer("exclusive", exclusive).integer("reverse", reverse),
                {c.x({4, 6})});
    }
    c.add(Trilu, With{}.integer("upper", 1).integer("k", 1), {c.x({4, 5, 6})});
    c.add(Trilu, With{}.integer("upper", 0).integer("k", 0), {c.x({4, 5, 6})});
}

void addResampling(Collector &c)
{
    using enum OperatorKind;
    for (const char *mode : {"nearest", "linear", "cubic"}) {
        for (const char *coordinates :
            {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn"})
            c.add(Resize,
                With{}
                    .text("mode", mode)
                    .text("coordinate_transformation_mode", coordinates)
                    .reals("scales", {1, 1, 2, 1.5}),
                {c.x({2, 4, 3, 4})}, {c.real({2, 4, 6, 6})});
    }
    for (const char *coordinates : {"asymmetric", "tf_half_pixel_for_nn"}) // whose elements are repeated
        c.add(Resize,
            With{}
                .text("mode", "nearest")
                .text("nearest_mode", "floor")
                .text("coordinate_transformation_mode", coordinates)
                .reals("scales", {1, 2, 3}),
            {c.x({2, 4, 5})}, {c.real({2, 8, 15})});
    for (const char *mode : {"linear", "cubic"})
        c.add(Resize,
            With{}
                .text("mode", mode)
                .integer("antialias", 1)
                .integer("exclude_outside", 1)
                .reals("scales", {1, 0.6, 1.5}),
            {c.x({2, 5, 4})}, {c.real({2, 3, 6})});
    c.add(Resize,
        With{}
            .text("mode", "linear")
            .text("coordinate_transformation_mode", "tf_crop_and_resize")
            .real("extrapolation_value", 3)
            .reals("roi", {0, 0.2, -0.4, 1, 0.9, 0.8})
            .reals("scales", {1, 0.6, 1.5}),
        {c.x({2, 5, 4})}, {c.real({2, 3, 6})});
    for (const char *nearest : {"floor", "ceil", "round_prefer_ceil", "round_prefer_floor"})
        c.add(Resize,
            With{}
                .text("mode", "nearest")
                .text("nearest_mode", nearest)
                .text("coordinate_transformation_mode", "asymmetric"),
            {c.x({2, 4, 5})}, {c.real({2, 4, 3})});
    for (const char *mode : {"linear", "nearest", "cubic"}) {
        for (const char *padding : {"zeros", "border", "reflection"}) {
            for (const std::int64_t aligned : {0, 1})
                c.add(GridSample,
                    With{}.text("mode", mode).text("padding_mode", padding).integer("align_corners", aligned),
                    {c.x({2, 2, 3, 4}), c.x({2, 4, 3, 2}, -1.6, 1.6)});
        }
    }
    c.add(GridSample, With{}.text("mode", "linear"), {c.x({2, 2, 3, 2, 4}), c.x({2, 2, 2, 3, 3})});
}

void addBlocksAndMade(Collector &c)
{
    using enum OperatorKind;
    c.add(DepthToSpace, With{}.integer("blocksize", 2).text("mode", "DCR"), {c.x({2, 8, 2, 4})});
    c.add(DepthToSpace, With{}.integer("blocksize", 2).text("mode", "CRD"), {c.x({2, 8, 2, 4})});
    c.add(SpaceToDepth, With{}.integer("blocksize", 2), {c.x({2, 3, 4, 8})});
    c.add(ReverseSequence, With{}.integer("batch_axis", 1).integer("time_axis", 0),
        {c.x({5, 4, 2}), Collector::i({4}, 1, 6)});
    c.add(EyeLike, With{}.integer("k", 1), {c.x({4, 6})});
    c.add(OperatorKind::Range, With{}.real("start", 2).real("delta", 0.5), {}, {c.real({6})});
    c.add(Fill, With{}.real("value", 1.5), {}, {c.real({4, 6})});
}

/// Lstm, Gru and Rnn in either direction and both, with either layout, with all inputs and the fewest.
void addRecurrent(Collector &c)
{
    using enum OperatorKind;
    for (const auto &[kind, gates] : {std::pair{Lstm, 4}, std::pair{Gru, 3}, std::pair{Rnn, 1}}) {
        const std::int64_t rows = gates * 3;
        std::vector<ExampleInput> inputs{c.x({5, 4, 2}), c.x({1, rows, 2}), c.x({1, rows, 3}),
            c.x({1, 2 * rows}), Collector::i({4}, 2, 6), c.x({1, 4, 3})};
        if (kind == Lstm)
            inputs.insert(inputs.end(), {c.x({1, 4, 3}), c.x({1, 9})});
        c.add(kind, With{}.integer("hidden_size", 3).text("direction", "forward"), inputs);
        c.add(kind, With{}.integer("hidden_size", 3).text("direction", "reverse").real("clip", 0.8), inputs);
        c.add(kind, With{}.integer("hidden_size", 3).text("direction", "bidirectional"),
            {c.x({4, 2, 2}), c.x({2, rows, 2}), c.x({2, rows, 3}), c.x({2, 2 * rows})});
        c.add(kind, With{}.integer("hidden_size", 3).text("direction", "bidirectional"), // projected already
            {c.x({3, 2, 2, rows}), c.absent(), c.x({2, rows, 3}), c.x({2, 2 * rows})});
        c.add(kind, With{}.integer("layout", 1).text("direction", "reverse"),
            {c.x({2, 3, 1, rows}), c.absent(), c.x({1, rows, 3})});
        With batchFirst = With{}
                              .integer("hidden_size", 3)
                              .integer("layout", 1)
                              .integer("linear_before_reset", 1)
                              .integer("input_forget", 1)
                              .text("direction", "bidirectional");
        c.add(kind, std::move(batchFirst),
            {c.x({2, 4, 2}), c.x({2, rows, 2}), c.x({2, rows, 3}), c.x({2, 2 * rows}),
                Collector::i({2}, 1, 5), c.x({2, 2, 3})});
    }
    const auto activated = [&c](const char *name, double alpha, double beta) {
        With with = With{}.text("direction", "forward").integer("hidden_size", 3);
        with.made.set("activations", std::vector<std::string>{name});
        with.made.set("activation_alpha", std::vector<double>{alpha});
        with.made.set("activation_beta", std::vector<double>{beta});
        c.add(Rnn, std::move(with), {c.x({3, 2, 2}), c.x({1, 3, 2}), c.x({1, 3, 3})});
    };
    for (const char *name : {"Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu",
             "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"})
        activated(name, 0.3, 0.7);
}

void addComposites(Collector &c)
{
    using enum OperatorKind;
    c.add(Rotary, With{}.integer("interleaved", 0), {c.x({2, 3, 4, 6}), c.x({4, 6}), c.x({4, 6})});
    c.add(Rotary, With{}.integer("interleaved", 1), {c.x({2, 4, 6}), c.x({4, 6}), c.x({1, 4, 6})});
    // Heads, grouped heads, one head of keys for all; masks of each kind; further dimensions or none.
    c.add(Attention, With{}.real("scale", 0.5), {c.x({2, 4, 3, 5}), c.x({2, 4, 6, 5}), c.x({2, 4, 6, 3})});
    c.add(Attention, With{}.real("scale", 0.7).integer("causal", 1),
        {c.x({2, 4, 6, 4}), c.x({2, 2, 6, 4}), c.x({2, 2, 6, 4})});
    c.add(Attention, With{}.integer("causal", 1).integer("offset", 2).integer("window", 3),
        {c.x({4, 4, 3}), c.x({1, 6, 3}), c.x({1, 6, 2})});
    c.add(Attention, With{}.integer("window", 2),
        {c.x({2, 2, 3, 4, 2}), c.x({2, 2, 3, 5, 2}), c.x({2, 2, 3, 5, 4}), c.x({3, 4, 5})});
    c.add(Attention, With{}.real("scale", 0.5).real("dropout", 0.3).integer("seed", 7),
        {c.x({3, 2, 4, 4}), c.x({3, 2, 4, 4}), c.x({3, 2, 4, 4}), c.x({3, 1, 1, 4})});
    ExampleInput visible = Collector::b({2, 1, 4, 3});
    visible.values = {1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
    c.add(Attention, With{}.real("scale", 0.5),
        {c.x({2, 4, 4, 4}), c.x({2, 2, 3, 4}), c.x({2, 2, 3, 2}), visible});
    c.add(Attention, {}, // several masks
        {c.x({2, 4, 4, 4}), c.x({2, 2, 3, 4}), c.x({2, 2, 3, 2}), c.x({2, 1, 1, 3}), visible,
            c.x({4, 4, 3})});
    visible.values[0] = visible.values[1] = 0; // one that sees nothing weighs all alike
    c.add(Attention, With{}.real("masked_score", -5),
        {c.x({2, 4, 4, 4}), c.x({2, 4, 3, 4}), c.x({2, 4, 3, 2}), visible});
    c.add(Attention, With{}.real("scale", 2.5).real("softcap", 0.8).integer("causal", 1),
        {c.x({2, 4, 5, 3}), c.x({2, 2, 5, 3}), c.x({2, 2, 5, 4}), c.x({4, 5, 5})});
    addRecurrent(c);
    c.add(SgdStep, With{}.real("learning_rate", 0.1).real("weight_decay", 0.01).real("momentum", 0.9),
        {c.x({4, 6}), c.x({4, 6}), c.x({4, 6})}, {c.real({4, 6}), c.real({4, 6})});
    c.add(AdamWStep,
        With{}
            .real("learning_rate", 0.1)
            .real("weight_decay", 0.01)
            .real("beta1", 0.9)
            .real("beta2", 0.99)
            .real("epsilon", 1e-6),
        {c.x({4, 6}), c.x({4, 6}), c.x({4, 6}), c.x({4, 6}, 0, 1)},
        {c.real({4, 6}), c.real({4, 6}), c.real({4, 6})});
    const ExampleInput factor = Collector::given(DataType::Float32, {}, {0.25});
    c.add(SgdStep, With{}.real("learning_rate", 0.1), {c.x({4, 6}), c.x({4, 6}), Collector::absent(), factor},
        {c.real({4, 6})});
    c.add(AdamWStep, With{}.real("learning_rate", 0.1).real("epsilon", 1e-6),
        {c.x({4, 6}), c.x({4, 6}), c.x({4, 6}), c.x({4, 6}, 0, 1), factor},
        {c.real({4, 6}), c.real({4, 6}), c.real({4, 6})});
    // Its sum is rounded to Float32, which holds this one.
    const Shape squares{4, 6};
    std::vector<double> whole;
    for (std::int64_t i = 0; i < elementCount(squares); ++i)
        whole.push_back(static_cast<double>(i % 5) - 2);
    c.add(SquareSum, {}, {Collector::given(c.real(squares).dataType, squares, std::move(whole))});
    c.add(ClipFactor, With{}.real("clip_norm", 0.5), {Collector::given(DataType::Float32, {}, {4})});
}

} // namespace

std::vector<OperatorExample> examplesOfEveryKind(DataType real)
{
    Collector collector(real);
    addElementwise(collector);
    addProducts(collector);
    addNorms(collector);
    addReductions(collector);
    addShaping(collector);
    addPicking(collector);
    addPlaces(collector);
    addAlongAxes(collector);
    addResampling(collector);
    addBlocksAndMade(collector);
    addComposites(collector);
    return collector.take();
}

} // namespace planloom
