// The ways in which attention is written, and what is not attention.

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::inDouble;

using Integers = std::vector<std::int64_t>;

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Writes attention step by step: two samples, four heads, five queries, six keys, heads of 3 and 2.
struct AttentionText {
    using enum OperatorKind;
    GraphBuilder b{"attention"};
    TensorId mask{};

    TensorId q(Shape shape = {2, 4, 5, 3}) { return b.input("q", {DataType::Float32, std::move(shape)}); }
    TensorId k(Shape shape = {2, 4, 6, 3}) { return b.input("k", {DataType::Float32, std::move(shape)}); }
    TensorId v(Shape shape = {2, 4, 6, 2}) { return b.input("v", {DataType::Float32, std::move(shape)}); }
    TensorId turned(TensorId x, Integers permutation)
    {
        return b.one(Transpose, {x}, attributesOf({{"permutation", std::move(permutation)}}));
    }
    TensorId times(TensorId x, float factor) { return b.one(Mul, {x, b.scalar(factor)}); }
    TensorId product(TensorId x, TensorId y) { return b.one(MatMul, {x, y}); }
    TensorId scores() { return product(q(), turned(k(), {0, 1, 3, 2})); }
    TensorId softmax(TensorId x)
    {
        return b.one(
            Softmax, {x}, attributesOf({{"axis", static_cast<std::int64_t>(b.shape(x).size()) - 1}}));
    }
    TensorId weigh(TensorId scores) { return product(softmax(scores), v()); }
    TensorId drop(TensorId x) { return b.one(Dropout, {x}, attributesOf({{"ratio", 0.4}, {"seed", 9}})); }
    TensorId boolean(Shape shape, const std::function<bool(std::int64_t)> &at)
    {
        auto data = std::make_shared<TensorData>();
        data->type = {DataType::Bool, std::move(shape)};
        for (std::int64_t i = 0; i < elementCount(data->type.shape); ++i)
            data->bytes.push_back(std::byte{static_cast<unsigned char>(at(i) ? 1 : 0)});
        return b.constant("seen", std::move(data));
    }
    TensorId integers(const Shape &shape, const std::function<std::int64_t(std::int64_t)> &at)
    {
        auto data = std::make_shared<TensorData>();
        data->type = {DataType::Int64, shape};
        for (std::int64_t i = 0; i < elementCount(shape); ++i) {
            const std::int64_t value = at(i);
            const auto *bytes = reinterpret_cast<const std::byte *>(&value);
            data->bytes.insert(data->bytes.end(), bytes, bytes + sizeof value);
        }
        return b.constant("numbers", std::move(data));
    }
    TensorId numbers(const Shape &shape, const std::function<float(std::int64_t)> &at)
    {
        std::vector<float> values;
        for (std::int64_t i = 0; i < elementCount(shape); ++i)
            values.push_back(at(i));
        return b.constant("added", floatData(shape, values));
    }
    TensorId input(const char *name, DataType type, Shape shape)
    {
        return b.input(name, {type, std::move(shape)});
    }
    /// [b t G w] -> [b t (G r) w], copies of heads before they are brought to the front.
    TensorId copies(TensorId x, std::int64_t copies)
    {
        const Shape in = b.shape(x);
        const TensorId apart = b.reshape(x, {in[0], in[1], in[2], 1, in[3]});
        const TensorId wide =
            b.one(Expand, {apart}, {}, {}, {{DataType::Float32, {in[0], in[1], in[2], copies, in[3]}}});
        return b.reshape(wide, {in[0], in[1], in[2] * copies, in[3]});
    }
    /// [b t G w] -> [b (G r) t w]
    TensorId copiedBeforeTurning(TensorId x, std::int64_t copies)
    {
        return turned(this->copies(x, copies), {0, 2, 1, 3});
    }
    /// [.. G t w] -> [.. r G t w], copies of heads as they stand in files.
    TensorId copied(TensorId x, std::int64_t copies)
    {
        const Shape in = b.shape(x);
        const TensorId apart = b.reshape(x, {in[0], in[1], 1, in[2], in[3]});
        const TensorId wide =
            b.one(Expand, {apart}, {}, {}, {{DataType::Float32, {in[0], in[1], copies, in[2], in[3]}}});
        return b.reshape(wide, {in[0], in[1] * copies, in[2], in[3]});
    }
};

