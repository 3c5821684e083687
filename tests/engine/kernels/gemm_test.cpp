#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/products/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace planloom {

namespace {

/// A random product: extents, operands transposed or not, rows further apart than needed, batch loops.
struct RandomProduct {
    MatrixProduct<double> product{};
    std::vector<double> a{};
    std::vector<double> b{};
    std::vector<double> bias{};
    std::vector<double> c{};
};

class Dice
{
public:
    explicit Dice(std::uint64_t seed)
        : m_random(seed)
    {
    }
    std::int64_t below(std::int64_t bound)
    {
        return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(m_random);
    }
    std::vector<double> numbers(std::int64_t count)
    {
        std::vector<double> made(static_cast<std::size_t>(count));
        for (double &number : made)
            number = std::uniform_real_distribution<double>(-1, 1)(m_random);
        return made;
    }

private:
    std::mt19937_64 m_random;
};

RandomProduct drawProduct(std::uint64_t seed)
{
    Dice dice(seed);
    RandomProduct made;
    MatrixProduct<double> &p = made.product;
    const std::vector<std::int64_t> extents{1, 1, 2, 3, 7, 16, 33, 70};
    p.m = extents[static_cast<std::size_t>(dice.below(8))];
    p.n = extents[static_cast<std::size_t>(dice.below(8))];
    p.k = seed % 17 == 0 ? 600 : extents[static_cast<std::size_t>(dice.below(8))];
    const auto lay = [&dice](
                         std::int64_t rows, std::int64_t columns, std::int64_t &row, std::int64_t &column) {
        const std::int64_t gap = dice.below(3);
        if (dice.below(2) == 0) {
            column = 1;
            row = columns + gap;
            return rows * row;
        }
        row = 1;
        column = rows + gap;
        return columns * column;
    };
    std::int64_t sizeA = lay(p.m, p.k, p.aRow, p.aColumn);
    std::int64_t sizeB = lay(p.k, p.n, p.bRow, p.bColumn);
    std::int64_t sizeC = lay(p.m, p.n, p.cRow, p.cColumn);
    // Inner loops first, so that outer ones step over them.
    for (std::int64_t loops = dice.below(4); loops > 0; --loops) {
        BatchLoop loop;
        loop.extent = 1 + dice.below(3);
        loop.a = dice.below(3) == 0 ? 0 : sizeA;
        loop.b = dice.below(3) == 0 ? 0 : sizeB;
        loop.c = dice.below(3) == 0 ? 0 : sizeC;
        sizeA = std::max(sizeA, loop.a * loop.extent);
        sizeB = std::max(sizeB, loop.b * loop.extent);
        sizeC = std::max(sizeC, loop.c * loop.extent);
        p.batch.insert(p.batch.begin(), loop);
    }
    made.a = dice.numbers(sizeA);
    made.b = dice.numbers(sizeB);
    made.c = std::vector<double>(static_cast<std::size_t>(sizeC), std::nan(""));
    bool sums = false;
    for (const BatchLoop &loop : p.batch)
        sums = sums || (loop.c == 0 && loop.extent > 1);
    if (!sums && p.cColumn == 1 && dice.below(2) == 0)
        made.bias = dice.numbers(p.n);
    return made;
}

/// The definition, one element at a time. Elements that belong to no row keep NaN.
std::vector<double> byDefinition(const RandomProduct &given)
{
    const MatrixProduct<double> &p = given.product;
    std::vector<double> c = given.c;
    std::vector<std::int64_t> counter(p.batch.size(), 0);
    for (;;) {
        std::int64_t a = 0;
        std::int64_t b = 0;
        std::int64_t at = 0;
        for (std::size_t d = 0; d < counter.size(); ++d) {
            a += counter[d] * p.batch[d].a;
            b += counter[d] * p.batch[d].b;
            at += counter[d] * p.batch[d].c;
        }
        for (std::int64_t i = 0; i < p.m; ++i) {
            for (std::int64_t j = 0; j < p.n; ++j) {
                double sum = given.bias.empty() ? 0.0 : given.bias[static_cast<std::size_t>(j)];
                for (std::int64_t q = 0; q < p.k; ++q)
                    sum += given.a[static_cast<std::size_t>(a + i * p.aRow + q * p.aColumn)]
                        * given.b[static_cast<std::size_t>(b + q * p.bRow + j * p.bColumn)];
                double &to = c[static_cast<std::size_t>(at + i * p.cRow + j * p.cColumn)];
                to = std::isnan(to) ? sum : to + sum;
            }
        }
        std::size_t d = counter.size();
        for (;;) {
            if (d == 0)
                return c;
            --d;
            if (++counter[d] < p.batch[d].extent)
                break;
            counter[d] = 0;
        }
    }
}

template<typename T> std::vector<T> as(const std::vector<double> &numbers)
{
    return {numbers.begin(), numbers.end()};
}

template<> std::vector<BFloat16> as(const std::vector<double> &numbers)
{
    const std::vector<float> floats = as<float>(numbers);
    std::vector<BFloat16> made(floats.size());
    narrow(floats.data(), DataType::BFloat16, reinterpret_cast<std::byte *>(made.data()), made.size());
    return made;
}

/// `numbers` as they are behind a T.
template<typename T> std::vector<double> throughType(const std::vector<double> &numbers)
{
    std::vector<double> made;
    for (const T each : as<T>(numbers))
        made.push_back(static_cast<double>(static_cast<SumOf<T>>(each)));
    return made;
}

template<typename T> void checkMultiply(double tolerance)
{
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(seed);
        RandomProduct given = drawProduct(seed);
        given.a = throughType<T>(given.a);
        given.b = throughType<T>(given.b);
        const std::vector<double> expected = byDefinition(given);
        const std::vector<T> a = as<T>(given.a);
        const std::vector<T> b = as<T>(given.b);
        const std::vector<SumOf<T>> bias = as<SumOf<T>>(given.bias);
        std::vector<SumOf<T>> c = as<SumOf<T>>(given.c);
        const MatrixProduct<double> &from = given.product;
        multiply(MatrixProduct<T>{from.m, from.n, from.k, a.data(), from.aRow, from.aColumn, b.data(),
            from.bRow, from.bColumn, c.data(), from.cRow, from.cColumn, bias.empty() ? nullptr : bias.data(),
            from.batch});
        for (std::size_t i = 0; i < c.size(); ++i) {
            if (std::isnan(expected[i]))
                ASSERT_TRUE(std::isnan(c[i])) << "element " << i << " lies in no row, yet was written";
            else
                ASSERT_NEAR(expected[i], c[i], tolerance * (1 + std::fabs(expected[i]))) << "element " << i;
        }
    }
}

} // namespace

