// Chains of element-wise kernels make what their kernels make one after another: on random programs in memory
// that is used again and again, with threads in any order; and as compiled sources, bit for bit.

#include "engine/cuda/kernels/element_chain.h"

#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/kernels/nests.h"

#include "planloom_paths.h"

#include "tests/engine/cuda/host_compiler.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <random>

namespace planloom {
namespace {

/// A kernel of a program, and how many elements it makes.
struct Launch {
    ChainKernel kernel{};
    std::int64_t items = 0;
};

/// The same code wherever it is called from: which one of two NaNs becomes a sum is the compiler's choice.
template<typename Kernel> [[gnu::noinline]] void makeElement(const Kernel &kernel, std::int64_t i)
{
    kernel(i);
}

void runAlone(const ChainKernel &kernel, std::int64_t items)
{
    std::visit(
        [&](const auto &own) {
            for (std::int64_t i = 0; i < items; ++i)
                makeElement(own, i);
        },
        kernel);
}

constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16, DataType::Float64,
    DataType::Int64, DataType::Int32, DataType::Int16, DataType::Int8, DataType::UInt8, DataType::Bool};

/// Draws kernels over the memory that it is given.
class Drawer
{
public:
    explicit Drawer(std::uint32_t seed)
        : m_random(seed)
    {
    }
    std::uint32_t below(std::uint32_t bound) { return m_random() % bound; }
    std::mt19937 &random() { return m_random; }

    /// @param memory  gives a place for so many elements of a type, to be read, or written
    template<typename Memory> ChainKernel kernel(std::int64_t rows, std::int64_t columns, Memory memory)
    {
        const std::int64_t items = rows * columns;
        const DataType to = floating();
        switch (below(6)) {
        case 0: {
            const DataType from = kTypes[below(kTypes.size())];
            return ConvertKernel{memory(from, items), memory(kTypes[below(kTypes.size())], items)};
        }
        case 1:
            return AddKernel{memory(to, items), memory(floating(), items)};
        case 2: {
            UnaryKernel kernel;
            kernel.x = memory(floating(), items);
            if (below(2) == 0)
                kernel.dy = memory(floating(), items);
            kernel.made = memory(to, items);
            constexpr std::array kFunctions{UnaryFunction::Relu, UnaryFunction::Tanh, UnaryFunction::GeluErf,
                UnaryFunction::GeluTanh, UnaryFunction::Silu, UnaryFunction::Clip, UnaryFunction::Elu,
                UnaryFunction::Neg, UnaryFunction::Sigmoid, UnaryFunction::Softplus};
            kernel.function = kFunctions[below(kFunctions.size())];
            kernel.fromValue = kernel.dy.data != nullptr && below(2) == 0;
            kernel.parameters = {0.7f, 0.3f, 1.1f, -0.5f, 0.5f};
            return kernel;
        }
        case 3: {
            BinaryKernel kernel;
            const auto [a, stridesA] = broadcast(rows, columns);
            const auto [b, stridesB] = broadcast(rows, columns);
            kernel.a = memory(floating(), a);
            kernel.b = memory(floating(), b);
            if (below(2) == 0) {
                kernel.dy = memory(floating(), items);
                kernel.slope = static_cast<std::int32_t>(below(2));
            }
            kernel.made = memory(to, items);
            constexpr std::array kFunctions{BinaryFunction::Add, BinaryFunction::Sub, BinaryFunction::Mul,
                BinaryFunction::Max, BinaryFunction::PRelu};
            kernel.function = kFunctions[below(kFunctions.size())];
            kernel.nest = *nestOf<2>({rows, columns}, {stridesA, stridesB});
            return kernel;
        }
        case 4: {
            const auto [condition, stridesC] = broadcast(rows, columns);
            const auto [a, stridesA] = broadcast(rows, columns);
            const auto [b, stridesB] = broadcast(rows, columns);
            WhereKernel kernel;
            kernel.condition = static_cast<const std::uint8_t *>(memory(DataType::Bool, condition).data);
            kernel.a = memory(to, a).data;
            kernel.b = memory(to, b).data;
            kernel.made = memory(to, items).data;
            kernel.size = static_cast<std::int32_t>(sizeOf(to));
            kernel.nest = *nestOf<3>({rows, columns}, {stridesC, stridesA, stridesB});
            return kernel;
        }
        default: {
            DropoutKernel kernel{
                memory(floating(), items), memory(to, items), m_random(), std::uint64_t{1} << 52, 5, 2, {}};
            kernel.whole = *nestOf<1>({rows, columns}, {Shape{2 * columns, 1}});
            return kernel;
        }
        }
    }
    DataType floating() { return kTypes[below(3)]; }

private:
    /// Elements of an operand that is broadcast somehow, and its strides.
    std::pair<std::int64_t, Shape> broadcast(std::int64_t rows, std::int64_t columns)
    {
        switch (below(6)) {
        case 0:
            return {columns, {0, 1}};
        case 1:
            return {rows, {1, 0}};
        case 2:
            return {1, {0, 0}};
        default:
            return {rows * columns, {columns, 1}};
        }
    }

