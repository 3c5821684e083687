// Bash runs what is made for it; zsh and fish do where they are installed.

#include "engine/terminal/completions.h"

#include "tests/engine/terminal/program_for_tests.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace planloom {
namespace {

std::string outputOf(const std::string &command)
{
    std::string text;
    FILE *const pipe = popen((command + " 2>&1").c_str(), "r");
    if (!pipe)
        return text;
    std::array<char, 4096> chunk{};
    while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
        text.append(chunk.data(), n);
    return pclose(pipe) == 0 ? text : "failed: " + text;
}

bool isInstalled(const std::string &shell)
{
    return std::system((shell + " -c true >/dev/null 2>&1").c_str()) == 0;
}

class Completions : public testing::Test
{
protected:
    /// The script for a shell, as a file.
    std::string scriptFor(const ProgramSpec &program, const std::string &shell) const
    {
        const std::string path = m_folder.at(program.name + "." + shell);
        std::ofstream(path) << completionsOf(program, shell);
        return path;
    }

    /// What bash offers for the last of these words, sorted; '=' is a word of its own, as bash has it.
    std::vector<std::string> offered(const ProgramSpec &program, const std::vector<std::string> &words) const
    {
        const std::string script = m_folder.at("ask.bash");
        std::string function = "_" + program.name;
        std::replace(function.begin(), function.end(), '-', '_');
        std::ofstream stream(script);
        stream << ". '" << scriptFor(program, "bash") << "'\ncd '" << m_folder.at("in") << "'\nCOMP_WORDS=('"
               << program.name << "'";
        for (const std::string &word : words)
            stream << " '" << word << "'";
        stream << ")\nCOMP_CWORD=" << words.size() << "\n"
               << function << "\nfor i in \"${COMPREPLY[@]}\"; do echo \"$i\"; done\n";
        stream.close();
        std::istringstream lines(outputOf("bash --norc '" + script + "'"));
        std::vector<std::string> found;
        for (std::string line; std::getline(lines, line);)
            found.push_back(line);
        std::sort(found.begin(), found.end());
        return found;
    }

    void SetUp() override
    {
        std::filesystem::create_directories(m_folder.at("in/cellar"));
        std::ofstream(m_folder.at("in/cloth.txt")) << "x";
    }

    TemporaryFolder m_folder{};
};

using Words = std::vector<std::string>;

TEST_F(Completions, BashOffersVerbsOptionsAndValues)
{
    const ProgramSpec &program = programForTests();
    EXPECT_EQ(offered(program, {"w"}), (Words{"warp", "weft"}));
    EXPECT_EQ(offered(program, {"--v"}), (Words{"--version"}));
    EXPECT_EQ(offered(program, {"help", "wa"}), (Words{"warp"}));
    EXPECT_EQ(offered(program, {"warp", "--f"}), (Words{"--fast", "--folder"}));
    EXPECT_EQ(offered(program, {"weft", "--"}), (Words{"--count", "--help", "--version"}));
    EXPECT_EQ(offered(program, {"warp", "--colour", ""}), (Words{"green", "red"}));
    EXPECT_EQ(offered(program, {"warp", "--colour", "=", "gr"}), (Words{"green"}));
    EXPECT_EQ(offered(program, {"warp", "--colour", "="}), (Words{"green", "red"}));
    EXPECT_EQ(offered(program, {"warp", "--loom", "p"}), (Words{"power"}));
    EXPECT_EQ(offered(program, {"weft", "--count", ""}), Words{});
}

TEST_F(Completions, BashOffersFilesWhereFilesStand)
{
    const ProgramSpec &program = programForTests();
    EXPECT_EQ(offered(program, {"warp", "c"}), (Words{"cellar", "cloth.txt"}));
    EXPECT_EQ(offered(program, {"warp", "--out", "c"}), (Words{"cellar", "cloth.txt"}));
    EXPECT_EQ(offered(program, {"warp", "--folder", "c"}), (Words{"cellar"}));
    EXPECT_EQ(offered(program, {"weft", "c"}), Words{});
    EXPECT_EQ(offered(program, {"warp", "--", "--f"}), Words{}) << "behind -- there are no options";
    EXPECT_EQ(offered(plainProgramForTests(), {"cl"}), (Words{"cloth.txt"}));
    EXPECT_EQ(offered(plainProgramForTests(), {"--twist", ""}), (Words{"s", "z"}));
}

TEST_F(Completions, EveryShellHasEveryOption)
{
    for (const char *shell : {"bash", "zsh", "fish"}) {
        const std::string text = completionsOf(programForTests(), shell);
        for (const VerbSpec &verb : programForTests().verbs) {
            EXPECT_NE(text.find(verb.name), std::string::npos) << shell << " " << verb.name;
            for (const OptionSpec &option : verb.options) {
                const std::string word = (shell == std::string("fish") ? "-l " : "--") + option.name;
                EXPECT_NE(text.find(word), std::string::npos) << shell << " " << word;
            }
        }
    }
    EXPECT_TRUE(completionsOf(programForTests(), "tcsh").empty());
}

TEST_F(Completions, FishOffersThem)
{
    if (!isInstalled("fish"))
        GTEST_SKIP() << "fish is not installed";
    const std::string start = "HOME='" + m_folder.at(".") + "' fish --no-config -c 'source \""
        + scriptFor(programForTests(), "fish") + "\"; complete -C \"weave-it ";
    EXPECT_EQ(outputOf(start + "w\"'"), "warp\twinds threads\nweft\tdraws a thread through\n");
    EXPECT_EQ(outputOf(start + "warp --fa\"'"), "--fast\twithout care\n");
    EXPECT_EQ(outputOf(start + "warp --loom \"' | sort"), "hand\twhich loom\npower\twhich loom\n");
}

TEST_F(Completions, ZshReadsThem)
{
    if (!isInstalled("zsh"))
        GTEST_SKIP() << "zsh is not installed";
    for (const ProgramSpec *program : {&programForTests(), &plainProgramForTests()}) {
        const std::string script = scriptFor(*program, "zsh");
        EXPECT_EQ(outputOf("zsh -n '" + script + "'"), "");
        // _arguments takes the place of what needs a line that is being edited: it prints what it is given.
        const std::string ask = m_folder.at("ask.zsh");
        std::ofstream(ask)
            << "_arguments() { print -l -- \"$@\" }\n_describe() { print -l -- ${(P)2} }\nwords=('"
            << program->name << "' warp '')\nCURRENT=3\n. '" << script << "'\n";
        const std::string given = outputOf("zsh -f '" + ask + "'");
        for (const OptionSpec &option : program->verbs.front().options)
            EXPECT_NE(
                given.find("*--" + option.name + (option.value.empty() ? "[" : "=[")), std::string::npos)
                << option.name << " in\n"
                << given;
    }
}

} // namespace
} // namespace planloom
