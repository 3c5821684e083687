// Kernels whose values are not plain floats: what products of BFloat16 make beside those of floats.

#include "engine/kernels/elements/rounded_kernel.h"

#include "engine/kernels/elements/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace planloom {
namespace {

/// An operator that multiplies, forward or backward.
struct Case {
    std::string name{};
    OperatorKind kind{};
    bool transposed = false;
    Direction direction{};
    std::vector<Shape> inputs{}; ///< One without dimensions is absent.
    std::vector<Shape> outputs{};
};

constexpr std::int64_t kRows = 48;
constexpr std::int64_t kK = 136;
constexpr std::int64_t kN = 72;

std::vector<Case> cases()
{
    const Shape x{kRows, kK};
    const Shape y{kRows, kN};
    std::vector<Case> made;
    for (const bool transposed : {false, true}) {
        const Shape w = transposed ? Shape{kN, kK} : Shape{kK, kN};
        const std::string name = transposed ? "Linear, transposed" : "Linear";
        made.push_back({name, OperatorKind::Linear, transposed, Direction::Forward, {x, w, {kN}}, {y}});
        made.push_back({name + ", backward", OperatorKind::Linear, transposed, Direction::Backward,
            {y, x, w, {}, {}}, {x, w, {kN}}});
    }
    const Shape a{3, 2, 17, 40};
    const Shape b{2, 40, 33}; // the same for all of the first dimension
    const Shape c{3, 2, 17, 33};
    made.push_back({"MatMul", OperatorKind::MatMul, false, Direction::Forward, {a, b}, {c}});
    made.push_back(
        {"MatMul, backward", OperatorKind::MatMul, false, Direction::Backward, {c, a, b, {}}, {a, b}});
    const Shape image{2, 6, 9, 9};
    const Shape filters{8, 6, 3, 3};
    const Shape filtered{2, 8, 7, 7};
    made.push_back(
        {"Conv", OperatorKind::Conv, false, Direction::Forward, {image, filters, {8}}, {filtered}});
    made.push_back({"Conv, backward", OperatorKind::Conv, false, Direction::Backward,
        {filtered, image, filters, {}, {}}, {image, filters, {8}}});
    const Shape points{6, 5, 16, 16};
    const Shape mixed{6, 12, 16, 16};
    made.push_back({"Conv of single elements", OperatorKind::Conv, false, Direction::Forward,
        {points, {12, 5, 1, 1}}, {mixed}});
    made.push_back({"Conv of single elements, backward", OperatorKind::Conv, false, Direction::Backward,
        {mixed, points, {12, 5, 1, 1}, {}}, {points, {12, 5, 1, 1}}});
    made.push_back({"ConvTranspose", OperatorKind::ConvTranspose, false, Direction::Forward,
        {filtered, filters, {6}}, {image}});
    made.push_back({"ConvTranspose, backward", OperatorKind::ConvTranspose, false, Direction::Backward,
        {image, filtered, filters, {}, {}}, {filtered, filters, {6}}});
    const Shape left{3, 17, 20};
    const Shape right{20, 3, 11};
    const Shape joint{17, 11, 3};
    made.push_back({"Einsum", OperatorKind::Einsum, false, Direction::Forward, {left, right}, {joint}});
    made.push_back({"Einsum, backward", OperatorKind::Einsum, false, Direction::Backward,
        {joint, left, right, {}}, {left, right}});
    return made;
}

/// Types of what lies in memory, and of what products see.
struct Types {
    std::string name{};
    DataType inputs = DataType::Float32;
    DataType outputs = DataType::Float32;
    DataType compute = DataType::Float32;
};
const std::vector<Types> kTypes{{"all BFloat16", DataType::BFloat16, DataType::BFloat16, DataType::BFloat16},
    {"BFloat16 with results that are floats", DataType::BFloat16, DataType::Float32, DataType::BFloat16},
    {"floats that products round", DataType::Float32, DataType::Float32, DataType::BFloat16}};

std::vector<std::byte> drawn(const Shape &shape, DataType type, std::uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<std::size_t>(elementCount(shape)));
    for (float &value : values)
        value = std::uniform_real_distribution<float>(-1, 1)(random);
    std::vector<std::byte> made(values.size() * static_cast<std::size_t>(sizeOf(type)));
    EXPECT_TRUE(convertFloats(reinterpret_cast<const std::byte *>(values.data()), DataType::Float32,
        made.data(), type, values.size()));
    return made;
}

using Results = std::vector<std::vector<float>>;

Results run(const Case &what, const Types &types, bool bfloat16Products)
{
    Operator op;
    op.name = what.name;
    op.kind = what.kind;
    op.direction = what.direction;
    if (what.kind == OperatorKind::Einsum)
        op.attributes.set("equation", Attribute(std::string{"bik,kbj->ijb"}));
    else
        op.attributes.set("transposed", Attribute(std::int64_t{what.transposed}));
    KernelCall call;
    call.op = &op;
    KernelRounding rounding{.compute = types.compute};
    std::vector<std::vector<std::byte>> memory;
    for (std::size_t i = 0; i < what.inputs.size(); ++i) {
        const Shape &shape = what.inputs[i];
        memory.push_back(drawn(shape, types.inputs, static_cast<std::uint32_t>(i + 1)));
        call.inputs.push_back({shape.empty() ? nullptr : memory.back().data(), DataType::Float32, shape,
            wholeMask(shape), shape});
        rounding.inputs.push_back(types.inputs);
    }
    for (const Shape &shape : what.outputs) {
        memory.push_back(drawn(shape, types.outputs, 77)); // a kernel writes all of it
        call.outputs.push_back({memory.back().data(), DataType::Float32, shape, wholeMask(shape), shape});
        rounding.outputs.push_back(types.outputs);
    }
    const auto ran = runRounded(call, rounding, bfloat16Products);
    EXPECT_TRUE(ran) << describe(ran.error());
    Results made;
    for (std::size_t o = 0; o < what.outputs.size(); ++o) {
        std::vector<float> &values =
            made.emplace_back(static_cast<std::size_t>(elementCount(what.outputs[o])));
        EXPECT_TRUE(convertFloats(memory[what.inputs.size() + o].data(), types.outputs,
            reinterpret_cast<std::byte *>(values.data()), DataType::Float32, values.size()));
    }
    return made;
}

