#include "engine/plan/table_json.h"

#include "engine/plan/selector.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostCount = 1 << 24;
constexpr std::int64_t kMostExtent = std::int64_t {1} << 50;

Error wrong(const std::string &where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "see resources/schema/table.json", where};
}

Result<std::int64_t> integerAt(
    const Json &object, const char *key, const std::string &where, std::int64_t least, std::int64_t most)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer())
        return wrong(where + "/" + key, "expected an integer");
    // Unsigned numbers beyond int64 would wrap around.
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostExtent))
        return wrong(where + "/" + key, "expected a number of at most " + std::to_string(most));
    const auto value = found->get<std::int64_t>();
    if (value < least || value > most) {
        return wrong(where + "/" + key,
            "expected a number from " + std::to_string(least) + " to " + std::to_string(most) + ", found "
                + std::to_string(value));
    }
    return value;
}

Result<std::int32_t> countAt(const Json &object, const char *key, const std::string &where,
    std::int64_t least, std::optional<std::int32_t> fallback = {})
{
    if (fallback && !object.contains(key))
        return *fallback;
    TRY(const auto value, integerAt(object, key, where, least, kMostCount));
    return static_cast<std::int32_t>(value);
}

Result<std::string> textAt(
    const Json &object, const char *key, const std::string &where, std::optional<std::string> fallback = {})
{
    const auto found = object.find(key);
    if (found == object.end() && fallback)
        return *std::move(fallback);
    if (found == object.end() || !found->is_string())
        return wrong(where + "/" + key, "expected a text");
    return found->get<std::string>();
}

/// The array at `key`, with at least one element.
Result<const Json *> listAt(const Json &object, const char *key, const std::string &where)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array() || found->empty())
        return wrong(where + "/" + key, "expected a list that is not empty");
    return &*found;
}

Result<void> requireObject(const Json &value, const std::string &where)
{
    if (!value.is_object())
        return wrong(where, "expected an object");
    return {};
}

/// Refuses members that no reader here knows, which would otherwise be dropped silently.
Result<void> requireMembers(
    const Json &object, std::initializer_list<std::string_view> known, const std::string &where)
{
    for (const auto &[key, value] : object.items()) {
        bool found = false;
        for (const std::string_view name : known)
            found = found || name == key;
        if (!found)
            return wrong(where, "there is no member '" + key.substr(0, 40) + "' here");
    }
    return {};
}

Result<Selector> selectorAt(const Json &object, const char *key, const std::string &where)
{
    TRY(const std::string text, textAt(object, key, where));
    auto selector = parseSelector(text);
    if (!selector) {
        Error error = std::move(selector).error();
        error.where = where + "/" + key + "@" + error.where.substr(error.where.rfind(':') + 1);
        return error;
    }
    return selector;
}

Json toJson(const DimensionRef &ref)
{
    switch (ref.kind) {
    case DimensionRef::Kind::Identifier:
        return {{"identifier", ref.name}};
    case DimensionRef::Kind::Input:
        return {{"input", ref.slot}, {"dimension", ref.dimension}};
    case DimensionRef::Kind::Output:
        return {{"output", ref.slot}, {"dimension", ref.dimension}};
    case DimensionRef::Kind::Meaning:
        return nameOf(ref.meaning);
    }
    return nullptr;
}

Result<DimensionRef> dimensionAt(const Json &object, const std::string &parent)
{
    const std::string where = parent + "/dimension";
    const auto found = object.find("dimension");
    if (found == object.end())
        return wrong(where, "expected a dimension");
    if (found->is_string()) {
        if (const auto meaning = dimensionMeaningNamed(found->get_ref<const std::string &>()))
            return DimensionRef {.kind = DimensionRef::Kind::Meaning, .meaning = *meaning, .name = {}};
    }
    if (!found->is_object())
        return wrong(where, "expected a meaning such as \"batch\" or an object with identifier, input or output");
    TRY_VOID(requireMembers(*found, {"identifier", "input", "output", "dimension"}, where));
    DimensionRef ref;
    if (found->contains("identifier")) {
        TRY(ref.name, textAt(*found, "identifier", where));
        return ref;
    }
    const bool input = found->contains("input");
    ref.kind = input ? DimensionRef::Kind::Input : DimensionRef::Kind::Output;
    TRY(ref.slot, countAt(*found, input ? "input" : "output", where, 0));
    TRY(ref.dimension, countAt(*found, "dimension", where, -kMostCount));
    return ref;
}

