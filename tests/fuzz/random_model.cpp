#include "tests/fuzz/random_model.h"

#include "tests/fuzz/model_pen.h"

#include "engine/check/examples.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

namespace planloom {

namespace {

using enum OperatorKind;

/// Operators that fit whatever there is: each takes a tensor that was made before and goes on from there.
class ModelDrawer
{
public:
    explicit ModelDrawer(std::uint64_t seed)
        : m_pen(seed)
    {
    }

    Result<Graph> draw()
    {
        drawInputs();
        const std::int64_t operators = 2 + dice().below(10);
        while (m_pen.operatorCount() < operators) {
            if (dice().hits(0.1))
                drawLayers();
            else
                drawOperator();
        }
        std::vector<TensorId> outputs;
        for (std::int64_t i = dice().below(3); i > 0; --i)
            outputs.push_back(m_pen.made());
        std::sort(outputs.begin(), outputs.end());
        outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
        const TensorId loss = dice().hits(0.93) ? drawLoss() : TensorId{};
        if (outputs.empty() && !loss)
            outputs.push_back(m_pen.made());
        return m_pen.finish(std::move(outputs), loss);
    }

private:
    Dice &dice() { return m_pen.dice(); }
    Shape shapeOf(TensorId id) const { return m_pen.typeOf(id).shape; }

    void drawInputs()
    {
        const std::int64_t batch = dice().of<std::int64_t>({2, 3, 4, 4, 4, 6, 8});
        for (std::int64_t i = 1 + dice().below(3); i > 0; --i) {
            Shape shape{batch};
            for (std::int64_t rank = dice().below(4); rank > 0; --rank)
                shape.push_back(m_pen.extent());
            m_pen.keep(m_pen.input({DataType::Float32, std::move(shape)}));
        }
    }

    /// The same operators several times, each behind the last: layers, or passes that share their weights.
    void drawLayers()
    {
        TensorId x = m_pen.made();
        const bool shares = dice().hits(0.3);
        const std::uint64_t seed = dice().seed();
        const std::int64_t operators = 1 + dice().below(4);
        for (std::int64_t layer = 0, count = 2 + dice().below(3); layer < count; ++layer) {
            const ModelPen::Layer inside(m_pen, shares, layer, seed, x);
            for (std::int64_t i = 0; i < operators; ++i)
                drawOperator();
            const TensorId y = m_pen.adapted(m_pen.made(), shapeOf(x));
            x = y ? y : x;
        }
        m_pen.keep(x);
    }

    void drawOperator()
    {
        using Draw = void (ModelDrawer::*)();
        static constexpr std::array kDraws{&ModelDrawer::drawExample, &ModelDrawer::drawExample,
            &ModelDrawer::drawExample, &ModelDrawer::drawExample, &ModelDrawer::drawUnary,
            &ModelDrawer::drawBinary, &ModelDrawer::drawBinary, &ModelDrawer::drawMatMul,
            &ModelDrawer::drawLinear, &ModelDrawer::drawLinear, &ModelDrawer::drawReduction,
            &ModelDrawer::drawReshape, &ModelDrawer::drawTranspose, &ModelDrawer::drawPieces,
            &ModelDrawer::drawWindowOf, &ModelDrawer::drawGather, &ModelDrawer::drawNorm,
            &ModelDrawer::drawBatchNorm, &ModelDrawer::drawConvolution, &ModelDrawer::drawAttention};
        const Draw draw = dice().of(std::vector<Draw>(kDraws.begin(), kDraws.end()));
        (this->*draw)();
    }

    /// An operator of any kind, of those that are tried out in parts: its shapes and attributes, with
    /// whatever chance puts into its slots.
    void drawExample()
    {
        static const std::vector<OperatorExample> kExamples = [] {
            std::vector<OperatorExample> examples = examplesOfEveryKind(DataType::Float32);
            std::erase_if(examples, [](const OperatorExample &example) { return example.optimizer; });
            return examples;
        }();
        // As many of each kind, however many examples there are of it.
        const auto kind = static_cast<OperatorKind>(dice().below(static_cast<int>(SgdStep)));
        std::vector<const OperatorExample *> ofKind;
        for (const OperatorExample &each : kExamples)
            if (each.kind == kind)
                ofKind.push_back(&each);
        if (ofKind.empty())
            return;
        const OperatorExample &example = *dice().of(ofKind);
        std::vector<TensorId> inputs;
        for (const ExampleInput &slot : example.inputs)
            inputs.push_back(slot.present ? m_pen.operand(slot) : TensorId{});
        m_pen.add(example.kind, std::move(inputs), example.attributes, example.outputs);
    }

