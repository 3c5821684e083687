// A row typed in full takes the place of what is about the same thing, and of nothing else.

#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

struct Typed {
    const char *before;
    const char *row;
    const char *after;
    std::vector<std::string> said; ///< Of other rows.
};

void expectTyped(const std::vector<Typed> &cases)
{
    for (const Typed &each : cases) {
        SCOPED_TRACE(std::string(each.before) + "+ " + each.row);
        const GestureContext context = gpt(4, each.before);
        const Proposal proposal = proposeText(context, each.row, {});
        EXPECT_EQ(after(context, proposal), each.after);
        EXPECT_EQ(proposal.yieldingWords, each.said);
    }
}

TEST(TypedRows, LeaveRowsAboutOtherThings)
{
    expectTyped({
        {"degree tensor at most 4\n", "degree data at most 2",
            "degree tensor at most 4\ndegree data at most 2\n", {}},
        {"degree tensor at most 4\n", "degree tensor at least 2",
            "degree tensor at most 4\ndegree tensor at least 2\n", {}},
        {"schedule 1f1b\n", "schedule zb-h1 at 16 micro-batches",
            "schedule 1f1b\nschedule zb-h1 at 16 micro-batches\n", {}},
        {"schedule zb-h1 at 16 micro-batches\n", "schedule 1f1b",
            "schedule zb-h1 at 16 micro-batches\nschedule 1f1b\n", {}},
        {"schedule 1f1b at 8 micro-batches\n", "schedule gpipe at 4 micro-batches",
            "schedule 1f1b at 8 micro-batches\nschedule gpipe at 4 micro-batches\n", {}},
        {"dim batch = 64\n", "dim seq = 128", "dim batch = 64\ndim seq = 128\n", {}},
        {"capacity all = 1.25x\n", "capacity h.0.places = 128",
            "capacity all = 1.25x\ncapacity h.0.places = 128\n", {}},
        {"unroll encoder.rnn\n", "unroll decoder.rnn", "unroll encoder.rnn\nunroll decoder.rnn\n", {}},
        {"limit memory 40GiB\n", "limit time 1s", "limit memory 40GiB\nlimit time 1s\n", {}},
        {"limit traffic 1GiB on card\n", "limit traffic 2GiB on node",
            "limit traffic 1GiB on card\nlimit traffic 2GiB on node\n", {}},
        {"in-flight 2 stage 0\n", "overlap tensor", "in-flight 2 stage 0\noverlap tensor\n", {}},
    });
}

TEST(TypedRows, SayWhichRowTheyReplace)
{
    expectTyped({
        {"# mine\nmesh tp=2\n", "mesh tp=4", "# mine\nmesh tp=4\n", {"replaces row 2"}},
        {"micro-batches 2\nschedule gpipe\n", "micro-batches 4", "micro-batches 4\nschedule gpipe\n",
            {"replaces row 1"}},
        {"degree data at most 2\ndegree tensor at most 4\n", "degree tensor at most 2",
            "degree data at most 2\ndegree tensor at most 2\n", {"replaces row 2"}},
        {"degree tensor at most 4\n", "degree tensor exactly 2", "degree tensor one of 2\n",
            {"replaces row 1"}},
        // Bounds of both ends, of which one can no longer hold.
        {"degree tensor at most 2\n", "degree tensor at least 4", "degree tensor at least 4\n",
            {"replaces row 1"}},
        {"degree tensor at least 2\ndegree tensor at most 4\n", "degree tensor exactly 2",
            "degree tensor one of 2\n", {"row 2 goes", "replaces row 1"}},
        {"schedule 1f1b\nschedule gpipe at 8 micro-batches\n", "schedule zb-h1 at 8 micro-batches",
            "schedule 1f1b\nschedule zb-h1 at 8 micro-batches\n", {"replaces row 2"}},
        {"schedule 1f1b\n", "schedule solver", "schedule solver\n", {"replaces row 1"}},
        {"dim batch = 64\n", "dim batch = 32", "dim batch = 32\n", {"replaces row 1"}},
        {"capacity all = 1.25x\n", "capacity all = 2x", "capacity all = 2x\n", {"replaces row 1"}},
        {"limit memory 40GiB\n", "limit memory 20GiB", "limit memory 20GiB\n", {"replaces row 1"}},
        {"limit traffic 1GiB on card\n", "limit traffic 2GiB on card", "limit traffic 2GiB on card\n",
            {"replaces row 1"}},
        {"overlap tensor  # to try\n", "overlap none", "overlap none  # to try\n", {"replaces row 1"}},
        {"mesh tp=2 @solver\n", "mesh tp=4", "mesh tp=4\n", {"replaces row 1"}},
    });
}

TEST(TypedRows, OfOperatorsSayWhichRowTheyReplace)
{
    expectTyped({
        {"mesh dp=2 tp=2\nsplit name:h.0.mlp.c_fc : n over tp\nsplit name:h.1.mlp.c_fc : n over tp\n",
            "split name:h.1.mlp.c_fc : n over tp",
            "mesh dp=2 tp=2\nsplit name:h.0.mlp.c_fc : n over tp\n"
            "split name:h.1.mlp.c_fc : n over tp\n",
            {}},
        {"mesh dp=2 tp=2\nsplit name:h.0.mlp.c_fc : n over tp\n", "split name:h.0.mlp.c_fc : batch over dp",
            "mesh dp=2 tp=2\nsplit name:h.0.mlp.c_fc : n over tp\nsplit name:h.0.mlp.c_fc : batch over dp  "
            "@gesture\n",
            {}},
    });
}

TEST(TypedRows, ThatStandThereAlreadyChangeNothing)
{
    const GestureContext context = gpt(4, "degree tensor at most 4\ndegree data at most 2\n");
    const Proposal proposal = proposeText(context, "degree data at most 2", {});
    EXPECT_FALSE(proposal.refusal);
    EXPECT_TRUE(proposal.edit.empty());
    EXPECT_TRUE(proposal.yieldingWords.empty());
}

} // namespace
} // namespace planloom
