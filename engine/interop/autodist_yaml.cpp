#include "engine/interop/autodist_yaml.h"

#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/graph/annotation.h"
#include "engine/graph/catalogue.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/row_setting.h"
#include "engine/table/selector_index.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostEntries = 10000;

/// What PyTorch calls kinds whose names differ from ours by more than letters.
constexpr std::array kTorchNames{std::pair{OperatorKind::Linear, "torch.nn.functional.linear"},
    std::pair{OperatorKind::MatMul, "torch.matmul"}, std::pair{OperatorKind::MatMul, "torch.bmm"},
    std::pair{OperatorKind::Embedding, "torch.nn.functional.embedding"},
    std::pair{OperatorKind::LayerNorm, "torch.nn.functional.layer_norm"},
    std::pair{OperatorKind::RmsNorm, "torch.nn.functional.rms_norm"},
    std::pair{OperatorKind::Softmax, "torch.nn.functional.softmax"},
    std::pair{OperatorKind::Softmax, "torch.softmax"},
    std::pair{OperatorKind::Gelu, "torch.nn.functional.gelu"},
    std::pair{OperatorKind::Relu, "torch.nn.functional.relu"},
    std::pair{OperatorKind::Silu, "torch.nn.functional.silu"},
    std::pair{OperatorKind::Dropout, "torch.nn.functional.dropout"},
    std::pair{OperatorKind::Conv, "torch.conv2d"},
    std::pair{OperatorKind::Conv, "torch.nn.functional.conv2d"},
    std::pair{OperatorKind::Conv, "torch.conv1d"}, std::pair{OperatorKind::Conv, "torch.conv3d"},
    std::pair{OperatorKind::Attention, "torch.nn.functional.scaled_dot_product_attention"},
    std::pair{OperatorKind::Reshape, "torch.Tensor.view"}, std::pair{OperatorKind::Reshape, "torch.reshape"},
    std::pair{OperatorKind::Transpose, "torch.transpose"},
    std::pair{OperatorKind::Transpose, "torch.permute"}, std::pair{OperatorKind::Concat, "torch.cat"},
    std::pair{OperatorKind::ReduceSum, "torch.sum"}, std::pair{OperatorKind::ReduceMean, "torch.mean"}};

/// "layernorm" of "torch.nn.functional.layer_norm" and of "LayerNorm".
std::string bareName(std::string_view name)
{
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
        name.remove_prefix(dot + 1);
    std::string bare;
    for (const char c : name)
        if (c != '_')
            bare += lowerCase(c);
    return bare;
}

bool isCalled(OperatorKind kind, const std::string &name)
{
    bool listed = false;
    for (const auto &[each, torch] : kTorchNames) {
        if (name == torch)
            return each == kind
                || std::any_of(kTorchNames.begin(), kTorchNames.end(),
                    [&](const auto &other) { return other.first == kind && name == other.second; });
        listed = listed || each == kind;
    }
    return bareName(nameOf(kind)) == bareName(name);
}

/// One entry of a file.
struct Entry {
    std::string name{};
    std::string parent{}; ///< Empty for every module.
    std::vector<std::pair<std::int32_t, std::int32_t>> positions{}; ///< Input, dimension.
    std::vector<YAML::Mark> positionMarks{};
    bool copies = true;
    YAML::Mark mark{};
};

/// Reads the entries of a file.
class EntryReader
{
public:
    explicit EntryReader(const std::string &file)
        : m_file(file)
    {
    }
    Result<std::vector<Entry>> read(std::string_view text) const;
    Error wrong(const YAML::Mark &mark, std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            m_file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1)};
    }

private:
    Result<Entry> readEntry(const YAML::Node &node) const;
    Result<void> readPosition(const YAML::Node &node, Entry &entry) const;
    Result<std::string> text(const YAML::Node &node, const char *member) const;

    const std::string &m_file;
};

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

