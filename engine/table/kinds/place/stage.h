#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// The pipeline stage of the selected operators.
struct StageRule {
    std::int32_t index = 0;
    std::int32_t count = 0; ///< Of how many the plan has; 0 leaves it open.
    friend bool operator==(const StageRule &, const StageRule &) = default;
};

template<> struct RuleTraits<StageRule> {
    static constexpr std::array words{"stage"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "give a stage to";
    static Result<StageRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const StageRule &rule);
    static void write(const StageRule &rule, nlohmann::json &json);
    static Result<StageRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