std::int64_t rowOf(std::int64_t i)
{
    return i / 6 % 5;
}
std::int64_t columnOf(std::int64_t i)
{
    return i % 6;
}

struct WrittenAttention {
    std::string name{};
    std::function<TensorId(AttentionText &)> write{};
    std::string expected{}; ///< Attributes, and the shapes of masks; empty if nothing is fused.
};

std::ostream &operator<<(std::ostream &out, const WrittenAttention &item)
{
    return out << item.name;
}

/// "scale 0.5 causal 1 | bool[5 6] float32[2 1 1 6]"
std::string attentionTextOf(const Graph &graph, const Operator &op)
{
    std::ostringstream text;
    for (const auto &[name, value] : op.attributes.all()) {
        text << name << ' ';
        if (const auto *whole = std::get_if<std::int64_t>(&value))
            text << *whole << ' ';
        else
            text << std::get<double>(value) << ' ';
    }
    text << '|';
    for (std::size_t slot = 3; slot < op.inputs.size(); ++slot) {
        const TensorType &type = graph.at(op.inputs[slot]).type;
        text << ' ' << nameOf(type.dataType) << toString(type.shape);
    }
    return text.str();
}

std::vector<WrittenAttention> writtenAttentions()
{
    using enum OperatorKind;
    return {
        {"bare", [](AttentionText &w) { return w.weigh(w.scores()); }, "scale 1 |"},
        {"scores scaled", [](AttentionText &w) { return w.weigh(w.times(w.scores(), 0.5F)); }, "scale 0.5 |"},
        {"scores divided",
            [](AttentionText &w) {
                return w.weigh(w.b.one(Div, {w.scores(), w.b.scalar(4)}));
            },
            "scale 0.25 |"},
        {"queries scaled",
            [](AttentionText &w) {
                return w.weigh(w.product(w.times(w.q(), 0.5F), w.turned(w.k(), {0, 1, 3, 2})));
            },
            "scale 0.5 |"},
        {"roots on both",
            [](AttentionText &w) {
                const TensorId k = w.times(w.turned(w.k(), {0, 1, 3, 2}), std::sqrt(0.5F));
                return w.weigh(w.product(w.times(w.q(), std::sqrt(0.5F)), k));
            },
            "scale 0.5 |"},
        {"scaled keys with other users",
            [](AttentionText &w) {
                const TensorId k = w.times(w.k(), 0.5F);
                const TensorId y = w.weigh(w.product(w.q(), w.turned(k, {0, 1, 3, 2})));
                return w.b.one(Concat, {y, w.b.reshape(k, {2, 4, 9, 2})}, attributesOf({{"axis", 2}}));
            },
            "scale 0.5 |"},
        {"keys turned with their heads",
            [](AttentionText &w) {
                return w.weigh(w.product(w.q(), w.turned(w.k({2, 6, 4, 3}), {0, 2, 3, 1})));
            },
            "scale 1 |"},
        {"keys turned in a batch of matrices",
            [](AttentionText &w) {
                const TensorId k = w.turned(w.b.reshape(w.k(), {8, 6, 3}), {0, 2, 1});
                return w.weigh(w.product(w.q(), w.b.reshape(k, {2, 4, 3, 6})));
            },
            "scale 1 |"},
        {"keys that come as columns",
            [](AttentionText &w) {
                return w.weigh(w.product(w.q(), w.k({2, 4, 3, 6})));
            },
            "scale 1 |"},
        {"additive mask",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Float32, {2, 1, 1, 6});
                return w.weigh(w.b.one(Add, {w.times(w.scores(), 0.5F), mask}));
            },
            "scale 0.5 | float32[2 1 1 6]"},
        {"additive mask first",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Float32, {4, 5, 6});
                return w.weigh(w.b.one(Add, {mask, w.scores()}));
            },
            "scale 1 | float32[4 5 6]"},
        {"boolean mask",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Bool, {2, 1, 5, 6});
                return w.weigh(w.b.one(Where, {mask, w.scores(), w.b.scalar(-30000)}));
            },
            "masked_score -30000 scale 1 | bool[2 1 5 6]"},
        {"masked fill",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Bool, {5, 6});
                return w.weigh(w.b.one(Where, {mask, w.b.scalar(0.25F), w.scores()}));
            },
            "masked_score 0.25 scale 1 | bool[5 6]"},
        {"masked fill with Not",
            [](AttentionText &w) {
                const TensorId mask = w.b.one(Not, {w.input("m", DataType::Bool, {5, 6})});
                return w.weigh(w.b.one(Where, {mask, w.b.scalar(kLowest), w.scores()}));
            },
            "masked_score -3.40282e+38 scale 1 | bool[5 6]"},
        {"two masks",
            [](AttentionText &w) {
                const TensorId bias = w.b.weight("bias", {1, 4, 5, 6});
                const TensorId mask = w.input("m", DataType::Float32, {2, 1, 1, 6});
                return w.weigh(w.b.one(Add, {w.b.one(Add, {w.scores(), bias}), mask}));
            },
            "scale 1 | float32[2 1 1 6] float32[1 4 5 6]"},
        {"sum of masks",
            [](AttentionText &w) {
                const TensorId bias = w.b.weight("bias", {1, 4, 5, 6});
                const TensorId mask = w.input("m", DataType::Float32, {2, 1, 1, 6});
                return w.weigh(w.b.one(Add, {w.scores(), w.b.one(Add, {bias, mask})}));
            },
            "scale 1 | float32[1 4 5 6] float32[2 1 1 6]"},
        {"causal constant",
            [](AttentionText &w) {
                const TensorId seen =
                    w.boolean({1, 1, 5, 6}, [](std::int64_t i) { return columnOf(i) <= rowOf(i) + 1; });
                return w.weigh(w.b.one(Where, {seen, w.scores(), w.b.scalar(kLowest)}));
            },
            "causal 1 offset 1 scale 1 |"},
        {"causal additive constant",
            [](AttentionText &w) {
                const TensorId added = w.numbers(
                    {2, 1, 5, 6}, [](std::int64_t i) { return columnOf(i) <= rowOf(i) ? 0 : kNever; });
                return w.weigh(w.b.one(Add, {w.scores(), added}));
            },
            "causal 1 scale 1 |"},
        {"sliding window",
            [](AttentionText &w) {
                const TensorId added = w.numbers({5, 6}, [](std::int64_t i) {
                    return columnOf(i) <= rowOf(i) && columnOf(i) + 2 > rowOf(i) ? 0 : -1e9F;
                });
                return w.weigh(w.b.one(Add, {w.scores(), added}));
            },
            "causal 1 scale 1 window 2 |"},
        {"hidden upper triangle",
            [](AttentionText &w) {
                const TensorId hidden =
                    w.boolean({5, 6}, [](std::int64_t i) { return columnOf(i) > rowOf(i); });
                return w.weigh(w.b.one(Where, {hidden, w.b.scalar(kNever), w.scores()}));
            },
            "causal 1 scale 1 |"},
        {"ranges compared",
            [](AttentionText &w) {
                const auto range = [&](std::int64_t n, std::int64_t start) {
                    return w.b.one(OperatorKind::Range, {}, attributesOf({{"start", start}, {"delta", 1}}),
                        {}, {{DataType::Int64, {n}}});
                };
                const TensorId rows = w.b.reshape(range(5, 1), {5, 1});
                const TensorId seen = w.b.one(GreaterOrEqual, {rows, w.b.reshape(range(6, 0), {1, 6})});
                return w.weigh(w.b.one(Where, {seen, w.scores(), w.b.scalar(kLowest)}));
            },
            "causal 1 offset 1 scale 1 |"},
        {"nothing hidden",
            [](AttentionText &w) {
                return w.weigh(
                    w.b.one(Add, {w.scores(), w.numbers({2, 1, 5, 6}, [](std::int64_t) { return 0.0F; })}));
            },
            "scale 1 |"},
        {"constant that is no band",
            [](AttentionText &w) {
                const TensorId seen =
                    w.boolean({5, 6}, [](std::int64_t i) { return columnOf(i) <= rowOf(i) || i == 3; });
                return w.weigh(w.b.one(Where, {seen, w.scores(), w.b.scalar(kLowest)}));
            },
            "masked_score -3.40282e+38 scale 1 | bool[5 6]"},
        {"causal and padding",
            [](AttentionText &w) {
                const TensorId seen =
                    w.boolean({5, 6}, [](std::int64_t i) { return columnOf(i) <= rowOf(i); });
                const TensorId causal = w.b.one(Where, {seen, w.scores(), w.b.scalar(kLowest)});
                return w.weigh(w.b.one(Add, {causal, w.input("m", DataType::Float32, {2, 1, 1, 6})}));
            },
            "causal 1 scale 1 | float32[2 1 1 6]"},
        {"conditions that are computed", // today's transformers: one document, and nothing ahead
            [](AttentionText &w) {
                const TensorId rows = w.integers({2, 5}, [](std::int64_t i) { return i % 5; });
                const TensorId columns = w.integers({2, 6}, [](std::int64_t i) { return i % 6; });
                const TensorId ahead = w.b.one(
                    LessOrEqual, {w.b.reshape(columns, {2, 1, 1, 6}), w.b.reshape(rows, {2, 1, 5, 1})});
                const auto document = [&](Shape shape) {
                    return w.b.reshape(w.b.one(Mul,
                                           {w.integers({elementCount(shape)}, [](std::int64_t) { return 3; }),
                                               w.integers({1}, [](std::int64_t) { return 2; })}),
                        shape);
                };
                const TensorId same = w.b.one(Equal, {document({2, 1, 5, 1}), document({2, 1, 1, 6})});
                const TensorId seen = w.b.one(And, {same, ahead});
                const TensorId added = w.b.one(Where, {seen, w.b.scalar(0), w.b.scalar(kNever)});
                return w.weigh(w.b.one(Add, {w.scores(), added}));
            },
            "causal 1 scale 1 |"},
        {"two documents, and nothing ahead",
            [](AttentionText &w) {
                const TensorId rows = w.integers({1, 1, 5, 1}, [](std::int64_t i) { return i; });
                const TensorId columns = w.integers({1, 1, 1, 6}, [](std::int64_t i) { return i; });
                const TensorId ofRows = w.integers({1, 1, 5, 1}, [](std::int64_t i) { return i / 3; });
                const TensorId ofColumns = w.integers({1, 1, 1, 6}, [](std::int64_t i) { return i / 3; });
                const TensorId seen = w.b.one(
                    And, {w.b.one(Equal, {ofRows, ofColumns}), w.b.one(GreaterOrEqual, {rows, columns})});
                return w.weigh(w.b.one(Where, {seen, w.scores(), w.b.scalar(kNever)}));
            },
            "causal 1 scale 1 | bool[1 1 5 6]"},
        {"hidden ahead, or where an input says",
            [](AttentionText &w) {
                const TensorId ahead =
                    w.boolean({5, 6}, [](std::int64_t i) { return columnOf(i) > rowOf(i); });
                const TensorId others =
                    w.boolean({1, 1, 1, 6}, [](std::int64_t i) { return i > 0; }); // one key is always seen
                const TensorId hidden =
                    w.b.one(Or, {ahead, w.b.one(And, {others, w.input("m", DataType::Bool, {2, 1, 1, 6})})});
                return w.weigh(w.b.one(Where, {hidden, w.b.scalar(kNever), w.scores()}));
            },
            "causal 1 scale 1 | bool[2 1 1 6]"},
        {"guarded",
            [](AttentionText &w) {
                const TensorId seen =
                    w.boolean({5, 6}, [](std::int64_t i) { return rowOf(i) != 2 && columnOf(i) != 1; });
                const TensorId p = w.softmax(w.b.one(Where, {seen, w.scores(), w.b.scalar(kNever)}));
                const TensorId kept = w.b.one(Where, {w.b.one(IsNaN, {p}), w.b.scalar(0), p});
                return w.product(kept, w.v());
            },
            "scale 1 | bool[5 6]"},
        {"soft-capped, then masked", // Gemma 2
            [](AttentionText &w) {
                const TensorId part = w.b.one(Div, {w.times(w.scores(), 0.5F), w.b.scalar(0.75F)});
                const TensorId capped = w.times(w.b.one(Tanh, {part}), 0.75F);
                return w.weigh(w.b.one(Add, {capped, w.input("m", DataType::Float32, {2, 1, 1, 6})}));
            },
            "scale 0.5 softcap 0.75 | float32[2 1 1 6]"},
        {"soft-capped at one", [](AttentionText &w) { return w.weigh(w.b.one(Tanh, {w.scores()})); },
            "scale 1 softcap 1 |"},
        {"soft-capped with scaled queries",
            [](AttentionText &w) {
                const TensorId q = w.times(w.q(), 0.5F);
                const TensorId scores = w.product(q, w.turned(w.k(), {0, 1, 3, 2}));
                const TensorId capped = w.times(w.b.one(Tanh, {w.times(scores, 2.0F)}), 0.5F);
                const TensorId mask = w.input("m", DataType::Bool, {5, 6});
                return w.weigh(w.b.one(Where, {mask, capped, w.b.scalar(kNever)}));
            },
            "scale 0.5 softcap 0.5 | bool[5 6]"},
        {"ALiBi", // slopes of heads times distances, and what hides the keys behind
            [](AttentionText &w) {
                const TensorId distance = w.input("d", DataType::Float32, {1, 1, 6});
                const TensorId bias = w.b.one(Mul, {w.b.weight("slopes", {4, 1, 1}), distance});
                const TensorId added = w.numbers(
                    {1, 1, 5, 6}, [](std::int64_t i) { return columnOf(i) <= rowOf(i) + 1 ? 0 : kNever; });
                return w.weigh(w.b.one(Add, {w.b.one(Add, {w.times(w.scores(), 0.5F), bias}), added}));
            },
            "causal 1 offset 1 scale 0.5 | float32[4 1 6]"},
        {"relative bias of an embedding", // T5: unscaled, with a table of biases by distance
            [](AttentionText &w) {
                const TensorId buckets = w.input("buckets", DataType::Int64, {5, 6});
                const TensorId table = w.b.weight("table", {3, 4});
                const TensorId bias = w.b.one(Embedding, {table, buckets});
                const TensorId heads = w.b.reshape(w.turned(bias, {2, 0, 1}), {1, 4, 5, 6});
                return w.weigh(w.b.one(Add, {w.scores(), heads}));
            },
            "scale 1 | float32[1 4 5 6]"},
        {"dropout", [](AttentionText &w) { return w.product(w.drop(w.softmax(w.scores())), w.v()); },
            "dropout 0.4 scale 1 seed 9 |"},
        {"matrices in a batch",
            [](AttentionText &w) {
                const TensorId q = w.b.reshape(w.q(), {8, 5, 3});
                const TensorId k = w.turned(w.b.reshape(w.k(), {8, 6, 3}), {0, 2, 1});
                const TensorId v = w.b.reshape(w.v(), {8, 6, 2});
                return w.b.reshape(w.product(w.softmax(w.product(q, k)), v), {2, 4, 5, 2});
            },
            "scale 1 |"},
        {"masked between reshapes",
            [](AttentionText &w) {
                const TensorId q = w.b.reshape(w.q(), {8, 5, 3});
                const TensorId k = w.turned(w.b.reshape(w.k(), {8, 6, 3}), {0, 2, 1});
                const TensorId v = w.b.reshape(w.v(), {8, 6, 2});
                const TensorId apart = w.b.reshape(w.product(q, k), {2, 4, 5, 6});
                const TensorId masked = w.b.one(Add, {apart, w.input("m", DataType::Float32, {2, 1, 5, 6})});
                return w.product(w.softmax(w.b.reshape(masked, {8, 5, 6})), v);
            },
            "scale 1 | float32[2 1 5 6]"},
        {"windows",
            [](AttentionText &w) {
                const TensorId biased = w.b.one(Add,
                    {w.product(w.q({6, 4, 5, 3}), w.turned(w.k({6, 4, 6, 3}), {0, 1, 3, 2})),
                        w.b.weight("bias", {1, 4, 5, 6})});
                const TensorId apart = w.b.reshape(biased, {2, 3, 4, 5, 6});
                const TensorId masked =
                    w.b.one(Add, {apart, w.input("m", DataType::Float32, {1, 3, 1, 5, 6})});
                return w.product(w.softmax(w.b.reshape(masked, {6, 4, 5, 6})), w.v({6, 4, 6, 2}));
            },
            "scale 1 | float32[1 3 1 5 6] float32[4 5 6]"},
        {"five dimensions",
            [](AttentionText &w) {
                const TensorId scores =
                    w.product(w.q({2, 3, 4, 5, 3}), w.turned(w.k({2, 3, 4, 6, 3}), {0, 1, 2, 4, 3}));
                const TensorId masked =
                    w.b.one(Add, {scores, w.input("m", DataType::Float32, {2, 3, 1, 1, 6})});
                return w.product(w.softmax(masked), w.v({2, 3, 4, 6, 2}));
            },
            "scale 1 | float32[2 3 1 1 6]"},
        {"copied heads",
            [](AttentionText &w) {
                const TensorId k = w.turned(w.copied(w.k({2, 2, 6, 3}), 2), {0, 1, 3, 2});
                return w.product(w.softmax(w.product(w.q(), k)), w.copied(w.v({2, 2, 6, 2}), 2));
            },
            "scale 1 |"},
        {"copied heads, then turned",
            [](AttentionText &w) {
                const TensorId k = w.copiedBeforeTurning(w.k({2, 6, 2, 3}), 2);
                const TensorId v = w.copiedBeforeTurning(w.v({2, 6, 2, 2}), 2);
                return w.product(w.softmax(w.product(w.q(), w.turned(k, {0, 1, 3, 2}))), v);
            },
            "scale 1 |"},
        {"copied heads, then turned in one",
            [](AttentionText &w) {
                const TensorId k = w.turned(w.copies(w.k({2, 6, 2, 3}), 2), {0, 2, 3, 1});
                const TensorId v = w.copiedBeforeTurning(w.v({2, 6, 2, 2}), 2);
                return w.product(w.softmax(w.product(w.q(), k)), v);
            },
            "scale 1 |"},
        {"copied heads, then turned and rotated",
            [](AttentionText &w) {
                const TensorId k = w.copiedBeforeTurning(w.k({2, 6, 2, 4}), 2);
                const TensorId v = w.copiedBeforeTurning(w.v({2, 6, 2, 2}), 2);
                const TensorId turned = w.b.one(Rotary,
                    {k, w.input("cos", DataType::Float32, {6, 4}),
                        w.input("sin", DataType::Float32, {1, 1, 6, 4})},
                    attributesOf({{"interleaved", 0}}));
                return w.product(w.softmax(w.product(w.q({2, 4, 5, 4}), w.turned(turned, {0, 1, 3, 2}))), v);
            },
            "scale 1 |"},
        {"one head of keys and values",
            [](AttentionText &w) {
                const TensorId k = w.turned(w.k({2, 1, 6, 3}), {0, 1, 3, 2});
                const TensorId masked =
                    w.b.one(Add, {w.product(w.q(), k), w.input("m", DataType::Float32, {2, 1, 5, 6})});
                return w.product(w.softmax(masked), w.v({2, 1, 6, 2}));
            },
            "scale 1 | float32[2 1 5 6]"},

        {"probabilities returned",
            [](AttentionText &w) {
                const TensorId p = w.softmax(w.scores());
                const TensorId y = w.product(p, w.v());
                return w.b.one(Concat, {y, w.b.reshape(p, {2, 4, 15, 2})}, attributesOf({{"axis", 2}}));
            },
            ""},
        {"scores used elsewhere",
            [](AttentionText &w) {
                const TensorId scores = w.scores();
                const TensorId y = w.weigh(scores);
                return w.b.one(Concat, {y, w.b.reshape(scores, {2, 4, 15, 2})}, attributesOf({{"axis", 2}}));
            },
            ""},
        {"mask scaled with the scores",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Float32, {5, 6});
                return w.weigh(w.times(w.b.one(Add, {w.scores(), mask}), 0.5F));
            },
            ""},
        {"bias behind a boolean mask",
            [](AttentionText &w) {
                const TensorId mask = w.input("m", DataType::Bool, {5, 6});
                const TensorId masked = w.b.one(Where, {mask, w.scores(), w.b.scalar(0)});
                return w.weigh(w.b.one(Add, {masked, w.b.weight("bias", {5, 6})}));
            },
            ""},
        {"softmax over queries",
            [](AttentionText &w) {
                const TensorId p = w.b.one(Softmax, {w.scores()}, attributesOf({{"axis", 2}}));
                return w.product(p, w.v());
            },
            ""},
        {"heads broadcast by the product",
            [](AttentionText &w) {
                return w.weigh(w.product(w.q(), w.turned(w.k({2, 1, 6, 3}), {0, 1, 3, 2})));
            },
            ""},
        {"samples broadcast by the product",
            [](AttentionText &w) {
                const TensorId k = w.turned(w.k({1, 1, 6, 3}), {0, 1, 3, 2});
                return w.product(w.softmax(w.product(w.q(), k)), w.v({1, 1, 6, 2}));
            },
            ""},
        {"scores squashed twice",
            [](AttentionText &w) { return w.weigh(w.b.one(Tanh, {w.b.one(Tanh, {w.scores()})})); }, ""},
        {"scores added to themselves",
            [](AttentionText &w) {
                const TensorId scores = w.scores();
                return w.weigh(w.b.one(Add, {scores, scores}));
            },
            ""},
        {"masked, then soft-capped",
            [](AttentionText &w) {
                const TensorId masked =
                    w.b.one(Add, {w.scores(), w.input("m", DataType::Float32, {2, 1, 1, 6})});
                return w.weigh(w.b.one(Tanh, {masked}));
            },
            ""},
    };
}

