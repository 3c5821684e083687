#pragma once

#include "engine/cuda/kernels/kernel_list.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace planloom {

/// What can become part of a chain.
using ChainKernel =
    std::variant<ConvertKernel, AddKernel, UnaryKernel, BinaryKernel, WhereKernel, DropoutKernel>;

template<typename T>
constexpr bool kCanChain =
    std::is_same_v<T,
        ConvertKernel> || std::is_same_v<T, AddKernel> || std::is_same_v<T, UnaryKernel> || std::is_same_v<T, BinaryKernel> || std::is_same_v<T, WhereKernel> || std::is_same_v<T, DropoutKernel>;

/// Element-wise kernels that were to run one after another, as one: each thread makes its element of all of
/// them, and what one makes the next ones read from a register.
///
///     unfused   x -> [Add] -> a -> [Gelu] -> g -> [Convert] -> h      three kernels, a and g in memory
///     chain     x -> [Add        Gelu         Convert] -> h           one, if nothing else reads a and g
///
/// The element that a thread makes is the same in all of them, so a kernel joins only if whatever it reads of
/// what others have made is its own element; and if no thread writes what another one may not have read yet:
/// memory that is both read and written is so by the same thread. Values are rounded to the type that memory
/// would hold them in, and stored unless they are written over, or nothing reads them any more (`ends`).
class ElementChain
{
public:
    static constexpr std::size_t kMostKernels = 24;
    static constexpr std::size_t kMostWords = 440; ///< Kernels take 4096 bytes of arguments on any device.

    /// What a kernel reads: an element that an earlier one has made, or one of memory.
    struct Read {
        std::int32_t madeBy = -1; ///< Index of the kernel; -1: it is in memory, at
        const std::byte *data = nullptr;
        DataType type = DataType::Float32; ///< As which it is read.
        bool own = true; ///< Element i, for the thread that makes element i; else as `nest` has it.
        Nest<1> nest{};
    };
    /// A kernel with what it reads, in the order in which its arguments name it, and what it makes, which is
    /// element i for thread i.
    struct Step {
        ChainKernel kernel{};
        std::vector<Read> reads{};
        std::byte *made = nullptr;
        DataType type = DataType::Float32;
        bool isOver = false; ///< Written over, or not read any more: it needs no memory.
    };

    bool isEmpty() const { return m_steps.empty(); }
    std::size_t size() const { return m_steps.size(); }
    std::int64_t items() const { return m_items; }
    const std::vector<Step> &steps() const { return m_steps; }

    /// Takes a kernel in, behind those that it has. @return false if that would not be the same; nothing has
    /// changed then. O(kernels)
    bool take(const ChainKernel &kernel, std::int64_t items);
    /// Nothing reads what was made there so far, once the last kernel that was taken has run.
    void ends(std::span<const std::byte> memory);
    void clear() { *this = {}; }

    /// Its source (to be compiled as `chainSource` says), the same for all chains that differ in addresses,
    /// extents and numbers only, and the words that are different.
    struct Program {
        std::string body{};
        std::vector<std::uint64_t> words{};
    };
    Program program() const;

private:
    struct Region {
        const std::byte *begin = nullptr;
        const std::byte *end = nullptr;
        std::int64_t size = 0; ///< Of an element.
        bool own = true;
    };
    bool findReads(Step &step, std::vector<Region> &loads) const;
    static Region regionOf(const Read &read, std::int64_t items);

    std::vector<Step> m_steps{};
    std::vector<Region> m_loads{}; ///< What is read from memory.
    std::int64_t m_items = 0;
    std::size_t m_words = 0; ///< At most.
};

/// Bytes that a kernel reads and writes by itself.
std::int64_t bytesMoved(const ChainKernel &kernel, std::int64_t items);

/// The kernel's name in what `chainSource` makes. Its arguments are the words, and the number of items.
constexpr const char *kChainName = "planloomChain";

/// The whole source of a program: for NVRTC, with the headers of `chainHeaders`, or for a compiler of the
/// host, for tests.
std::string chainSource(const ElementChain::Program &program);

/// Name and text of each header that such a source includes.
const std::vector<std::pair<std::string, std::string>> &chainHeaders();

} // namespace planloom
