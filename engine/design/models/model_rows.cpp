#include "engine/design/models/model_rows.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

const DimensionSizeRule *sizeRuleOf(const TableLine &line)
{
    return line.row ? std::get_if<DimensionSizeRule>(&line.row->rule) : nullptr;
}

/// The model's own name of what `name` is.
std::string ownName(const std::vector<InputDimension> *known, const std::string &name)
{
    const InputDimension *found = known == nullptr ? nullptr : findDimension(*known, name);
    return found == nullptr ? name : found->name;
}

} // namespace

namespace {

/// What is known of a model that rows are about; null: nothing, and rows are taken at their word.
struct KnownModel {
    const std::vector<InputDimension> *dimensions = nullptr;
    const Graph *graph = nullptr;
};

void addSize(ModelOptions &options, const DimensionSizeRule &rule, const KnownModel &known,
    std::set<std::string> &given)
{
    const auto *dimensions = known.dimensions;
    const InputDimension *dimension = dimensions == nullptr ? nullptr : findDimension(*dimensions, rule.name);
    if (dimensions != nullptr
        && (dimension == nullptr || rule.size < dimension->least || rule.size > dimension->most))
        return;
    const std::string name = ownName(dimensions, rule.name);
    if (!given.insert("dim " + name).second)
        return;
    std::erase_if(
        options.dimensions, [&](const auto &other) { return ownName(dimensions, other.first) == name; });
    options.dimensions[name] = rule.size;
}

/// Options call all others "*".
std::string inOptions(const std::string &name)
{
    return name == "all" ? "*" : name;
}

void addRoom(
    ModelOptions &options, const CapacityRule &rule, const KnownModel &known, std::set<std::string> &given)
{
    const bool isKnown = known.graph != nullptr ? known.graph->rooms.count(rule.name) != 0
                                                : known.dimensions == nullptr || rule.name == "all";
    if (isKnown && given.insert("capacity " + rule.name).second)
        options.capacities[inOptions(rule.name)] = rule.capacity;
}

void addUnrolled(ModelOptions &options, const UnrollRule &rule, const KnownModel &known)
{
    const auto isKnown = [&] {
        if (rule.name == "all" || known.dimensions == nullptr)
            return true;
        if (known.graph == nullptr)
            return false;
        const auto found = known.graph->recurrences.find(rule.name);
        return found != known.graph->recurrences.end() && found->second.problem.empty();
    };
    if (isKnown())
        options.unroll.insert(inOptions(rule.name));
}

ModelOptions withRowsOf(ModelOptions options, const TableDocument &table, const KnownModel &known)
{
    std::set<std::string> given;
    for (const TableLineSnapshot &line : table.lines()) {
        if (!line->row || !line->row->enabled)
            continue;
        const Rule &rule = line->row->rule;
        if (const auto *size = std::get_if<DimensionSizeRule>(&rule))
            addSize(options, *size, known, given);
        else if (const auto *room = std::get_if<CapacityRule>(&rule))
            addRoom(options, *room, known, given);
        else if (const auto *unrolled = std::get_if<UnrollRule>(&rule))
            addUnrolled(options, *unrolled, known);
    }
    return options;
}

} // namespace

ModelOptions withoutRow(ModelOptions options, const Rule &rule, const Graph &known)
{
    if (const auto *size = std::get_if<DimensionSizeRule>(&rule)) {
        const std::string name = ownName(&known.dimensions, size->name);
        std::erase_if(options.dimensions,
            [&](const auto &other) { return ownName(&known.dimensions, other.first) == name; });
    } else if (const auto *room = std::get_if<CapacityRule>(&rule)) {
        options.capacities.erase(inOptions(room->name));
    } else if (const auto *unrolled = std::get_if<UnrollRule>(&rule)) {
        options.unroll.erase(inOptions(unrolled->name));
    }
    return options;
}

bool isModelRow(const Rule &rule)
{
    return std::holds_alternative<DimensionSizeRule>(rule) || std::holds_alternative<CapacityRule>(rule)
        || std::holds_alternative<UnrollRule>(rule);
}

ModelOptions withRows(ModelOptions options, const TableDocument &table)
{
    return withRowsOf(std::move(options), table, {});
}

ModelOptions withRows(ModelOptions options, const TableDocument &table, const Graph &known)
{
    return withRowsOf(std::move(options), table, {&known.dimensions, &known});
}

ModelOptions withRows(
    ModelOptions options, const TableDocument &table, const std::vector<InputDimension> &known)
{
    return withRowsOf(std::move(options), table, {&known, nullptr});
}

Result<ModelOptions> withArrays(const ModelSource &source, const std::map<std::string, Shape> &shapes)
{
    ModelOptions options = source.options;
    TRY(const auto dimensions, openDimensions(source));
    for (const InputDimension &dimension : dimensions) {
        if (dimension.size != 0)
            continue;
        std::string from;
        for (const std::string &place : dimension.aliases) {
            const std::size_t dot = place.rfind('.');
            const auto array = shapes.find(place.substr(0, dot));
            const auto axis = static_cast<std::size_t>(std::stoul(place.substr(dot + 1)));
            if (array == shapes.end() || axis >= array->second.size())
                continue;
            const std::int64_t size = array->second[axis];
            const auto [known, isNew] = options.dimensions.try_emplace(dimension.name, size);
            if (!isNew && known->second != size)
                return Error{ErrorCode::InvalidInput,
                    "the arrays disagree on '" + dimension.name + "': " + from + " is "
                        + std::to_string(known->second) + ", " + place + " is " + std::to_string(size),
                    "give arrays of one size, or the size with --dim", "--inputs"};
            from = place;
        }
    }
    return options;
}

std::set<std::string> storedWithoutValues(
    const OpenedModel &model, const std::map<std::string, Shape> &shapes)
{
    std::set<std::string> names;
    for (const TensorId id : storedTensors(*model.graph)) {
        const Tensor &tensor = model.graph->at(id);
        const bool isBare = tensor.role != TensorRole::Input && !tensor.data && !tensor.external
            && !tensor.classification->byHand;
        if (isBare && shapes.count(nameInFiles(tensor)) != 0)
            names.insert(nameInFiles(tensor));
    }
    return names;
}

TableEdit sizeRows(const TableDocument &document, const std::map<std::string, std::int64_t> &sizes,
    const std::vector<InputDimension> &known)
{
    TableDocument changed = document;
    std::vector<Row> added;
    for (const auto &[name, size] : sizes) {
        const auto &lines = changed.lines();
        const auto found =
            std::find_if(lines.begin(), lines.end(), [&, &name = name](const TableLineSnapshot &line) {
                const DimensionSizeRule *rule = sizeRuleOf(*line);
                return rule != nullptr && ownName(&known, rule->name) == name;
            });
        if (found == lines.end()) {
            added.emplace_back().rule = DimensionSizeRule{name, size};
            continue;
        }
        Row row = *(*found)->row;
        row.enabled = true;
        std::get<DimensionSizeRule>(row.rule).size = size;
        if (row != *(*found)->row)
            static_cast<void>(
                changed.apply(replaceRow(changed, static_cast<std::int32_t>(found - lines.begin()), row)));
    }
    static_cast<void>(changed.apply(appendRows(changed, added)));
    return difference(document, changed);
}

TableDocument modelRows(const TableDocument &document)
{
    std::string kept;
    for (const TableLineSnapshot &line : document.lines()) {
        if (line->row && isModelRow(line->row->rule))
            kept += line->text + "\n";
    }
    return TableDocument(kept);
}

} // namespace planloom
