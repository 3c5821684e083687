#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace planloom {

/// Of what a value is: 128 bits, so that two things never have the same by chance.
struct ValueNumber {
    std::uint64_t high = 0x9E3779B97F4A7C15U;
    std::uint64_t low = 0xC2B2AE3D27D4EB4FU;

    ValueNumber &add(std::uint64_t value)
    {
        high = scrambled(std::rotl(high, 23) ^ (value * 0xFF51AFD7ED558CCDU));
        low = scrambled(std::rotl(low, 41) + (value ^ 0xC4CEB9FE1A85EC53U));
        return *this;
    }
    ValueNumber &add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
    ValueNumber &add(std::int32_t value) { return add(static_cast<std::int64_t>(value)); }
    ValueNumber &add(const ValueNumber &other) { return add(other.high).add(other.low); }
    template<typename Enum>
    requires std::is_enum_v<Enum> ValueNumber &add(Enum value)
    {
        return add(static_cast<std::int64_t>(value));
    }
    ValueNumber with(std::int64_t value) const { return ValueNumber{*this}.add(value); }
    friend bool operator==(const ValueNumber &, const ValueNumber &) = default;

private:
    /// The last step of MurmurHash3.
    static std::uint64_t scrambled(std::uint64_t value)
    {
        value ^= value >> 33U;
        value *= 0xFF51AFD7ED558CCDU;
        value ^= value >> 33U;
        value *= 0xC4CEB9FE1A85EC53U;
        return value ^ (value >> 33U);
    }
};

struct ValueNumberHash {
    std::size_t operator()(const ValueNumber &number) const { return number.high ^ (number.low >> 1U); }
};

void addBox(ValueNumber &number, const IndexMask &box);

/// What an instruction is, but for the values that it reads and its micro-batch.
struct Deed {
    ValueNumber number{};
    bool mayBeShared = false; ///< Another device can do it, too.
    bool keepsBytes = false; ///< Output 0 has the bytes of input 0, in whatever shape.
};

/// Of an instruction of a device of `plan`. O(its buffers).
Deed deedOf(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction);

} // namespace planloom
