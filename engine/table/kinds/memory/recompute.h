#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// What is recomputed together.
enum class RecomputePer : std::uint8_t { Selection, Layer, Operator };

const char *nameOf(RecomputePer per); ///< "selection", "layer", "operator"

/// Whether something is done.
enum class Switched : std::uint8_t {
    Always,
    Never,
    Chosen, ///< As the search finds best; not, where nothing is searched.
};

/// Drops the outputs of the selected operators and computes them again before their backward pass; or keeps
/// them; or leaves that to the search, which then chooses among such operators alone.
struct RecomputeRule {
    RecomputePer per = RecomputePer::Selection; ///< Of Always.
    Switched when = Switched::Always;
    friend bool operator==(const RecomputeRule &, const RecomputeRule &) = default;
};

template<> struct RuleTraits<RecomputeRule> {
    static constexpr std::array words{"recompute"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "recompute";
    static Result<RecomputeRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const RecomputeRule &rule);
    static void write(const RecomputeRule &rule, nlohmann::json &json);
    static Result<RecomputeRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
