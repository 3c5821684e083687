#include "engine/runtime/devices/box_copy.h"

#include "engine/base/hot_loop.h"
#include "engine/kernels/elements/narrow_float.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <vector>

namespace planloom {

namespace {

/// Calls visit(from offset, to offset, length), in elements, for each contiguous run of `region`.
template<typename Visit>
void forEachRun(const IndexMask &fromBox, const IndexMask &toBox, const IndexMask &region, Visit visit)
{
    const std::size_t rank = region.ranges.size();
    assert(fromBox.ranges.size() == rank && toBox.ranges.size() == rank);
    if (elementCount(region) == 0)
        return;
    // Trailing dimensions that are whole in both boxes join the run.
    std::size_t split = rank;
    std::int64_t run = 1;
    while (split > 0) {
        --split;
        run *= region.ranges[split].size();
        if (region.ranges[split] != fromBox.ranges[split] || region.ranges[split] != toBox.ranges[split])
            break;
    }
    std::vector<std::int64_t> fromStride(rank, 1);
    std::vector<std::int64_t> toStride(rank, 1);
    for (std::size_t d = rank; d-- > 1;) {
        fromStride[d - 1] = fromStride[d] * fromBox.ranges[d].size();
        toStride[d - 1] = toStride[d] * toBox.ranges[d].size();
    }
    std::int64_t fromAt = 0;
    std::int64_t toAt = 0;
    for (std::size_t d = 0; d < rank; ++d) {
        fromAt += (region.ranges[d].begin - fromBox.ranges[d].begin) * fromStride[d];
        toAt += (region.ranges[d].begin - toBox.ranges[d].begin) * toStride[d];
    }
    std::vector<std::int64_t> index(split, 0);
    for (;;) {
        visit(fromAt, toAt, run);
        std::size_t d = split;
        while (d-- > 0) {
            fromAt += fromStride[d];
            toAt += toStride[d];
            if (++index[d] < region.ranges[d].size())
                break;
            fromAt -= fromStride[d] * index[d];
            toAt -= toStride[d] * index[d];
            index[d] = 0;
        }
        if (d == static_cast<std::size_t>(-1))
            return;
    }
}

template<typename T> void add(std::byte *to, const std::byte *from, std::size_t count)
{
    auto *a = reinterpret_cast<T *>(to);
    const auto *b = reinterpret_cast<const T *>(from);
    for (std::size_t i = 0; i < count; ++i)
        a[i] = static_cast<T>(a[i] + b[i]);
}

template<typename T> void sum(std::byte *to, std::span<const std::byte *const> from, std::size_t count)
{
    constexpr std::size_t kBlock = 2048; // stays in the first cache while all sources are added to it
    T block[kBlock];
    for (std::size_t at = 0; at < count; at += kBlock) {
        const std::size_t length = std::min(kBlock, count - at);
        std::memcpy(block, from[0] + at * sizeof(T), length * sizeof(T));
        for (std::size_t k = 1; k < from.size(); ++k) {
            const auto *source = reinterpret_cast<const T *>(from[k]) + at;
            for (std::size_t i = 0; i < length; ++i)
                block[i] = static_cast<T>(block[i] + source[i]);
        }
        std::memcpy(to + at * sizeof(T), block, length * sizeof(T));
    }
}

constexpr std::size_t kAtOnce = 4; ///< Summands that are read side by side: one pass over memory.
using Summands = std::array<const float *, kAtOnce>;

// Sums lie where one of their summands does, or apart from all: loops that read and write at one index may be
// vectorised either way.
PLANLOOM_HOT void sumOfTwo(float *to, const Summands &from, std::size_t count)
{
    const auto [a, b, c, d] = from;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = a[i] + b[i];
}

PLANLOOM_HOT void sumOfThree(float *to, const Summands &from, std::size_t count)
{
    const auto [a, b, c, d] = from;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = a[i] + b[i] + c[i];
}

PLANLOOM_HOT void sumOfFour(float *to, const Summands &from, std::size_t count)
{
    const auto [a, b, c, d] = from;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = a[i] + b[i] + c[i] + d[i];
}

/// The same sums, in the same order, at the speed of memory.
template<> void sum<float>(std::byte *to, std::span<const std::byte *const> from, std::size_t count)
{
    constexpr std::size_t kBlock = 2048;
    float block[kBlock]; // of sums that go on: `to` may be a summand that is still to come
    const auto add = [](float *target, const Summands &summands, std::size_t number, std::size_t length) {
        if (number == 4)
            sumOfFour(target, summands, length);
        else if (number == 3)
            sumOfThree(target, summands, length);
        else if (number == 2)
            sumOfTwo(target, summands, length);
        else
            std::memmove(target, summands[0], length * sizeof(float));
    };
    for (std::size_t at = 0; at < count; at += kBlock) {
        const std::size_t length = std::min(kBlock, count - at);
        std::size_t next = 0;
        for (bool isFirst = true; isFirst || next < from.size(); isFirst = false) {
            Summands summands{block};
            std::size_t number = isFirst ? 0 : 1;
            while (number < kAtOnce && next < from.size())
                summands[number++] = reinterpret_cast<const float *>(from[next++]) + at;
            const bool isLast = next == from.size();
            add(isLast ? reinterpret_cast<float *>(to) + at : block, summands, number, length);
        }
    }
}

/// As `sum`, for narrow floats: one rounding of the whole sum.
void sumNarrow(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type)
{
    constexpr std::size_t kBlock = 1024;
    float total[kBlock];
    float block[kBlock];
    const auto size = static_cast<std::size_t>(sizeOf(type));
    for (std::size_t at = 0; at < count; at += kBlock) {
        const std::size_t length = std::min(kBlock, count - at);
        widen(from[0] + at * size, type, total, length);
        for (std::size_t k = 1; k < from.size(); ++k) {
            widen(from[k] + at * size, type, block, length);
            for (std::size_t i = 0; i < length; ++i)
                total[i] += block[i];
        }
        narrow(total, type, to + at * size, length);
    }
}

/// Calls visit with a value of the C++ type of `type`; false where there is none.
template<typename Visit> bool withType(DataType type, Visit visit)
{
    switch (type) {
    case DataType::Float32:
        visit(float{});
        return true;
    case DataType::Float64:
        visit(double{});
        return true;
    case DataType::Int64:
        visit(std::int64_t{});
        return true;
    case DataType::Int32:
        visit(std::int32_t{});
        return true;
    case DataType::Int16:
        visit(std::int16_t{});
        return true;
    case DataType::Int8:
        visit(std::int8_t{});
        return true;
    case DataType::UInt8:
        visit(std::uint8_t{});
        return true;
    default: // narrow floats have no C++ type
        break;
    }
    return false;
}

} // namespace

std::int64_t elementCount(const IndexMask &box)
{
    std::int64_t count = 1;
    for (const Range &range : box.ranges)
        count *= range.size();
    return count;
}

void copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, std::int64_t elementSize)
{
    forEachRun(fromBox, toBox, region, [&](std::int64_t fromAt, std::int64_t toAt, std::int64_t run) {
        std::memcpy(to + toAt * elementSize, from + fromAt * elementSize,
            static_cast<std::size_t>(run * elementSize));
    });
}

