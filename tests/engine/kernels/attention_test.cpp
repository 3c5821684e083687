// Attention in tiles against attention written out key by key, in both modes, whole and in parts.

#include "engine/check/part_runner.h"
#include "engine/graph/operators/attention.h"
#include "engine/kernels/kernel.h"
#include "tests/engine/kernels/output_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace planloom::testing {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

enum class Mask { None, Additive, Boolean };

/// Extents and attributes of an attention.
struct Form {
    Shape lead{};
    std::int64_t keyHeads = 1;
    std::int64_t group = 1;
    std::int64_t queries = 1;
    std::int64_t keys = 1;
    std::int64_t width = 1;
    std::int64_t valueWidth = 1;
    AttentionReach reach{};
    double scale = 1;
    double dropout = 0;
    Mask mask = Mask::None;
    Shape maskShape{};
    bool hasMaskedScore = false;

    std::int64_t heads() const { return keyHeads * group; }
    Shape shape(std::int64_t count, std::int64_t rows, std::int64_t columns) const
    {
        Shape made = lead;
        made.insert(made.end(), {count, rows, columns});
        return made;
    }
    Shape scores() const { return shape(heads(), queries, keys); }
};

constexpr double kMaskedScore = -3;

Form drawForm(std::mt19937_64 &random, bool large)
{
    const auto pick = [&random](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random);
    };
    Form form;
    form.lead.resize(static_cast<std::size_t>(pick(0, 2)));
    for (std::int64_t &extent : form.lead)
        extent = pick(1, 2);
    form.keyHeads = pick(1, 2);
    form.group = pick(1, 3);
    form.queries = large ? pick(100, 300) : pick(1, 9);
    form.keys = large ? pick(100, 300) : pick(1, 9);
    form.width = pick(1, 6);
    form.valueWidth = pick(1, 6);
    form.scale = 0.25 * static_cast<double>(pick(1, 6));
    form.reach.causal = pick(0, 1) == 1;
    form.reach.offset = pick(-2, 4);
    form.reach.window = pick(0, 1) == 1 ? pick(1, large ? 150 : 5) : 0;
    form.dropout = pick(0, 3) == 0 ? 0.25 : 0;
    form.mask = static_cast<Mask>(pick(0, 2));
    form.maskShape = form.scores();
    for (std::int64_t &extent : form.maskShape)
        extent = pick(0, 1) == 1 ? extent : 1;
    const std::int64_t left = pick(0, static_cast<std::int64_t>(form.maskShape.size()));
    form.maskShape.erase(form.maskShape.begin(), form.maskShape.begin() + left);
    form.hasMaskedScore = pick(0, 1) == 1;
    return form;
}

OperatorExample exampleOf(const Form &form, DataType real)
{
    OperatorExample example;
    example.name = "attention";
    example.kind = OperatorKind::Attention;
    example.attributes.set("scale", form.scale);
    example.attributes.set("causal", std::int64_t{form.reach.causal ? 1 : 0});
    example.attributes.set("offset", form.reach.offset);
    example.attributes.set("window", form.reach.window);
    example.attributes.set("dropout", form.dropout);
    example.attributes.set("seed", std::int64_t{5});
    if (form.hasMaskedScore)
        example.attributes.set("masked_score", kMaskedScore);
    const auto input = [&](Shape shape, double reach) {
        example.inputs.push_back({{real, std::move(shape)}, true, -reach, reach, {}});
    };
    input(form.shape(form.heads(), form.queries, form.width), 1.5);
    input(form.shape(form.keyHeads, form.keys, form.width), 1.5);
    input(form.shape(form.keyHeads, form.keys, form.valueWidth), 1);
    if (form.mask == Mask::Additive)
        input(form.maskShape, 2);
    else if (form.mask == Mask::Boolean)
        example.inputs.push_back({{DataType::Bool, form.maskShape}, true, 0, 2, {}});
    return example;
}

/// Of every score of the whole operator, from its definition.
struct Reference {
    std::vector<double> y{};
    std::vector<double> logSum{};
    std::vector<double> probabilities{};
    std::vector<double> dq{};
    std::vector<double> dk{};
    std::vector<double> dv{};
    std::vector<double> dmask{};
};

/// What a Dropout with this seed keeps of a tensor of ones, enlarged.
std::vector<double> dropped(const Form &form)
{
    OperatorExample example;
    example.kind = OperatorKind::Dropout;
    example.attributes.set("ratio", form.dropout);
    example.attributes.set("seed", std::int64_t{5});
    example.inputs.push_back({{DataType::Float64, form.scores()}, true, 1, 1, {}});
    return outputOf(example).value();
}

