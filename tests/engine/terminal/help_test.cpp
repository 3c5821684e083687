#include "engine/terminal/help.h"

#include "engine/terminal/exit_status.h"
#include "engine/terminal/manual.h"
#include "tests/engine/terminal/program_for_tests.h"

#include <gtest/gtest.h>

#include <sstream>

namespace planloom {
namespace {

std::size_t widestOf(const std::string &text)
{
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        most = std::max(most, line.size());
    return most;
}

TEST(Help, IsWrappedBetweenWords)
{
    EXPECT_EQ(wrapped("one two  three", 7, 2), "one two\n  three");
    EXPECT_EQ(wrapped("unbreakable a", 4, 0), "unbreakable\na");
    EXPECT_EQ(wrapped("", 4, 0), "");
}

TEST(Help, FitsItsWidth)
{
    for (const std::size_t width : {40, 60, 70, 80, 120}) {
        EXPECT_LE(widestOf(helpOf(programForTests(), width)), width) << width;
        for (const VerbSpec &verb : programForTests().verbs)
            EXPECT_LE(widestOf(helpOf(programForTests(), verb, width)), width) << verb.name << " " << width;
        EXPECT_LE(widestOf(helpOf(plainProgramForTests(), width)), width) << width;
    }
}

TEST(Help, OfAVerbHasEveryOptionAndAnExample)
{
    EXPECT_EQ(helpOf(programForTests(), programForTests().verbs.back(), 80),
        "Usage: weave-it weft [options]\n\n"
        "draws a thread through\n\n"
        ".begins with a dot\n\n"
        "Options:\n"
        "  --count N                 how often\n"
        "  --help                    show this help, as -h does\n"
        "  --version                 show the version\n\n"
        "Example:\n"
        "  weave-it weft --count 2\n");
}

TEST(Help, AnswersWordsAboutTheProgramAlone)
{
    const ProgramSpec &program = programForTests();
    EXPECT_EQ(answerOf(program, {"--version"}), "weave-it 1.2.3\n");
    for (const char *word : {"-h", "--help", "help"})
        EXPECT_EQ(answerOf(program, {word}), helpOf(program, terminalWidth())) << word;
    EXPECT_EQ(answerOf(program, {"help", "weft"}), helpOf(program, program.verbs.back(), terminalWidth()));
    for (const auto &words : std::vector<std::vector<std::string>>{
             {}, {"weft"}, {"help", "loom"}, {"--version", "x"}, {"--print-completions=tcsh"}})
        EXPECT_FALSE(answerOf(program, words));
    EXPECT_FALSE(answerOf(plainProgramForTests(), {"help"})) << "a file may be called so";
}

TEST(ExitStatus, IsOfTheKindOfError)
{
    EXPECT_EQ(exitStatusOf(ErrorCode::Io), kExitFailed) << "a full disk is no wrong usage";
    EXPECT_EQ(exitStatusOf(ErrorCode::ResourceLimit), kExitFailed);
    EXPECT_EQ(exitStatusOf(ErrorCode::CheckFailed), kExitFailed);
    EXPECT_EQ(exitStatusOf(ErrorCode::Cancelled), kExitFailed);
    EXPECT_EQ(exitStatusOf(ErrorCode::Internal), kExitFailed);
    EXPECT_EQ(exitStatusOf(ErrorCode::InvalidInput), kExitUsage);
    EXPECT_EQ(exitStatusOf(ErrorCode::NotFound), kExitUsage);
    EXPECT_EQ(exitStatusOf(ErrorCode::NotSupported), kExitUsage);
    EXPECT_EQ(exitStatusOf(ErrorCode::Conflict), kExitConflict);
    for (std::size_t status = 0; status < exitStatuses().size(); ++status)
        EXPECT_EQ(exitStatuses()[status].first, static_cast<int>(status));
}

TEST(Manual, HasEverythingThatTheHelpHas)
{
    const std::string page = manualOf(programForTests());
    for (const char *part :
        {".TH WEAVE-IT 1", "weave\\-it \\- weaves", "\\fB\\-\\-colour\\fR \\fIred|green\\fR",
            ".SS warp CLOTH FILE", ".SH EXIT STATUS", ".SH ENVIRONMENT", "\\fBLOOM\\fR", "spin\\-it (1)",
            "\n\\&.begins with a dot\n", "it\\(aqs woven"})
        EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
    EXPECT_EQ(page, manualOf(programForTests()));
}

} // namespace
} // namespace planloom