const char *nameOf(SplitKind kind)
{
    switch (kind) {
    case SplitKind::Dimension:
        return "dimension";
    case SplitKind::Replicate:
        return "replicate";
    case SplitKind::Value:
        return "value";
    }
    return "";
}

Json toJson(const SplitStep &step)
{
    Json json {{"split", nameOf(step.kind)}};
    if (step.kind == SplitKind::Dimension)
        json["dimension"] = toJson(step.dimension);
    if (!step.sizes.empty())
        json["sizes"] = step.sizes;
    else if (step.parts > 0)
        json["parts"] = step.parts;
    if (!step.axis.empty())
        json["axis"] = step.axis;
    return json;
}

Result<SplitStep> readStep(const Json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY_VOID(requireMembers(json, {"split", "dimension", "sizes", "parts", "axis"}, where));
    SplitStep step;
    TRY(const std::string kind, textAt(json, "split", where));
    if (kind == "dimension") {
        TRY(step.dimension, dimensionAt(json, where));
    } else if (kind == "replicate") {
        step.kind = SplitKind::Replicate;
    } else if (kind == "value") {
        step.kind = SplitKind::Value;
    } else {
        return wrong(where + "/split", "expected dimension, replicate or value");
    }
    TRY(step.axis, textAt(json, "axis", where, ""));
    if (json.contains("sizes")) {
        TRY(const Json *list, listAt(json, "sizes", where));
        if (step.kind != SplitKind::Dimension || json.contains("parts"))
            return wrong(where + "/sizes", "expected sizes only for a dimension, and without parts");
        for (const Json &size : *list) {
            if (!size.is_number_integer() || size < 1 || size > kMostExtent)
                return wrong(where + "/sizes", "expected sizes from 1 to " + std::to_string(kMostExtent));
            step.sizes.push_back(size.get<std::int64_t>());
        }
    } else {
        TRY(step.parts, countAt(json, "parts", where, 1, 0));
    }
    if (step.parts == 0 && step.sizes.empty() && step.axis.empty())
        return wrong(where, "expected parts, sizes or an axis");
    return step;
}

