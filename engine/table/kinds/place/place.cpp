#include "engine/table/kinds/place/place.h"

#include "engine/base/words.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

namespace {

/// Whether `word` comes next and no '=' behind it, as behind a mesh axis of that name.
bool isAlone(RuleForm &form, const char *word)
{
    if (form.way() != RuleForm::Way::ReadText)
        return true;
    const std::size_t place = form.place();
    const bool alone = form.takes(word) && form.cursor().peek() != '=';
    form.cursor().rewind(place);
    return alone;
}

} // namespace

void RuleTraits<OpAssignRule>::describe(RuleForm &form, OpAssignRule &rule)
{
    const auto more = [&](const auto &, const auto *) { return form.another(',', true); };
    const bool isList = isAlone(form, "devices") && form.has("devices", "devices", !rule.devices.empty());
    if (isList) {
        if (!form.isText() && form.holds("coordinates", false))
            form.expected({}, "devices or coordinates, not both");
        const auto device = [](RuleForm &part, DeviceId &each) {
            part.number("", each.index, {"a device number"});
        };
        return form.list("devices", rule.devices, device, more);
    }
    const bool isPart = form.isText()
        ? !isAlone(form, "mesh") || !form.takes("mesh", rule.coordinates.empty())
        : form.holds("coordinates", !rule.coordinates.empty());
    const auto coordinate = [&](RuleForm &part, AxisCoordinate &each) {
        part.name("axis", each.axis,
            rule.coordinates.size() > 1 ? "another coordinate as tp=0"
                                        : "'devices' and a list, 'mesh', or coordinates as pp=0");
        part.symbol('=', "and the place along the axis", true);
        part.number("index", each.index, {"the place along the axis"});
    };
    if (isPart)
        form.list("coordinates", rule.coordinates, coordinate, more);
}

Result<Domain> RuleMeaning<OpAssignRule>::domainOf(const RowSetting &setting, const OpAssignRule &rule)
{
    const auto wrong = [](std::string message, std::string advice = {}) {
        return Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), "mesh"};
    };
    if (!rule.devices.empty()) {
        for (const DeviceId device : rule.devices) {
            if (device.index < 0 || device.index >= setting.deviceCount) {
                return Error{ErrorCode::InvalidInput,
                    "there is no device " + std::to_string(device.index) + ": the plan has "
                        + counted(setting.deviceCount, "device") + ", numbered from 0",
                    "", "devices"};
            }
        }
        return domainOfList(rule.devices);
    }
    if (setting.mesh.empty())
        return wrong("there is no mesh to place on", "add a row such as: mesh dp=2");
    for (auto c = rule.coordinates.begin(); c != rule.coordinates.end(); ++c) {
        const MeshAxis *axis = findAxis(setting.mesh, c->axis);
        if (!axis)
            return wrong("the mesh has no axis '" + c->axis + "'", noSuchAxisAdvice(setting.mesh, c->axis));
        if (c->index < 0 || c->index >= axis->size) {
            return wrong("mesh axis '" + c->axis + "' has " + counted(axis->size, "place")
                + ", numbered from 0, not " + std::to_string(c->index));
        }
        const auto same = [&](const AxisCoordinate &other) { return other.axis == c->axis; };
        if (std::any_of(rule.coordinates.begin(), c, same))
            return wrong("two places along mesh axis '" + c->axis + "'");
    }
    return domainOnMesh(setting.mesh, rule.coordinates);
}

Result<void> RuleMeaning<OpAssignRule>::check(const RowSetting &setting, const OpAssignRule &rule)
{
    TRY_VOID(domainOf(setting, rule));
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OpAssignRule>::actsOn(
    const RowSetting &setting, const OpAssignRule &, const std::vector<OperatorId> &selected)
{
    auto acted = actedOn(setting.graph(), selected);
    if (acted.empty() && !selected.empty()) {
        return Error{ErrorCode::InvalidInput, "backward operators run where their forward operators run",
            "select forward operators", ""};
    }
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OpAssignRule>::of(
    const RowSetting &setting, const OpAssignRule &rule, OperatorId)
{
    TRY(Domain domain, domainOf(setting, rule));
    return std::optional(OperatorMeaning{
        .place = std::make_shared<const AllowedPlace>(AllowedPlace::only(std::move(domain)))});
}

} // namespace planloom
