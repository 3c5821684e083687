#include "engine/interop/autodist_yaml.h"

#include "engine/base/nearest_name.h"
#include "engine/base/words.h"
#include "engine/graph/annotation/annotation.h"
#include "engine/interop/autodist_entries.h"
#include "engine/interop/autodist_operators.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/row_setting.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostShown = 5; ///< Names in an error.

/// Where operators lie, by the paths of modules and by their classes.
class Modules
{
public:
    Modules(const SelectorIndex &index, const std::map<std::string, std::string> &classes)
        : m_index(index)
        , m_classes(classes)
    {
    }

    /// Whether `parent` stands in the path of the operator's module, in the class of a module that it lies
    /// in, or in its name: PyTorch has a module for most operators with weights, whose name is the operator's
    /// here.
    bool has(const Operator &op, const std::string &parent) const
    {
        const std::string path = op.scope.valid() ? m_index.pathOf(op.scope) : std::string{};
        if (op.name.find(parent) != std::string::npos || path.find(parent) != std::string::npos)
            return true;
        return std::any_of(m_classes.begin(), m_classes.end(), [&](const auto &module) {
            return module.second.find(parent) != std::string::npos
                && (isBelow(op.name, module.first) || isBelow(path, module.first));
        });
    }

    /// A selector of those of a kind that `has` is true for; whether it picks no others is to be seen.
    Selector in(const std::string &parent) const
    {
        std::set<std::string> globs;
        for (const auto &[path, name] : m_classes)
            if (!path.empty() && name.find(parent) != std::string::npos)
                globs.insert(ofAnyNumber(path));
        Selector any{.kind = SelectorKind::Or};
        for (const std::string &glob : globs) {
            any.children.push_back({.kind = SelectorKind::In, .text = glob});
            any.children.push_back({.kind = SelectorKind::Name, .text = glob + "*"});
        }
        if (globs.empty()) {
            any.children.push_back({.kind = SelectorKind::In, .text = "*" + globOf(parent) + "*"});
            any.children.push_back({.kind = SelectorKind::Name, .text = "*" + globOf(parent) + "*"});
        }
        return any;
    }

    /// What entries may name: classes, or where there are none parts of paths.
    std::set<std::string> names() const
    {
        std::set<std::string> found;
        for (const auto &[path, name] : m_classes)
            found.insert(name.substr(name.rfind('.') + 1));
        for (std::size_t i = 0; m_classes.empty() && i < m_index.graph().scopes.size(); ++i)
            if (const std::string &name = m_index.graph().scopes[i].name; !name.empty())
                found.insert(name);
        return found;
    }

private:
    static bool isBelow(const std::string &path, const std::string &module)
    {
        return path.starts_with(module)
            && (module.empty() || path.size() == module.size() || path[module.size()] == '.');
    }

    /// "blocks.*.attn" of "blocks.3.attn".
    static std::string ofAnyNumber(const std::string &path)
    {
        std::string glob;
        for (std::size_t begin = 0; begin <= path.size();) {
            const std::size_t end = std::min(path.find('.', begin), path.size());
            const std::string part = path.substr(begin, end - begin);
            const bool isNumber = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
            glob += (begin == 0 ? "" : ".") + (isNumber ? "*" : globOf(part));
            begin = end + 1;
        }
        return glob;
    }

    const SelectorIndex &m_index;
    const std::map<std::string, std::string> &m_classes;
};

/// Makes rows of entries.
class RowMaker
{
public:
    RowMaker(const AutodistReader &reader, const std::vector<AutodistEntry> &entries, const Model &model,
        const Modules &modules)
        : m_reader(reader)
        , m_entries(entries)
        , m_graph(*model.graph)
        , m_index(*model.index)
        , m_modules(modules)
    {
    }

    /// The operators that an entry is about, by kind.
    std::map<OperatorKind, std::vector<OperatorId>> matched(const AutodistEntry &entry) const
    {
        std::map<OperatorKind, std::vector<OperatorId>> found;
        for (std::size_t i = 0; i < m_index.forwardCount(); ++i) {
            const Operator &op = m_graph.operators[i];
            const bool isOwn = isCalled(op.kind, entry.name);
            if (!isOwn && !isInside(op.kind, entry.name))
                continue;
            const AutodistEntry *longest = nullptr;
            for (const AutodistEntry &other : m_entries)
                if ((isOwn ? isCalled(op.kind, other.name) : other.name == entry.name)
                    && m_modules.has(op, other.parent)
                    && (!longest || other.parent.size() > longest->parent.size()))
                    longest = &other;
            if (longest && longest->parent == entry.parent)
                found[op.kind].push_back({static_cast<std::int32_t>(i)});
        }
        return found;
    }

