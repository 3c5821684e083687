#include "engine/interop/configs/shell_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace planloom {
namespace {

/// The words of the last command of a script, joined.
std::string lastOf(const std::string &script, const std::map<std::string, std::string> &variables = {})
{
    const auto shell = readShell(script, variables);
    if (!shell || shell->commands.empty())
        return "none";
    std::string words;
    for (const ShellWord &word : shell->commands.back())
        words += (words.empty() ? "" : "|") + word.text;
    return words;
}

TEST(ShellText, VariablesDefaultsAndArithmeticStandInTheirPlace)
{
    EXPECT_EQ(lastOf("GPUS=8\nNODES=${SLURM_NNODES:-2}\nWORLD=$(($GPUS*$NODES))\nrun --world $WORLD"),
        "run|--world|16");
    EXPECT_EQ(lastOf("A=${B:-${C:-\"x y\"}}\nrun \"$A\" ${A}"), "run|x y|x|y");
    EXPECT_EQ(lastOf("N=3; run $((2 * (N + 1) - 10 % 4))"), "run|6");
    EXPECT_EQ(lastOf("run ${TP:-1} $TP", {{"TP", "4"}}), "run|4|4");
    EXPECT_EQ(lastOf(": ${PP:=2}\nrun ${PP}"), "run|2");
}

TEST(ShellText, WhatOnlyARunKnowsStaysAsItIsWritten)
{
    EXPECT_EQ(lastOf("run $1 ${HOST} $(nproc) $((X*2)) `date`"), "run|$1|${HOST}|$(nproc)|$((X*2))|`date`");
    EXPECT_EQ(lastOf("X=$(rm -rf /)\nrun $X"), "run|$(rm|-rf|/)");
}

TEST(ShellText, ArraysKeepTheirWordsAndLines)
{
    const auto shell =
        readShell("ARGS=(\n  --a 1 # note\n  --b \"x y\"\n)\nARGS+=(--c)\nrun ${ARGS[@]} \\\n  --d");
    ASSERT_TRUE(shell);
    const std::vector<ShellWord> expected{
        {"run", 6}, {"--a", 2}, {"1", 2}, {"--b", 3}, {"x", 3}, {"y", 3}, {"--c", 5}, {"--d", 7}};
    EXPECT_EQ(shell->commands.back(), expected);
    EXPECT_EQ(lastOf("A=(1 '2 3')\nrun \"${A[@]}\""), "run|1|2 3");
}

TEST(ShellText, BranchesAreTakenAsVariablesDecide)
{
    const std::string script = "if [ \"$M\" = big ]; then TP=8; elif [[ $M == sm* && -n \"$M\" ]]; then "
                               "TP=2\nelse TP=1; fi\nrun $TP";
    EXPECT_EQ(lastOf(script, {{"M", "big"}}), "run|8");
    EXPECT_EQ(lastOf(script, {{"M", "small"}}), "run|2");
    EXPECT_EQ(lastOf(script), "run|1");
    const std::string choice = "case $M in\n a|b) X=1 ;;\n *) X=2 ;;\nesac\nrun $X";
    EXPECT_EQ(lastOf(choice, {{"M", "b"}}), "run|1");
    EXPECT_EQ(lastOf(choice, {{"M", "c"}}), "run|2");
    EXPECT_EQ(lastOf(choice), "run|$X"); // which branch is taken only a run knows
    EXPECT_EQ(lastOf("for tp in 2 4; do run $tp; done"), "run|2");
}

TEST(ShellText, OptionsAndOverridesAreSettingsWithTheirLines)
{
    const auto shell =
        readShell("torchrun --nproc_per_node=8 \\\n train.py --bf16 --recompute-modules mlp moe \\\n "
                  "+actor.megatron.x=4 --lr -1e-3 a.b='[x,\"y\"]'");
    ASSERT_TRUE(shell);
    const std::vector<Setting> expected{{"--nproc_per_node", {"8"}, 1}, {"--bf16", {}, 2},
        {"--recompute-modules", {"mlp", "moe"}, 2}, {"actor.megatron.x", {"4"}, 3}, {"--lr", {"-1e-3"}, 3},
        {"a.b", {"x", "y"}, 3}};
    EXPECT_EQ(settingsOf(shell->commands.back()), expected);
}

TEST(ShellText, WhatAScriptIsCalledWithIsNobodysValue)
{
    const auto shell = readShell("run --bf16 \"$@\" --tp 2 $*");
    ASSERT_TRUE(shell);
    const std::vector<Setting> expected{{"--bf16", {}, 1}, {"--tp", {"2"}, 1}};
    EXPECT_EQ(settingsOf(shell->commands.back()), expected);
}

TEST(ShellText, OptionsInsideOfOneQuotedWordAreFoundThere)
{
    const auto shell =
        readShell("CMD=\"python train.py \\\n  --tp 2 \\\n  --split '9,1'\"\nsrun bash -c \"$CMD\"");
    ASSERT_TRUE(shell);
    const std::vector<Setting> expected{{"--tp", {"2"}, 5}, {"--split", {"9,1"}, 6}};
    const auto settings = settingsOf(shell->commands.back());
    ASSERT_EQ(settings.size(), 2U);
    EXPECT_EQ(settings[0].values, expected[0].values);
    EXPECT_EQ(settings[1].values, expected[1].values);
}

TEST(ShellText, HostileScriptsEnd)
{
    std::string bomb = "A0=xxxxxxxxxxxxxxxx\n";
    for (int i = 1; i < 60; ++i)
        bomb +=
            "A" + std::to_string(i) + "=\"$A" + std::to_string(i - 1) + "$A" + std::to_string(i - 1) + "\"\n";
    const auto grown = readShell(bomb + "run $A59\n");
    ASSERT_FALSE(grown);
    EXPECT_EQ(grown.error().code, ErrorCode::ResourceLimit);
    for (const char *text :
        {"${", "$((", "\"", "'", "`", "A=(", "if [ -n", "case x in", "case", "for", "esac", "fi", "[[",
            "a() {", "<<", "$(( (((((((((", "A[0]=1", "x=${x}", "A=${A:-$A}", ": ${A:=${A:=1}}\nrun $A"}) {
        SCOPED_TRACE(text);
        EXPECT_TRUE(readShell(text));
    }
    EXPECT_TRUE(readShell(std::string(10000, '(')));
    std::string deep;
    for (int i = 0; i < 5000; ++i)
        deep += "${a:-";
    EXPECT_TRUE(readShell("run " + deep));
    std::string arithmetic = "run $((";
    EXPECT_TRUE(readShell(arithmetic + std::string(100000, '-') + "1))"));
    std::string frames;
    for (int i = 0; i < 1000; ++i)
        frames += "if true; then\n";
    EXPECT_FALSE(readShell(frames + "run\n"));
}

} // namespace
} // namespace planloom
