#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Computes the gradients of the selected operators' weights in a pass of their own, behind those of their
/// inputs, which other stages wait for (zero bubble, arXiv:2401.10241).
struct SplitBackwardRule {
    friend bool operator==(const SplitBackwardRule &, const SplitBackwardRule &) = default;
};

template<> struct RuleTraits<SplitBackwardRule> {
    static constexpr std::array words{"split-backward"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "split the backward pass of";
    static Result<SplitBackwardRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const SplitBackwardRule &rule);
    static void write(const SplitBackwardRule &rule, nlohmann::json &json);
    static Result<SplitBackwardRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