TEST(Multiply, EqualsTheDefinitionInFloat)
{
    checkMultiply<float>(2e-5);
}

TEST(Multiply, EqualsTheDefinitionInDouble)
{
    checkMultiply<double>(1e-12);
}

TEST(Multiply, OfBFloat16EqualsTheDefinitionOfWhatItsNumbersAre)
{
    checkMultiply<BFloat16>(2e-5);
}

/// Expects both ways to give the same; c, of `size` numbers, is added to where the step says so.
/// @return false if the build has no oneDNN
template<typename T> bool isTheSameWithOneDnn(ProductStep<T> step, std::int64_t size)
{
    std::vector<float> fast(static_cast<std::size_t>(size), 0.5f);
    std::vector<float> portable = fast;
    step.product.c = portable.data();
    multiplyPortably(step);
    step.product.c = fast.data();
    if (!multiplyWithOneDnn(step))
        return false;
    for (std::size_t i = 0; i < fast.size(); ++i)
        EXPECT_NEAR(fast[i], portable[i], 2e-5) << "element " << i;
    return true;
}

TEST(Multiply, OfBFloat16IsTheSameWithAndWithoutOneDnn)
{
    constexpr std::int64_t kM = 37;
    constexpr std::int64_t kN = 45;
    constexpr std::int64_t kK = 300;
    Dice dice(6);
    const std::vector<BFloat16> a = as<BFloat16>(dice.numbers(kM * kK));
    const std::vector<BFloat16> b = as<BFloat16>(dice.numbers(kK * kN));
    for (const bool transposed : {false, true}) {
        for (const bool accumulate : {false, true}) {
            ProductStep<BFloat16> step;
            step.product.m = kM;
            step.product.n = kN;
            step.product.k = kK;
            step.product.a = a.data();
            step.product.aRow = transposed ? 1 : kK;
            step.product.aColumn = transposed ? kM : 1;
            step.product.b = b.data();
            step.product.bRow = transposed ? 1 : kN;
            step.product.bColumn = transposed ? kK : 1;
            step.product.cRow = kN;
            step.accumulate = accumulate;
            if (!isTheSameWithOneDnn(step, kM * kN))
                GTEST_SKIP() << "built without oneDNN";
        }
    }
}

