#include "tests/test_main.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace planloom {
namespace {

struct KnownClass {
    std::string name{};
    std::string file{};
    TestClass::Main main = nullptr;
};

/// In a function, because variables of other files fill it before main().
std::vector<KnownClass> &knownClasses()
{
    static std::vector<KnownClass> classes;
    return classes;
}

std::string nameOf(const std::string &path)
{
    return path.substr(path.find_last_of('/') + 1);
}

/// Calls `visit(file, full name)` for each of GoogleTest's tests.
template<typename Visit> void forEachTest(Visit visit)
{
    const auto &all = *testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const auto &suite = *all.GetTestSuite(s);
        for (int t = 0; t < suite.total_test_count(); ++t) {
            const auto &test = *suite.GetTestInfo(t);
            visit(nameOf(test.file()), std::string(suite.name()) + '.' + test.name());
        }
    }
}

int listFiles()
{
    std::set<std::string> files;
    forEachTest([&](const std::string &file, const std::string &) { files.insert(file); });
    for (const KnownClass &known : knownClasses())
        files.insert(known.file);
    for (const std::string &file : files)
        std::printf("%s\n", file.c_str());
    return 0;
}

int runFile(const std::string &wanted, int argc, char **argv)
{
    std::string filter;
    forEachTest([&](const std::string &file, const std::string &test) {
        if (file == wanted)
            filter += (filter.empty() ? "" : ":") + test;
    });
    int failed = 0;
    bool any = false;
    if (!filter.empty()) {
        any = true;
        testing::GTEST_FLAG(filter) = filter;
        failed += RUN_ALL_TESTS();
    }
    for (const KnownClass &known : knownClasses())
        if (known.file == wanted) {
            any = true;
            failed += known.main(argc, argv);
        }
    if (!any) {
        std::fprintf(stderr, "there is no test in %s; --files lists those with tests\n", wanted.c_str());
        return 2;
    }
    return failed == 0 ? 0 : 1;
}

int runClass(const std::string &wanted, int argc, char **argv)
{
    for (const KnownClass &known : knownClasses())
        if (known.name == wanted)
            return known.main(argc, argv);
    std::fprintf(stderr, "there is no class %s; --classes lists them\n", wanted.c_str());
    return 2;
}

int runTests(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv); // takes its own arguments out
    const std::string first = argc > 1 ? argv[1] : "";
    const auto valueOf = [&](const std::string &option) {
        return first.compare(0, option.size(), option) == 0 ? first.substr(option.size()) : std::string();
    };
    // The rest is for the one that is chosen.
    const auto rest = [&] {
        for (int i = 2; i <= argc; ++i)
            argv[i - 1] = argv[i]; // with the null pointer at the end
        return argc - 1;
    };
    if (first == "--files")
        return listFiles();
    if (first == "--classes") {
        for (const KnownClass &known : knownClasses())
            std::printf("%s\n", known.name.c_str());
        return 0;
    }
    if (const std::string file = valueOf("--file="); !file.empty())
        return runFile(file, rest(), argv);
    if (const std::string name = valueOf("--class="); !name.empty())
        return runClass(name, rest(), argv);
    if (argc > 1) {
        std::fprintf(stderr,
            "unknown argument %s; expected --file=, --class=, --files, --classes or GoogleTest's\n", argv[1]);
        return 2;
    }
    return RUN_ALL_TESTS();
}

} // namespace

TestClass::TestClass(const char *name, const char *file, Main main)
{
    knownClasses().push_back({name, nameOf(file), main});
}

} // namespace planloom

int main(int argc, char **argv)
{
    return planloom::runTests(argc, argv);
}