    void drawUnary()
    {
        const TensorId x = m_pen.made();
        if (dice().hits(0.15)) { // in another type, and back
            const DataType type = dice().of({DataType::Float16, DataType::BFloat16, DataType::Float64,
                DataType::Int64, DataType::Int32, DataType::Bool});
            const TensorId narrow = m_pen.one(Cast, {x}, {}, {{type, shapeOf(x)}});
            const TensorId y = isFloating(type) ? m_pen.one(Relu, {narrow}) : narrow;
            m_pen.one(Cast, {y}, {}, {{DataType::Float32, shapeOf(x)}});
            return;
        }
        if (dice().hits(0.3) && !shapeOf(x).empty()) {
            const OperatorKind kind = dice().of({Softmax, LogSoftmax, CumSum});
            m_pen.one(kind, {x}, attributesOf({{"axis", axisOf(x)}}));
            return;
        }
        m_pen.one(dice().of({Relu, Tanh, Sigmoid, Silu, Neg, Exp, Identity}), {x});
    }

    std::int64_t axisOf(TensorId x)
    {
        return shapeOf(x).empty() ? 0 : dice().below(static_cast<std::int64_t>(shapeOf(x).size()));
    }

    /// With something that broadcasts against it: without some of the first dimensions, or with ones.
    void drawBinary()
    {
        const TensorId x = m_pen.made();
        Shape other = shapeOf(x);
        if (dice().hits(0.5) && !other.empty())
            other.erase(other.begin(), other.begin() + 1 + dice().below(static_cast<int>(other.size())));
        for (std::int64_t &extent : other)
            extent = dice().hits(0.2) ? 1 : extent;
        if (dice().hits(0.1))
            other.insert(other.begin(), m_pen.extent());
        const OperatorKind kind = dice().of({Add, Add, Mul, Mul, Sub, Div, Min, Max, Where});
        TensorId y = m_pen.real(std::move(other));
        if (kind == Div)
            y = m_pen.within(y, 0.5, 2);
        if (kind == Where) {
            const TensorId limit = m_pen.real(shapeOf(y));
            const TensorId condition = m_pen.one(Greater, {x, limit});
            m_pen.one(Where, {condition, x, y});
            return;
        }
        m_pen.one(kind, dice().hits(0.8) ? std::vector{x, y} : std::vector{y, x});
    }

    void drawMatMul()
    {
        const TensorId x = m_pen.made();
        const Shape shape = shapeOf(x);
        if (shape.empty())
            return;
        Shape other{shape.back(), m_pen.extent()};
        if (shape.size() > 2 && dice().hits(0.5))
            other.insert(other.begin(), shape.begin(), shape.end() - 2);
        if (dice().hits(0.2)) {
            std::swap(other[other.size() - 1], other[other.size() - 2]);
            if (shape.size() < 2)
                return;
            other.back() = shape[shape.size() - 2];
            m_pen.one(MatMul, {m_pen.real(other), x});
            return;
        }
        m_pen.one(MatMul, {x, m_pen.real(other)});
    }

    /// Its factor and its bias are weights or not, each for itself.
    void drawLinear()
    {
        TensorId x = m_pen.made();
        if (dice().hits(0.2))
            x = m_pen.real(shapeOf(x));
        if (shapeOf(x).empty())
            return;
        const std::int64_t k = shapeOf(x).back();
        const std::int64_t n = m_pen.extent();
        const bool transposed = dice().hits(0.5);
        const TensorId w = m_pen.real(transposed ? Shape{n, k} : Shape{k, n});
        const TensorId bias = dice().hits(0.6) ? m_pen.real({n}) : TensorId{};
        m_pen.one(Linear, {x, w, bias}, attributesOf({{"transposed", std::int64_t{transposed}}}));
    }