TEST(Multiply, IsTheSameWithAndWithoutOneDnn)
{
    constexpr std::int64_t kM = 37;
    constexpr std::int64_t kN = 45;
    constexpr std::int64_t kK = 300;
    Dice dice(5);
    const std::vector<float> a = as<float>(dice.numbers(3 * kM * kK));
    const std::vector<float> b = as<float>(dice.numbers(3 * kK * kN));
    for (const std::int64_t repeats : {1, 3}) {
        for (const bool accumulate : {false, true}) {
            ProductStep<float> step;
            step.product.m = kM;
            step.product.n = kN;
            step.product.k = kK;
            step.product.a = a.data();
            step.product.aRow = kK;
            step.product.b = b.data();
            step.product.bRow = 1;
            step.product.bColumn = kK;
            step.product.cRow = kN;
            step.repeats = repeats;
            step.aStep = kM * kK;
            step.bStep = kK * kN;
            step.cStep = kM * kN;
            step.accumulate = accumulate;
            if (!isTheSameWithOneDnn(step, 3 * kM * kN))
                GTEST_SKIP() << "built without oneDNN";
        }
    }
}

/// Extents of a product that is one for vectors of 512 bits, and how its operands lie.
struct WideCase {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    bool transposedA = false;
    bool transposedB = false;
    bool accumulate = false;
    bool biased = false;
};

/// Expects what the portable loops make, between rows that are further apart than they are long.
/// @return false if the processor has no such vectors
bool isTheSameWide(const WideCase &given, std::uint64_t seed)
{
    constexpr std::int64_t kGap = 3;
    Dice dice(seed);
    const std::vector<float> a = as<float>(dice.numbers(given.m * given.k));
    const std::vector<float> b = as<float>(dice.numbers(given.k * given.n));
    const std::vector<float> bias = as<float>(dice.numbers(given.n));
    ProductStep<float> step;
    MatrixProduct<float> &p = step.product;
    p.m = given.m;
    p.n = given.n;
    p.k = given.k;
    p.a = a.data();
    p.aRow = given.transposedA ? 1 : given.k;
    p.aColumn = given.transposedA ? given.m : 1;
    p.b = b.data();
    p.bRow = given.transposedB ? 1 : given.n;
    p.bColumn = given.transposedB ? given.k : 1;
    p.bias = given.biased ? bias.data() : nullptr;
    p.cRow = given.n + kGap;
    step.accumulate = given.accumulate;
    std::vector<float> wide = as<float>(dice.numbers(given.m * p.cRow));
    std::vector<float> portable = wide;
    p.c = portable.data();
    multiplyPortably(step);
    p.c = wide.data();
    if (!multiplyWide(step))
        return false;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wide.size(); ++i)
        wrong += std::fabs(wide[i] - portable[i]) <= 5e-5f ? 0 : 1;
    EXPECT_EQ(wrong, 0U) << "of " << given.m << " x " << given.n << " x " << given.k;
    return true;
}

