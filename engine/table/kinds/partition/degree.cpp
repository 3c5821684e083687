#include "engine/table/kinds/partition/degree.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace planloom {

namespace {

constexpr std::array kDegrees{Degree::Data, Degree::Tensor, Degree::Pipeline, Degree::Stages,
    Degree::MicroBatches, Degree::Sequence, Degree::Expert};
constexpr const char *kDegreeWords = "data, tensor, pipeline, stages, micro-batches, sequence or expert";

} // namespace

const char *nameOf(Degree degree)
{
    constexpr std::array kNames{
        "data", "tensor", "pipeline", "stages", "micro-batches", "sequence", "expert"};
    return kNames[static_cast<std::size_t>(degree)];
}

Result<DegreeRule> RuleTraits<DegreeRule>::parse(TextCursor &cursor, std::string_view)
{
    const auto degree =
        std::find_if(kDegrees.begin(), kDegrees.end(), [&](Degree d) { return cursor.takeWord(nameOf(d)); });
    if (degree == kDegrees.end())
        return cursor.expected(kDegreeWords);
    TRY(CountBound bound, parseCountBound(cursor));
    return DegreeRule{*degree, std::move(bound)};
}

std::string RuleTraits<DegreeRule>::print(const DegreeRule &rule)
{
    return std::string(nameOf(rule.degree)) + ' ' + planloom::print(rule.bound);
}

void RuleTraits<DegreeRule>::write(const DegreeRule &rule, nlohmann::json &json)
{
    json["degree"] = nameOf(rule.degree);
    planloom::write(rule.bound, json);
}

Result<DegreeRule> RuleTraits<DegreeRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "degree", "at_most", "at_least", "one_of"}, where));
    TRY(const std::string name, textAt(json, "degree", where));
    const auto degree =
        std::find_if(kDegrees.begin(), kDegrees.end(), [&](Degree d) { return name == nameOf(d); });
    if (degree == kDegrees.end())
        return wrong(where + "/degree", std::string("expected ") + kDegreeWords);
    TRY(CountBound bound, countBoundAt(json, where));
    return DegreeRule{*degree, std::move(bound)};
}

} // namespace planloom