std::int64_t maskAt(const Form &form, std::int64_t score)
{
    const Shape scores = form.scores();
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::size_t d = scores.size() - 1 - i;
        const std::int64_t index = score % scores[d];
        score /= scores[d];
        if (i >= form.maskShape.size())
            continue;
        const std::int64_t extent = form.maskShape[form.maskShape.size() - 1 - i];
        at += extent == 1 ? 0 : index * stride;
        stride *= extent;
    }
    return at;
}

Reference referenceOf(const Form &form, const std::vector<std::vector<double>> &in)
{
    const auto &[q, k, v, mask, dy] = std::tie(in[0], in[1], in[2], in[3], in[4]);
    const std::int64_t heads = elementCount(form.lead) * form.heads();
    const std::vector<double> kept = dropped(form);
    Reference made;
    made.y.assign(static_cast<std::size_t>(heads * form.queries * form.valueWidth), 0);
    made.probabilities.assign(static_cast<std::size_t>(heads * form.queries * form.keys), 0);
    made.dq.assign(q.size(), 0);
    made.dk.assign(k.size(), 0);
    made.dv.assign(v.size(), 0);
    made.dmask.assign(mask.size(), 0);
    const auto at = [](const auto &of, std::int64_t i) -> auto &
    {
        return of[static_cast<std::size_t>(i)];
    };
    const auto to = [](auto &of, std::int64_t i) -> auto &
    {
        return of[static_cast<std::size_t>(i)];
    };
    for (std::int64_t row = 0; row < heads * form.queries; ++row) {
        const std::int64_t keyHead = row / form.queries / form.group;
        const std::int64_t query = row % form.queries;
        std::vector<double> scores(static_cast<std::size_t>(form.keys), kNever);
        std::vector<bool> hidden(scores.size(), false);
        double largest = kNever;
        for (std::int64_t j = 0; j < form.keys; ++j) {
            const std::int64_t own = query + form.reach.offset;
            if ((form.reach.causal && j > own)
                || (form.reach.window > 0 && std::abs(j - own) >= form.reach.window))
                continue;
            double score = 0;
            for (std::int64_t e = 0; e < form.width; ++e)
                score += at(q, row * form.width + e) * at(k, (keyHead * form.keys + j) * form.width + e);
            score *= form.scale;
            if (form.mask == Mask::Additive)
                score += at(mask, maskAt(form, row * form.keys + j));
            if (form.mask == Mask::Boolean && at(mask, maskAt(form, row * form.keys + j)) == 0) {
                score = form.hasMaskedScore ? kMaskedScore : kNever;
                hidden[static_cast<std::size_t>(j)] = true;
            }
            to(scores, j) = score;
            largest = std::max(largest, score);
        }
        double sum = 0;
        for (const double score : scores)
            sum += score == kNever ? 0 : std::exp(score - largest);
        made.logSum.push_back(sum == 0 ? kNever : largest + std::log(sum));
        std::vector<double> slope(scores.size(), 0);
        double dot = 0;
        for (std::int64_t j = 0; j < form.keys; ++j) {
            const double p = at(scores, j) == kNever ? 0 : std::exp(at(scores, j) - largest) / sum;
            to(made.probabilities, row * form.keys + j) = p;
            const double keep = at(kept, row * form.keys + j);
            for (std::int64_t f = 0; f < form.valueWidth; ++f) {
                const double value = at(v, (keyHead * form.keys + j) * form.valueWidth + f);
                const double gradient = at(dy, row * form.valueWidth + f);
                to(made.y, row * form.valueWidth + f) += p * keep * value;
                to(made.dv, (keyHead * form.keys + j) * form.valueWidth + f) += p * keep * gradient;
                to(slope, j) += keep * gradient * value;
            }
            dot += p * at(slope, j);
        }
        for (std::int64_t j = 0; j < form.keys; ++j) {
            double ds = at(made.probabilities, row * form.keys + j) * (at(slope, j) - dot);
            if (hidden[static_cast<std::size_t>(j)])
                ds = 0;
            if (form.mask == Mask::Additive)
                to(made.dmask, maskAt(form, row * form.keys + j)) += ds;
            for (std::int64_t e = 0; e < form.width; ++e) {
                to(made.dq, row * form.width + e) +=
                    form.scale * ds * at(k, (keyHead * form.keys + j) * form.width + e);
                to(made.dk, (keyHead * form.keys + j) * form.width + e) +=
                    form.scale * ds * at(q, row * form.width + e);
            }
        }
    }
    return made;
}

void expectNear(const std::vector<double> &expected, const std::vector<double> &found, double tolerance)
{
    ASSERT_EQ(expected.size(), found.size());
    double largest = 0;
    for (const double value : expected)
        largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == kNever)
            ASSERT_EQ(found[i], kNever) << "element " << i;
        else
            ASSERT_NEAR(expected[i], found[i], tolerance * (0.1 + largest)) << "element " << i;
    }
}

