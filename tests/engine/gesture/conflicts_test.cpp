#include "engine/gesture/conflicts.h"
#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

struct Found {
    GestureContext context{};
    std::vector<RowConflict> conflicts{};
    bool fails = false;
};

Found conflictsOf(std::string_view text)
{
    static const auto index = indexOf(kModel);
    Found found;
    found.context = contextOf(index, 4, text);
    const auto completion = completePlan(index->snapshot(), 4, found.context.document.table());
    EXPECT_TRUE(completion);
    found.fails = firstError(*completion).has_value();
    found.conflicts = findConflicts(found.context, *completion);
    return found;
}

TEST(Conflicts, SayWhichRowsWhereAndHow)
{
    struct Case {
        const char *table;
        const char *words;
        std::size_t ways;
    };
    const Case cases[] = {
        {"# note\nplace all : devices 0\nplace name:h.3.mlp.c_fc : devices 1\n",
            "Rows 2 and 3 both place h.3.mlp.c_fc: on GPU 0 and on GPU 1", 3},
        {"place layer:0-1 : devices 0\nplace layer:1-2 : devices 1\n",
            "Rows 1 and 2 both place layer 1: on GPU 0 and on GPU 1", 4},
        {"stage layer:0-1 : 0\nstage layer:1 : 1\n", "Rows 1 and 2 both give a stage to layer 1: 0 and 1", 3},
        {"split in:h.1.mlp : out0.-1 by 2\nsplit name:h.1.mlp.c_fc : k by 2\n",
            "Rows 1 and 2 both split h.1.mlp.c_fc: out0.-1 by 2 and k by 2", 3},
        {"recompute layer:0\nrecompute name:h.0.ln_1\n",
            "Rows 1 and 2 both recompute h.0.ln_1: as one and as one", 3},
        {"mesh tp=4\nplace layer:1 : tp=1\nsplit name:h.1.mlp.c_fc : n over tp\n",
            "Rows 2 and 3 don't fit together on h.1.mlp.c_fc: n over tp is not possible on tp=1", 2},
        {"place layer:1 : devices 0,1,2\nsplit name:h.1.mlp.c_fc : n by 2\n",
            "Rows 1 and 2 don't fit together on h.1.mlp.c_fc: n by 2 is not possible on GPUs 0-2", 2},
        {"mesh tp=4\nmesh tp=2\n", "Rows 1 and 2 both say mesh: tp=4 and tp=2", 2},
        {"mesh dp=4\nzero1 weight:* over dp\nzero1 weight:h.0.mlp.c_fc.weight by 2\n", nullptr, 2},
    };
    for (const Case &c : cases) {
        SCOPED_TRACE(c.table);
        const Found found = conflictsOf(c.table);
        ASSERT_TRUE(found.fails);
        ASSERT_EQ(found.conflicts.size(), 1u);
        const RowConflict &conflict = found.conflicts.front();
        if (c.words) {
            EXPECT_EQ(conflict.words, c.words);
        }
        EXPECT_EQ(conflict.waysOut.size(), c.ways);
        for (const RowWayOut &way : conflict.waysOut) {
            TableDocument document = found.context.document;
            ASSERT_TRUE(document.apply(way.edit));
            const auto completion = completePlan(found.context.index().snapshot(), 4, document.table());
            ASSERT_TRUE(completion);
            EXPECT_FALSE(firstError(*completion)) << way.words << "\n"
                                                  << document.text() << describe(*firstError(*completion));
        }
    }
}

TEST(Conflicts, AreNoneWhereRowsHoldOrFailByThemselves)
{
    EXPECT_TRUE(conflictsOf("place all : devices 0\n").conflicts.empty());
    EXPECT_TRUE(
        conflictsOf("mesh dp=2 tp=2\nsplit all : batch over dp\nsplit name:h.*.mlp.c_fc : n over tp\n")
            .conflicts.empty());
    const Found found = conflictsOf("split name:h.0.mlp.c_fc : n by 3\n");
    EXPECT_TRUE(found.fails);
    EXPECT_TRUE(found.conflicts.empty());
}

TEST(Conflicts, AreNotOfRowsOfAKindThatMayStandTogetherWhereAnotherIsWrong)
{
    for (const char *together : {"schedule 1f1b\nschedule zb-h1 at 16 micro-batches\n",
             "schedule 1f1b at 2 micro-batches\nschedule gpipe at 4 micro-batches\n",
             "schedule solver\nschedule 1f1b\n", "degree tensor at most 4\ndegree data at most 2\n",
             "degree tensor at most 4\ndegree tensor at least 2\n", "unroll a\nunroll b\n",
             "dim batch = 8\ndim seq = 16\n", "capacity a = 2x\ncapacity b = 2x\n",
             "in-flight 2\nin-flight 2 stage 0\n", "limit memory 1GiB\nlimit memory 2GiB\n"}) {
        const Found found = conflictsOf(std::string(together) + "split name:h.0.mlp.c_fc : n by 3\n");
        EXPECT_TRUE(found.fails);
        EXPECT_TRUE(found.conflicts.empty()) << together << found.conflicts.front().words;
    }
}

} // namespace
} // namespace planloom