    void drawReduction()
    {
        const TensorId x = m_pen.made();
        std::vector<std::int64_t> axes;
        std::int64_t count = 1;
        for (std::size_t d = 0; d < shapeOf(x).size(); ++d)
            if (dice().hits(0.4)) {
                axes.push_back(static_cast<std::int64_t>(d));
                count *= shapeOf(x)[d];
            }
        if (axes.empty())
            return;
        const OperatorKind kind =
            dice().of({ReduceSum, ReduceMean, ReduceMean, ReduceMax, ReduceL2, ReduceLogSumExp});
        m_pen.one(kind, {x}, attributesOf({{"axes", axes}, {"keepdims", dice().below(2)}, {"count", count}}));
    }

    /// Dimensions joined or divided at random.
    void drawReshape()
    {
        const TensorId x = m_pen.made();
        Shape shape;
        for (const std::int64_t extent : shapeOf(x)) {
            if (!shape.empty() && dice().hits(0.3))
                shape.back() *= extent;
            else if (extent % 2 == 0 && dice().hits(0.3))
                shape.insert(shape.end(), {2, extent / 2});
            else
                shape.push_back(extent);
            if (dice().hits(0.1))
                shape.push_back(1);
        }
        m_pen.one(Reshape, {x}, {}, {{DataType::Float32, std::move(shape)}});
    }

    void drawTranspose()
    {
        const TensorId x = m_pen.made();
        std::vector<std::int64_t> permutation(shapeOf(x).size());
        std::iota(permutation.begin(), permutation.end(), 0);
        for (std::size_t i = permutation.size(); i-- > 1;)
            std::swap(
                permutation[i], permutation[static_cast<std::size_t>(dice().below(static_cast<int>(i) + 1))]);
        m_pen.one(Transpose, {x}, attributesOf({{"permutation", permutation}}));
    }

    /// Cut into pieces, some of which are put together again; the others lie about for those behind.
    void drawPieces()
    {
        const TensorId x = m_pen.made();
        if (shapeOf(x).empty())
            return;
        const std::int64_t axis = axisOf(x);
        const auto along = static_cast<std::size_t>(axis);
        const std::int64_t size = shapeOf(x)[along];
        if (size < 2 || dice().hits(0.4)) {
            Shape other = shapeOf(x);
            other[along] = m_pen.extent();
            m_pen.one(Concat, {x, m_pen.real(std::move(other))}, attributesOf({{"axis", axis}}));
            return;
        }
        const std::int64_t first = dice().hits(0.5) && size % 2 == 0 ? size / 2 : 1 + dice().below(size - 1);
        std::vector<TensorType> types(2, m_pen.typeOf(x));
        types[0].shape[along] = first;
        types[1].shape[along] = size - first;
        const auto pieces = m_pen.add(Split, {x},
            attributesOf({{"axis", axis}, {"sizes", std::vector<std::int64_t>{first, size - first}}}), types);
        if (pieces.size() == 2 && first == size - first && dice().hits(0.5))
            m_pen.one(dice().of({Mul, Add, Sub}), pieces);
    }

    /// A part of a tensor, or it with more around it.
    void drawWindowOf()
    {
        const TensorId x = m_pen.made();
        const Shape shape = shapeOf(x);
        const bool pads = dice().hits(0.4);
        std::vector<std::int64_t> starts;
        std::vector<std::int64_t> steps;
        std::vector<std::int64_t> after;
        Shape window;
        for (const std::int64_t extent : shape) {
            const bool changes = dice().hits(0.4);
            starts.push_back(changes ? dice().below(pads ? 3 : extent) : 0);
            after.push_back(changes ? dice().below(3) : 0);
            const std::int64_t room = extent - starts.back();
            steps.push_back(changes && !pads && dice().hits(0.3) ? 2 : 1);
            const std::int64_t most = (room + steps.back() - 1) / steps.back();
            window.push_back(changes && !pads ? 1 + dice().below(most) : most);
        }
        if (!pads) {
            m_pen.one(Slice, {x}, attributesOf({{"starts", starts}, {"steps", steps}}),
                {{DataType::Float32, std::move(window)}});
            return;
        }
        starts.insert(starts.end(), after.begin(), after.end());
        m_pen.one(Pad, {x}, attributesOf({{"pads", starts}}));
    }