Result<std::vector<Entry>> EntryReader::read(std::string_view text) const
{
    if (text.size() > kMostAutodistBytes)
        return Error{ErrorCode::ResourceLimit,
            "a file of partition constraints may have " + std::to_string(kMostAutodistBytes) + " bytes",
            "write fewer entries", m_file};
    try {
        const YAML::Node root = YAML::Load(std::string(text));
        std::vector<Entry> entries;
        if (root.IsNull())
            return entries;
        if (!root.IsSequence())
            return wrong(root.Mark(), std::string("expected a list of constraints, found ") + kindOf(root),
                "begin each with '- name: torch.nn.functional.linear'");
        if (root.size() > kMostEntries)
            return Error{ErrorCode::ResourceLimit,
                "expected at most " + std::to_string(kMostEntries) + " constraints", {}, m_file};
        for (const YAML::Node &node : root) {
            TRY(Entry entry, readEntry(node));
            entries.push_back(std::move(entry));
        }
        return entries;
    } catch (const YAML::Exception &exception) {
        return wrong(exception.mark.is_null() ? YAML::Mark{} : exception.mark,
            "this is no YAML: " + exception.msg,
            "see the list of constraints in nnScaler's documentation of autodist");
    }
}

Result<std::string> EntryReader::text(const YAML::Node &node, const char *member) const
{
    if (!node.IsScalar() || node.Scalar().empty())
        return wrong(node.Mark(), std::string("expected a name for '") + member + "', found " + kindOf(node));
    if (node.Scalar().size() > 1000)
        return wrong(node.Mark(), std::string("expected at most 1000 characters for '") + member + "'");
    return node.Scalar();
}

Result<Entry> EntryReader::readEntry(const YAML::Node &node) const
{
    if (!node.IsMap())
        return wrong(node.Mark(), std::string("expected a constraint, found ") + kindOf(node),
            "name: torch.nn.functional.linear");
    Entry entry{.mark = node.Mark()};
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

Result<void> EntryReader::readPosition(const YAML::Node &node, Entry &entry) const
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

/// Where PyTorch's position lies in our operator: its linear weights are [n k], ours may be [k n].
std::optional<DimensionRef> positionIn(const Operator &op, std::pair<std::int32_t, std::int32_t> position)
{
    auto [input, dimension] = position;
    DimensionRef ref{.kind = DimensionRef::Kind::Input, .name = {}};
    const auto inputs = static_cast<std::int32_t>(op.inputs.size());
    if (input >= inputs) {
        ref.kind = DimensionRef::Kind::Output;
        input -= inputs;
    }
    const auto &tensors =
        ref.kind == DimensionRef::Kind::Input ? op.annotation.inputs : op.annotation.outputs;
    if (static_cast<std::size_t>(input) >= tensors.size())
        return std::nullopt;
    const auto rank = static_cast<std::int32_t>(tensors[static_cast<std::size_t>(input)].terms.size());
    if (dimension >= rank)
        return std::nullopt;
    if (op.kind == OperatorKind::Linear && ref.kind == DimensionRef::Kind::Input && input == 1
        && op.attributes.integer("transposed") == 0)
        dimension = rank - 1 - dimension;
    ref.slot = input;
    ref.dimension = dimension;
    return ref;
}

/// Whether `parent` stands in the path of the operator's module, or in its name: PyTorch has a module for
/// most operators with weights, whose name is the operator's here.
bool liesIn(const SelectorIndex &index, const Operator &op, const std::string &parent)
{
    return op.name.find(parent) != std::string::npos
        || (op.scope.valid() && index.pathOf(op.scope).find(parent) != std::string::npos);
}

Selector thoseIn(const std::string &parent)
{
    Selector either{.kind = SelectorKind::Or};
    either.children.push_back({.kind = SelectorKind::In, .text = "*" + globOf(parent) + "*"});
    either.children.push_back({.kind = SelectorKind::Name, .text = "*" + globOf(parent) + "*"});
    return either;
}

/// A kind's operators that lie in `parent`, but for those in longer `others`.
Selector selectorFor(OperatorKind kind, const std::string &parent, const std::set<std::string> &others)
{
    Selector all{.kind = SelectorKind::And};
    all.children.push_back({.kind = SelectorKind::Kind, .text = globOf(nameOf(kind))});
    if (!parent.empty())
        all.children.push_back(thoseIn(parent));
    for (const std::string &other : others) {
        Selector without{.kind = SelectorKind::Not};
        without.children.push_back(thoseIn(other));
        all.children.push_back(std::move(without));
    }
    return all.children.size() == 1 ? all.children.front() : all;
}

} // namespace

