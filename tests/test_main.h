// Every room's tests are one program, whose main() runs those of one file, so that each file is an entry of
// CTest's with a process of its own:
//
//   simulate_tests --file=bubble_test.cpp        the tests of that file; none is an error
//   simulate_tests --gtest_filter=Bubble*        GoogleTest's own choice; --gtest_list_tests, ... likewise
//   widgets_main_tests --class=FrameTest [...]   a class of Qt Test, and what Qt Test understands:
//   -functions, a function's name simulate_tests --files, --classes            lists what there is
#pragma once

namespace planloom {

/// A class of tests that comes with a main() of its own, as Qt Test's do. Registered by a variable of its
/// file; see PLANLOOM_QTEST in qt_test.h.
class TestClass
{
public:
    using Main = int (*)(int argc, char **argv);

    /// @param name  of the class
    /// @param file  its __FILE__
    /// @param main  makes and runs it in a process that does nothing else; the arguments are without --file
    /// and --class
    TestClass(const char *name, const char *file, Main main);
};

} // namespace planloom