/// Leaves the probabilities out, as plans do in fused mode.
void leaveOut(Graph &graph)
{
    graph.operators[0].outputs[2] = {};
    graph.operators[1].inputs.back() = {};
}

/// OperatorValues of an attention's tensors after both passes.
struct Ran {
    Graph graph{};
    OperatorValues values{};

    std::vector<double> of(TensorId id) const
    {
        return id ? numbersOf(graph, id, values) : std::vector<double>{};
    }
    std::vector<double> output(std::size_t slot) const { return of(graph.operators[0].outputs[slot]); }
    std::vector<double> gradient(std::size_t slot) const
    {
        const auto &outputs = graph.operators[1].outputs;
        return slot < outputs.size() ? of(outputs[slot]) : std::vector<double>{};
    }
};

Ran ran(const OperatorExample &example, AttentionMode mode, const Partition &partition = {})
{
    Ran made{graphOf(example).value(), {}};
    if (mode == AttentionMode::Fused)
        leaveOut(made.graph);
    made.values = drawValues(example, made.graph, 11);
    for (const Operator &op : made.graph.operators) {
        const auto done = runParts(made.graph, op, partition, made.values);
        EXPECT_TRUE(done) << describe(done.error());
    }
    return made;
}

std::string textOf(const Form &form)
{
    return toString(form.scores()) + " by " + std::to_string(form.group) + " causal "
        + std::to_string(form.reach.causal) + " offset " + std::to_string(form.reach.offset) + " window "
        + std::to_string(form.reach.window) + " mask " + std::to_string(static_cast<int>(form.mask))
        + toString(form.maskShape) + " dropout " + std::to_string(form.dropout);
}

void checkAgainstReference(const Form &form, DataType real, AttentionMode mode, double tolerance)
{
    SCOPED_TRACE(textOf(form) + " " + nameOf(mode));
    const Ran found = ran(exampleOf(form, real), mode);
    const Operator &forward = found.graph.operators[0];
    const auto mask = forward.inputs.size() > 3 ? found.of(forward.inputs[3]) : std::vector<double>{};
    const Reference expected = referenceOf(form,
        {found.of(forward.inputs[0]), found.of(forward.inputs[1]), found.of(forward.inputs[2]), mask,
            found.of(found.graph.operators[1].inputs[0])});
    expectNear(expected.y, found.output(0), tolerance);
    expectNear(expected.logSum, found.output(1), tolerance);
    if (mode == AttentionMode::Plain)
        expectNear(expected.probabilities, found.output(2), tolerance);
    expectNear(expected.dq, found.gradient(0), tolerance);
    expectNear(expected.dk, found.gradient(1), tolerance);
    expectNear(expected.dv, found.gradient(2), tolerance);
    if (form.mask == Mask::Additive)
        expectNear(expected.dmask, found.gradient(3), tolerance);
}

} // namespace

TEST(Attention, IsWhatItsDefinitionSays)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 150 && !::testing::Test::HasFatalFailure(); ++i) {
        const Form form = drawForm(random, false);
        for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain})
            checkAgainstReference(form, DataType::Float64, mode, 1e-11);
        checkAgainstReference(form, DataType::Float32, AttentionMode::Fused, 1e-5);
    }
}

TEST(Attention, IsTheSameOverManyTiles)
{
    std::mt19937_64 random(2);
    for (int i = 0; i < 12 && !::testing::Test::HasFatalFailure(); ++i) {
        const Form form = drawForm(random, true);
        checkAgainstReference(form, DataType::Float64, AttentionMode::Fused, 1e-11);
        checkAgainstReference(form, DataType::Float32, AttentionMode::Plain, 1e-5);
    }
}

bool splitsKeys(const Operator &op, const Partition &partition)
{
    return std::any_of(partition.splits.begin(), partition.splits.end(), [&](const Split &split) {
        return split.kind == SplitKind::Dimension
            && op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].name == "t";
    });
}

TEST(Attention, InPartsMakesTheWholeInBothModes)
{
    std::mt19937_64 random(3);
    for (int i = 0; i < 40 && !::testing::Test::HasFatalFailure(); ++i) {
        const Form form = drawForm(random, false);
        const OperatorExample example = exampleOf(form, DataType::Float64);
        SCOPED_TRACE(textOf(form));
        for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
            const Ran whole = ran(example, mode);
            for (const Partition &partition : partitionsOf(whole.graph.operators[0])) {
                SCOPED_TRACE(toString(whole.graph.operators[0].annotation, partition));
                // Probabilities in memory are those of all keys.
                if (mode == AttentionMode::Plain && splitsKeys(whole.graph.operators[0], partition))
                    continue;
                const Ran parts = ran(example, mode, partition);
                for (const std::size_t slot : {0U, 1U, 2U}) {
                    expectNear(whole.output(slot), parts.output(slot), 1e-11);
                    expectNear(whole.gradient(slot), parts.gradient(slot), 1e-11);
                }
                expectNear(whole.gradient(3), parts.gradient(3), 1e-11);
            }
        }
    }
}

