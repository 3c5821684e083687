#include "engine/table/kinds/place/place.h"

#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

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

} // namespace planloom
