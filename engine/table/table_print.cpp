#include "engine/table/table_text.h"

#include "engine/table/table_quantity.h"
#include "engine/table/text_cursor.h"

namespace planloom {

namespace {

template<typename T, typename Show>
std::string joined(const std::vector<T> &items, const char *separator, Show show)
{
    std::string text;
    for (const T &item : items) {
        if (!text.empty())
            text += separator;
        text += show(item);
    }
    return text;
}

std::string amountOf(const SplitStep &step)
{
    std::string text;
    if (!step.sizes.empty())
        text += " into " + joined(step.sizes, ",", [](std::int64_t size) { return std::to_string(size); });
    else if (step.parts > 0)
        text += " by " + std::to_string(step.parts);
    if (!step.axis.empty())
        text += " over " + asWord(step.axis);
    return text;
}

struct PrintRule {
    std::string operator()(const MeshRule &rule) const
    {
        return joined(rule.axes, " ",
            [](const MeshAxis &axis) { return asWord(axis.name) + "=" + std::to_string(axis.size); });
    }
    std::string operator()(const MicroBatchesRule &rule) const
    {
        return std::to_string(rule.count) + (rule.whole ? " whole" : "");
    }
    std::string operator()(const OpTransRule &rule) const
    {
        if (rule.steps.size() == 1 && rule.steps.front().kind == SplitKind::Replicate)
            return amountOf(rule.steps.front()).substr(1);
        return joined(rule.steps, " then ", [](const SplitStep &step) {
            switch (step.kind) {
            case SplitKind::Dimension:
                return print(step.dimension) + amountOf(step);
            case SplitKind::Replicate:
                return "replicate" + amountOf(step);
            case SplitKind::Value:
                return "value" + amountOf(step);
            }
            return std::string{};
        });
    }
    std::string operator()(const CoshardRule &rule) const
    {
        return print(rule.dimension) + " by " + std::to_string(rule.parts);
    }
    std::string operator()(const OpAssignRule &rule) const
    {
        if (!rule.devices.empty())
            return "devices " + joined(rule.devices, ",", [](DeviceId d) { return std::to_string(d.index); });
        if (rule.coordinates.empty())
            return "mesh";
        return joined(rule.coordinates, ",",
            [](const AxisCoordinate &c) { return asWord(c.axis) + "=" + std::to_string(c.index); });
    }
    std::string operator()(const OpOrderRule &rule) const
    {
        std::string text = "before " + toString(rule.second);
        if (rule.microBatchOffset != 0)
            text += std::string(" at ") + (rule.microBatchOffset > 0 ? "+" : "")
                + std::to_string(rule.microBatchOffset);
        if (rule.microBatch >= 0)
            text += " of " + std::to_string(rule.microBatch);
        return text;
    }
    std::string operator()(const ScheduleRule &rule) const { return nameOf(rule.kind); }
    std::string operator()(const StageRule &rule) const { return std::to_string(rule.index); }
    std::string operator()(const RecomputeRule &rule) const
    {
        switch (rule.per) {
        case RecomputePer::Selection:
            return "";
        case RecomputePer::Layer:
            return "per layer";
        case RecomputePer::Operator:
            return "per operator";
        }
        return "";
    }
    std::string operator()(const OptimizerShardingRule &rule) const
    {
        std::string text;
        if (!rule.axis.empty())
            text += "over " + asWord(rule.axis);
        if (rule.parts > 0)
            text += (text.empty() ? "by " : " by ") + std::to_string(rule.parts);
        return text;
    }
    std::string operator()(const InFlightRule &rule) const
    {
        return std::to_string(rule.count) + (rule.stage >= 0 ? " stage " + std::to_string(rule.stage) : "");
    }
    std::string operator()(const LimitRule &rule) const
    {
        return std::string(nameOf(rule.kind)) + ' ' + printQuantity(rule.kind, rule.value);
    }
};

/// Each line of `note` as "# line".
void appendNote(std::string &text, std::string_view note)
{
    while (true) {
        const std::size_t end = note.find('\n');
        text += "# ";
        text += note.substr(0, end);
        text += '\n';
        if (end == std::string_view::npos)
            return;
        note.remove_prefix(end + 1);
    }
}

} // namespace

std::string print(const Rule &rule)
{
    return std::visit(PrintRule{}, rule);
}

std::string print(const Row &row)
{
    std::string text = row.enabled ? "" : "off ";
    if (row.preference > 0)
        text += row.preference == 1 ? std::string("prefer ") : "prefer " + std::to_string(row.preference) + ' ';
    text += nameOf(row.rule);
    if (hasSelector(row.rule)) {
        text += ' ' + toString(row.selector);
        const bool plain = std::holds_alternative<OpOrderRule>(row.rule)
            || std::holds_alternative<RecomputeRule>(row.rule)
            || std::holds_alternative<OptimizerShardingRule>(row.rule);
        if (!plain)
            text += " :";
    }
    if (const std::string rule = print(row.rule); !rule.empty())
        text += ' ' + rule;
    return text;
}

std::string print(const ConstraintTable &table)
{
    std::string text;
    for (const Row &row : table.rows) {
        const bool above = row.note.find('\n') != std::string::npos;
        if (above)
            appendNote(text, row.note);
        text += print(row);
        if (row.origin != RowOrigin::Text)
            text += std::string("  @") + nameOf(row.origin);
        if (!above && !row.note.empty())
            text += "  # " + row.note;
        text += '\n';
    }
    if (!table.note.empty())
        appendNote(text, table.note);
    return text;
}

} // namespace planloom
