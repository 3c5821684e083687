#include "engine/table/table.h"

#include "engine/table/kinds/all_kinds.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

struct NameAndShape {
    std::vector<std::string_view> names{};
    std::vector<RuleShape> shapes{};
};

const NameAndShape &allNames()
{
    static const NameAndShape kAll = [] {
        NameAndShape all;
        anyKind([&](auto kind) {
            using Traits = RuleTraits<typename decltype(kind)::type>;
            for (const char *word : Traits::words) {
                all.names.emplace_back(word);
                all.shapes.push_back(Traits::shape);
            }
            return false;
        });
        return all;
    }();
    return kAll;
}

} // namespace

const std::vector<std::string_view> &ruleNames()
{
    return allNames().names;
}

std::optional<RuleShape> shapeOf(std::string_view name)
{
    const auto &[names, shapes] = allNames();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        return std::nullopt;
    return shapes[static_cast<std::size_t>(found - names.begin())];
}

const Selector *secondSelectorOf(const Rule &rule)
{
    return std::visit(
        []<typename R>(const R &itself) -> const Selector * {
            if constexpr (HasSecondSelector<R>)
                return &itself.second;
            else
                return nullptr;
        },
        rule);
}

Selector *secondSelectorOf(Rule &rule)
{
    return const_cast<Selector *>(secondSelectorOf(std::as_const(rule)));
}

bool hasSelector(const Rule &rule)
{
    return std::visit([]<typename R>(const R &) { return RuleTraits<R>::shape != RuleShape::Plain; }, rule);
}

const char *nameOf(const Rule &rule)
{
    return std::visit(
        []<typename R>(const R &itself) {
            if constexpr (RuleTraits<R>::words.size() > 1)
                return RuleTraits<R>::wordOf(itself);
            else
                return RuleTraits<R>::words.front();
        },
        rule);
}

const char *nameOf(RowOrigin origin)
{
    constexpr std::array kNames{"text", "gesture", "template", "import", "solver"};
    return kNames[static_cast<std::size_t>(origin)];
}

std::string placeOf(RowId row, std::string_view field)
{
    return "row:" + std::to_string(row.index) + "/" + std::string(field);
}

} // namespace planloom