    void drawGather()
    {
        const TensorId x = m_pen.made();
        if (shapeOf(x).empty())
            return;
        const std::int64_t axis = axisOf(x);
        const std::int64_t extent = shapeOf(x)[static_cast<std::size_t>(axis)];
        if (dice().hits(0.3)) { // the largest, and where they are
            m_pen.add(TopK, {x},
                attributesOf({{"axis", axis}, {"k", 1 + dice().below(extent)}, {"largest", std::int64_t{1}},
                    {"sorted", std::int64_t{1}}}));
            return;
        }
        Shape indices;
        for (std::int64_t rank = dice().below(3); rank > 0; --rank)
            indices.push_back(m_pen.extent());
        if (dice().hits(0.3))
            indices = {extent};
        const TensorId at = m_pen.operand({{DataType::Int64, indices}, true, 0, static_cast<double>(extent)});
        m_pen.one(Gather, {x, at}, attributesOf({{"axis", axis}}));
    }

    void drawNorm()
    {
        const TensorId x = m_pen.made();
        if (shapeOf(x).empty())
            return;
        const std::int64_t axis = axisOf(x);
        Shape scale = shapeOf(x);
        scale.erase(scale.begin(), scale.begin() + axis);
        std::vector<TensorId> inputs{x, m_pen.real(scale)};
        const OperatorKind kind = dice().of({LayerNorm, RmsNorm});
        if (kind == LayerNorm && dice().hits(0.6))
            inputs.push_back(m_pen.real(scale));
        m_pen.one(kind, std::move(inputs), attributesOf({{"axis", axis}, {"epsilon", 1e-2}}));
    }

    void drawBatchNorm()
    {
        const TensorId x = m_pen.made();
        if (shapeOf(x).size() < 2)
            return;
        const Shape channels{shapeOf(x)[1]};
        const std::int64_t count = elementCount(shapeOf(x)) / channels[0];
        const Attributes attributes = attributesOf({{"count", count}, {"epsilon", 1e-2}});
        const TensorId mean = m_pen.one(BatchMean, {x}, attributes);
        const TensorId variance = m_pen.one(BatchVariance, {x, mean}, attributes);
        const TensorId scale = m_pen.real(channels);
        m_pen.one(BatchNormalize, {x, mean, variance, scale, m_pen.real(channels)}, attributes);
    }

    void drawConvolution()
    {
        TensorId x = m_pen.made();
        if (shapeOf(x).size() < 3)
            x = m_pen.adapted(x, {shapeOf(x).empty() ? 2 : shapeOf(x)[0], 4, 6});
        if (!x) // too large to be made
            return;
        Shape kernel{m_pen.extent(), shapeOf(x)[1]};
        std::vector<std::int64_t> pads;
        std::vector<std::int64_t> strides;
        for (std::size_t d = 2; d < shapeOf(x).size(); ++d) {
            kernel.push_back(1 + dice().below(std::min<std::int64_t>(shapeOf(x)[d], 3)));
            pads.push_back(dice().below(kernel.back()));
            strides.push_back(1 + dice().below(2));
        }
        pads.insert(pads.end(), pads.begin(), pads.end());
        std::int64_t group = 1;
        if (dice().hits(0.2)) { // depthwise
            group = kernel[1];
            kernel[0] = group;
            kernel[1] = 1;
        }
        const TensorId bias = dice().hits(0.5) ? m_pen.real({kernel[0]}) : TensorId{};
        m_pen.one(Conv, {x, m_pen.real(kernel), bias},
            attributesOf({{"pads", pads}, {"strides", strides}, {"group", group}}));
    }

