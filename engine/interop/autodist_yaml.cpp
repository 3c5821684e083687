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
    const Graph &graph = *model.graph;
    const SelectorIndex &index = *model.index;
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    AutodistText result;
    const std::map<std::string, std::string> noClasses; // a file is for models whose classes nobody knows
    const Modules modules(index, noClasses);
    // What every operator may be: cut along identifiers, or copied.
    struct Wanted {
        std::vector<std::int32_t> identifiers{};
        bool copies = false;
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
        const auto isSaid = [&](const SplitStep &each) {
            return each.axis == axis && each.kind != SplitKind::Value && each.sizes.empty();
        };
        if (!std::all_of(rule->steps.begin(), rule->steps.end(), isSaid))
            noteRow("the format has no word for nested, uneven or value splits: the cut over " + axis
                + " is written");
        for (const OperatorId id : index.select(row.selector)) {
            if (graph.at(id).direction != Direction::Forward)
                continue;
            Wanted mine{{}, false, r};
            for (const SplitStep &each : rule->steps) {
                const auto split = splitOf(setting, id, each);
                if (each.axis != axis || !split || split->parts < 2)
                    continue;
                if (split->kind == SplitKind::Dimension)
                    mine.identifiers.push_back(split->dimension);
                else
                    mine.copies = true;
            }
            if (mine.copies || !mine.identifiers.empty())
                wanted[id] = std::move(mine);
        }
    }
    // Entries: a kind, and a part of the module's path that picks exactly the operators.
    using Ways = std::pair<std::vector<std::string>, bool>; // positions, copies
    std::map<std::pair<OperatorKind, Ways>, std::vector<OperatorId>> groups;
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
    for (const auto &[id, want] : wanted) {
        Ways ways{{}, want.copies};
        for (const std::int32_t identifier : want.identifiers)
            ways.first.push_back(positionOf(id, identifier));
        groups[{graph.at(id).kind, std::move(ways)}].push_back(id);
    }
    YAML::Emitter out;
    out << YAML::BeginSeq;
    for (const auto &[key, operators] : groups) {
        const auto &[kind, ways] = key;
        const auto matches = [&](const std::string &part) {
            std::vector<OperatorId> all;
            for (std::size_t i = 0; i < graph.operators.size(); ++i) {
                const Operator &op = graph.operators[i];
                if (op.direction == Direction::Forward && op.kind == kind && modules.has(op, part))
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
            for (const std::string &position : ways.first)
                out << YAML::DoubleQuoted << position;
            out << YAML::EndSeq << YAML::Key << "replica_allowed" << YAML::Value << ways.second
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
