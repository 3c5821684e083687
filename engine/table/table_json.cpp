#include "engine/table/table_json.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/all_kinds.h"
#include "engine/table/rule_form.h"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kVersion = 1;

Json writeRule(const Rule &rule)
{
    return std::visit(
        []<typename R>(R itself) {
            Json json{{"type", RuleTraits<R>::words.front()}};
            RuleForm form = RuleForm::writeJson(json);
            RuleTraits<R>::describe(form, itself);
            return json;
        },
        rule);
}

Result<Rule> readRule(const Json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY(const std::string type, textAt(json, "type", where));
    Rule rule;
    RuleForm form = RuleForm::readJson(json, where);
    form.knows("type");
    const bool known = anyKind([&]<typename R>(std::type_identity<R>) {
        if (type != RuleTraits<R>::words.front())
            return false;
        RuleTraits<R>::describe(form, rule.emplace<R>());
        return true;
    });
    if (!known)
        return wrong(where + "/type", "there is no rule '" + type.substr(0, 40) + "'");
    TRY_VOID(form.finish());
    return rule;
}

Result<Row> readRow(const Json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY_VOID(requireMembers(json, {"enabled", "prefer", "selector", "rule", "origin", "note"}, where));
    Row row;
    TRY(row.enabled, flagAt(json, "enabled", where, true));
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
        if (!hasSelector(row.rule) && row.selector != Selector{})
            return wrong(where + "/selector", "a rule about the whole plan takes no selector");
    }
    TRY(row.note, textAt(json, "note", where, ""));
    TRY(const std::string origin, textAt(json, "origin", where, "text"));
    for (const RowOrigin kind :
        {RowOrigin::Text, RowOrigin::Gesture, RowOrigin::Template, RowOrigin::Import, RowOrigin::Solver}) {
        if (origin == nameOf(kind)) {
            row.origin = kind;
            return row;
        }
    }
    return wrong(where + "/origin", "expected gesture, template, import, solver or text");
}

} // namespace

nlohmann::json toJson(const ConstraintTable &table)
{
    Json rows = Json::array();
    for (const Row &row : table.rows) {
        Json json{{"rule", writeRule(row.rule)}};
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
    Json json{{"format", "planloom-table"}, {"version", kVersion}, {"rows", std::move(rows)}};
    if (!table.note.empty())
        json["note"] = table.note;
    return json;
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
        return Error{ErrorCode::NotSupported,
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
        return Error{ErrorCode::InvalidInput, "this is not JSON: " + std::string(error.what()), "",
            "table@" + std::to_string(error.byte)};
    } catch (const Json::exception &error) { // A number beyond what a double holds.
        return Error{ErrorCode::InvalidInput, "this is not JSON: " + std::string(error.what()), "", "table"};
    }
    return tableFromJson(document);
}

} // namespace planloom