    /// Of its parts, as exporters write it.
    void drawAttention()
    {
        const std::int64_t heads = dice().of<std::int64_t>({1, 2, 4});
        const Shape first = shapeOf(m_pen.made());
        const std::int64_t batch = first.empty() ? 2 : first[0];
        const std::int64_t tokens = dice().of<std::int64_t>({3, 4});
        const std::int64_t width = heads * dice().of<std::int64_t>({2, 3});
        const TensorId x = m_pen.adapted(m_pen.made(), {batch, tokens, width});
        const auto projected = [&](TensorId of, std::vector<std::int64_t> permutation) {
            const TensorId w = m_pen.real({width, width});
            const TensorId bias = dice().hits(0.5) ? m_pen.real({width}) : TensorId{};
            const TensorId y = m_pen.one(Linear, {of, w, bias});
            const TensorId parts =
                m_pen.one(Reshape, {y}, {}, {{DataType::Float32, {batch, tokens, heads, width / heads}}});
            return m_pen.one(Transpose, {parts}, attributesOf({{"permutation", std::move(permutation)}}));
        };
        const TensorId memory = dice().hits(0.7) ? x : m_pen.real(shapeOf(x));
        const TensorId q = projected(x, {0, 2, 1, 3});
        const TensorId k = projected(memory, {0, 2, 3, 1});
        const TensorId v = projected(memory, {0, 2, 1, 3});
        TensorId scores = m_pen.one(Mul, {m_pen.one(MatMul, {q, k}), m_pen.scalar(0.5F)});
        if (dice().hits(0.5))
            scores = m_pen.one(Add,
                {scores,
                    m_pen.real(dice().hits(0.5) ? Shape{tokens, tokens} : Shape{batch, 1, tokens, tokens})});
        const TensorId shares = m_pen.one(Softmax, {scores}, attributesOf({{"axis", std::int64_t{3}}}));
        const TensorId y = m_pen.one(Transpose, {m_pen.one(MatMul, {shares, v})},
            attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}));
        m_pen.one(Reshape, {y}, {}, {{DataType::Float32, {batch, tokens, width}}});
    }

    /// A scalar of what was made: sums, means, cross-entropies, shares of them.
    TensorId drawLossPart(TensorId x)
    {
        const auto over = [&](OperatorKind kind, TensorId of) {
            std::vector<std::int64_t> axes(shapeOf(of).size());
            std::iota(axes.begin(), axes.end(), 0);
            return axes.empty() ? of
                                : m_pen.one(kind, {of},
                                    attributesOf({{"axes", axes}, {"keepdims", std::int64_t{0}},
                                        {"count", elementCount(shapeOf(of))}}));
        };
        switch (dice().below(5)) {
        case 0:
            return over(ReduceSum, x);
        case 1:
            return over(ReduceMean, m_pen.one(Mul, {x, x}));
        case 2:
            return m_pen.one(Div, {over(ReduceSum, x), m_pen.within(over(ReduceMean, m_pen.made()), 0.5, 2)});
        case 3:
            return over(ReduceMean, x);
        default:
            break;
        }
        if (shapeOf(x).size() < 2) {
            const TensorId wider = m_pen.adapted(x, {shapeOf(x).empty() ? 2 : shapeOf(x)[0], 4});
            if (!wider) // too large to be made, as is what comes of that
                return TensorId{};
            x = wider;
        }
        Shape items = shapeOf(x);
        const auto classes = static_cast<double>(items[1]);
        items.erase(items.begin() + 1);
        const TensorId labels = m_pen.operand({{DataType::Int64, items}, true, 0, classes});
        const TensorId sum =
            m_pen.one(CrossEntropy, {x, labels}, attributesOf({{"reduction", std::string("sum")}}));
        return dice().hits(0.3)
            ? sum
            : m_pen.one(Div, {sum, m_pen.one(CountValid, {labels}, {}, {{DataType::Float32, {}}})});
    }

    TensorId drawLoss()
    {
        TensorId loss = drawLossPart(m_pen.multipliedByWeight());
        for (std::int64_t more = dice().hits(0.4) ? 1 + dice().below(2) : 0; more > 0; --more) {
            const TensorId drawn = drawLossPart(m_pen.made());
            if (!drawn || !loss)
                break;
            const TensorId part = m_pen.one(Mul, {drawn, m_pen.scalar(0.5F)});
            loss = m_pen.one(dice().hits(0.8) ? Add : Mul, {loss, part});
        }
        return loss;
    }

    ModelPen m_pen;
};

} // namespace

Result<Graph> randomModel(std::uint64_t seed)
{
    return ModelDrawer(seed).draw();
}

} // namespace planloom