class FuseAttention : public testing::TestWithParam<WrittenAttention>
{
protected:
    static Graph written()
    {
        AttentionText writer;
        const TensorId y = GetParam().write(writer);
        auto graph = writer.b.finish({y});
        EXPECT_TRUE(graph) << describe(graph.error());
        return *graph;
    }
};

TEST_P(FuseAttention, MakesOneOperatorOfIt)
{
    using enum OperatorKind;
    const Graph fused = fuseOperators(written());
    std::string found;
    for (const Operator &op : fused.operators) {
        if (op.kind == Attention)
            found += attentionTextOf(fused, op);
        if (!GetParam().expected.empty()) {
            EXPECT_TRUE(op.kind != Softmax && op.kind != MatMul) << op.name;
        }
    }
    EXPECT_EQ(found, GetParam().expected);
}

TEST_P(FuseAttention, KeepsTheValues)
{
    const Graph before = written();
    Graph after = fuseOperators(before);
    annotateOperators(after);
    const auto valid = validate(after);
    ASSERT_TRUE(valid) << describe(valid.error());
    GraphRunner first(inDouble(before));
    GraphRunner second(inDouble(after));
    second.takeFrom(first);
    ASSERT_TRUE(first.run());
    ASSERT_TRUE(second.run());
    const std::vector<double> expected = first.all(before.outputs[0]);
    const std::vector<double> found = second.all(after.outputs[0]);
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-6) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Written, FuseAttention, testing::ValuesIn(writtenAttentions()), [](const auto &info) {
        std::string name;
        for (const char letter : info.param.name)
            name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
        return name;
    });