    /// Where the operators may be cut: positions of one that has most of them. @return InvalidInput where an
    /// operator has none of the positions, and may not be copied either
    Result<std::vector<DimensionRef>> waysOf(
        const AutodistEntry &entry, const std::vector<OperatorId> &operators) const
    {
        std::vector<DimensionRef> most;
        for (const OperatorId id : operators) {
            const Operator &op = m_graph.at(id);
            std::vector<DimensionRef> ways;
            std::set<std::int32_t> identifiers;
            std::optional<Error> failure;
            for (std::size_t p = 0; p < entry.positions.size(); ++p) {
                const auto position = positionIn(op, entry.name, entry.positions[p]);
                const auto identifier = position ? identifierAt(op, *position) : std::nullopt;
                if (identifier && identifiers.insert(*identifier).second)
                    ways.push_back(*position);
                if (!identifier && !failure)
                    failure = noSuchPosition(entry, p, op, position.has_value());
            }
            if (ways.empty() && failure && (!entry.copies || entry.positions.size() == 1))
                return *std::move(failure);
            if (ways.size() > most.size())
                most = std::move(ways);
        }
        return most;
    }

    /// Picks those operators and no others.
    Selector selectorOf(
        OperatorKind kind, const AutodistEntry &entry, const std::vector<OperatorId> &operators) const
    {
        Selector all{.kind = SelectorKind::And};
        all.children.push_back({.kind = SelectorKind::Kind, .text = globOf(nameOf(kind))});
        if (!entry.parent.empty())
            all.children.push_back(m_modules.in(entry.parent));
        std::set<std::string> others;
        for (const AutodistEntry &other : m_entries)
            if (other.parent.size() > entry.parent.size()
                && (isCalled(kind, other.name) || other.name == entry.name))
                others.insert(other.parent);
        for (const std::string &other : others) {
            Selector without{.kind = SelectorKind::Not};
            without.children.push_back(m_modules.in(other));
            all.children.push_back(std::move(without));
        }
        if (all.children.size() == 1)
            all = Selector(all.children.front());
        std::vector<OperatorId> picked;
        for (const OperatorId id : m_index.select(all))
            if (m_graph.at(id).direction == Direction::Forward)
                picked.push_back(id);
        if (picked == operators)
            return all;
        std::vector<std::string> names;
        for (const OperatorId id : operators)
            names.push_back(m_graph.at(id).name);
        return selectSet(std::move(names));
    }

    /// That an entry is about nothing, and what there is.
    Error bindsNothing(const AutodistEntry &entry) const
    {
        std::set<std::string> calls;
        bool isElsewhere = false;
        for (std::size_t i = 0; i < m_index.forwardCount(); ++i) {
            const OperatorKind kind = m_graph.operators[i].kind;
            calls.insert(torchNameOf(kind));
            isElsewhere = isElsewhere || isCalled(kind, entry.name) || isInside(kind, entry.name);
        }
        const std::set<std::string> known = isElsewhere ? m_modules.names() : calls;
        std::string nearest;
        for (const std::string &name :
            nearestNames(isElsewhere ? entry.parent : entry.name, {known.begin(), known.end()}, kMostShown))
            nearest += (nearest.empty() ? "" : ", ") + name;
        return m_reader.wrong(entry.mark,
            "the constraint is about no operator: nothing is called " + entry.name
                + (entry.parent.empty()
                        ? ""
                        : " in a module with '" + entry.parent + "' in its class or its path"),
            std::string("there ") + (isElsewhere ? "are modules " : "is ") + nearest
                + "; leave the constraint out if the model has no such operator");
    }

private:
    std::optional<std::int32_t> identifierAt(const Operator &op, const DimensionRef &position) const
    {
        const auto &tensors =
            position.kind == DimensionRef::Kind::Input ? op.annotation.inputs : op.annotation.outputs;
        const TensorTerms &terms = tensors[static_cast<std::size_t>(position.slot)];
        return splittableFactor(op.annotation, terms.terms[static_cast<std::size_t>(position.dimension)]);
    }

    Error noSuchPosition(
        const AutodistEntry &entry, std::size_t position, const Operator &op, bool exists) const
    {
        const std::string text = "\"" + std::to_string(entry.positions[position].first) + ","
            + std::to_string(entry.positions[position].second) + "\"";
        if (exists)
            return m_reader.wrong(entry.positionMarks[position], "'" + op.name + "' cannot be cut at " + text,
                "leave the position out");
        return m_reader.wrong(entry.positionMarks[position], "'" + op.name + "' has no position " + text,
            "inputs count from 0, and so do their dimensions; outputs count on behind the inputs");
    }

