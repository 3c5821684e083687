#include "engine/table/table.h"

namespace planloom {

bool hasSelector(const Rule &rule)
{
    return !std::holds_alternative<MeshRule>(rule) && !std::holds_alternative<MicroBatchesRule>(rule)
        && !std::holds_alternative<ScheduleRule>(rule) && !std::holds_alternative<InFlightRule>(rule)
        && !std::holds_alternative<LimitRule>(rule);
}

const char *nameOf(const Rule &rule)
{
    struct Name {
        const char *operator()(const MeshRule &) const { return "mesh"; }
        const char *operator()(const MicroBatchesRule &) const { return "micro-batches"; }
        const char *operator()(const OpTransRule &trans) const
        {
            return trans.steps.size() == 1 && trans.steps.front().kind == SplitKind::Replicate ? "replicate"
                                                                                               : "split";
        }
        const char *operator()(const CoshardRule &) const { return "coshard"; }
        const char *operator()(const OpAssignRule &) const { return "place"; }
        const char *operator()(const OpOrderRule &) const { return "order"; }
        const char *operator()(const ScheduleRule &) const { return "schedule"; }
        const char *operator()(const StageRule &) const { return "stage"; }
        const char *operator()(const RecomputeRule &) const { return "recompute"; }
        const char *operator()(const OptimizerShardingRule &) const { return "zero1"; }
        const char *operator()(const InFlightRule &) const { return "in-flight"; }
        const char *operator()(const LimitRule &) const { return "limit"; }
    };
    return std::visit(Name {}, rule);
}

const char *nameOf(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Sequential:
        return "sequential";
    case ScheduleKind::GPipe:
        return "gpipe";
    case ScheduleKind::OneFOneB:
        return "1f1b";
    }
    return "";
}

const char *nameOf(LimitRule::Kind kind)
{
    return kind == LimitRule::Kind::Memory ? "memory" : "time";
}

const char *nameOf(RowOrigin origin)
{
    switch (origin) {
    case RowOrigin::Text:
        return "text";
    case RowOrigin::Gesture:
        return "gesture";
    case RowOrigin::Template:
        return "template";
    case RowOrigin::Import:
        return "import";
    }
    return "";
}

std::string placeOf(RowId row, std::string_view field)
{
    return "row:" + std::to_string(row.index) + "/" + std::string(field);
}

} // namespace planloom
