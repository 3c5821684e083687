#include "engine/cuda/kernels/element_chain.h"

#include <algorithm>

namespace planloom {

namespace {

/// The type of an element in the generated source. Types of the same size are told apart, as `load` does.
const char *nameInSource(DataType type)
{
    switch (type) {
    case DataType::Float32:
        return "float";
    case DataType::BFloat16:
    case DataType::Float16:
        return "std::uint16_t";
    case DataType::Float64:
        return "double";
    case DataType::Int64:
        return "std::int64_t";
    case DataType::Int32:
        return "std::int32_t";
    case DataType::Int16:
        return "std::int16_t";
    case DataType::Int8:
        return "std::int8_t";
    default:
        return "std::uint8_t";
    }
}

/// As which WhereKernel moves elements of a size.
DataType movedAs(std::int32_t size)
{
    return size == 8 ? DataType::Int64
        : size == 4  ? DataType::Int32
        : size == 2  ? DataType::Int16
                     : DataType::UInt8;
}

ElementChain::Read ownElement(const Elements &from)
{
    return {-1, static_cast<const std::byte *>(from.data), from.type, true, {}};
}

/// Operand `n` of a nest, by itself: loops without a gap between them are one.
template<int N>
ElementChain::Read throughNest(
    const void *data, DataType type, const Nest<N> &nest, int n, std::int64_t items)
{
    ElementChain::Read read{-1, static_cast<const std::byte *>(data), type, false, {}};
    for (std::int32_t d = 0; d < nest.loops; ++d) {
        Nest<1> &own = read.nest;
        if (own.loops > 0 && own.strides[0][own.loops - 1] == nest.strides[n][d] * nest.extents[d]) {
            own.extents[own.loops - 1] *= nest.extents[d];
        } else {
            own.extents[own.loops++] = nest.extents[d];
        }
        own.strides[0][own.loops - 1] = nest.strides[n][d];
    }
    read.own = items == 1 || (read.nest.loops == 1 && read.nest.strides[0][0] == 1);
    if (read.own || (read.nest.loops == 1 && read.nest.strides[0][0] == 0))
        read.nest = {}; // element i, or always the first
    return read;
}

/// What kernels read and make.
struct Shapes {
    ElementChain::Step &step;
    std::int64_t items;

    void operator()(const ConvertKernel &k) const
    {
        step.reads = {ownElement(k.from)};
        makes(k.to);
    }
    void operator()(const AddKernel &k) const
    {
        step.reads = {ownElement(k.to), ownElement(k.from)};
        makes(k.to);
    }
    void operator()(const UnaryKernel &k) const
    {
        step.reads = {ownElement(k.x)};
        if (k.dy.data != nullptr)
            step.reads.push_back(ownElement(k.dy));
        makes(k.made);
    }
    void operator()(const BinaryKernel &k) const
    {
        if (k.a.data != nullptr)
            step.reads.push_back(throughNest(k.a.data, k.a.type, k.nest, 0, items));
        if (k.b.data != nullptr)
            step.reads.push_back(throughNest(k.b.data, k.b.type, k.nest, 1, items));
        if (k.dy.data != nullptr)
            step.reads.push_back(ownElement(k.dy));
        makes(k.made);
    }
    void operator()(const WhereKernel &k) const
    {
        step.reads = {throughNest(k.condition, DataType::UInt8, k.nest, 0, items),
            throughNest(k.a, movedAs(k.size), k.nest, 1, items),
            throughNest(k.b, movedAs(k.size), k.nest, 2, items)};
        makes({k.made, movedAs(k.size)});
    }
    void operator()(const DropoutKernel &k) const
    {
        step.reads = {ownElement(k.from)};
        makes(k.to);
    }

private:
    void makes(const Elements &to) const
    {
        step.made = static_cast<std::byte *>(to.data);
        step.type = to.type;
    }
};

ElementChain::Step stepOf(const ChainKernel &kernel, std::int64_t items)
{
    ElementChain::Step step;
    step.kernel = kernel;
    std::visit(Shapes{step, items}, kernel);
    return step;
}

bool overlap(
    const std::byte *begin, const std::byte *end, const std::byte *otherBegin, const std::byte *otherEnd)
{
    return begin < otherEnd && otherBegin < end;
}

/// Writes the source of a chain.
class Writer
{
public:
    explicit Writer(const ElementChain &chain)
        : m_chain(chain)
    {
    }