std::string autodistAxis(const std::vector<MeshAxis> &mesh)
{
    const auto isUsual = [](const MeshAxis &axis) { return axis.name == kAutodistAxis; };
    const auto shares = [](const MeshAxis &axis) { return roleOf(axis) == AxisRole::Shards; };
    const auto found = std::find_if(mesh.begin(), mesh.end(), shares);
    return std::any_of(mesh.begin(), mesh.end(), isUsual) || found == mesh.end() ? kAutodistAxis
                                                                                 : found->name;
}

bool isAutodistFile(std::string_view path)
{
    return path.ends_with(".yaml") || path.ends_with(".yml");
}

std::string torchNameOf(OperatorKind kind)
{
    for (const auto &[each, name] : kTorchNames)
        if (each == kind)
            return name;
    std::string snake;
    for (const char c : std::string_view(nameOf(kind))) {
        if (c >= 'A' && c <= 'Z' && !snake.empty())
            snake += '_';
        snake += lowerCase(c);
    }
    return "torch." + snake;
}

Result<AutodistRows> readAutodist(
    std::string_view text, const std::string &file, const Model &model, const std::string &axis)
{
    const EntryReader reader(file);
    TRY(const std::vector<Entry> entries, reader.read(text));
    const Graph &graph = *model.graph;
    const SelectorIndex &index = *model.index;
    AutodistRows result;
    const auto note = [&](const Entry &entry, const std::string &sentence) {
        result.notes.push_back("line " + std::to_string(entry.mark.line + 1) + ": " + sentence);
    };
    std::set<std::pair<std::string, std::string>> known;
    for (const Entry &entry : entries) {
        if (!known.emplace(entry.name, entry.parent).second) {
            note(entry, "an earlier entry has the same name and parent_module: this one is passed by");
            continue;
        }
        std::map<OperatorKind, std::vector<OperatorId>> matched;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            const Operator &op = graph.operators[i];
            if (op.direction != Direction::Forward || !isCalled(op.kind, entry.name))
                continue;
            const Entry *longest = nullptr;
            for (const Entry &other : entries)
                if (isCalled(op.kind, other.name) && liesIn(index, op, other.parent)
                    && (!longest || other.parent.size() > longest->parent.size()))
                    longest = &other;
            if (longest && longest->parent == entry.parent)
                matched[op.kind].push_back({static_cast<std::int32_t>(i)});
        }
        if (matched.empty()) {
            note(entry,
                "nothing is called " + entry.name
                    + (entry.parent.empty() ? "" : " in a module with '" + entry.parent + "' in its path"));
            continue;
        }
        for (const auto &[kind, operators] : matched) {
            std::set<std::string> others;
            for (const Entry &other : entries)
                if (other.parent.size() > entry.parent.size() && isCalled(kind, other.name))
                    others.insert(other.parent);
            // Identifiers that the positions name, operator by operator: by one position where they agree.
            bool single = true;
            bool any = false;
            DimensionRef ref;
            for (const OperatorId id : operators) {
                const Operator &op = graph.at(id);
                std::set<std::int32_t> identifiers;
                for (std::size_t p = 0; p < entry.positions.size(); ++p) {
                    const auto position = positionIn(op, entry.positions[p]);
                    const auto &[input, dimension] = entry.positions[p];
                    if (!position)
                        return reader.wrong(entry.positionMarks[p],
                            "'" + op.name + "' has no position \"" + std::to_string(input) + ","
                                + std::to_string(dimension) + "\"",
                            "inputs count from 0, and so do their dimensions; outputs count on behind the "
                            "inputs");
                    const auto &terms = (position->kind == DimensionRef::Kind::Input
                            ? op.annotation.inputs
                            : op.annotation.outputs)[static_cast<std::size_t>(position->slot)];
                    const auto identifier = splittableFactor(
                        op.annotation, terms.terms[static_cast<std::size_t>(position->dimension)]);
                    if (!identifier)
                        return reader.wrong(entry.positionMarks[p],
                            "'" + op.name + "' cannot be cut at \"" + std::to_string(input) + ","
                                + std::to_string(dimension) + "\"",
                            "leave the position out");
                    if (identifiers.insert(*identifier).second && identifiers.size() == 1)
                        ref = *position;
                }
                single = single && identifiers.size() == 1;
                any = any || !identifiers.empty();
            }
            const Selector selector = selectorFor(kind, entry.parent, others);
            const auto add = [&](SplitStep step) {
                step.axis = axis;
                result.table.rows.push_back({.enabled = true,
                    .selector = selector,
                    .rule = OpTransRule{{std::move(step)}},
                    .origin = RowOrigin::Import,
                    .note = file + ":" + std::to_string(entry.mark.line + 1)});
            };
            if (!any)
                add({.kind = SplitKind::Replicate});
            else if (single && !entry.copies)
                add({.kind = SplitKind::Dimension, .dimension = ref});
            else
                note(entry,
                    entry.name + " may be cut in several ways" + (entry.copies ? ", or copied" : "")
                        + ": a row says one, so none is written");
        }
    }
    return result;
}