bool addBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, DataType type)
{
    if (isNarrowFloat(type)) {
        const std::int64_t size = sizeOf(type);
        forEachRun(fromBox, toBox, region, [&](std::int64_t fromAt, std::int64_t toAt, std::int64_t run) {
            addInto(to + toAt * size, from + fromAt * size, static_cast<std::size_t>(run), type);
        });
        return true;
    }
    return withType(type, [&]<typename T>(T) {
        constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
        forEachRun(fromBox, toBox, region, [&](std::int64_t fromAt, std::int64_t toAt, std::int64_t run) {
            add<T>(to + toAt * kSize, from + fromAt * kSize, static_cast<std::size_t>(run));
        });
    });
}

bool sumInto(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type)
{
    if (isNarrowFloat(type)) {
        sumNarrow(to, from, count, type);
        return true;
    }
    return withType(type, [&]<typename T>(T) { sum<T>(to, from, count); });
}

bool addInto(std::byte *to, const std::byte *from, std::size_t count, DataType type)
{
    if (isNarrowFloat(type)) {
        const std::array<const std::byte *, 2> both{to, from};
        sumNarrow(to, both, count, type);
        return true;
    }
    return withType(type, [&]<typename T>(T) { add<T>(to, from, count); });
}

bool addConverted(std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count)
{
    constexpr std::size_t kBlock = 1024;
    std::array<std::byte, kBlock * 8> block;
    const auto toSize = static_cast<std::size_t>(sizeOf(toType));
    const auto fromSize = static_cast<std::size_t>(sizeOf(fromType));
    for (std::size_t at = 0; at < count; at += kBlock) {
        const std::size_t length = std::min(kBlock, count - at);
        if (!convertFloats(from + at * fromSize, fromType, block.data(), toType, length)
            || !addInto(to + at * toSize, block.data(), length, toType))
            return false;
    }
    return true;
}

bool canAdd(DataType type)
{
    return isNarrowFloat(type) || withType(type, [](auto) {});
}

} // namespace planloom