struct WriteRule {
    Json operator()(const MeshRule &rule) const
    {
        Json axes = Json::array();
        for (const MeshAxis &axis : rule.axes)
            axes.push_back({{"name", axis.name}, {"size", axis.size}});
        return {{"type", "mesh"}, {"axes", std::move(axes)}};
    }
    Json operator()(const MicroBatchesRule &rule) const
    {
        Json json{{"type", "micro-batches"}, {"count", rule.count}};
        if (rule.whole)
            json["whole"] = true;
        return json;
    }
    Json operator()(const OpTransRule &rule) const
    {
        Json steps = Json::array();
        for (const SplitStep &step : rule.steps)
            steps.push_back(toJson(step));
        return {{"type", "split"}, {"steps", std::move(steps)}};
    }
    Json operator()(const CoshardRule &rule) const
    {
        return {{"type", "coshard"}, {"dimension", toJson(rule.dimension)}, {"parts", rule.parts}};
    }
    Json operator()(const OpAssignRule &rule) const
    {
        Json json {{"type", "place"}};
        for (const DeviceId device : rule.devices)
            json["devices"].push_back(device.index);
        for (const AxisCoordinate &c : rule.coordinates)
            json["coordinates"].push_back({{"axis", c.axis}, {"index", c.index}});
        return json;
    }
    Json operator()(const OpOrderRule &rule) const
    {
        Json json {{"type", "order"}, {"second", toString(rule.second)},
            {"micro_batch_offset", rule.microBatchOffset}};
        if (rule.microBatch >= 0)
            json["micro_batch"] = rule.microBatch;
        return json;
    }
    Json operator()(const ScheduleRule &rule) const
    {
        return {{"type", "schedule"}, {"schedule", nameOf(rule.kind)}};
    }
    Json operator()(const StageRule &rule) const { return {{"type", "stage"}, {"index", rule.index}}; }
    Json operator()(const RecomputeRule &rule) const
    {
        return {{"type", "recompute"}, {"per", nameOf(rule.per)}};
    }
    Json operator()(const OptimizerShardingRule &rule) const
    {
        Json json {{"type", "zero1"}};
        if (!rule.axis.empty())
            json["axis"] = rule.axis;
        if (rule.parts > 0)
            json["parts"] = rule.parts;
        return json;
    }
    Json operator()(const InFlightRule &rule) const
    {
        Json json {{"type", "in-flight"}, {"count", rule.count}};
        if (rule.stage >= 0)
            json["stage"] = rule.stage;
        return json;
    }
    Json operator()(const LimitRule &rule) const
    {
        return {{"type", "limit"},
            {rule.kind == LimitRule::Kind::Memory ? "bytes" : "nanoseconds", rule.value}};
    }
    static const char *nameOf(ScheduleKind kind) { return planloom::nameOf(kind); }
    static const char *nameOf(RecomputePer per)
    {
        switch (per) {
        case RecomputePer::Selection:
            return "selection";
        case RecomputePer::Layer:
            return "layer";
        case RecomputePer::Operator:
            return "operator";
        }
        return "";
    }
};

Result<Rule> readMesh(const Json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axes"}, where));
    MeshRule rule;
    TRY(const Json *axes, listAt(json, "axes", where));
    for (const Json &axis : *axes) {
        TRY_VOID(requireObject(axis, where + "/axes"));
        TRY(std::string name, textAt(axis, "name", where + "/axes"));
        TRY(const auto size, countAt(axis, "size", where + "/axes", 1));
        rule.axes.push_back({std::move(name), size});
    }
    return Rule {std::move(rule)};
}

Result<Rule> readPlace(const Json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "devices", "coordinates"}, where));
    OpAssignRule rule;
    if (json.contains("devices")) {
        TRY(const Json *devices, listAt(json, "devices", where));
        if (json.contains("coordinates"))
            return wrong(where, "expected devices or coordinates, not both");
        for (const Json &device : *devices) {
            if (!device.is_number_integer() || device < 0 || device > kMostCount)
                return wrong(where + "/devices", "expected device numbers from 0");
            rule.devices.push_back({device.get<std::int32_t>()});
        }
    } else if (json.contains("coordinates")) {
        TRY(const Json *coordinates, listAt(json, "coordinates", where));
        for (const Json &c : *coordinates) {
            TRY_VOID(requireObject(c, where + "/coordinates"));
            TRY(std::string axis, textAt(c, "axis", where + "/coordinates"));
            TRY(const auto index, countAt(c, "index", where + "/coordinates", 0));
            rule.coordinates.push_back({std::move(axis), index});
        }
    }
    return Rule {std::move(rule)};
}

