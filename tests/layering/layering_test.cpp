// The layering of the rooms, as far as linking cannot see it: which file includes what.

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
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

/// A target declared by planloom_library(), as CMake wrote it down.
struct Room {
    std::string folder{}; ///< From the root: "engine/graph".
    std::set<std::string> uses{}; ///< What its CMakeLists.txt says, by name.
    std::set<std::string> sources{}; ///< From its folder.
};
using Rooms = std::map<std::string, Room>;

Rooms readRooms()
{
    std::ifstream stream(PLANLOOM_BINARY_DIR "/rooms.txt");
    Rooms rooms;
    Room *room = nullptr;
    std::string line;
    while (std::getline(stream, line)) {
        std::istringstream words(line);
        std::string key;
        std::string word;
        words >> key;
        if (key == "room") {
            words >> word;
            room = &rooms[word];
            words >> room->folder;
        } else if (room) {
            while (words >> word)
                (key == "uses" ? room->uses : room->sources).insert(word);
        }
    }
    return rooms;
}

/// A room and all that it uses, directly or not.
std::set<std::string> withAllBelow(const Rooms &rooms, const std::string &name)
{
    std::set<std::string> all{name};
    std::vector<std::string> open{name};
    while (!open.empty()) {
        const std::string next = open.back();
        open.pop_back();
        for (const std::string &used : rooms.at(next).uses)
            if (all.insert(used).second)
                open.push_back(used);
    }
    return all;
}

/// The room of a file, or "". A room may have folders within, and others there: the innermost one. Where a
/// folder has several rooms, a header is in that of the source of its name; one without such a source is in
/// the room with the most sources.
std::string roomOf(const Rooms &rooms, const std::string &file)
{
    const fs::path path(file);
    std::string best;
    std::pair<std::size_t, std::size_t> most; // letters of the folder, sources
    for (const auto &[name, room] : rooms) {
        if (!startsWith(path.generic_string(), room.folder + "/"))
            continue;
        const std::string within = path.generic_string().substr(room.folder.size() + 1);
        if (room.sources.count(fs::path(within).replace_extension(".cpp").generic_string()))
            return name;
        const std::pair size{room.folder.size(), room.sources.size()};
        if (best.empty() || size > most) {
            best = name;
            most = size;
        }
    }
    return best;
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
        const fs::path source(include.file);
        if (include.target.ends_with(".moc")
            || (source.extension() == ".cpp" && include.target == "moc_" + source.filename().string()))
            continue;
        EXPECT_TRUE(fs::is_regular_file(root() / include.target))
            << include.where() << ", which is no path from the root";
    }
    for (const Include &include : allIncludes())
        EXPECT_FALSE(!include.quoted && fs::exists(root() / include.target))
            << include.where() << " in angle brackets, which are for other projects' headers";
}

TEST(Layering, RoomsStandInFloors)
{
    // No room uses itself by way of others, and none a folder above its own.
    const Rooms rooms = readRooms();
    const std::vector<std::string> floors{"engine/", "sessions", "widgets/"};
    const auto floorOf = [&](const Room &room) {
        return std::find_if(floors.begin(), floors.end(), [&](const std::string &floor) {
            return startsWith(room.folder, floor);
        }) - floors.begin();
    };
    EXPECT_GT(rooms.size(), 25u);
    for (const auto &[name, room] : rooms) {
        EXPECT_LT(floorOf(room), 3) << name << " in " << room.folder;
        for (const std::string &used : room.uses) {
            ASSERT_TRUE(rooms.count(used)) << name << " uses " << used << ", which is no room";
            EXPECT_LE(floorOf(rooms.at(used)), floorOf(room)) << name << " uses " << used;
            EXPECT_FALSE(withAllBelow(rooms, used).count(name))
                << name << " and " << used << " use each other";
        }
    }
}

TEST(Layering, RoomsUseOnlyTheRoomsBelowThem)
{
    // What CMakeLists.txt says a room USES; a room may also use what its rooms use.
    const Rooms rooms = readRooms();
    for (const Include &include : allIncludes()) {
        if (!include.quoted || startsWith(include.file, "app/"))
            continue;
        const std::string room = roomOf(rooms, include.file);
        ASSERT_FALSE(room.empty()) << include.file << " is in the folder of no room";
        const std::string used = roomOf(rooms, include.target);
        if (!used.empty()) {
            EXPECT_TRUE(withAllBelow(rooms, room).count(used))
                << include.where() << ", but " << room << " does not use " << used;
        } else {
            EXPECT_FALSE(startsWith(include.target, "app/") || startsWith(include.target, "tests/"))
                << include.where();
        }
    }
    for (const Include &include : allIncludes())
        EXPECT_FALSE(include.quoted && startsWith(include.target, "tests/")) << include.where();
}