    std::mt19937 m_random;
};

/// Bytes that elements lie in.
struct Stretch {
    const std::byte *begin = nullptr;
    const std::byte *end = nullptr;
};

/// What a kernel touches, by what a chain of it alone says.
std::pair<std::vector<Stretch>, Stretch> touchedBy(const Launch &launch)
{
    ElementChain alone;
    EXPECT_TRUE(alone.take(launch.kernel, launch.items));
    const ElementChain::Step &step = alone.steps()[0];
    std::vector<Stretch> reads;
    for (const ElementChain::Read &read : step.reads) {
        std::int64_t last = read.own ? launch.items - 1 : 0;
        for (std::int32_t d = 0; d < read.nest.loops; ++d)
            last += (read.nest.extents[d] - 1) * read.nest.strides[0][d];
        reads.push_back({read.data, read.data + (last + 1) * sizeOf(read.type)});
    }
    return {reads, {step.made, step.made + launch.items * sizeOf(step.type)}};
}

/// Runs a chain as threads do: each reads what its element needs, computes, and stores what is to be stored,
/// and they take turns in between as they like.
class Threads
{
public:
    Threads(const ElementChain &chain, std::mt19937 &random)
        : m_chain(chain)
    {
        std::vector<std::int64_t> turns;
        for (std::int64_t i = 0; i < chain.items(); ++i)
            turns.insert(turns.end(), 2, i);
        std::shuffle(turns.begin(), turns.end(), random);
        std::vector<std::vector<std::array<std::byte, 8>>> values(static_cast<std::size_t>(chain.items()));
        for (const std::int64_t i : turns) {
            auto &own = values[static_cast<std::size_t>(i)];
            if (own.empty())
                own = compute(i);
            else
                store(i, own);
        }
    }

private:
    using Values = std::vector<std::array<std::byte, 8>>;
    Values compute(std::int64_t i)
    {
        Values values;
        for (const ElementChain::Step &step : m_chain.steps()) {
            std::vector<std::array<std::byte, 8>> operands;
            for (const ElementChain::Read &read : step.reads) {
                std::int64_t place = read.own ? i : 0;
                read.nest.find(i, &place);
                std::array<std::byte, 8> value{};
                if (read.madeBy >= 0)
                    value = values[static_cast<std::size_t>(read.madeBy)];
                else
                    std::memcpy(value.data(), read.data + place * sizeOf(read.type),
                        static_cast<std::size_t>(sizeOf(read.type)));
                operands.push_back(value);
            }
            std::array<std::byte, 8> made{};
            std::visit([&](auto kernel) { computeOne(kernel, i, operands, made); }, step.kernel);
            values.push_back(made);
        }
        return values;
    }
    void store(std::int64_t i, const Values &values)
    {
        for (std::size_t k = 0; k < values.size(); ++k)
            if (const ElementChain::Step &step = m_chain.steps()[k]; !step.isOver)
                std::memcpy(step.made + i * sizeOf(step.type), values[k].data(),
                    static_cast<std::size_t>(sizeOf(step.type)));
    }

