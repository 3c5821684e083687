#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// What is recomputed together.
enum class RecomputePer : std::uint8_t { Selection, Layer, Operator };

const char *nameOf(RecomputePer per); ///< "selection", "layer", "operator"

/// Drops the outputs of the selected operators and computes them again before their backward pass.
struct RecomputeRule {
    RecomputePer per = RecomputePer::Selection;
    friend bool operator==(const RecomputeRule &, const RecomputeRule &) = default;
};

template<> struct RuleTraits<RecomputeRule> {
    static constexpr std::array words{"recompute"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr std::int32_t mostRows = 0;
    static constexpr const char *verb = "recompute";
    static Result<RecomputeRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const RecomputeRule &rule);
    static void write(const RecomputeRule &rule, nlohmann::json &json);
    static Result<RecomputeRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
