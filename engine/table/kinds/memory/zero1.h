#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Stage 0: every replica keeps and updates all of its weights. Else: cuts the optimizer step and state of
/// the selected operators' weights over replicas: ZeRO (arXiv:1910.02054). Stage 2 cuts their gradients too:
/// each micro-batch's are reduced to shards as they are made. Stage 3 cuts the weights too: they are gathered
/// before their use in every pass of every micro-batch. Or leaves that to the search, which then shards such
/// weights alone.
struct OptimizerShardingRule {
    std::int32_t stage = 1; ///< 0 to 3.
    std::string axis{}; ///< The replicas along this mesh axis; empty takes all of them, or, where whole
                        ///< replicas are scale units, these.
    /// With an axis: further ones, along which a weight's replicas share as one group with those. An axis
    /// along which a weight has none, as the experts' own, counts for nothing.
    std::vector<std::string> moreAxes{};
    std::int32_t parts = 0; ///< Without an axis: into how many; 0 is the number of replicas.
    bool keep = false; ///< Stage 3: what the forward pass gathered is kept for the backward pass.
    std::int32_t prefetch = 1; ///< Stage 3: layers whose weights are gathered ahead of the one that runs.
    bool chosen = false; ///< As the search finds best; as without a row where nothing is searched.
    friend bool operator==(const OptimizerShardingRule &, const OptimizerShardingRule &) = default;
};

/// Whether replicas along `axis` share what the row is about.
bool sharesOver(const OptimizerShardingRule &rule, const std::string &axis);
/// The row without an axis: of the others, the first takes its place; none may be left.
OptimizerShardingRule withoutAxis(OptimizerShardingRule rule, const std::string &axis);

template<> struct RuleTraits<OptimizerShardingRule> {
    static constexpr std::array words{"zero1", "zero2", "zero3", "zero0", "zero"};
    static const char *wordOf(const OptimizerShardingRule &rule);
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "shard the optimizer of";
    static void describe(RuleForm &form, OptimizerShardingRule &rule);
};

} // namespace planloom