    using Operands = std::vector<std::array<std::byte, 8>>;
    template<typename Kernel>
    static void computeOne(Kernel kernel, std::int64_t i, Operands &operands, std::array<std::byte, 8> &made)
    {
        std::size_t next = 0;
        const auto take = [&](auto &data) {
            if (data != nullptr)
                data = operands.at(next++).data();
        };
        if constexpr (std::is_same_v<Kernel, ConvertKernel> || std::is_same_v<Kernel, DropoutKernel>) {
            take(kernel.from.data);
            kernel.to.data = made.data();
            if constexpr (std::is_same_v<Kernel, DropoutKernel>) {
                std::int64_t place = 0;
                kernel.whole.find(i, &place);
                kernel.first += static_cast<std::uint64_t>(place);
                kernel.whole = {};
            }
        } else if constexpr (std::is_same_v<Kernel, AddKernel>) {
            made = operands[next++];
            kernel.to.data = made.data();
            take(kernel.from.data);
        } else if constexpr (std::is_same_v<Kernel, UnaryKernel>) {
            take(kernel.x.data);
            take(kernel.dy.data);
            kernel.made.data = made.data();
        } else if constexpr (std::is_same_v<Kernel, BinaryKernel>) {
            take(kernel.a.data);
            take(kernel.b.data);
            take(kernel.dy.data);
            kernel.made.data = made.data();
            kernel.nest = {};
        } else {
            kernel.condition = reinterpret_cast<const std::uint8_t *>(operands.at(0).data());
            kernel.a = operands.at(1).data();
            kernel.b = operands.at(2).data();
            kernel.made = made.data();
            kernel.nest = {};
        }
        makeElement(kernel, 0);
    }

    const ElementChain &m_chain;
};

TEST(ElementChains, OfRandomProgramsInSharedMemoryMakeWhatTheirKernelsMake)
{
    constexpr std::size_t kArena = 1536;
    constexpr std::size_t kKept = 768; // what lies behind is looked at in the end
    std::size_t longest = 0;
    int dropped = 0;
    int refused = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 400);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Drawer drawer(seed);
        alignas(16) std::array<std::byte, kArena> arena{};
        for (std::byte &byte : arena)
            byte = static_cast<std::byte>(drawer.below(256));
        std::vector<Launch> program;
        const std::int64_t rows = 1 + drawer.below(3);
        const std::int64_t columns = 1 + drawer.below(4);
        // Few places of 96 bytes, with some in between: the same ones come again.
        const auto memory = [&](DataType type, std::int64_t items) {
            const std::size_t offset = drawer.below(8) == 0 ? 16 * drawer.below(88) : 96 * drawer.below(15);
            EXPECT_LE(items * sizeOf(type), 96);
            return Elements{arena.data() + offset, type};
        };
        while (program.size() < 30)
            program.push_back({drawer.kernel(rows, columns, memory), rows * columns});

        // What a kernel reads as it writes it, somewhere else, is no program at all.
        program.erase(
            std::remove_if(program.begin(), program.end(),
                [](const Launch &launch) { return !ElementChain{}.take(launch.kernel, launch.items); }),
            program.end());
        // Bytes whose values matter, behind each kernel.
        std::vector<std::array<bool, kArena>> live(program.size() + 1);
        for (std::size_t at = kKept; at < kArena; ++at)
            live.back()[at] = true;
        for (std::size_t k = program.size(); k-- > 0;) {
            live[k] = live[k + 1];
            const auto [reads, made] = touchedBy(program[k]);
            std::fill(live[k].begin() + (made.begin - arena.data()),
                live[k].begin() + (made.end - arena.data()), false);
            for (const Stretch &read : reads)
                std::fill(live[k].begin() + (read.begin - arena.data()),
                    live[k].begin() + (read.end - arena.data()), true);
        }

        const auto begin = arena;
        for (const Launch &launch : program)
            runAlone(launch.kernel, launch.items);
        const auto expected = arena;
        arena = begin;
        ElementChain chain;
        for (std::size_t k = 0; k < program.size(); ++k) {
            if (!chain.take(program[k].kernel, program[k].items)) {
                ++refused;
                Threads(chain, drawer.random());
                chain.clear();
                ASSERT_TRUE(chain.take(program[k].kernel, program[k].items));
            }
            longest = std::max(longest, chain.size());
            for (std::size_t before = 0; before <= k; ++before) {
                const Stretch made = touchedBy(program[before]).second;
                if (drawer.below(2) == 0
                    && std::none_of(live[k + 1].begin() + (made.begin - arena.data()),
                        live[k + 1].begin() + (made.end - arena.data()),
                        [](bool matters) { return matters; }))
                    chain.ends({made.begin, made.end});
            }
            dropped += static_cast<int>(std::count_if(chain.steps().begin(), chain.steps().end(),
                [](const ElementChain::Step &step) { return step.isOver; }));
        }
        Threads(chain, drawer.random());
        ASSERT_TRUE(std::equal(arena.begin() + kKept, arena.end(), expected.begin() + kKept));
    }
    EXPECT_GT(longest, 4U);
    EXPECT_GT(dropped, 100);
    EXPECT_GT(refused, 100);
}