    ElementChain::Program write()
    {
        const auto &steps = m_chain.steps();
        for (std::size_t k = 0; k < steps.size(); ++k) {
            std::vector<std::string> operands;
            for (const ElementChain::Read &read : steps[k].reads)
                operands.push_back(operandOf(read));
            m_made = "v" + std::to_string(k);
            std::visit([&](const auto &kernel) { put(kernel, steps[k], operands); }, steps[k].kernel);
        }
        for (std::size_t k = 0; k < steps.size(); ++k)
            if (!steps[k].isOver)
                text() += std::string{"reinterpret_cast<"} + nameInSource(steps[k].type) + " *>("
                    + word(steps[k].made) + ")[i] = v" + std::to_string(k) + ";\n";
        return std::move(m_program);
    }

private:
    std::string &text() { return m_program.body; }

    std::string word(std::uint64_t value)
    {
        m_program.words.push_back(value);
        return "w[" + std::to_string(m_program.words.size() - 1) + "]";
    }
    std::string word(const void *address) { return word(reinterpret_cast<std::uint64_t>(address)); }
    std::string number(float value) { return "numberIn(" + word(bitsAs<std::uint32_t>(value)) + ")"; }

    /// "std::int64_t p3 = ...": where element i of a nest lies.
    void place(const std::string &name, const Nest<1> &nest)
    {
        text() += "std::int64_t " + name
            + " = 0;\n{\nNest<1> nest;\nnest.loops = " + std::to_string(nest.loops) + ";\n";
        for (std::int32_t d = 0; d < nest.loops; ++d) {
            const std::string at = "[" + std::to_string(d) + "] = static_cast<std::int64_t>(";
            text() += "nest.extents" + at + word(static_cast<std::uint64_t>(nest.extents[d])) + ");\n";
            text() += "nest.strides[0]" + at + word(static_cast<std::uint64_t>(nest.strides[0][d])) + ");\n";
        }
        text() += "nest.find(i, &" + name + ");\n}\n";
    }

    /// The variable that holds what is read.
    std::string operandOf(const ElementChain::Read &read)
    {
        const std::string type = nameInSource(read.type);
        if (read.madeBy >= 0) {
            const std::string made = "v" + std::to_string(read.madeBy);
            const std::string madeAs =
                nameInSource(m_chain.steps()[static_cast<std::size_t>(read.madeBy)].type);
            if (madeAs == type)
                return made;
            const std::string seen = "r" + std::to_string(m_names++);
            text() += type + " " + seen + " = bitsAs<" + type + ">(" + made + ");\n";
            return seen;
        }
        for (const auto &[before, name] : m_loaded) // the same by the same: it is loaded
            if (before->data == read.data && before->own == read.own && type == nameInSource(before->type)
                && isSame(before->nest, read.nest))
                return name;
        const std::string name = "e" + std::to_string(m_names++);
        std::string index = "i";
        if (!read.own && read.nest.loops == 0)
            index = "0";
        else if (!read.own)
            place(index = "p" + name, read.nest);
        text() += type + " " + name + " = reinterpret_cast<const " + type + " *>(" + word(read.data) + ")["
            + index + "];\n";
        m_loaded.emplace_back(&read, name);
        return name;
    }
    static bool isSame(const Nest<1> &a, const Nest<1> &b)
    {
        return a.loops == b.loops && std::equal(a.extents, a.extents + a.loops, b.extents)
            && std::equal(a.strides[0], a.strides[0] + a.loops, b.strides[0]);
    }