TEST(Attention, IsBitEqualRunAfterRun)
{
    std::mt19937_64 random(4);
    const OperatorExample example = exampleOf(drawForm(random, true), DataType::Float32);
    EXPECT_EQ(ran(example, AttentionMode::Fused).values, ran(example, AttentionMode::Fused).values);
}

TEST(Attention, QueriesThatSeeNothingMakeZeros)
{
    Form form{.lead = {1}, .queries = 4, .keys = 3, .width = 2, .valueWidth = 2, .mask = Mask::Boolean};
    form.reach = {.causal = true, .offset = -2};
    form.maskShape = {3};
    OperatorExample example = exampleOf(form, DataType::Float32);
    example.inputs[3].values = {0, 1, 1};
    for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
        const Ran found = ran(example, mode);
        const std::vector<double> y = found.output(0);
        // The first two come before all keys, and of the third's only key the mask hides it.
        for (std::size_t i = 0; i < 6; ++i)
            EXPECT_EQ(y[i], 0) << i;
        EXPECT_EQ(found.output(1)[2], kNever);
        EXPECT_NEAR(y[6], found.of(found.graph.operators[0].inputs[2])[2], 1e-6);
        for (std::size_t i = 0; i < 6; ++i)
            EXPECT_EQ(found.gradient(0)[i], 0) << i;
    }
}

TEST(Attention, WhereLargeNumbersHideAllKeysTheyWeighAsInASoftmax)
{
    // Beside the lowest float a score is lost, and with it what tells how many keys share the weight.
    const double lowest = std::numeric_limits<float>::lowest();
    for (const Mask kind : {Mask::Additive, Mask::Boolean}) {
        Form form{.queries = 2, .keys = 5, .width = 3, .valueWidth = 2, .mask = kind};
        form.maskShape = {2, 5};
        OperatorExample example = exampleOf(form, DataType::Float32);
        const double shown = kind == Mask::Boolean ? 1 : 0;
        const double hidden = kind == Mask::Boolean ? 0 : lowest;
        example.inputs[3].values = {
            hidden, hidden, hidden, hidden, hidden, hidden, shown, shown, hidden, shown};
        example.attributes.set("masked_score", lowest);
        for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
            const Ran found = ran(example, mode);
            const std::vector<double> v = found.of(found.graph.operators[0].inputs[2]);
            const std::vector<double> dy = found.of(found.graph.operators[1].inputs[0]);
            EXPECT_NEAR(found.output(0)[0], (v[0] + v[2] + v[4] + v[6] + v[8]) / 5, 1e-6);
            // The gradient of a value that only the first query weighs.
            EXPECT_NEAR(found.gradient(2)[0], dy[0] / 5, 1e-6);
        }
    }
}

TEST(Attention, PassesOnWhatIsNoNumber)
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Form form{.queries = 3, .keys = 2, .width = 1, .valueWidth = 1};
    for (const std::size_t slot : {0U, 1U}) { // one query makes one row so, one key all of them
        OperatorExample example = exampleOf(form, DataType::Float32);
        example.inputs[slot].values =
            slot == 0 ? std::vector<double>{1, nan, 1} : std::vector<double>{1, nan};
        for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
            const Ran found = ran(example, mode);
            for (const std::size_t query : {0U, 1U, 2U}) {
                const bool broken = slot == 1 || query == 1;
                EXPECT_EQ(std::isnan(found.output(0)[query]), broken) << query;
                EXPECT_EQ(std::isnan(found.output(1)[query]), broken) << query;
                EXPECT_EQ(std::isnan(found.gradient(0)[query]), broken) << query;
            }
            EXPECT_TRUE(std::isnan(found.gradient(2)[0]));
        }
    }
}

TEST(Attention, ReachCountsInTheWholeOperator)
{
    const AttentionReach causal{.causal = true, .offset = 2};
    EXPECT_EQ(causal.keysOf(0, 10), (Range{0, 3}));
    EXPECT_EQ(causal.keysOf(9, 10), (Range{0, 10}));
    const AttentionReach sliding{.causal = true, .window = 3};
    EXPECT_EQ(sliding.keysOf(1, 10), (Range{0, 2}));
    EXPECT_EQ(sliding.keysOf(7, 10), (Range{5, 8}));
    const AttentionReach both{.window = 2};
    EXPECT_EQ(both.keysOf(7, 10), (Range{6, 9}));
    EXPECT_EQ((AttentionReach{.causal = true, .offset = -3}.keysOf(1, 10).size()), 0);
}

} // namespace planloom::testing