    const AutodistReader &m_reader;
    const std::vector<AutodistEntry> &m_entries;
    const Graph &m_graph;
    const SelectorIndex &m_index;
    const Modules &m_modules;
};

/// Makes entries of rows.
class EntryWriter
{
public:
    EntryWriter(
        const ConstraintTable &table, const Model &model, std::int32_t deviceCount, const std::string &axis)
        : m_table(table)
        , m_graph(*model.graph)
        , m_index(*model.index)
        , m_setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh}
        , m_axis(axis)
        , m_modules(m_index, m_noClasses)
    {
    }

    AutodistText write()
    {
        for (std::size_t r = 0; r < m_table.rows.size(); ++r)
            if (m_table.rows[r].enabled)
                readRow(r);
        // Entries: a kind, and a part of the module's path that picks exactly the operators.
        std::map<std::pair<OperatorKind, Ways>, std::vector<OperatorId>> groups;
        for (const auto &[id, want] : m_wanted) {
            Ways ways{{}, want.copies};
            for (const std::int32_t identifier : want.identifiers)
                ways.first.push_back(positionOf(m_graph.at(id), identifier));
            groups[{m_graph.at(id).kind, std::move(ways)}].push_back(id);
        }
        YAML::Emitter out;
        out << YAML::BeginSeq;
        for (const auto &[key, operators] : groups)
            for (const std::string &part : partsFor(key.first, operators))
                emit(out, key.first, part, key.second);
        out << YAML::EndSeq;
        m_text.yaml = out.c_str();
        m_text.yaml += '\n';
        return std::move(m_text);
    }

private:
    /// What an operator may be: cut along identifiers, or copied.
    struct Wanted {
        std::vector<std::int32_t> identifiers{};
        bool copies = false;
        std::size_t row = 0;
    };
    using Ways = std::pair<std::vector<std::string>, bool>; ///< Positions, copies.

    void note(std::size_t row, const std::string &sentence)
    {
        m_text.notes.push_back("row " + std::to_string(row + 1) + ": " + sentence);
    }

    void readRow(std::size_t r)
    {
        const Row &row = m_table.rows[r];
        const auto *rule = std::get_if<OpTransRule>(&row.rule);
        if (rule == nullptr) {
            if (hasSelector(row.rule))
                note(r, std::string("the format has no word for '") + nameOf(row.rule) + "'");
            return;
        }
        const auto isOnAxis = [&](const SplitStep &each) { return each.axis == m_axis; };
        if (std::none_of(rule->steps.begin(), rule->steps.end(), isOnAxis))
            return;
        const auto isSaid = [&](const SplitStep &each) {
            return isOnAxis(each) && each.kind != SplitKind::Value && each.sizes.empty();
        };
        if (!std::all_of(rule->steps.begin(), rule->steps.end(), isSaid))
            note(r,
                "the format has no word for nested, uneven or value splits: the cut over " + m_axis
                    + " is written");
        for (const OperatorId id : m_index.select(row.selector)) {
            if (m_graph.at(id).direction != Direction::Forward)
                continue;
            Wanted mine{{}, false, r};
            for (const SplitStep &each : rule->steps) {
                const auto split = splitOf(m_setting, id, each);
                if (!isOnAxis(each) || !split || split->parts < 2)
                    continue;
                if (split->kind == SplitKind::Dimension)
                    mine.identifiers.push_back(split->dimension);
                else
                    mine.copies = true;
            }
            if (mine.copies || !mine.identifiers.empty())
                m_wanted[id] = std::move(mine);
        }
    }

    /// "1,0": where an operator has an identifier first.
    static std::string positionOf(const Operator &op, std::int32_t identifier)
    {
        std::vector<TensorTerms> tensors = op.annotation.inputs;
        tensors.insert(tensors.end(), op.annotation.outputs.begin(), op.annotation.outputs.end());
        for (std::size_t s = 0; s < tensors.size(); ++s) {
            const auto &terms = tensors[s].terms;
            for (std::size_t d = 0; d < terms.size(); ++d) {
                if (splittableFactor(op.annotation, terms[d]) != identifier)
                    continue;
                const bool turned =
                    op.kind == OperatorKind::Linear && s == 1 && op.attributes.integer("transposed") == 0;
                return std::to_string(s) + "," + std::to_string(turned ? terms.size() - 1 - d : d);
            }
        }
        return {};
    }

    std::vector<OperatorId> matches(OperatorKind kind, const std::string &part) const
    {
        std::vector<OperatorId> all;
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            if (op.direction == Direction::Forward && op.kind == kind && m_modules.has(op, part))
                all.push_back({static_cast<std::int32_t>(i)});
        }
        return all;
    }

    /// Parts of the operators' names that pick none but them, with how many they pick: those that pick most
    /// first, of these the shortest.
    std::vector<std::pair<std::string, std::vector<OperatorId>>> candidates(
        OperatorKind kind, const std::vector<OperatorId> &operators) const
    {
        std::set<std::string> parts;
        for (const OperatorId id : operators) {
            const std::string &path = m_graph.at(id).name;
            for (std::size_t begin = 0; begin < path.size();) {
                const std::size_t dot = std::min(path.find('.', begin), path.size());
                parts.insert({path.substr(begin), path.substr(begin, dot - begin)});
                begin = dot + 1;
            }
        }
        std::vector<std::pair<std::string, std::vector<OperatorId>>> ranked;
        for (const std::string &part : parts)
            if (auto picked = matches(kind, part);
                std::includes(operators.begin(), operators.end(), picked.begin(), picked.end()))
                ranked.emplace_back(part, std::move(picked));
        std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) {
            return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                                      : a.first.size() < b.first.size();
        });
        return ranked;
    }

    /// The fewest parts of paths that pick all the operators of a kind, and no others; notes what is left.
    std::vector<std::string> partsFor(OperatorKind kind, const std::vector<OperatorId> &operators)
    {
        if (matches(kind, "") == operators)
            return {""};
        std::set<OperatorId> left(operators.begin(), operators.end());
        std::vector<std::string> parts;
        for (const auto &[part, picked] : candidates(kind, operators)) {
            if (std::none_of(picked.begin(), picked.end(), [&](OperatorId id) { return left.contains(id); }))
                continue;
            parts.push_back(part);
            for (const OperatorId id : picked)
                left.erase(id);
        }
        if (!left.empty())
            note(m_wanted.at(*left.begin()).row,
                "no part of a module's path tells '" + m_graph.at(*left.begin()).name + "'"
                    + (left.size() > 1
                            ? " and " + counted(static_cast<std::int64_t>(left.size()) - 1, "other operator")
                            : "")
                    + " from others of its kind");
        return parts;
    }

    static void emit(YAML::Emitter &out, OperatorKind kind, const std::string &part, const Ways &ways)
    {
        out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << torchNameOf(kind);
        if (!part.empty())
            out << YAML::Key << "parent_module" << YAML::Value << part;
        out << YAML::Key << "allowed_partition_dims" << YAML::Value << YAML::Flow << YAML::BeginSeq;
        for (const std::string &position : ways.first)
            out << YAML::DoubleQuoted << position;
        out << YAML::EndSeq << YAML::Key << "replica_allowed" << YAML::Value << ways.second << YAML::EndMap;
    }

    const ConstraintTable &m_table;
    const Graph &m_graph;
    const SelectorIndex &m_index;
    RowSetting m_setting;
    const std::string &m_axis;
    const std::map<std::string, std::string>
        m_noClasses{}; ///< A file is for models whose classes nobody knows.
    Modules m_modules;
    std::map<OperatorId, Wanted> m_wanted{};
    AutodistText m_text{};
};

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