    static std::string elements(const std::string &variable, DataType type)
    {
        return "{&" + variable + ", DataType(" + std::to_string(static_cast<int>(type)) + ")}";
    }
    std::string made(const ElementChain::Step &step) const { return elements(m_made, step.type); }
    /// "float v2;", and what is to be done in braces.
    void begin(const ElementChain::Step &step, const char *kernel)
    {
        text() += std::string{nameInSource(step.type)} + " " + m_made + ";\n{\n" + kernel + " kernel;\n";
    }
    void end() { text() += "kernel(0);\n}\n"; }
    void set(const char *member, const std::string &value)
    {
        text() += std::string{"kernel."} + member + " = " + value + ";\n";
    }

    using Operands = std::vector<std::string>;
    void put(const ConvertKernel &k, const ElementChain::Step &step, const Operands &operands)
    {
        begin(step, "ConvertKernel");
        set("from", elements(operands[0], k.from.type));
        set("to", made(step));
        end();
    }
    void put(const AddKernel &k, const ElementChain::Step &step, const Operands &operands)
    {
        text() += std::string{nameInSource(step.type)} + " " + m_made + " = " + operands[0] + ";\n{\n";
        text() += "AddKernel kernel;\n";
        set("to", made(step));
        set("from", elements(operands[1], k.from.type));
        end();
    }
    void put(const UnaryKernel &k, const ElementChain::Step &step, const Operands &operands)
    {
        begin(step, "UnaryKernel");
        set("x", elements(operands[0], k.x.type));
        if (k.dy.data != nullptr)
            set("dy", elements(operands[1], k.dy.type));
        set("made", made(step));
        set("function", "UnaryFunction(" + std::to_string(static_cast<int>(k.function)) + ")");
        set("fromValue", k.fromValue ? "true" : "false");
        const unary::Parameters<float> &p = k.parameters;
        set("parameters",
            "{" + number(p.alpha) + ", " + number(p.beta) + ", " + number(p.gamma) + ", " + number(p.least)
                + ", " + number(p.most) + "}");
        end();
    }
    void put(const BinaryKernel &k, const ElementChain::Step &step, const Operands &operands)
    {
        begin(step, "BinaryKernel");
        std::size_t next = 0;
        if (k.a.data != nullptr)
            set("a", elements(operands[next++], k.a.type));
        if (k.b.data != nullptr)
            set("b", elements(operands[next++], k.b.type));
        if (k.dy.data != nullptr)
            set("dy", elements(operands[next], k.dy.type));
        set("made", made(step));
        set("function", "BinaryFunction(" + std::to_string(static_cast<int>(k.function)) + ")");
        set("slope", std::to_string(k.slope));
        end();
    }
    void put(const WhereKernel &, const ElementChain::Step &step, const Operands &operands)
    {
        text() += std::string{nameInSource(step.type)} + " " + m_made + " = " + operands[0] + " != 0 ? "
            + operands[1] + " : " + operands[2] + ";\n";
    }
    void put(const DropoutKernel &k, const ElementChain::Step &step, const Operands &operands)
    {
        const std::string at = "p" + m_made;
        place(at, k.whole);
        begin(step, "DropoutKernel");
        set("from", elements(operands[0], k.from.type));
        set("to", made(step));
        set("key", word(k.key));
        set("bound", word(k.bound));
        set("first", word(k.first) + " + static_cast<std::uint64_t>(" + at + ")");
        set("scale", number(k.scale));
        end();
    }