TEST(Layering, ViewsStandSideBySide)
{
    // On what they share; only comparing puts two of them together, that of schedules too, what is said of
    // the design's state says what it is planned for and how good that is, and the window puts all together.
    const Rooms rooms = readRooms();
    const std::set<std::string> shared{"widgets_common", "widgets_scene", "widgets_design",
        "widgets_layout"}; // layout: of the DAG and its helper
    const std::set<std::string> compared{
        "widgets_dag", "widgets_timeline", "widgets_memory"}; // shown twice, beside each other
    for (const auto &[name, room] : rooms) {
        if (!startsWith(name, "widgets_") || name == "widgets_main")
            continue;
        for (const std::string &used : room.uses) {
            const bool allowed = shared.count(used) > 0
                || (name == "widgets_compare" && compared.count(used) > 0)
                || (name == "widgets_schedule" && (used == "widgets_compare" || used == "widgets_timeline"))
                || ((name == "widgets_scenes" || name == "widgets_present") // scenes are of both canvases
                    && (used == "widgets_dag" || used == "widgets_timeline" || used == "widgets_scenes"))
                || (name == "widgets_status" && (used == "widgets_target" || used == "widgets_accuracy"));
            EXPECT_TRUE(allowed || !startsWith(used, "widgets_")) << name << " uses " << used;
        }
    }
}

/// "struct", "class" or "enum class" and a name at the beginning of a line that goes on with a definition.
std::string definedType(const std::string &line)
{
    static const std::regex kDefinition(
        R"(^(struct|class|enum class|union) (\w+)( final)?( : [^;]*)?( ?\{.*)?$)");
    std::smatch match;
    return std::regex_match(line, match, kDefinition) ? match[2].str() : std::string{};
}

TEST(Layering, FindsDefinedTypes)
{
    EXPECT_EQ(definedType("struct Point {"), "Point");
    EXPECT_EQ(definedType("class View : public QWidget"), "View");
    EXPECT_EQ(definedType("enum class Kind : std::uint8_t { A, B };"), "Kind");
    EXPECT_EQ(definedType("enum class Kind : std::uint8_t { A,"), "Kind");
    EXPECT_EQ(definedType("class View;"), "");
    EXPECT_EQ(definedType("class View::Impl"), "");
}

/// Two types of one name are undefined behaviour where both are linked, although nothing says so: their
/// inline functions, such as those of vectors of them, become those of one of the two.
TEST(Layering, TypesHaveOneDefinition)
{
    std::map<std::string, std::string> defined;
    for (const char *folder : {"engine", "sessions", "widgets", "app"})
        for (const auto &entry : fs::recursive_directory_iterator(root() / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu")
                continue;
            const std::string file = fs::relative(entry.path(), root()).generic_string();
            std::ifstream stream(entry.path());
            std::vector<std::string> spaces;
            int number = 0;
            for (std::string line; std::getline(stream, line);) {
                ++number;
                if (startsWith(line, "namespace ") && line.back() == '{')
                    spaces.push_back(line.substr(10, line.size() - 11));
                else if (startsWith(line, "} // namespace") && !spaces.empty())
                    spaces.pop_back();
                const std::string type = definedType(line);
                if (type.empty() || std::count(spaces.begin(), spaces.end(), "") > 0)
                    continue; // of a nameless space: the file's own
                std::string name;
                for (const std::string &space : spaces)
                    name += space + "::";
                const std::string place = file + ":" + std::to_string(number);
                const auto [first, isNew] = defined.emplace(name + type, place);
                EXPECT_TRUE(isNew) << name << type << " is defined in " << first->second << " and " << place;
            }
        }
    EXPECT_GT(defined.size(), 500U);
}

TEST(Layering, EverySourceIsCompiled)
{
    const Rooms rooms = readRooms();
    std::set<std::string> compiled;
    for (const auto &[name, room] : rooms)
        for (const std::string &source : room.sources)
            compiled.insert(room.folder + "/" + source);
    for (const char *folder : {"engine", "sessions", "widgets"})
        for (const auto &entry : fs::recursive_directory_iterator(root() / folder)) {
            const std::string file = fs::relative(entry.path(), root()).generic_string();
            if (entry.path().extension() != ".cpp")
                continue;
            if (startsWith(file, "engine/cuda/plugin/")) { // no room: it is only built where CUDA is
                std::ifstream stream(entry.path().parent_path() / "CMakeLists.txt");
                std::ostringstream text;
                text << stream.rdbuf();
                EXPECT_NE(text.str().find(" " + entry.path().filename().string()), std::string::npos) << file;
                continue;
            }
            EXPECT_TRUE(compiled.count(file)) << file << " is in no CMakeLists.txt";
        }
}

/// Everything between the quotes, comments and preprocessor lines of a source, as far as a search for calls
/// needs it.
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
    for (std::size_t at = code.find(name + "("); at != std::string::npos;
         at = code.find(name + "(", at + 1)) {
        const char before = at > 0 ? code[at - 1] : ' ';
        if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_' && before != '.'
            && before != '>')
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
            // The search prices plans by carrying them out.
            EXPECT_TRUE(corridor || startsWith(include.file, "engine/lowering/")
                || startsWith(include.file, "engine/search/"))
                << include.where();
        }
        if (include.target == "engine/frontend/training/training.h") {
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
            for (const char *function : {"completePlan", "galleryTable", "readTable", "parseTable",
                     "analyseBatch", "buildTrainingStep"})
                EXPECT_FALSE(calls(code, function)) << entry.path() << " calls " << function;
            for (const char *header :
                {"engine/plan/complete.h", "engine/lowering/lower.h", "engine/frontend/training/training.h"})
                EXPECT_EQ(code.find(header), std::string::npos) << entry.path() << " includes " << header;
        }
    }
}

