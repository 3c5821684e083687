#pragma once

#include "engine/graph/capacity.h"
#include "engine/table/kinds/rule_traits.h"

#include <string>

namespace planloom {

/// Gives what data choose its room: "capacity all = 1.25x", "capacity h.0.places = 128". The model is opened
/// with it
/// (`withRows`); rows of a plan whose model is open otherwise do not hold.
struct CapacityRule {
    std::string name{}; ///< Of the operator that finds the places; "all": of all without a row of their own.
    Capacity capacity{};
    friend bool operator==(const CapacityRule &, const CapacityRule &) = default;
};

template<> struct RuleTraits<CapacityRule> {
    static constexpr std::array words{"capacity"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give room to what data choose";
    static void describe(RuleForm &form, CapacityRule &rule);
};

} // namespace planloom