    const ElementChain &m_chain;
    ElementChain::Program m_program{};
    std::vector<std::pair<const ElementChain::Read *, std::string>> m_loaded{};
    std::string m_made{};
    int m_names = 0;
};

} // namespace

ElementChain::Region ElementChain::regionOf(const Read &read, std::int64_t items)
{
    std::int64_t last = read.own ? items - 1 : 0;
    for (std::int32_t d = 0; d < read.nest.loops; ++d)
        last += (read.nest.extents[d] - 1) * read.nest.strides[0][d];
    const std::int64_t size = sizeOf(read.type);
    return {read.data, read.data + (last + 1) * size, size, read.own};
}

bool ElementChain::findReads(Step &step, std::vector<Region> &loads) const
{
    for (Read &read : step.reads) {
        const Region region = regionOf(read, m_items);
        for (std::size_t k = m_steps.size(); k-- > 0 && read.madeBy < 0;) {
            const Step &before = m_steps[k];
            const std::int64_t size = sizeOf(before.type);
            if (!overlap(region.begin, region.end, before.made, before.made + m_items * size))
                continue;
            // Another thread's element, a piece of it, or what may never have been stored.
            if (!read.own || read.data != before.made || region.size != size || before.isOver)
                return false;
            read.madeBy = static_cast<std::int32_t>(k);
        }
        if (read.madeBy < 0)
            loads.push_back(region);
    }
    return true;
}

bool ElementChain::take(const ChainKernel &kernel, std::int64_t items)
{
    if (items <= 0 || (!isEmpty() && items != m_items) || size() == kMostKernels)
        return false;
    const bool isFirst = isEmpty();
    m_items = items;
    Step step = stepOf(kernel, items);
    // A word for each number and address, and two for each loop.
    std::size_t words = m_words + 12;
    for (const Read &read : step.reads)
        words += 1 + 2 * static_cast<std::size_t>(read.nest.loops);
    if (const auto *const dropout = std::get_if<DropoutKernel>(&kernel))
        words += 2 * static_cast<std::size_t>(dropout->whole.loops);
    std::vector<Region> loads = m_loads;
    bool fits = words <= kMostWords && findReads(step, loads);
    const std::int64_t size = sizeOf(step.type);
    const std::byte *const end = step.made + items * size;
    for (const Region &load : loads) // what is there must have been read by all that read it
        if (overlap(load.begin, load.end, step.made, end))
            fits = fits && load.own && load.begin == step.made && load.size == size;
    std::vector<std::size_t> over;
    for (std::size_t k = 0; k < m_steps.size(); ++k) {
        const std::int64_t other = sizeOf(m_steps[k].type);
        if (m_steps[k].isOver || !overlap(m_steps[k].made, m_steps[k].made + items * other, step.made, end))
            continue;
        over.push_back(k);
        fits = fits && m_steps[k].made == step.made && other == size;
    }
    if (!fits) {
        m_items = isFirst ? 0 : m_items;
        return false;
    }
    for (const std::size_t k : over)
        m_steps[k].isOver = true;
    m_steps.push_back(std::move(step));
    m_loads = std::move(loads);
    m_words = words;
    return true;
}

void ElementChain::ends(std::span<const std::byte> memory)
{
    for (Step &step : m_steps)
        if (step.made >= memory.data()
            && step.made + m_items * sizeOf(step.type) <= memory.data() + memory.size())
            step.isOver = true;
}

ElementChain::Program ElementChain::program() const
{
    return Writer(*this).write();
}

std::int64_t bytesMoved(const ChainKernel &kernel, std::int64_t items)
{
    const ElementChain::Step step = stepOf(kernel, items);
    std::int64_t bytes = sizeOf(step.type);
    for (const ElementChain::Read &read : step.reads)
        bytes += read.own || read.nest.loops > 0 ? sizeOf(read.type) : 0;
    return bytes * items;
}

std::string chainSource(const ElementChain::Program &program)
{
    const std::string count = std::to_string(std::max<std::size_t>(program.words.size(), 1));
    return R"(#include "engine/cuda/kernels/chain_kernels.h"

namespace planloom {

PLANLOOM_INLINE float numberIn(std::uint64_t word)
{
    return bitsAs<float>(static_cast<std::uint32_t>(word));
}

struct ChainWords {
    std::uint64_t words[)"
        + count + R"(];
};

PLANLOOM_INLINE void runChain(const std::uint64_t *w, std::int64_t i)
{
)" + program.body
        + R"(}

} // namespace planloom

#if defined(__CUDACC__)
extern "C" __global__ void __launch_bounds__(256) planloomChain(const planloom::ChainWords words, long long items)
{
    const long long step = static_cast<long long>(gridDim.x) * 256;
    for (long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x; i < items; i += step)
        planloom::runChain(words.words, i);
}
#else
extern "C" void planloomChain(const std::uint64_t *words, std::int64_t items)
{
    for (std::int64_t i = 0; i < items; ++i)
        planloom::runChain(words, i);
}
#endif
)";
}

} // namespace planloom
