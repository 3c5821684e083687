// The layering of the rooms, as far as linking cannot see it: which file includes what.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace planloom {
namespace {

namespace fs = std::filesystem;

/// One #include line of one file.
struct Include {
    std::string file{}; ///< From the root: "engine/graph/graph.h".
    int line = 0;
    std::string target{}; ///< "engine/base/result.h", "vector".
    bool quoted = false; ///< "..." rather than <...>.
    std::string where() const { return file + ":" + std::to_string(line) + " includes " + target; }
};

const fs::path &root()
{
    static const fs::path kRoot = PLANLOOM_SOURCE_DIR;
    return kRoot;
}

/// The includes of a text, in the order of its lines.
std::vector<Include> includesOf(const std::string &file, const std::string &text)
{
    std::vector<Include> includes;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::size_t at = line.find_first_not_of(" \t");
        if (at == std::string::npos || line[at] != '#')
            continue;
        at = line.find_first_not_of(" \t", at + 1);
        if (at == std::string::npos || line.compare(at, 7, "include") != 0)
            continue;
        at = line.find_first_of("\"<", at);
        if (at == std::string::npos)
            continue;
        const bool quoted = line[at] == '"';
        const std::size_t end = line.find(quoted ? '"' : '>', at + 1);
        includes.push_back({file, number, line.substr(at + 1, end - at - 1), quoted});
    }
    return includes;
}

/// The includes of all sources below `folder`.
std::vector<Include> includesBelow(const std::string &folder)
{
    std::vector<Include> includes;
    if (!fs::exists(root() / folder))
        return includes;
    for (const auto &entry : fs::recursive_directory_iterator(root() / folder)) {
        const std::string extension = entry.path().extension().string();
        if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp" && extension != ".in"))
            continue;
        std::ifstream stream(entry.path(), std::ios::binary);
        std::ostringstream text;
        text << stream.rdbuf();
        const auto found = includesOf(fs::relative(entry.path(), root()).generic_string(), text.str());
        includes.insert(includes.end(), found.begin(), found.end());
    }
    return includes;
}

std::vector<Include> allIncludes()
{
    std::vector<Include> all;
    for (const char *folder : {"engine", "sessions", "widgets", "app"}) {
        const auto below = includesBelow(folder);
        all.insert(all.end(), below.begin(), below.end());
    }
    return all;
}

bool startsWith(const std::string &text, const std::string &prefix)
{
    return text.compare(0, prefix.size(), prefix) == 0;
}

/// The first two folders, "engine/graph", or the one of the rooms that have no folders within.
std::string roomOf(const std::string &path)
{
    if (startsWith(path, "sessions/"))
        return "sessions";
    const std::size_t first = path.find('/');
    const std::size_t second = first == std::string::npos ? first : path.find('/', first + 1);
    return second == std::string::npos ? path.substr(0, first) : path.substr(0, second);
}

/// Qt's headers: <QtCore/QString>, <QString>, <qglobal.h>.
bool isQt(const Include &include)
{
    const std::string &target = include.target;
    return !include.quoted
        && ((target.size() > 1 && target[0] == 'Q'
                && (std::isupper(static_cast<unsigned char>(target[1])) != 0 || target[1] == 't'))
            || startsWith(target, "qt") || startsWith(target, "qglobal"));
}

TEST(Layering, ReadsIncludeLines)
{
    const auto includes = includesOf("engine/graph/graph.h",
        "#include \"engine/base/ids.h\"\n// #include <no>\n  #  include <QtCore/QString>\nint x;\n#include "
        "<vector>");
    ASSERT_EQ(includes.size(), 3u);
    EXPECT_EQ(includes[0].where(), "engine/graph/graph.h:1 includes engine/base/ids.h");
    EXPECT_TRUE(includes[0].quoted);
    EXPECT_FALSE(isQt(includes[0]));
    EXPECT_EQ(includes[1].where(), "engine/graph/graph.h:3 includes QtCore/QString");
    EXPECT_TRUE(isQt(includes[1]));
    EXPECT_FALSE(isQt(includes[2]));
}

TEST(Layering, SeesTheSources)
{
    EXPECT_GT(includesBelow("engine").size(), 500u);
    EXPECT_GT(includesBelow("sessions").size(), 10u);
    EXPECT_GT(includesBelow("widgets").size(), 100u);
    EXPECT_GT(includesBelow("app").size(), 10u);
}

