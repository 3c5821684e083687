#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Runs the mini-batch in `count` micro-batches: parts of the model's batch, or, where `whole` is set or the
/// model's batch has nothing to cut (it holds one sample), whole batches of their own.
struct MicroBatchesRule {
    std::int32_t count = 1;
    bool whole = false;
    friend bool operator==(const MicroBatchesRule &, const MicroBatchesRule &) = default;
};

template<> struct RuleTraits<MicroBatchesRule> {
    static constexpr std::array words{"micro-batches"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr std::int32_t mostRows = 1;
    static constexpr const char *verb = "give the number of micro-batches";
    static Result<MicroBatchesRule> parse(TextCursor &cursor, std::string_view word);
    static std::string print(const MicroBatchesRule &rule);
    static void write(const MicroBatchesRule &rule, nlohmann::json &json);
    static Result<MicroBatchesRule> read(const nlohmann::json &json, const std::string &where);
};

} // namespace planloom