Result<AutodistRows> readAutodist(std::string_view text, const std::string &file, const Model &model,
    const std::string &axis, const std::map<std::string, std::string> &classes)
{
    const AutodistReader reader(file);
    TRY(const std::vector<AutodistEntry> entries, reader.read(text));
    const Modules modules(*model.index, classes);
    const RowMaker maker(reader, entries, model, modules);
    AutodistRows result;
    std::set<std::pair<std::string, std::string>> known;
    for (const AutodistEntry &entry : entries) {
        if (!known.emplace(entry.name, entry.parent).second) {
            result.notes.push_back("line " + std::to_string(entry.mark.line + 1)
                + ": an earlier entry has the same name and parent_module: this one is passed by");
            continue;
        }
        const auto matched = maker.matched(entry);
        if (matched.empty())
            return maker.bindsNothing(entry);
        for (const auto &[kind, operators] : matched) {
            TRY(const std::vector<DimensionRef> ways, maker.waysOf(entry, operators));
            OpTransRule rule;
            for (const DimensionRef &way : ways)
                rule.steps.push_back({.kind = SplitKind::Dimension, .dimension = way, .axis = axis});
            if (entry.copies || ways.empty())
                rule.steps.push_back({.kind = SplitKind::Replicate, .axis = axis});
            result.table.rows.push_back({.enabled = true,
                .selector = maker.selectorOf(kind, entry, operators),
                .rule = std::move(rule),
                .origin = RowOrigin::Import,
                .note = file + ":" + std::to_string(entry.mark.line + 1)});
        }
    }
    return result;
}

AutodistText writeAutodist(
    const ConstraintTable &table, const Model &model, std::int32_t deviceCount, const std::string &axis)
{
    return EntryWriter(table, model, deviceCount, axis).write();
}

} // namespace planloom
