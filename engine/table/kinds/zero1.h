#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Cuts the optimizer step and state of the selected operators' weights over replicas (ZeRO stage 1).
struct OptimizerShardingRule {
    std::string axis{}; ///< The replicas along this mesh axis; empty takes all of them.
    std::int32_t parts = 0; ///< Without an axis: into how many; 0 is the number of replicas.
    friend bool operator==(const OptimizerShardingRule &, const OptimizerShardingRule &) = default;
};

template<> struct RuleTraits<OptimizerShardingRule> {
    static constexpr std::array words{"zero1"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr std::int32_t mostRows = 0;
    static constexpr const char *verb = "shard the optimizer of";
    static Result<OptimizerShardingRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const OptimizerShardingRule &rule);
    static void write(const OptimizerShardingRule &rule, nlohmann::json &json);
    static Result<OptimizerShardingRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