TEST(FuseAttentions, ReadHeadsBeforeTheyAreCopied)
{
    AttentionText w;
    const TensorId k = w.turned(w.copied(w.k({2, 2, 6, 3}), 2), {0, 1, 3, 2});
    const TensorId y = w.product(w.softmax(w.product(w.q(), k)), w.copied(w.v({2, 2, 6, 2}), 2));
    const Graph graph = fuseOperators(w.b.finish({y}).value());
    ASSERT_EQ(graph.operators.size(), 1U);
    EXPECT_EQ(graph.at(graph.operators[0].inputs[1]).name, "k");
    EXPECT_EQ(graph.at(graph.operators[0].inputs[2]).name, "v");
}

/// Copies that are turned or rotated are not made either.
TEST(FuseAttentions, ReadHeadsBeforeTheyAreCopiedAndTurned)
{
    for (const WrittenAttention &item : writtenAttentions()) {
        if (item.name.find("copied heads") == std::string::npos)
            continue;
        SCOPED_TRACE(item.name);
        AttentionText w;
        const TensorId y = item.write(w);
        const Graph graph = fuseOperators(w.b.finish({y}).value());
        for (const Operator &op : graph.operators) {
            EXPECT_NE(op.kind, OperatorKind::Expand);
            if (op.kind == OperatorKind::Attention) {
                EXPECT_EQ(graph.at(op.inputs[1]).type.shape[1], 2);
                EXPECT_EQ(graph.at(op.inputs[2]).type.shape[1], 2);
            }
        }
    }
}