TEST(Layering, OwnIncludesStartAtTheRootAndExist)
{
    for (const Include &include : allIncludes()) {
        if (!include.quoted)
            continue;
        // What moc writes lies in the build folder.
        if (include.target.size() > 4 && include.target.compare(include.target.size() - 4, 4, ".moc") == 0)
            continue;
        EXPECT_TRUE(fs::is_regular_file(root() / include.target))
            << include.where() << ", which is no path from the root";
    }
    for (const Include &include : allIncludes())
        EXPECT_FALSE(!include.quoted && fs::exists(root() / include.target))
            << include.where() << " in angle brackets, which are for other projects' headers";
}

TEST(Layering, RoomsUseOnlyTheRoomsBelowThem)
{
    // The table of the design; a room may also use what its rooms use.
    const std::map<std::string, std::set<std::string>> uses{
        {"engine/base", {}},
        {"engine/graph", {"engine/base"}},
        {"engine/kernels", {"engine/graph"}},
        {"engine/frontend", {"engine/graph", "engine/kernels"}},
        {"engine/hardware", {"engine/graph"}},
        {"engine/table", {"engine/graph"}},
        {"engine/plan", {"engine/table"}},
        {"engine/gallery", {"engine/plan"}},
        {"engine/gesture", {"engine/plan", "engine/hardware"}},
        {"engine/lowering", {"engine/plan", "engine/hardware"}},
        {"engine/verify", {"engine/lowering"}},
        {"engine/simulate", {"engine/lowering"}},
        {"engine/analyse", {"engine/simulate"}},
        {"engine/interop", {"engine/simulate"}},
        {"engine/runtime", {"engine/interop", "engine/kernels"}},
        {"engine/design", {"engine/frontend", "engine/gallery", "engine/gesture", "engine/analyse", "engine/verify"}},
    };
    const auto below = [&](const std::string &room) {
        std::set<std::string> all{room};
        std::vector<std::string> open{room};
        while (!open.empty()) {
            const std::string next = open.back();
            open.pop_back();
            for (const std::string &used : uses.at(next))
                if (all.insert(used).second)
                    open.push_back(used);
        }
        return all;
    };
    for (const Include &include : includesBelow("engine")) {
        if (!include.quoted)
            continue;
        const std::string room = roomOf(include.file);
        ASSERT_TRUE(uses.count(room)) << room << " is no room that this test knows: name what it may use";
        EXPECT_TRUE(below(room).count(roomOf(include.target))) << include.where();
    }
    for (const Include &include : includesBelow("sessions")) {
        const bool allowed = startsWith(include.target, "engine/") || startsWith(include.target, "sessions/");
        EXPECT_TRUE(!include.quoted || allowed) << include.where();
    }
    // Views stand side by side on what they share; only comparing puts two of them together, and the window all.
    const std::set<std::string> compared{"widgets/dag", "widgets/timeline", "widgets/memory"}; // shown twice, beside each other
    const std::map<std::string, std::set<std::string>> views{
        {"widgets/common", {}},
        {"widgets/scene", {"widgets/common"}},
        {"widgets/design", {"widgets/common", "widgets/scene"}},
    };
    const std::set<std::string> shared{"widgets/common", "widgets/scene", "widgets/design"};
    for (const Include &include : includesBelow("widgets")) {
        EXPECT_FALSE(include.quoted && startsWith(include.target, "app/")) << include.where();
        const std::string room = roomOf(include.file);
        const std::string used = include.quoted ? roomOf(include.target) : std::string{};
        if (!startsWith(used, "widgets/") || used == room || room == "widgets/main")
            continue;
        const auto own = views.find(room);
        const bool allowed = own != views.end() ? own->second.count(used) > 0
                                                : shared.count(used) > 0 || (room == "widgets/compare" && compared.count(used) > 0);
        EXPECT_TRUE(allowed) << include.where();
    }
    for (const Include &include : allIncludes())
        EXPECT_FALSE(include.quoted && startsWith(include.target, "tests/")) << include.where();
}

/// Everything between the quotes, comments and preprocessor lines of a source, as far as a search for calls needs it.
std::string codeOf(const fs::path &path)
{
    std::ifstream stream(path);
    std::string code;
    for (std::string line; std::getline(stream, line);)
        code += line.substr(0, line.find("//")) + "\n";
    return code;
}

/// True if `code` calls the free function `name`.
bool calls(const std::string &code, const std::string &name)
{
    for (std::size_t at = code.find(name + "("); at != std::string::npos; at = code.find(name + "(", at + 1)) {
        const char before = at > 0 ? code[at - 1] : ' ';
        if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_' && before != '.' && before != '>')
            return true;
    }
    return false;
}

TEST(Layering, FindsCalls)
{
    EXPECT_TRUE(calls("x = readTable(text);", "readTable"));
    EXPECT_FALSE(calls("x = thread.readTable(text); myreadTable(y); readTable;", "readTable"));
}

