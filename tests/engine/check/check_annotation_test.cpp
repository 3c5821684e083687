// What an annotation claims is tried out on numbers: ours hold, and wrong ones are found.

#include "engine/check/check_annotation.h"
#include "tests/engine/check/swish_for_tests.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace planloom::testing {

namespace {

using testing_support::definitionsOf;

/// All failures of the first operator of a file, one a line.
std::string failuresOf(const std::string &text, const DefinitionTrialOptions &options = {})
{
    const auto definitions = definitionsOf(text);
    const auto checked = checkDefinition(definitions.at(0), options);
    if (!checked)
        return describe(checked.error());
    std::string failures;
    for (const CheckedOperator &op : *checked) {
        EXPECT_EQ(op.trial.whole, "");
        EXPECT_GT(op.trial.splits, 0);
        for (const SplitTrial &failure : op.trial.failures)
            failures += describe(failure) + "\n";
    }
    return failures;
}

std::string rowSoftmax(const std::string &annotation)
{
    return "planloom-operators 1\noperator t::Rows\ninputs x\noutputs y\nannotation " + annotation
        + "\nbody\n  y = Softmax(x, axis=-1)\nend\n";
}

std::string affine(const std::string &annotation)
{
    return "planloom-operators 1\noperator t::Affine\ninputs x, w, [bias]\noutputs y\nannotation "
        + annotation + "\nbody\n  y = Linear(x, w, bias)\nend\n";
}

} // namespace

TEST(CheckAnnotation, AcceptsABodyForwardAndBackward)
{
    const auto definitions = definitionsOf(testing_support::swishFile());
    const auto checked = checkDefinition(definitions.at(0));
    ASSERT_TRUE(checked) << describe(checked.error());
    ASSERT_EQ(checked->size(), 1u);
    const AnnotationTrial &trial = checked->front().trial;
    EXPECT_EQ(trial.annotation, "b s h, h -> b s h");
    EXPECT_TRUE(trial.failures.empty()) << describe(trial.failures.front());
    EXPECT_GT(trial.splits, 40); // both directions
    EXPECT_LT(trial.worst, 1e-12);
}

TEST(CheckAnnotation, FindsADimensionThatMayNotBeSplit)
{
    EXPECT_EQ(failuresOf(rowSoftmax("n c^ -> n c^")), "");
    const std::string failures = failuresOf(rowSoftmax("n c -> n c"));
    EXPECT_NE(failures.find("c:2: 'y' differs by"), std::string::npos) << failures;
    EXPECT_NE(failures.find("backward, c+:2"), std::string::npos) << failures;
    EXPECT_EQ(failures.find("n:2:"), std::string::npos) << failures;
}

TEST(CheckAnnotation, FindsATermThatEveryPartOfASumAdds)
{
    EXPECT_EQ(failuresOf(affine("m k^, k^ n, n -> m n")), "");
    // Without the bias the sum over k is one; with it, each part adds it.
    const auto checked = checkDefinition(definitionsOf(affine("m k+, k+ n, n -> m n")).at(0));
    ASSERT_TRUE(checked) << describe(checked.error());
    ASSERT_EQ(checked->size(), 2u);
    EXPECT_FALSE(checked->at(0).trial.failures.empty());
    EXPECT_EQ(checked->at(1).name, "t::Affine without optional inputs");
    EXPECT_TRUE(checked->at(1).trial.failures.empty());
}

TEST(CheckAnnotation, FindsShapesOfPartsThatDoNotFit)
{
    const std::string failures =
        failuresOf("planloom-operators 1\noperator t::Rows\ninputs x\noutputs y\n"
                   "annotation n c -> n c\nbody\n  y = Reshape(x) : [whole(n), c]\nend\n");
    EXPECT_NE(failures.find("n:2: "), std::string::npos) << failures;
    EXPECT_NE(failures.find("line 7"), std::string::npos) << failures;
}

TEST(CheckAnnotation, FindsAWrongClaimOfLinearity)
{
    const auto square = [](const std::string &linear) {
        return "planloom-operators 1\noperator t::Square\ninputs x, w\noutputs y\nannotation n, n -> "
               "n\nlinear "
            + linear + "\nbody\n  q = Mul(x, x)\n  y = Mul(q, w)\nend\n";
    };
    EXPECT_EQ(failuresOf(square("w")), "");
    EXPECT_NE(failuresOf(square("x")).find("value:2"), std::string::npos);
}

TEST(CheckAnnotation, SaysWhereNothingCanBeCompared)
{
    const std::string root =
        "planloom-operators 1\noperator t::Root\ninputs x\noutputs y\nannotation n -> n\n"
        "body\n  y = Log(x)\nend\n";
    EXPECT_NE(failuresOf(root).find("--range"), std::string::npos);
    DefinitionTrialOptions options;
    options.ranges["x"] = {0.5, 2};
    EXPECT_EQ(failuresOf(root, options), "");
    options.ranges["z"] = {0, 1};
    EXPECT_NE(failuresOf(root, options).find("no input 'z'"), std::string::npos);
}

TEST(CheckAnnotation, AcceptsTheExampleOfTheDocumentation)
{
    std::ifstream file(PLANLOOM_SOURCE_DIR "/resources/operators.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    const std::size_t begin = page.find("planloom-operators 1\n\n#");
    ASSERT_NE(begin, std::string::npos);
    EXPECT_EQ(failuresOf(page.substr(begin, page.find("```", begin) - begin)), "");
}

TEST(CheckAnnotation, TriesOursByTheirNamesAndOnnxs)
{
    for (const char *name : {"MatMul", "gemm", "LayerNormalization", "SoftmaxCrossEntropyLoss"}) {
        const auto checked = checkKnownOperators(name);
        ASSERT_TRUE(checked) << name;
        EXPECT_FALSE(checked->empty()) << name;
        for (const CheckedOperator &op : *checked)
            EXPECT_TRUE(op.trial.failures.empty()) << op.name << ": " << describe(op.trial.failures.front());
    }
    const auto unknown = checkKnownOperators("Frobnicate");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
}

} // namespace planloom::testing