TEST(Multiply, IsTheSameWithWideVectors)
{
    const bool has = isTheSameWide({16, 48, 16, false, true}, 1);
    if (!has)
        GTEST_SKIP() << "no vectors of 512 bits";
    std::uint64_t seed = 1;
    // Whole tiles and not; more rows than a panel is kept in the cache for, and more panels than are kept.
    for (const std::int64_t m : {16, 23, 131, 300})
        for (const std::int64_t n : {48, 135, 1700})
            for (const std::int64_t k : {16, 90, 650})
                for (const bool transposedA : {false, true})
                    EXPECT_TRUE(
                        isTheSameWide({m, n, k, transposedA, true, ++seed % 3 == 0, seed % 3 == 1}, seed));
    for (const std::int64_t m : {16, 131, 1000})
        for (const std::int64_t n : {48, 1700})
            for (const std::int64_t k : {19, 64})
                for (const bool transposedA : {false, true})
                    EXPECT_TRUE(isTheSameWide({m, n, k, transposedA, false, true}, ++seed));
}

TEST(Multiply, LeavesToOthersWhatWideVectorsAreNotFor)
{
    EXPECT_FALSE(isTheSameWide({15, 48, 16, false, true}, 1)); // less than two rows of tiles
    EXPECT_FALSE(isTheSameWide({16, 47, 16, false, true}, 1)); // not one whole panel
    EXPECT_FALSE(isTheSameWide({16, 48, 15, false, true}, 1)); // not a vector of each row
    EXPECT_FALSE(isTheSameWide({64, 64, 64, false, true}, 1)); // a third of two panels would be in vain
}

TEST(Multiply, RoundsResultsOfBFloat16Once)
{
    constexpr std::int64_t kM = 33;
    constexpr std::int64_t kN = 70;
    Dice dice(7);
    for (const std::int64_t k : {0, 5, 600}) {
        for (const std::int64_t gap : {0, 3}) { // with a gap between its columns, a is none of oneDNN's
            SCOPED_TRACE(::testing::Message() << "k " << k << ", gap " << gap);
            const std::vector<BFloat16> a =
                as<BFloat16>(dice.numbers(std::max<std::int64_t>(1, kM * k * (1 + gap))));
            const std::vector<BFloat16> b = as<BFloat16>(dice.numbers(std::max<std::int64_t>(1, k * kN)));
            const std::vector<float> bias = as<float>(dice.numbers(kN));
            std::vector<float> sums(static_cast<std::size_t>(kM * kN));
            std::vector<BFloat16> rounded(sums.size());
            multiply(MatrixProduct<BFloat16>{kM, kN, k, a.data(), k * (1 + gap), 1 + gap, b.data(), kN, 1,
                sums.data(), kN, 1, bias.data()});
            multiply(MatrixProduct<BFloat16, BFloat16>{kM, kN, k, a.data(), k * (1 + gap), 1 + gap, b.data(),
                kN, 1, rounded.data(), kN, 1, bias.data()});
            for (std::size_t i = 0; i < sums.size(); ++i) // half of the last of 8 bits, of one
                ASSERT_NEAR(static_cast<float>(rounded[i]), sums[i], 0x1.01p-8 * std::fabs(sums[i]) + 1e-6F)
                    << "element " << i;
        }
    }
}

TEST(Multiply, OfNoTermsIsTheBias)
{
    std::vector<float> c(6, 9.0f);
    const std::vector<float> bias{1, 2, 3};
    MatrixProduct<float> product;
    product.m = 2;
    product.n = 3;
    product.k = 0;
    product.c = c.data();
    product.cRow = 3;
    product.bias = bias.data();
    multiply(product);
    EXPECT_EQ(c, (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

} // namespace planloom
