#include "engine/table/kinds/partition/mesh.h"

#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

namespace planloom {

void RuleTraits<MeshRule>::describe(RuleForm &form, MeshRule &rule)
{
    const auto axis = [](RuleForm &part, MeshAxis &each) {
        part.name("name", each.name, "a mesh axis as dp=2");
        part.symbol('=', "and the size of the axis", true);
        part.number("size", each.size, {"the size of the axis", 1});
    };
    form.list("axes", rule.axes, axis, [&](const MeshAxis &, const MeshAxis *next) {
        return next || !(form.cursor().atEnd() || form.cursor().peek() == '@'); // the row's origin
    });
}

} // namespace planloom
