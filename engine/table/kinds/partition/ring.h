#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <string>

namespace planloom {

/// Splits attentions along their queries over a mesh axis and along their keys into as many parts, which each
/// device takes in turns: keys and values go round the devices of the axis, so that none has more than two
/// parts of them besides its own, and what comes next is on its way while a part is at work (Ring Attention,
/// arXiv:2310.01889). Device i takes part (i - t) mod n of the keys in turn t; means over parts of the keys
/// are merged by their log-sum-exps as they come, and gradients of keys and values go round with them.
struct RingRule {
    std::string axis{}; ///< Of the mesh.
    friend bool operator==(const RingRule &, const RingRule &) = default;
};

template<> struct RuleTraits<RingRule> {
    static constexpr std::array words{"ring"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "pass keys and values round in";
    static void describe(RuleForm &form, RingRule &rule);
};

} // namespace planloom