TEST(Layering, TheCorridorIsTheOneWayFromRowsToAPlan)
{
    // Completing, lowering and differentiating by hand is how two answers to one question come about.
    for (const Include &include : allIncludes()) {
        const bool corridor = startsWith(include.file, "engine/design/");
        if (include.target == "engine/lowering/lower.h") {
            EXPECT_TRUE(corridor || startsWith(include.file, "engine/lowering/")) << include.where();
        }
        if (include.target == "engine/frontend/training.h") {
            EXPECT_TRUE(corridor || startsWith(include.file, "engine/frontend/")) << include.where();
        }
        if (include.target == "engine/plan/complete.h") {
            EXPECT_TRUE(startsWith(include.file, "engine/")) << include.where();
        }
    }
    for (const char *folder : {"app/cli", "app/desktop", "widgets", "tests/bench"}) {
        for (const auto &entry : fs::recursive_directory_iterator(root() / folder)) {
            if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h")
                continue;
            const std::string code = codeOf(entry.path());
            for (const char *function : {"completePlan", "galleryTable", "readTable", "parseTable", "analyseBatch",
                     "buildTrainingStep"})
                EXPECT_FALSE(calls(code, function)) << entry.path() << " calls " << function;
            for (const char *header : {"engine/plan/complete.h", "engine/lowering/lower.h", "engine/frontend/training.h"})
                EXPECT_EQ(code.find(header), std::string::npos) << entry.path() << " includes " << header;
        }
    }
}

TEST(Layering, TheVerifierKnowsOfLoweringOnlyTheExecutionPlan)
{
    // Its proof is worth something because it shares no code with what it checks.
    for (const Include &include : includesBelow("engine/verify")) {
        if (startsWith(include.target, "engine/lowering/")) {
            EXPECT_EQ(include.target, "engine/lowering/execution_plan.h") << include.where();
        }
    }
}

TEST(Layering, NoQtBelowTheWidgets)
{
    for (const char *folder : {"engine", "sessions", "app/cli", "app/exec", "app/layout"})
        for (const Include &include : includesBelow(folder)) {
            EXPECT_FALSE(isQt(include)) << include.where();
            // The one room of the window that is free of Qt: planloom-layout shares its layouts.
            const bool layout = startsWith(include.target, "widgets/dag/layered_layout.h")
                || startsWith(include.target, "widgets/dag/layout_protocol.h");
            EXPECT_FALSE(include.quoted && startsWith(include.target, "widgets/") && !layout)
                << include.where();
        }
    for (const Include &include : includesBelow("widgets/dag")) {
        const bool free = startsWith(include.file, "widgets/dag/layered_layout.")
            || startsWith(include.file, "widgets/dag/layout_protocol.");
        EXPECT_FALSE(free && isQt(include)) << include.where();
    }
}

TEST(Layering, LibrariesStayInTheirRooms)
{
    const std::vector<std::pair<std::string, std::vector<std::string>>> libraries{
        {"onnx/", {"engine/frontend/"}},
        {"google/protobuf/", {"engine/frontend/"}},
        {"oneapi/", {"engine/kernels/"}},
        {"dnnl", {"engine/kernels/"}},
        {"omp.h", {"engine/kernels/"}},
        {"z3", {"engine/search/"}},
        {"cuda", {"engine/runtime/"}},
        {"nccl", {"engine/runtime/"}},
        {"mpi.h", {"engine/runtime/"}},
        {"SQLiteCpp/", {"sessions/"}},
        {"sqlite3", {"sessions/"}},
        {"graphviz/", {"app/layout/"}},
        {"gtest/", {}},
    };
    for (const Include &include : allIncludes())
        for (const auto &[library, rooms] : libraries) {
            if (include.quoted || !startsWith(include.target, library))
                continue;
            const bool allowed = std::any_of(rooms.begin(), rooms.end(),
                [&](const std::string &room) { return startsWith(include.file, room); });
            EXPECT_TRUE(allowed) << include.where();
        }
}

TEST(Layering, HeavyHeadersStayOutOfHeaders)
{
    for (const Include &include : allIncludes()) {
        if (include.file.size() < 2 || include.file.compare(include.file.size() - 2, 2, ".h") != 0)
            continue;
        EXPECT_NE(include.target, "nlohmann/json.hpp") << include.where() << ": json_fwd.hpp will do";
        EXPECT_FALSE(startsWith(include.target, "google/protobuf/")) << include.where();
    }
}

TEST(Layering, SourcesKeepToTheLanguageOfTheStyle)
{
    // Debian 12's compiler lacks the first, its clang-tidy cannot read the others.
    for (const Include &include : allIncludes())
        for (const char *header : {"format", "ranges", "source_location", "expected", "print"})
            EXPECT_NE(include.target, header) << include.where();
}

} // namespace
} // namespace planloom
