#include "engine/table/kinds/partition/parts.h"

#include "engine/base/words.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

#include <algorithm>

namespace planloom {

namespace {

/// The numbers of parts that divide a dimension of this size, ascending.
std::vector<std::int64_t> divisorsUpTo(std::int64_t size, std::int64_t most)
{
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= std::min(size, most); ++d)
        if (size % d == 0)
            divisors.push_back(d);
    return divisors;
}

/// Of an operator with more parts than devices, several run on each, in turn.
constexpr std::int64_t kMostPartsLookedAt = 1 << 16;

} // namespace

void RuleTraits<PartsRule>::describe(RuleForm &form, PartsRule &rule)
{
    // An identifier may be called "in".
    if (form.isText() ? !form.takes("in all", !rule.dimension)
                      : form.holds("dimension", rule.dimension.has_value())) {
        DimensionRef dimension = rule.dimension.value_or(DimensionRef{});
        dimensionRef(form, dimension);
        rule.dimension = std::move(dimension);
    }
    countBound(form, rule.bound);
}

Result<void> RuleMeaning<PartsRule>::check(const RowSetting &setting, const PartsRule &rule)
{
    if (rule.dimension && rule.dimension->kind == DimensionRef::Kind::Meaning
        && rule.dimension->meaning == DimensionMeaning::Batch && setting.batch().size == 0)
        return Error{
            ErrorCode::InvalidInput, "the model has no batch dimension", setting.batch().limitedBy, ""};
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<PartsRule>::actsOn(
    const RowSetting &setting, const PartsRule &rule, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> acted;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(acted),
        [&](OperatorId op) { return setting.graph().at(op).direction == Direction::Forward; });
    if (acted.empty() && !selected.empty())
        return Error{ErrorCode::InvalidInput, "only forward operators have parts of their own",
            "select forward operators: their backward operators are cut as they are", ""};
    const auto has = [&](OperatorId op) {
        const auto dimension = resolveDimension(setting, op, *rule.dimension);
        return !dimension || *dimension >= 0;
    };
    if (rule.dimension && !acted.empty() && std::none_of(acted.begin(), acted.end(), has))
        return Error{ErrorCode::InvalidInput,
            "nothing selected has a dimension " + print(*rule.dimension) + " to cut",
            "operator '" + setting.graph().at(acted.front()).name
                + "' is: " + toString(setting.graph().at(acted.front()).annotation),
            ""};
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<PartsRule>::of(
    const RowSetting &setting, const PartsRule &rule, OperatorId op)
{
    OperatorMeaning meaning;
    PartsMeaning parts{-1, rule.bound};
    if (rule.dimension) {
        TRY(parts.dimension, resolveDimension(setting, op, *rule.dimension));
        if (parts.dimension < 0)
            return std::optional<OperatorMeaning>{};
        const Operator &own = setting.graph().at(op);
        const Dimension &dimension = own.annotation.dimensions[static_cast<std::size_t>(parts.dimension)];
        const auto fits = [&](std::int64_t value) { return rule.bound.allows(value); };
        const auto divisors = divisorsUpTo(dimension.size, kMostPartsLookedAt);
        const bool uneven = rule.bound.kind == CountBound::Kind::AtLeast; // parts of sizes that rows give
        if (!uneven && std::none_of(divisors.begin(), divisors.end(), fits)) {
            // The nearest that there is.
            const std::int64_t wanted = rule.bound.values.front();
            std::int64_t nearest = 1;
            for (const std::int64_t d : divisors)
                if (std::abs(d - wanted) < std::abs(nearest - wanted))
                    nearest = d;
            return Error{ErrorCode::InvalidInput,
                "operator '" + own.name + "' has " + std::to_string(dimension.size) + " along "
                    + dimension.name + ", which cannot be cut into equal parts so: " + print(rule.bound),
                "the nearest number of parts is " + std::to_string(nearest),
                "operator:" + own.name + "/" + dimension.name};
        }
        if (uneven && dimension.size < rule.bound.values.front())
            return Error{ErrorCode::InvalidInput,
                "operator '" + own.name + "' has only " + std::to_string(dimension.size) + " along "
                    + dimension.name + ", not " + print(rule.bound) + " parts",
                "ask for at least " + std::to_string(dimension.size) + " at most",
                "operator:" + own.name + "/" + dimension.name};
    }
    meaning.parts.push_back(std::move(parts));
    return std::optional(std::move(meaning));
}

} // namespace planloom