double relativeDistance(const std::vector<float> &got, const std::vector<float> &expected)
{
    double distance = 0;
    double size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        distance += std::pow(static_cast<double>(got[i]) - expected[i], 2);
        size += std::pow(static_cast<double>(expected[i]), 2);
    }
    return std::sqrt(distance / size);
}

template<typename Check> void forEachCase(const Check &check)
{
    for (const Case &what : cases()) {
        for (const Types &types : kTypes) {
            SCOPED_TRACE(what.name + ", " + types.name);
            check(what, types);
        }
    }
}

TEST(BFloat16Products, AreThoseOfTheSameNumbersAsFloats)
{
    forEachCase([](const Case &what, const Types &types) {
        const Results got = run(what, types, true);
        const Results expected = run(what, types, false);
        // Sums in another order; and then rounded to 8 bits, perhaps to the neighbour.
        const double tolerance = types.outputs == DataType::BFloat16 ? 1e-3 : 1e-6;
        for (std::size_t o = 0; o < got.size(); ++o)
            EXPECT_LT(relativeDistance(got[o], expected[o]), tolerance) << "output " << o;
    });
}

TEST(BFloat16Products, AreWithinWhatTheTypeHoldsOfThoseOfFloats)
{
    forEachCase([](const Case &what, const Types &types) {
        const Results got = run(what, types, true);
        const Results expected = run(what, {}, false);
        for (std::size_t o = 0; o < got.size(); ++o)
            EXPECT_LT(relativeDistance(got[o], expected[o]), 2e-2) << "output " << o;
    });
}

TEST(BFloat16Products, AreTheSameBitsTwice)
{
    forEachCase([](const Case &what, const Types &types) {
        EXPECT_EQ(run(what, types, true), run(what, types, true));
        EXPECT_EQ(run(what, types, false), run(what, types, false));
    });
}

TEST(BFloat16Products, AreAddedToGradientsThatAreFloats)
{
    Operator op;
    op.kind = OperatorKind::Linear;
    op.direction = Direction::Backward;
    const std::vector<std::byte> dy = drawn({kRows, kN}, DataType::BFloat16, 1);
    const std::vector<std::byte> x = drawn({kRows, kK}, DataType::BFloat16, 2);
    const auto gradient = [&](float before, bool adds) {
        std::vector<float> dw(static_cast<std::size_t>(kK * kN), before);
        KernelCall call;
        call.op = &op;
        const auto in = [](const std::vector<std::byte> &bytes, Shape shape) {
            return Buffer{const_cast<std::byte *>(bytes.data()), DataType::Float32, std::move(shape)};
        };
        call.inputs = {in(dy, {kRows, kN}), in(x, {kRows, kK}), {}, {}};
        call.outputs = {{}, {reinterpret_cast<std::byte *>(dw.data()), DataType::Float32, {kK, kN}}};
        call.addsTo = adds ? 2 : 0;
        const KernelRounding rounding{
            .inputs = std::vector(4, DataType::BFloat16), .outputs = std::vector(2, DataType::Float32)};
        EXPECT_TRUE(runRounded(call, rounding, true));
        return dw;
    };
    std::vector<float> expected = gradient(9, false);
    for (float &value : expected)
        value += 0.5F;
    EXPECT_LT(relativeDistance(gradient(0.5F, true), expected), 1e-6);
}

TEST(BFloat16Products, ReadWhatIsNotAProductAsFloats)
{
    Operator op;
    op.kind = OperatorKind::Linear;
    Buffer buffer{reinterpret_cast<std::byte *>(&op), DataType::BFloat16, {1, 1}};
    Buffer bias = buffer;
    Buffer result = buffer;
    bias.dataType = DataType::Float32;
    result.dataType = DataType::Float32;
    const auto call = [&](const Buffer &x, const Buffer &b, const Buffer &y) {
        KernelCall made;
        made.op = &op;
        made.inputs = {x, buffer, b};
        made.outputs = {y};
        return made;
    };
    EXPECT_TRUE(multipliesBFloat16(call(buffer, bias, result)));
    EXPECT_FALSE(multipliesBFloat16(call(result, bias, result))) << "x is of floats";
    EXPECT_FALSE(multipliesBFloat16(call(buffer, buffer, result))) << "the bias is added, not multiplied";
    EXPECT_TRUE(multipliesBFloat16(call(buffer, bias, buffer))) << "the result is rounded by the kernel";
    op.kind = OperatorKind::MatMul;
    EXPECT_FALSE(multipliesBFloat16(call(buffer, Buffer{}, buffer))) << "results may be summed over batches";
    EXPECT_TRUE(multipliesBFloat16(call(buffer, Buffer{}, result)));
    op.kind = OperatorKind::Add;
    EXPECT_FALSE(multipliesBFloat16(call(buffer, bias, result)));
}

} // namespace
} // namespace planloom