/// Chains over memory of their own: each place holds one type.
class TypedPrograms
{
public:
    explicit TypedPrograms(std::uint32_t seed)
        : m_drawer(seed)
    {
        for (std::vector<double> &place : m_places)
            place.resize(kItems);
        std::uniform_real_distribution<float> number(-3, 3);
        for (std::size_t p = 0; p < m_places.size(); ++p) {
            const Elements place{m_places[p].data(), typeOf(p)};
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(kItems); ++i)
                store(place, i,
                    place.type == DataType::Bool ? float(m_drawer.below(2)) : number(m_drawer.random()));
        }
    }

    ElementChain chain()
    {
        ElementChain chain;
        while (chain.size() < 2 + m_drawer.below(8)) {
            const auto memory = [&](DataType type, std::int64_t) {
                const auto which =
                    static_cast<std::size_t>(std::find(kTypes.begin(), kTypes.end(), type) - kTypes.begin());
                return Elements{m_places[which + kTypes.size() * m_drawer.below(kEach)].data(), type};
            };
            (void)chain.take(m_drawer.kernel(kRows, kColumns, memory), kRows * kColumns);
            if (m_drawer.below(4) == 0) {
                const auto &place = m_places[m_drawer.below(static_cast<std::uint32_t>(m_places.size()))];
                chain.ends({reinterpret_cast<const std::byte *>(place.data()), kItems * sizeof(double)});
            }
        }
        return chain;
    }

    /// The first place that differs from what is there now, but for NaNs among each other; -1: none.
    int differs(const std::vector<std::vector<double>> &other)
    {
        for (std::size_t p = 0; p < m_places.size(); ++p)
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(kItems); ++i) {
                const Elements a{m_places[p].data(), typeOf(p)};
                const Elements b{const_cast<double *>(other[p].data()), typeOf(p)};
                const auto size = static_cast<std::size_t>(sizeOf(a.type));
                const bool bothNaN =
                    load<double>(a, i) != load<double>(a, i) && load<double>(b, i) != load<double>(b, i);
                if (!bothNaN
                    && std::memcmp(static_cast<std::byte *>(a.data) + static_cast<std::size_t>(i) * size,
                           static_cast<std::byte *>(b.data) + static_cast<std::size_t>(i) * size, size)
                        != 0)
                    return static_cast<int>(p);
            }
        return -1;
    }
    std::vector<std::vector<double>> &places() { return m_places; }

    static constexpr std::size_t kEach = 4; ///< Places of a type.

private:
    static constexpr std::int64_t kRows = 3;
    static constexpr std::int64_t kColumns = 5;
    static constexpr std::size_t kItems = kRows * kColumns;
    static DataType typeOf(std::size_t place) { return kTypes[place % kTypes.size()]; }

    Drawer m_drawer;
    std::vector<std::vector<double>> m_places = std::vector<std::vector<double>>(kEach * kTypes.size());
};

TEST(ElementChains, AsCompiledSourcesMakeTheBitsOfTheirKernels)
{
    if (const std::string why = whyNoHostCompiler(); !why.empty())
        GTEST_SKIP() << why;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 16);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        TypedPrograms programs(seed);
        const ElementChain chain = programs.chain();
        const auto begin = programs.places();
        // What is over is where it is anyway, or nowhere: kernels that make it do so elsewhere.
        for (const ElementChain::Step &step : chain.steps())
            runAlone(step.kernel, chain.items());
        auto expected = programs.places();
        for (std::size_t p = 0; p < expected.size(); ++p) {
            const auto *const at = reinterpret_cast<const std::byte *>(programs.places()[p].data());
            const auto made = std::find_if(chain.steps().rbegin(), chain.steps().rend(),
                [&](const ElementChain::Step &step) { return step.made == at; });
            if (made != chain.steps().rend() && made->isOver)
                expected[p] = begin[p];
        }
        // In the same memory, since addresses are part of a chain.
        for (std::size_t p = 0; p < expected.size(); ++p)
            std::copy(begin[p].begin(), begin[p].end(), programs.places()[p].begin());
        const ElementChain::Program program = chain.program();
        std::string code;
        std::string log;
        ASSERT_TRUE(compileOnHost(chainSource(program), chainHeaders(), code, log)) << log;
        const auto kernel = reinterpret_cast<HostKernel>(loadOnHost(code, kChainName));
        ASSERT_NE(kernel, nullptr);
        kernel(program.words.data(), chain.items());
        EXPECT_EQ(programs.differs(expected), -1) << program.body;
    }
}