Result<Rule> readRule(const Json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY(const std::string type, textAt(json, "type", where));
    if (type == "mesh")
        return readMesh(json, where);
    if (type == "micro-batches") {
        TRY_VOID(requireMembers(json, {"type", "count", "whole"}, where));
        TRY(const auto count, countAt(json, "count", where, 1));
        const auto whole = json.find("whole");
        if (whole != json.end() && !whole->is_boolean())
            return Error{ErrorCode::InvalidInput, "expected true or false", {}, where + "/whole"};
        return Rule {MicroBatchesRule {count, whole != json.end() && whole->get<bool>()}};
    }
    if (type == "split") {
        TRY_VOID(requireMembers(json, {"type", "steps"}, where));
        OpTransRule rule;
        TRY(const Json *steps, listAt(json, "steps", where));
        for (const Json &item : *steps) {
            TRY(SplitStep step, readStep(item, where + "/steps/" + std::to_string(rule.steps.size())));
            rule.steps.push_back(std::move(step));
        }
        return Rule {std::move(rule)};
    }
    if (type == "coshard") {
        TRY_VOID(requireMembers(json, {"type", "dimension", "parts"}, where));
        CoshardRule rule;
        TRY(rule.dimension, dimensionAt(json, where));
        TRY(rule.parts, countAt(json, "parts", where, 1));
        return Rule {std::move(rule)};
    }
    if (type == "place")
        return readPlace(json, where);
    if (type == "order") {
        TRY_VOID(requireMembers(json, {"type", "second", "micro_batch_offset", "micro_batch"}, where));
        OpOrderRule rule;
        TRY(rule.second, selectorAt(json, "second", where));
        TRY(rule.microBatchOffset, countAt(json, "micro_batch_offset", where, -kMostCount, 0));
        TRY(rule.microBatch, countAt(json, "micro_batch", where, 0, -1));
        return Rule {std::move(rule)};
    }
    if (type == "schedule") {
        TRY_VOID(requireMembers(json, {"type", "schedule"}, where));
        TRY(const std::string name, textAt(json, "schedule", where));
        for (const ScheduleKind kind :
            {ScheduleKind::Sequential, ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
            if (name == nameOf(kind))
                return Rule {ScheduleRule {kind}};
        }
        return wrong(where + "/schedule", "expected gpipe, 1f1b or sequential");
    }
    if (type == "stage") {
        TRY_VOID(requireMembers(json, {"type", "index"}, where));
        TRY(const auto index, countAt(json, "index", where, 0));
        return Rule {StageRule {index}};
    }
    if (type == "recompute") {
        TRY_VOID(requireMembers(json, {"type", "per"}, where));
        TRY(const std::string per, textAt(json, "per", where, "selection"));
        for (const RecomputePer kind :
            {RecomputePer::Selection, RecomputePer::Layer, RecomputePer::Operator}) {
            if (per == WriteRule::nameOf(kind))
                return Rule {RecomputeRule {kind}};
        }
        return wrong(where + "/per", "expected selection, layer or operator");
    }
    if (type == "zero1") {
        TRY_VOID(requireMembers(json, {"type", "axis", "parts"}, where));
        OptimizerShardingRule rule;
        TRY(rule.axis, textAt(json, "axis", where, ""));
        TRY(rule.parts, countAt(json, "parts", where, 1, 0));
        return Rule {std::move(rule)};
    }
    if (type == "in-flight") {
        TRY_VOID(requireMembers(json, {"type", "count", "stage"}, where));
        InFlightRule rule;
        TRY(rule.count, countAt(json, "count", where, 1));
        TRY(rule.stage, countAt(json, "stage", where, 0, -1));
        return Rule {rule};
    }
    if (type == "limit") {
        TRY_VOID(requireMembers(json, {"type", "bytes", "nanoseconds"}, where));
        const bool time = json.contains("nanoseconds");
        if (time && json.contains("bytes"))
            return wrong(where, "expected bytes or nanoseconds, not both");
        LimitRule rule {.kind = time ? LimitRule::Kind::Time : LimitRule::Kind::Memory};
        TRY(rule.value, integerAt(json, time ? "nanoseconds" : "bytes", where, 1, kMostExtent));
        return Rule {rule};
    }
    return wrong(where + "/type", "there is no rule '" + type.substr(0, 40) + "'");
}

Result<Row> readRow(const Json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY_VOID(requireMembers(json, {"enabled", "prefer", "selector", "rule", "origin", "note"}, where));
    Row row;
    if (const auto enabled = json.find("enabled"); enabled != json.end()) {
        if (!enabled->is_boolean())
            return wrong(where + "/enabled", "expected true or false");
        row.enabled = enabled->get<bool>();
    }
    if (json.contains("prefer")) {
        TRY(const auto weight, integerAt(json, "prefer", where, 1, kMostWeight));
        row.preference = static_cast<std::int32_t>(weight);
    }
    const auto rule = json.find("rule");
    if (rule == json.end())
        return wrong(where + "/rule", "expected a rule");
    TRY(row.rule, readRule(*rule, where + "/rule"));
    if (json.contains("selector") || hasSelector(row.rule)) {
        TRY(row.selector, selectorAt(json, "selector", where));
        if (!hasSelector(row.rule) && row.selector != Selector {})
            return wrong(where + "/selector", "a rule about the whole plan takes no selector");
    }
    TRY(row.note, textAt(json, "note", where, ""));
    TRY(const std::string origin, textAt(json, "origin", where, "text"));
    for (const RowOrigin kind :
        {RowOrigin::Text, RowOrigin::Gesture, RowOrigin::Template, RowOrigin::Import}) {
        if (origin == nameOf(kind)) {
            row.origin = kind;
            return row;
        }
    }
    return wrong(where + "/origin", "expected gesture, template, import or text");
}

} // namespace

