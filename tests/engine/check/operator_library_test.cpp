// Operators that a shared library computes, through its C interface.

#include "engine/check/check_annotation.h"
#include "engine/check/part_runner.h"
#include "engine/graph/operator_files/custom_operator.h"
#include "tests/engine/check/swish_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom::testing {

namespace {

using testing_support::definitionsOf;
using testing_support::swishFile;
using testing_support::testLibrary;

/// A graph of one operator.
Graph graphWith(const std::shared_ptr<const OperatorDefinition> &definition)
{
    Graph graph;
    Operator op;
    op.kind = OperatorKind::Custom;
    op.attributes.setDefinition(definition);
    graph.operators.push_back(std::move(op));
    return graph;
}

/// The file of one operator that names a function of the tests' library.
std::string fileOf(const std::string &path, const std::string &function)
{
    return "planloom-operators 1\noperator t::One\ninputs x\noutputs y\nannotation n -> n\nlibrary \"" + path
        + "\" " + function + "\n";
}

OperatorExample swishExample(const std::shared_ptr<const OperatorDefinition> &definition)
{
    OperatorExample example;
    example.kind = OperatorKind::Custom;
    example.attributes = *completedAttributes(definition, {});
    example.inputs = {
        {{DataType::Float32, {4, 2, 6}}, true, -1, 1, {}}, {{DataType::Float32, {6}}, true, -1, 1, {}}};
    return example;
}

} // namespace

TEST(OperatorLibrary, ComputesWhatTheBodyComputes)
{
    const auto definitions = definitionsOf(swishFile());
    const auto byBody = graphOf(swishExample(definitions.at(0)));
    const auto byLibrary = graphOf(swishExample(definitions.at(1)));
    ASSERT_TRUE(byBody && byLibrary);
    ASSERT_EQ(byLibrary->operators.size(), 2u);
    const auto libraries = OperatorLibraries::load(*byLibrary, {testLibrary()});
    ASSERT_TRUE(libraries) << describe(libraries.error());
    OperatorValues a = drawValues(swishExample(definitions.at(0)), *byBody, 3);
    OperatorValues b = drawValues(swishExample(definitions.at(1)), *byLibrary, 3);
    for (std::size_t i = 0; i < 2; ++i) {
        // Both draw the same inputs and the same gradient, since what is saved gets none.
        ASSERT_TRUE(runParts(*byBody, byBody->operators[i], {}, a));
        const auto ran = runParts(*byLibrary, byLibrary->operators[i], {}, b, libraries->get());
        ASSERT_TRUE(ran) << describe(ran.error());
        const auto &mine = byBody->operators[i].outputs;
        const auto &theirs = byLibrary->operators[i].outputs;
        for (std::size_t slot = 0; slot < mine.size(); ++slot) {
            const auto wanted = numbersOf(*byBody, mine[slot], a);
            const auto found = numbersOf(*byLibrary, theirs[slot], b);
            ASSERT_EQ(wanted.size(), found.size());
            for (std::size_t k = 0; k < wanted.size(); ++k)
                EXPECT_NEAR(wanted[k], found[k], 2e-6) << "operator " << i << ", output " << slot;
        }
    }
}

TEST(OperatorLibrary, IsSplitAsItsAnnotationSays)
{
    DefinitionTrialOptions options;
    options.libraries = {testLibrary()};
    const auto definitions = definitionsOf(swishFile());
    const auto checked = checkDefinition(definitions.at(1), options);
    ASSERT_TRUE(checked) << describe(checked.error());
    EXPECT_TRUE(checked->at(0).trial.failures.empty()) << describe(checked->at(0).trial.failures.front());
    EXPECT_GT(checked->at(0).trial.splits, 40);
}

TEST(OperatorLibrary, IsNotLoadedUnlessAllowed)
{
    const auto refused =
        OperatorLibraries::load(graphWith(definitionsOf(fileOf(testLibrary(), "scaled_swish")).at(0)), {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotSupported);
    EXPECT_NE(refused.error().advice.find("--allow-library"), std::string::npos);
}

TEST(OperatorLibrary, SaysWhatIsMissing)
{
    const auto load = [](const std::string &path, const std::string &function) {
        const auto loaded =
            OperatorLibraries::load(graphWith(definitionsOf(fileOf(path, function)).at(0)), {path});
        return loaded ? std::string("loaded") : loaded.error().message;
    };
    EXPECT_EQ(load(testLibrary(), "scaled_swish"), "loaded");
    EXPECT_NE(
        load(testLibrary(), "no_such_function").find("has no function no_such_function"), std::string::npos);
    EXPECT_NE(load("/nowhere/libnone.so", "f").find("does not exist"), std::string::npos);
    EXPECT_NE(load(std::string(PLANLOOM_SOURCE_DIR) + "/README.md", "f").find("cannot be loaded"),
        std::string::npos);
}

TEST(OperatorLibrary, TellsWhyAFunctionFailed)
{
    DefinitionTrialOptions options;
    options.libraries = {testLibrary()};
    const auto failed = checkDefinition(definitionsOf(fileOf(testLibrary(), "always_fails")).at(0), options);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("it never works"), std::string::npos);
    options.type = DataType::Float64;
    const auto wrongType = checkDefinition(definitionsOf(swishFile()).at(1), options);
    ASSERT_FALSE(wrongType);
    EXPECT_NE(wrongType.error().message.find("scaled_swish takes float32"), std::string::npos);
}

} // namespace planloom::testing
