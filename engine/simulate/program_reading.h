#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

inline bool isIndexOf(std::int32_t index, std::size_t size)
{
    return index >= 0 && static_cast<std::size_t>(index) < size;
}

/// 128 bits, so that two programs that differ do not meet by accident.
struct Colour {
    std::uint64_t a = 0x243f6a8885a308d3; // Digits of pi.
    std::uint64_t b = 0x13198a2e03707344;
    friend auto operator<=>(const Colour &, const Colour &) = default;

    void add(std::uint64_t value)
    {
        a = (a ^ value) * 0x9e3779b97f4a7c15;
        a ^= a >> 29;
        b = ((b << 23) | (b >> 41)) + mixed(value ^ a);
    }
    void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
    void add(std::int32_t value) { add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))); }
    void add(const Colour &other)
    {
        add(other.a);
        add(other.b);
    }
    void add(const BufferList &values)
    {
        add(static_cast<std::uint64_t>(values.size()));
        for (const std::int32_t value : values)
            add(value);
    }

    static std::uint64_t mixed(std::uint64_t x) // splitmix64's finisher.
    {
        x += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }
};

/// Where a device communicates, in the order in which it does so first.
struct ChannelUse {
    std::int32_t group = -1; ///< -1 for what is no group.
    std::int32_t tag = -1; ///< -1 for what is no pair; all meetings across units are one channel.
    std::int32_t peer = -1; ///< Of a pair.
    bool sends = false; ///< Of a pair.
    std::int32_t segment = 0; ///< The first instruction.
    std::int32_t instruction = 0;
};

/// What one device's program is, without names and whatever its schedule.
struct ProgramReading {
    Colour colour{};
    std::vector<ChannelUse> uses{}; ///< By slot.
    std::vector<std::vector<std::int32_t>> hidden{}; ///< By segment: `hiddenStores`.
    bool hidesStores = false;
};

/// Looks at one device's program once: checks it, numbers its channels, and colours it without names. Any
/// thread. O(instructions and buffers of the device)
/// @return InvalidInput, with its place, where it names what does not exist
Result<ProgramReading> readProgram(const ExecutionPlan &plan, const Cluster &cluster, std::int32_t device);

/// The colour of a program that has been read, with that of its schedule. O(entries of the schedule)
/// @return as the one before
Result<Colour> colourWithSchedule(
    const ExecutionPlan &plan, std::int32_t device, const ProgramReading &reading);

/// An error of one instruction.
Error wrongInstruction(
    std::int32_t device, std::int32_t segment, std::int32_t instruction, std::string message);

} // namespace planloom