nlohmann::json toJson(const ConstraintTable &table)
{
    Json rows = Json::array();
    for (const Row &row : table.rows) {
        Json json {{"rule", std::visit(WriteRule {}, row.rule)}};
        if (hasSelector(row.rule))
            json["selector"] = toString(row.selector);
        if (!row.enabled)
            json["enabled"] = false;
        if (row.preference > 0)
            json["prefer"] = row.preference;
        if (row.origin != RowOrigin::Text)
            json["origin"] = nameOf(row.origin);
        if (!row.note.empty())
            json["note"] = row.note;
        rows.push_back(std::move(json));
    }
    Json json {{"format", "planloom-table"}, {"version", kVersion}, {"rows", std::move(rows)}};
    if (!table.note.empty())
        json["note"] = table.note;
    return json;
}

std::string tableToJson(const ConstraintTable &table)
{
    return toJson(table).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ConstraintTable> tableFromJson(const nlohmann::json &document)
{
    TRY_VOID(requireObject(document, "table"));
    TRY_VOID(requireMembers(document, {"format", "version", "rows", "note"}, "table"));
    TRY(const std::string format, textAt(document, "format", "table"));
    if (format != "planloom-table")
        return wrong("table/format", "expected \"planloom-table\"");
    TRY(const auto version, integerAt(document, "version", "table", 1, kMostExtent));
    if (version > kVersion) {
        return Error {ErrorCode::NotSupported,
            "this is version " + std::to_string(version) + " of the table format, the newest known one is "
                + std::to_string(kVersion),
            "update Planloom", "table/version"};
    }
    const auto rows = document.find("rows");
    if (rows == document.end() || !rows->is_array())
        return wrong("rows", "expected a list of rows");
    ConstraintTable table;
    TRY(table.note, textAt(document, "note", "table", ""));
    for (const Json &item : *rows) {
        TRY(Row row, readRow(item, "rows/" + std::to_string(table.rows.size())));
        table.rows.push_back(std::move(row));
    }
    return table;
}

Result<ConstraintTable> tableFromJson(std::string_view text)
{
    Json document;
    try {
        document = Json::parse(text);
    } catch (const Json::parse_error &error) {
        return Error {ErrorCode::InvalidInput, "this is not JSON: " + std::string(error.what()), "",
            "table@" + std::to_string(error.byte)};
    } catch (const Json::exception &error) { // A number beyond what a double holds.
        return Error {ErrorCode::InvalidInput, "this is not JSON: " + std::string(error.what()), "", "table"};
    }
    return tableFromJson(document);
}

} // namespace planloom
