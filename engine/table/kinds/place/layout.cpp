#include "engine/table/kinds/place/layout.h"

#include "engine/base/words.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/layer_layout.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/rule_form.h"

#include <vector>

namespace planloom {

namespace {

std::string toText(const std::string &layout)
{
    return layout;
}

Result<std::string> fromText(std::string_view text)
{
    TRY_VOID(parseLayout(text));
    return std::string(text);
}

} // namespace

void RuleTraits<LayoutRule>::describe(RuleForm &form, LayoutRule &rule)
{
    form.spelled(
        "layout", rule.layout, "a layout in quotes, as \"Et*4|(t*4|)*14tmL\"", toText, fromText, true);
    if (form.has("over", "axis", !rule.axis.empty()))
        form.axis(rule.axis, false);
}

Result<void> RuleMeaning<LayoutRule>::check(const RowSetting &setting, const LayoutRule &rule)
{
    TRY(const auto stages, parseLayout(rule.layout));
    TRY_VOID(stagesOfLayout(setting.index(), stages));
    if (rule.axis.empty())
        return {};
    const MeshAxis *axis = findAxis(setting.mesh, rule.axis);
    if (!axis)
        return Error{ErrorCode::InvalidInput,
            setting.mesh.empty() ? "there is no mesh with an axis '" + rule.axis + "'"
                                 : "the mesh has no axis '" + rule.axis + "'",
            noSuchAxisAdvice(setting.mesh, rule.axis), "mesh"};
    const auto count = static_cast<std::int64_t>(stages.size());
    if (count % axis->size != 0)
        return Error{ErrorCode::InvalidInput,
            "the layout has " + counted(count, "stage") + ", which the " + std::to_string(axis->size)
                + " places of mesh axis '" + rule.axis + "' do not divide",
            "give every rank as many stages", "mesh"};
    return {};
}

std::vector<OperatorMeaning> RuleMeaning<LayoutRule>::ofEach(
    const RowSetting &setting, const LayoutRule &rule, const std::vector<OperatorId> &acted)
{
    std::vector<OperatorMeaning> meanings(acted.size());
    const auto stages = parseLayout(rule.layout);
    const auto stageOf =
        stages ? stagesOfLayout(setting.index(), *stages) : Result<std::vector<std::int32_t>>(stages.error());
    if (!stageOf)
        return meanings; // `check` has said why
    const MeshAxis *axis = findAxis(setting.mesh, rule.axis);
    std::vector<AllowedPlaceSnapshot> places; // along the axis: shared
    for (std::int32_t place = 0; axis && place < axis->size; ++place)
        places.push_back(std::make_shared<const AllowedPlace>(
            AllowedPlace::only(domainOnMesh(setting.mesh, {{axis->name, place}}))));
    for (std::size_t i = 0; i < acted.size(); ++i) {
        const std::int32_t stage = (*stageOf)[at(acted[i])];
        meanings[i].stage = Allowed<std::int32_t>::only(stage);
        if (!places.empty())
            meanings[i].place = places[static_cast<std::size_t>(stage) % places.size()];
    }
    return meanings;
}

} // namespace planloom
