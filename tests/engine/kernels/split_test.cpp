// An operator in parts computes what it computes whole: the property on which every plan rests.

#include "engine/check/trial.h"
#include "engine/kernels/kernel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace planloom::testing {

TEST(Examples, CoverEveryKind)
{
    std::set<OperatorKind> covered;
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64))
        covered.insert(example.kind);
    for (int kind = 0; kind < static_cast<int>(OperatorKind::Custom); ++kind)
        EXPECT_TRUE(covered.contains(static_cast<OperatorKind>(kind)))
            << nameOf(static_cast<OperatorKind>(kind));
}

TEST(Kernels, ExistForEveryExampleInEveryDirection)
{
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64)) {
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
        for (const Operator &op : graph->operators)
            EXPECT_TRUE(hasKernel(op)) << example.name << " " << op.name;
    }
}

TEST(Examples, AreAnnotated)
{
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64)) {
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
        EXPECT_EQ(graph->operators[0].annotationProblem, "") << example.name;
    }
}

TEST(Parts, MakeWhatTheWholeOperatorMakes)
{
    std::int64_t splits = 0;
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64)) {
        const auto trial = tryAnnotation(example);
        ASSERT_TRUE(trial) << example.name << ": " << describe(trial.error());
        splits += trial->splits;
        for (const SplitTrial &failure : trial->failures)
            ADD_FAILURE() << example.name << ", " << trial->annotation << ": " << describe(failure);
    }
    EXPECT_GT(splits, 1'000);
}

} // namespace planloom::testing