TEST(FuseAttentions, OfBatchedMatricesHaveHeadsOfTheirOwn)
{
    AttentionText w;
    const TensorId q = w.b.reshape(w.q(), {8, 5, 3});
    const TensorId k = w.turned(w.b.reshape(w.k(), {8, 6, 3}), {0, 2, 1});
    const TensorId v = w.b.reshape(w.v(), {8, 6, 2});
    const TensorId context = w.b.reshape(w.product(w.softmax(w.product(q, k)), v), {2, 4, 5, 2});
    const TensorId y = w.b.one(OperatorKind::Neg, {context});
    const Graph graph = fuseOperators(w.b.finish({y}).value());
    // No reshape is left: queries, keys, values and the result have their four dimensions.
    ASSERT_EQ(graph.operators.size(), 2U);
    EXPECT_EQ(graph.at(graph.operators[0].outputs[0]).type.shape, (Shape{2, 4, 5, 2}));
}

TEST(FuseAttentions, TrainedBiasesStayTrained)
{
    using enum OperatorKind;
    AttentionText w;
    const TensorId bias = w.b.weight("bias", {4, 5, 6}, std::vector<float>(120, 0.0F));
    const TensorId y = w.weigh(w.b.one(Add, {w.scores(), bias}));
    const Graph graph = fuseOperators(w.b.finish({y}).value());
    ASSERT_EQ(graph.operators.back().kind, Attention);
    ASSERT_EQ(graph.operators.back().inputs.size(), 4U);
    EXPECT_EQ(graph.at(graph.operators.back().inputs[3]).role, TensorRole::Weight);
}

} // namespace
} // namespace planloom