AutodistText writeAutodist(
    const ConstraintTable &table, const Model &model, std::int32_t deviceCount, const std::string &axis)
{
    const Graph &graph = *model.graph;
    const SelectorIndex &index = *model.index;
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    AutodistText result;
    // What every operator is to be: an identifier, or copies.
    struct Wanted {
        std::int32_t identifier = -1;
        std::size_t row = 0;
    };
    std::map<OperatorId, Wanted> wanted;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        const Row &row = table.rows[r];
        const auto *rule = std::get_if<OpTransRule>(&row.rule);
        const auto noteRow = [&](const std::string &sentence) {
            result.notes.push_back("row " + std::to_string(r + 1) + ": " + sentence);
        };
        if (!row.enabled)
            continue;
        if (rule == nullptr) {
            if (hasSelector(row.rule))
                noteRow(std::string("the format has no word for '") + nameOf(row.rule) + "'");
            continue;
        }
        const auto step = std::find_if(
            rule->steps.begin(), rule->steps.end(), [&](const SplitStep &each) { return each.axis == axis; });
        if (step == rule->steps.end())
            continue;
        if (rule->steps.size() > 1 || step->kind == SplitKind::Value || !step->sizes.empty())
            noteRow("the format has no word for nested, uneven or value splits: the cut over " + axis
                + " is written");
        for (const OperatorId id : index.select(row.selector)) {
            if (graph.at(id).direction != Direction::Forward)
                continue;
            const auto split = splitOf(setting, id, *step);
            if (!split || split->parts < 2)
                continue;
            wanted[id] = {split->kind == SplitKind::Dimension ? split->dimension : -1, r};
        }
    }
    // Entries: a kind, and a part of the module's path that picks exactly the operators.
    std::map<std::pair<OperatorKind, std::string>, std::vector<OperatorId>> groups; // by kind and position
    const auto positionOf = [&](OperatorId id, std::int32_t identifier) -> std::string {
        const Operator &op = graph.at(id);
        for (std::size_t s = 0; s < op.annotation.inputs.size() + op.annotation.outputs.size(); ++s) {
            const bool isInput = s < op.annotation.inputs.size();
            const auto &terms =
                (isInput ? op.annotation.inputs[s] : op.annotation.outputs[s - op.annotation.inputs.size()])
                    .terms;
            for (std::size_t d = 0; d < terms.size(); ++d) {
                if (splittableFactor(op.annotation, terms[d]) != identifier)
                    continue;
                const bool turned =
                    op.kind == OperatorKind::Linear && s == 1 && op.attributes.integer("transposed") == 0;
                return std::to_string(s) + "," + std::to_string(turned ? terms.size() - 1 - d : d);
            }
        }
        return {};
    };
    for (const auto &[id, want] : wanted)
        groups[{graph.at(id).kind, want.identifier < 0 ? "" : positionOf(id, want.identifier)}].push_back(id);
    YAML::Emitter out;
    out << YAML::BeginSeq;
    for (const auto &[key, operators] : groups) {
        const auto &[kind, position] = key;
        const auto matches = [&](const std::string &part) {
            std::vector<OperatorId> all;
            for (std::size_t i = 0; i < graph.operators.size(); ++i) {
                const Operator &op = graph.operators[i];
                if (op.direction == Direction::Forward && op.kind == kind && liesIn(index, op, part))
                    all.push_back({static_cast<std::int32_t>(i)});
            }
            return all;
        };
        // Parts of paths that pick nothing else, the shortest that pick most first.
        std::set<OperatorId> left(operators.begin(), operators.end());
        std::vector<std::string> parts;
        if (matches("") == operators) {
            parts.emplace_back();
            left.clear();
        }
        std::map<std::string, std::vector<OperatorId>> candidates;
        for (const OperatorId id : operators) {
            const std::string path = left.empty() ? std::string{} : graph.at(id).name;
            for (std::size_t begin = 0; begin < path.size();) {
                candidates.try_emplace(path.substr(begin));
                candidates.try_emplace(path.substr(begin, path.find('.', begin) - begin));
                const std::size_t dot = path.find('.', begin);
                begin = dot == std::string::npos ? path.size() : dot + 1;
            }
        }
        std::vector<std::pair<std::size_t, std::string>> ranked;
        for (auto &[part, picked] : candidates) {
            picked = matches(part);
            if (std::includes(operators.begin(), operators.end(), picked.begin(), picked.end()))
                ranked.emplace_back(picked.size(), part);
        }
        std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) {
            return a.first != b.first ? a.first > b.first : a.second.size() < b.second.size();
        });
        for (const auto &[count, part] : ranked) {
            const auto &picked = candidates.at(part);
            if (std::none_of(picked.begin(), picked.end(), [&](OperatorId id) { return left.contains(id); }))
                continue;
            parts.push_back(part);
            for (const OperatorId id : picked)
                left.erase(id);
        }
        for (const std::string &part : parts) {
            out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << torchNameOf(kind);
            if (!part.empty())
                out << YAML::Key << "parent_module" << YAML::Value << part;
            out << YAML::Key << "allowed_partition_dims" << YAML::Value << YAML::Flow << YAML::BeginSeq;
            if (!position.empty())
                out << YAML::DoubleQuoted << position;
            out << YAML::EndSeq << YAML::Key << "replica_allowed" << YAML::Value << position.empty()
                << YAML::EndMap;
        }
        if (!left.empty()) {
            const OperatorId first = *left.begin();
            result.notes.push_back("row " + std::to_string(wanted.at(first).row + 1)
                + ": no part of a module's path tells '" + graph.at(first).name + "'"
                + (left.size() > 1
                        ? " and " + counted(static_cast<std::int64_t>(left.size()) - 1, "other operator")
                        : "")
                + " from others of its kind");
        }
    }
    out << YAML::EndSeq;
    result.yaml = out.c_str();
    result.yaml += '\n';
    return result;
}

} // namespace planloom
