#pragma once

#include "engine/table/kinds/all_kinds.h"
#include "tests/engine/table/random_rules.h"

namespace planloom {

/// Random selectors and tables with every construct of the text form, for round-trip tests.
class RandomTable : public RandomValues
{
public:
    using RandomValues::RandomValues;

    /// Of any kind, each as often.
    Rule rule()
    {
        Rule made;
        int left = number(0, static_cast<int>(std::variant_size_v<Rule>) - 1);
        anyKind([&]<typename R>(std::type_identity<R>) {
            if (left-- > 0)
                return false;
            made = RandomRule<R>::make(*this);
            return true;
        });
        return made;
    }

    Row row()
    {
        Row made;
        made.enabled = chance(80);
        if (chance(25))
            made.preference = chance(50) ? 1 : number(1, chance(50) ? 20 : kMostWeight);
        made.rule = rule();
        if (hasSelector(made.rule))
            made.selector = selector();
        made.origin = static_cast<RowOrigin>(number(0, 3));
        if (chance(40))
            made.note = note();
        return made;
    }

    std::string note()
    {
        static const char *const kNotes[] = {"why", " leading", "trailing ", "two\nlines", "\n", "a # b",
            "\"quoted", "back\\", "three\n\nlines "};
        return kNotes[number(0, static_cast<int>(std::size(kNotes)) - 1)];
    }

    ConstraintTable table()
    {
        ConstraintTable made;
        for (int n = number(0, 8); n > 0; --n)
            made.rows.push_back(row());
        if (chance(30))
            made.note = note();
        return made;
    }
};

} // namespace planloom
