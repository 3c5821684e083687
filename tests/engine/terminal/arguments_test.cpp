#include "engine/terminal/arguments.h"

#include "tests/engine/terminal/program_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Result<Arguments> parsed(const std::vector<std::string> &words)
{
    return Arguments::parse(programForTests(), programForTests().verbs.front(), words);
}

std::string problemOf(const std::vector<std::string> &words)
{
    const auto arguments = parsed(words);
    return arguments ? "none" : arguments.error().message;
}

TEST(Arguments, OptionsStandAnywhereAndBehindTwoDashesAreNone)
{
    const auto arguments = parsed({"--fast", "a", "--colour=green", "--", "--out"});
    ASSERT_TRUE(arguments) << describe(arguments.error());
    EXPECT_EQ(arguments->positional(0), "a");
    EXPECT_EQ(arguments->positional(1), "--out");
    EXPECT_EQ(arguments->text("colour"), "green");
    EXPECT_TRUE(arguments->has("fast"));
    EXPECT_FALSE(arguments->has("out"));
    const auto dash = parsed({"-", "b"});
    ASSERT_TRUE(dash);
    EXPECT_EQ(dash->positional(), "-");
}

TEST(Arguments, WhatDoesNotFitIsNamedWithWhatDoes)
{
    EXPECT_EQ(problemOf({"a"}), "weave-it warp expects CLOTH FILE");
    EXPECT_EQ(problemOf({"a", "b", "c"}), "expected CLOTH FILE, found \"c\" too");
    EXPECT_EQ(problemOf({"a", "b", "--out"}), "--out expects FILE");
    EXPECT_EQ(problemOf({"a", "b", "--fast=1"}), "--fast takes no value");
    EXPECT_EQ(problemOf({"a", "b", "--color", "red"}),
        "\"--color\" is no option of weave-it warp: did you mean --colour?");
    EXPECT_EQ(problemOf({"a", "b", "--xyzzy"}), "\"--xyzzy\" is no option of weave-it warp");
    EXPECT_EQ(
        problemOf({"a", "b", "-fast"}), "\"-fast\" is no option of weave-it warp: did you mean --fast?");
}

TEST(Arguments, HelpAndVersionNeedNoOtherWord)
{
    for (const char *word : {"-h", "--help"}) {
        const auto arguments = parsed({word});
        ASSERT_TRUE(arguments) << word;
        EXPECT_TRUE(arguments->has("help"));
    }
    const auto version = parsed({"--version"});
    ASSERT_TRUE(version);
    EXPECT_TRUE(version->has("version"));
}

TEST(Arguments, AVerbIsFoundByItsNameAndElseTheNearestIsSaid)
{
    EXPECT_EQ((*findVerb(programForTests(), "weft"))->name, "weft");
    const auto near = findVerb(programForTests(), "wrap");
    ASSERT_FALSE(near);
    EXPECT_EQ(near.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(findVerb(programForTests(), "weftt").error().message,
        "\"weftt\" is no verb of weave-it: did you mean 'weft'?");
    EXPECT_EQ(findVerb(programForTests(), "--fast").error().message, "\"--fast\" is no option of weave-it");
}

TEST(Arguments, WordsInBracketsMayBeMissing)
{
    const ProgramSpec &program = plainProgramForTests();
    const auto none = Arguments::parse(program, program.verbs.front(), {});
    ASSERT_TRUE(none);
    EXPECT_EQ(none->positional(), "");
    EXPECT_FALSE(Arguments::parse(program, program.verbs.front(), {"a", "b"}));
}

TEST(ValueKinds, AreReadFromTheNamesOfValues)
{
    const auto wordsOf = [](const std::string &value) { return kindOf({"x", value, {}, {}}).words; };
    EXPECT_EQ(wordsOf("none|selective|full"), (std::vector<std::string>{"none", "selective", "full"}));
    EXPECT_EQ(wordsOf("constant|cosine[:KEY=N,...]"), (std::vector<std::string>{"constant", "cosine"}));
    EXPECT_EQ(wordsOf("NAME[:KEY=VALUE,...]|all"), (std::vector<std::string>{"all"}));
    EXPECT_TRUE(wordsOf("N").empty());
    for (const char *file : {"FILE", "PLAN|MODEL", "FILE.json", "PATH|synthetic", "[FILE]"})
        EXPECT_TRUE(kindOf({"x", file, {}, {}}).files) << file;
    for (const char *other : {"N", "NAME", "RATIO", "DIR"})
        EXPECT_FALSE(kindOf({"x", other, {}, {}}).files) << other;
    EXPECT_TRUE(kindOf({"x", "DIR", {}, {}}).folders);
}

} // namespace
} // namespace planloom
