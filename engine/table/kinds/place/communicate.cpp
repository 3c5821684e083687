#include "engine/table/kinds/place/communicate.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/order/micro_batch_pairs.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace planloom {

namespace {

constexpr CommunicationPart kAllCommunications[] = {
    CommunicationPart::Sends, CommunicationPart::Gathers, CommunicationPart::Reductions};
constexpr const char *kCommunications = "sends, gathers or reductions";

std::optional<CommunicationPart> takePart(TextCursor &cursor)
{
    for (const CommunicationPart part : kAllCommunications)
        if (cursor.takeWord(nameOf(part)))
            return part;
    return std::nullopt;
}

std::optional<CommunicationPart> partNamed(const std::string &name)
{
    for (const CommunicationPart part : kAllCommunications)
        if (name == nameOf(part))
            return part;
    return std::nullopt;
}

} // namespace

const char *nameOf(CommunicationPart part)
{
    switch (part) {
    case CommunicationPart::None:
        return "";
    case CommunicationPart::Sends:
        return "sends";
    case CommunicationPart::Gathers:
        return "gathers";
    case CommunicationPart::Reductions:
        return "reductions";
    }
    return "";
}

Result<CommunicateRule> RuleTraits<CommunicateRule>::parse(TextCursor &cursor, std::string_view)
{
    CommunicateRule rule;
    const auto part = takePart(cursor);
    if (!part)
        return cursor.expected(kCommunications);
    rule.part = *part;
    rule.before = cursor.takeWord("before");
    if (!rule.before && !cursor.takeWord("after"))
        return cursor.expected("'before' or 'after', and the second selector");
    TRY(rule.second, parseSelector(cursor));
    rule.secondPart = takePart(cursor).value_or(CommunicationPart::None);
    TRY_VOID(parseMicroBatches(cursor, rule));
    return rule;
}

std::string RuleTraits<CommunicateRule>::print(const CommunicateRule &rule)
{
    std::string text =
        std::string(nameOf(rule.part)) + (rule.before ? " before " : " after ") + toString(rule.second);
    if (rule.secondPart != CommunicationPart::None)
        text += std::string(" ") + nameOf(rule.secondPart);
    return text + printMicroBatches(rule);
}

void RuleTraits<CommunicateRule>::write(const CommunicateRule &rule, nlohmann::json &json)
{
    json["communication"] = nameOf(rule.part);
    json["before"] = rule.before;
    json["second"] = toString(rule.second);
    if (rule.secondPart != CommunicationPart::None)
        json["second_communication"] = nameOf(rule.secondPart);
    json["micro_batch_offset"] = rule.microBatchOffset;
    if (rule.microBatch >= 0)
        json["micro_batch"] = rule.microBatch;
}

Result<CommunicateRule> RuleTraits<CommunicateRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json,
        {"type", "communication", "before", "second", "second_communication", "micro_batch_offset",
            "micro_batch"},
        where));
    CommunicateRule rule;
    TRY(const std::string part, textAt(json, "communication", where));
    if (!partNamed(part))
        return wrong(where + "/communication", std::string("expected ") + kCommunications);
    rule.part = *partNamed(part);
    TRY(rule.before, flagAt(json, "before", where, false));
    TRY(rule.second, selectorAt(json, "second", where));
    if (json.contains("second_communication")) {
        TRY(const std::string other, textAt(json, "second_communication", where));
        if (!partNamed(other))
            return wrong(where + "/second_communication", std::string("expected ") + kCommunications);
        rule.secondPart = *partNamed(other);
    }
    TRY(rule.microBatchOffset, countAt(json, "micro_batch_offset", where, -kMostCount, 0));
    TRY(rule.microBatch, countAt(json, "micro_batch", where, 0, -1));
    return rule;
}

} // namespace planloom