TEST(Layering, TheVerifierKnowsOfLoweringOnlyTheExecutionPlan)
{
    // Its proof is worth something because it shares no code with what it checks.
    for (const Include &include : includesBelow("engine/verify")) {
        if (startsWith(include.target, "engine/lowering/")) {
            EXPECT_EQ(include.target, "engine/lowering/program/execution_plan.h") << include.where();
        }
    }
}

TEST(Layering, NoQtBelowTheWidgets)
{
    const Rooms rooms = readRooms();
    for (const char *folder : {"engine", "sessions", "app/cli", "app/exec", "app/layout"})
        for (const Include &include : includesBelow(folder)) {
            EXPECT_FALSE(isQt(include)) << include.where();
            // The one room of the window that is free of Qt: planloom-layout shares its layouts.
            EXPECT_FALSE(include.quoted && startsWith(include.target, "widgets/")
                && roomOf(rooms, include.target) != "widgets_layout")
                << include.where();
        }
    for (const Include &include : includesBelow("widgets"))
        EXPECT_FALSE(isQt(include) && roomOf(rooms, include.file) == "widgets_layout") << include.where();
}

TEST(Layering, LibrariesStayInTheirRooms)
{
    const std::vector<std::pair<std::string, std::vector<std::string>>> libraries{
        {"onnx/", {"engine/frontend/"}},
        {"google/protobuf/", {"engine/frontend/"}},
        {"oneapi/", {"engine/kernels/"}},
        {"dnnl", {"engine/kernels/"}},
        {"omp.h", {"engine/kernels/"}},
        {"z3", {"engine/conflict/"}},
        {"cuda", {"engine/cuda/plugin/"}},
        {"cublas", {"engine/cuda/plugin/"}},
        {"nccl", {"engine/cuda/plugin/"}},
        {"mpi.h", {"engine/runtime/"}},
        {"SQLiteCpp/", {"sessions/"}},
        {"sqlite3", {"sessions/", "engine/traces/nsight/"}},
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

/// Something that has a size: "file engine/search/solver.cpp", "function app/cli/main.cpp main",
/// "class widgets/dag/dag_view.h DagView", "folder widgets/dag".
using Sizes = std::map<std::string, int>;

/// The name in front of the first bracket of a function's head, or behind "class" or "struct".
std::string nameIn(const std::string &head)
{
    static const std::regex kType(R"(^(class|struct|union|enum class|enum) ((\w|::)+))");
    static const std::regex kFunction(R"(((\w|::|~)+|operator\W+)\()");
    std::smatch match;
    if (std::regex_search(head, match, kType))
        return match[2].str();
    return std::regex_search(head, match, kFunction) ? match[1].str() : head;
}

/// Lines of each file, each folder's own files, and each function; members of each class, which begin with
/// `m_`. The layout of .clang-format is relied on: what stands in a namespace begins at a line's first
/// column, and ends with a bracket there.
Sizes sizesOf(const std::string &file, const std::string &text)
{
    static const std::regex kMember(R"(^    [^ /].*\bm_\w+(\[[^\]]*\])?(\{.*\}| = .*)?;( *//.*)?$)");
    Sizes sizes;
    std::istringstream stream(text);
    std::string head; // of what began; empty: nothing has
    bool hasBody = false;
    int lines = 0;
    int from = 0;
    int members = 0;
    for (std::string line; std::getline(stream, line);) {
        ++lines;
        if (line.empty())
            continue;
        const bool isIndented = line[0] == ' ' || line[0] == '\t';
        if (line[0] == '}') {
            const std::string name = " " + nameIn(head);
            if (startsWith(head, "class ") || startsWith(head, "struct "))
                sizes["class " + file + name] = members;
            else if (!head.empty() && hasBody && line == "}")
                sizes["function " + file + name] = lines - from + 1;
            head.clear();
            continue;
        }
        if (head.empty() && !isIndented && line[0] != '#' && line[0] != '/' && !startsWith(line, "namespace")
            && !startsWith(line, "using ") && !startsWith(line, "extern ")) {
            head = line;
            from = lines;
            members = 0;
            hasBody = false;
        }
        hasBody = hasBody || line.find('{') != std::string::npos;
        members += std::regex_search(line, kMember) ? 1 : 0;
        if (!hasBody && line.back() == ';') // a declaration
            head.clear();
    }
    sizes["file " + file] = lines;
    sizes["folder " + fs::path(file).parent_path().generic_string()] = lines;
    return sizes;
}

TEST(Layering, MeasuresSources)
{
    const Sizes sizes = sizesOf("engine/a/b.cpp",
        "namespace planloom {\n\nint one();\n\nclass Two\n{\npublic:\n    int three() { return m_three; "
        "}\n\nprivate:\n"
        "    int m_three = 3;\n    std::vector<int> m_four{};\n};\n\nint Two::five(\n    int six)\n{\n    "
        "return six;\n}\n\n}\n");
    EXPECT_EQ(sizes.at("class engine/a/b.cpp Two"), 2);
    EXPECT_EQ(sizes.at("function engine/a/b.cpp Two::five"), 5);
    EXPECT_EQ(sizes.at("file engine/a/b.cpp"), 21);
    EXPECT_EQ(sizes.at("folder engine/a"), 21);
    EXPECT_EQ(sizes.size(), 4U);
}

/// What is small enough to be held in the head stays so. limits.txt lists what is larger, with its size: that
/// may shrink, not grow, and goes from the list when it is small.
TEST(Layering, NothingIsTooLarge)
{
    const std::map<std::string, int> most{{"file", 600}, {"function", 100}, {"class", 20}, {"folder", 6000}};
    Sizes sizes;
    for (const char *top : {"engine", "sessions", "widgets", "app"})
        for (const auto &entry : fs::recursive_directory_iterator(root() / top)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu")
                continue;
            std::ifstream stream(entry.path(), std::ios::binary);
            std::ostringstream text;
            text << stream.rdbuf();
            for (const auto &[what, size] :
                sizesOf(fs::relative(entry.path(), root()).generic_string(), text.str()))
                if (startsWith(what, "folder "))
                    sizes[what] += size;
                else
                    sizes[what] = std::max(sizes[what], size);
        }
    Sizes listed;
    std::ifstream limits(root() / "tests/layering/limits.txt");
    for (std::string line; std::getline(limits, line);) {
        const std::size_t end = line.find_last_of(' ');
        if (!line.empty() && line[0] != '#' && end != std::string::npos)
            listed[line.substr(0, end)] = std::stoi(line.substr(end + 1));
    }
    for (const auto &[what, size] : sizes) {
        const int own = most.at(what.substr(0, what.find(' ')));
        const auto known = listed.find(what);
        if (known == listed.end()) {
            EXPECT_LE(size, own) << what
                                 << " has grown too large: it would be a line of tests/layering/limits.txt";
            continue;
        }
        EXPECT_LE(size, known->second) << what << " has grown: " << known->second << " are listed";
        EXPECT_GT(size, own) << what << " is small enough: its line in tests/layering/limits.txt can go";
    }
    for (const auto &[what, size] : listed)
        EXPECT_TRUE(sizes.count(what))
            << what << " is listed in tests/layering/limits.txt, and there is none";
}

} // namespace
} // namespace planloom
