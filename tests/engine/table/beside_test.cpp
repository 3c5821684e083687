// How rows of one kind about the whole plan stand to one another, held against what plans make of them.

#include "engine/table/kinds/beside.h"

#include "engine/plan/complete.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planloom {
namespace {

const std::vector<std::string> kRows{"mesh dp=2", "mesh tp=2", "micro-batches 2", "micro-batches 4",
    "schedule 1f1b", "schedule gpipe", "schedule 1f1b at 2 micro-batches",
    "schedule gpipe at 2 micro-batches", "schedule zb-h1 at 4 micro-batches", "schedule solver",
    "schedule solver among gpipe", "overlap tensor", "overlap none", "in-flight 1", "in-flight 2",
    "in-flight 2 stage 0", "in-flight 1 stage 0", "degree data at most 4", "degree data at most 2",
    "degree data at least 2", "degree data at least 4", "degree data one of 1 2", "degree tensor at most 2",
    "limit memory 40GiB", "limit memory 20GiB", "limit time 1s", "limit traffic 1GiB",
    "limit traffic 1GiB per link", "interleave forward with backward at +1",
    "interleave backward with forward at +1"};

Rule ruleOf(const std::string &text)
{
    const auto row = parseRow(text);
    EXPECT_TRUE(row) << text << ": " << describe(row.error());
    return row ? row->rule : Rule{};
}

/// Whether the rows can be carried out, as far as the rows say.
bool hold(const Model &model, const std::string &text)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << text;
    const auto completion = completePlan(model, 4, *table);
    return completion && !firstError(*completion);
}

TEST(Beside, IsAskedInEitherOrderAndOfRowsOfOneKind)
{
    const GraphSnapshot model = tinyGpt();
    const Graph &graph = *model;
    for (const std::string &a : kRows)
        for (const std::string &b : kRows) {
            const Beside how = besides(graph, ruleOf(a), ruleOf(b));
            EXPECT_EQ(how, besides(graph, ruleOf(b), ruleOf(a))) << a << ", " << b;
            if (ruleOf(a).index() != ruleOf(b).index()) {
                EXPECT_EQ(how, Beside::Apart) << a << ", " << b;
            } else if (a == b) {
                EXPECT_NE(how, Beside::Apart) << a;
            }
        }
    EXPECT_EQ(besides(graph, ruleOf("stage all : 0"), ruleOf("stage all : 1")), Beside::Apart)
        << "what they say of operators is compared there";
}

TEST(Beside, ClashesWhereNoPlanHasBoth)
{
    const Model model = tinyGpt();
    for (const std::string &a : kRows)
        for (const std::string &b : kRows) {
            if (ruleOf(a).index() != ruleOf(b).index() || !hold(model, a) || !hold(model, b))
                continue;
            const bool clash = besides(*model.graph, ruleOf(a), ruleOf(b)) == Beside::Clash;
            EXPECT_EQ(hold(model, a + "\n" + b), !clash) << a << ", " << b;
        }
}

} // namespace
} // namespace planloom