TEST(ElementChains, CompileWithNvrtcForAllArchitectures)
{
    const std::string built = std::string{PLANLOOM_BINARY_DIR} + "/bin/" + kCudaPluginFile;
    if (!std::filesystem::exists(built))
        GTEST_SKIP() << "the CUDA toolkit was not found: there is no plugin";
    const auto cuda = openCudaPlugin({built});
    ASSERT_TRUE(cuda) << describe(cuda.error());
    if (const std::string why = (*cuda)->whyNoCompiler(); !why.empty())
        GTEST_SKIP() << why;
    EXPECT_FALSE((*cuda)->compilerVersion().empty());
    std::uint32_t seed = 0;
    for (const std::int32_t architecture : {75, 80, 86, 89, 90, 100, 120}) {
        const ElementChain::Program program = TypedPrograms(seed++).chain().program();
        std::string code;
        std::string log;
        EXPECT_EQ(
            (*cuda)->compile(chainSource(program), chainHeaders(), architecture, code, log), kCudaSuccess)
            << architecture << "\n"
            << log << program.body;
        EXPECT_GT(code.size(), 1000U);
    }
    std::string code;
    std::string log;
    EXPECT_NE((*cuda)->compile("no source", chainHeaders(), 90, code, log), kCudaSuccess);
    EXPECT_FALSE(log.empty());
}

TEST(ElementChains, OfOtherAddressesAndNumbersHaveTheSameSource)
{
    std::array<float, 64> memory{};
    const auto chainAt = [&](std::size_t at, float least) {
        ElementChain chain;
        BinaryKernel add;
        add.a = {memory.data() + at, DataType::Float32};
        add.b = {memory.data() + at + 8, DataType::Float32};
        add.made = {memory.data() + at + 16, DataType::Float32};
        add.nest = *nestOf<2>({8}, {{{1}, {1}}});
        UnaryKernel clip;
        clip.x = add.made;
        clip.made = add.a;
        clip.function = UnaryFunction::Clip;
        clip.parameters.least = least;
        EXPECT_TRUE(chain.take(add, 8));
        EXPECT_TRUE(chain.take(clip, 8));
        return chain;
    };
    const ElementChain::Program one = chainAt(0, -1).program();
    const ElementChain::Program other = chainAt(32, 2).program();
    EXPECT_EQ(one.body, other.body);
    EXPECT_EQ(one.words.size(), other.words.size());
    EXPECT_NE(one.words, other.words);
    ElementChain ended = chainAt(0, -1);
    ended.ends(std::as_bytes(std::span(memory.data() + 16, 8)));
    EXPECT_NE(ended.program().body, one.body);
    EXPECT_EQ(ended.program().words.size(), one.words.size() - 1); // the sum is not stored
}

TEST(ElementChains, TakeNoKernelThatReadsWhatOtherThreadsMake)
{
    std::array<float, 64> memory{};
    const auto at = [&](std::size_t place) { return Elements{memory.data() + place, DataType::Float32}; };
    const auto relu = [&](std::size_t from, std::size_t to) {
        UnaryKernel kernel;
        kernel.x = at(from);
        kernel.made = at(to);
        kernel.function = UnaryFunction::Relu;
        return kernel;
    };
    ElementChain chain;
    ASSERT_TRUE(chain.take(relu(0, 16), 8));
    EXPECT_FALSE(chain.take(relu(17, 32), 8)); // the next thread's
    EXPECT_FALSE(chain.take(relu(32, 4), 8)); // over what others may not have read yet
    EXPECT_FALSE(chain.take(relu(32, 20), 8)); // half of what is there
    EXPECT_FALSE(chain.take(relu(16, 32), 4)); // of another size
    BinaryKernel row;
    row.a = at(40);
    row.b = at(16);
    row.made = at(48);
    row.nest = *nestOf<2>({2, 4}, {{{4, 1}, {0, 1}}});
    EXPECT_FALSE(chain.take(row, 8)); // its first row, for all
    EXPECT_EQ(chain.size(), 1U);
    EXPECT_TRUE(chain.take(relu(16, 0), 8));
    EXPECT_TRUE(chain.take(relu(0, 16), 8));
    EXPECT_TRUE(chain.steps()[0].isOver); // written over
    EXPECT_EQ(chain.steps()[2].reads[0].madeBy, 1);
    std::vector<UnaryKernel> more(ElementChain::kMostKernels, relu(16, 16));
    for (const UnaryKernel &kernel : more)
        (void)chain.take(kernel, 8);
    EXPECT_EQ(chain.size(), ElementChain::kMostKernels);
}

} // namespace
} // namespace planloom
