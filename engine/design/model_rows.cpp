#include "engine/design/model_rows.h"

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

ModelOptions withRows(
    ModelOptions options, const TableDocument &table, const std::vector<InputDimension> *known)
{
    std::set<std::string> given;
    for (const TableLineSnapshot &line : table.lines()) {
        const DimensionSizeRule *rule = sizeRuleOf(*line);
        if (rule == nullptr || !line->row->enabled)
            continue;
        const InputDimension *dimension = known == nullptr ? nullptr : findDimension(*known, rule->name);
        if (known != nullptr
            && (dimension == nullptr || rule->size < dimension->least || rule->size > dimension->most))
            continue;
        const std::string name = ownName(known, rule->name);
        if (!given.insert(name).second)
            continue;
        std::erase_if(
            options.dimensions, [&](const auto &other) { return ownName(known, other.first) == name; });
        options.dimensions[name] = rule->size;
    }
    return options;
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

TableEdit sizeRows(const TableDocument &document, const std::map<std::string, std::int64_t> &sizes,
    const std::vector<InputDimension> &known)
{
    TableDocument changed = document;
    std::vector<Row> added;
    for (const auto &[name, size] : sizes) {
        const auto &lines = changed.lines();
        const auto found = std::find_if(lines.begin(), lines.end(), [&](const TableLineSnapshot &line) {
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
        if (sizeRuleOf(*line) != nullptr)
            kept += line->text + "\n";
    }
    return TableDocument(kept);
}

} // namespace planloom
