#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <string>

namespace planloom {

/// Makes a recurrence (LSTM, GRU, RNN) the operators of its steps, whose hidden dimension splits: "unroll
/// all", "unroll encoder.rnn". The model is opened so (`withRows`); rows of a plan whose model is open
/// otherwise do not hold.
struct UnrollRule {
    std::string name{}; ///< Of the operator; "all" of them.
    friend bool operator==(const UnrollRule &, const UnrollRule &) = default;
};

template<> struct RuleTraits<UnrollRule> {
    static constexpr std::array words{"unroll"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "unroll a recurrence";
    static void describe(RuleForm &form, UnrollRule &rule);
};

} // namespace planloom
