#include "engine/interop/autodist_entries.h"

#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/interop/autodist_yaml.h"

#include <charconv>
#include <optional>
#include <set>

namespace planloom {

namespace {

constexpr std::size_t kMostEntries = 10000;

const char *kindOf(const YAML::Node &node)
{
    switch (node.Type()) {
    case YAML::NodeType::Map:
        return "a map";
    case YAML::NodeType::Sequence:
        return "a list";
    case YAML::NodeType::Scalar:
        return "a value";
    default:
        return "nothing";
    }
}

} // namespace

Result<std::vector<AutodistEntry>> AutodistReader::read(std::string_view text) const
{
    if (text.size() > kMostAutodistBytes)
        return Error{ErrorCode::ResourceLimit,
            "a file of partition constraints may have " + std::to_string(kMostAutodistBytes) + " bytes",
            "write fewer entries", m_file};
    try {
        const YAML::Node root = YAML::Load(std::string(text));
        std::vector<AutodistEntry> entries;
        if (root.IsNull())
            return entries;
        if (!root.IsSequence())
            return wrong(root.Mark(), std::string("expected a list of constraints, found ") + kindOf(root),
                "begin each with '- name: torch.nn.functional.linear'");
        if (root.size() > kMostEntries)
            return Error{ErrorCode::ResourceLimit,
                "expected at most " + std::to_string(kMostEntries) + " constraints", {}, m_file};
        for (const YAML::Node &node : root) {
            TRY(AutodistEntry entry, readEntry(node));
            entries.push_back(std::move(entry));
        }
        return entries;
    } catch (const YAML::Exception &exception) {
        return wrong(exception.mark.is_null() ? YAML::Mark{} : exception.mark,
            "this is no YAML: " + exception.msg,
            "see the list of constraints in nnScaler's documentation of autodist");
    }
}

Result<std::string> AutodistReader::text(const YAML::Node &node, const char *member) const
{
    if (!node.IsScalar() || node.Scalar().empty())
        return wrong(node.Mark(), std::string("expected a name for '") + member + "', found " + kindOf(node));
    if (node.Scalar().size() > 1000)
        return wrong(node.Mark(), std::string("expected at most 1000 characters for '") + member + "'");
    return node.Scalar();
}

Result<AutodistEntry> AutodistReader::readEntry(const YAML::Node &node) const
{
    if (!node.IsMap())
        return wrong(node.Mark(), std::string("expected a constraint, found ") + kindOf(node),
            "name: torch.nn.functional.linear");
    AutodistEntry entry{.mark = node.Mark()};
    std::set<std::string> seen;
    for (const auto &each : node) {
        if (!each.first.IsScalar())
            return wrong(
                each.first.Mark(), std::string("expected the name of a member, found ") + kindOf(each.first));
        const std::string &key = each.first.Scalar();
        if (!seen.insert(key).second)
            return wrong(
                each.first.Mark(), "'" + key + "' stands here for the second time", "keep one of them");
        if (key == "name") {
            TRY(entry.name, text(each.second, "name"));
        } else if (key == "parent_module") {
            if (!each.second.IsNull()) {
                TRY(entry.parent, text(each.second, "parent_module"));
            }
        } else if (key == "allowed_partition_dims") {
            if (!each.second.IsSequence())
                return wrong(each.second.Mark(),
                    std::string("expected a list of positions, found ") + kindOf(each.second),
                    "[\"0,0\", \"1,0\"]");
            for (const YAML::Node &position : each.second)
                TRY_VOID(readPosition(position, entry));
        } else if (key == "replica_allowed") {
            const std::string value = each.second.IsScalar() ? lowerCase(each.second.Scalar()) : "";
            if (value != "true" && value != "false")
                return wrong(each.second.Mark(), "expected true or false for 'replica_allowed'");
            entry.copies = value == "true";
        } else {
            return wrong(each.first.Mark(), "'" + key.substr(0, 60) + "' is no member of a constraint",
                "name, parent_module, allowed_partition_dims, replica_allowed");
        }
    }
    for (const char *member : {"name", "allowed_partition_dims"})
        if (!seen.contains(member))
            return wrong(node.Mark(), std::string("the constraint has no '") + member + "'",
                std::string("add it: ") + member + ": "
                    + (member == std::string_view("name") ? "torch.nn.functional.linear" : "[\"0,0\"]"));
    if (entry.positions.empty() && !entry.copies)
        return wrong(node.Mark(), "the constraint allows nothing: no position and no copies",
            "add a position, or allow copies");
    return entry;
}

Result<void> AutodistReader::readPosition(const YAML::Node &node, AutodistEntry &entry) const
{
    const std::string value = node.IsScalar() ? node.Scalar() : "";
    const std::size_t comma = value.find(',');
    const auto number = [](std::string_view part) -> std::optional<std::int32_t> {
        part = trimmed(part);
        std::int32_t result = 0;
        const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), result);
        if (part.empty() || failure != std::errc{} || end != part.data() + part.size() || result < 0
            || result > 1000)
            return std::nullopt;
        return result;
    };
    const auto input = number(std::string_view(value).substr(0, comma));
    const auto dimension =
        comma == std::string::npos ? std::nullopt : number(std::string_view(value).substr(comma + 1));
    if (!input || !dimension)
        return wrong(node.Mark(),
            "expected a position \"input,dimension\", found "
                + (node.IsScalar() ? "\"" + value.substr(0, 40) + "\"" : std::string(kindOf(node))),
            "\"0,1\" is dimension 1 of the first input");
    entry.positions.emplace_back(*input, *dimension);
    entry.positionMarks.push_back(node.Mark());
    return {};
}

} // namespace planloom
