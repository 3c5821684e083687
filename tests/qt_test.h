// Registers classes of Qt Test with the program of their room: PLANLOOM_QTEST(FrameTest) stands where
// QTEST_MAIN would.
#pragma once

#include <QtTest/QTest>
#include <QtWidgets/QApplication>

#include "tests/test_main.h"

namespace planloom {

/// ms; what has not happened by then does not happen.
constexpr int kLong = 60'000;

/// What QTEST_MAIN's main() does.
template<typename Test, typename Application> int runQtTest(int argc, char **argv)
{
    Application application(argc, argv);
    application.setAttribute(Qt::AA_Use96Dpi, true);
    Test test;
    return QTest::qExec(&test, argc, argv);
}

} // namespace planloom

/// A class that is run by a function of its own, (int argc, char **argv).
#define PLANLOOM_QTEST_RUN_BY(Class, function)                                                               \
    static const planloom::TestClass k##Class##Registered(#Class, __FILE__, function);

/// A class that needs another application than Qt's for widgets.
#define PLANLOOM_QTEST_IN(Class, Application)                                                                \
    PLANLOOM_QTEST_RUN_BY(Class, (planloom::runQtTest<Class, Application>))

/// A class with widgets.
#define PLANLOOM_QTEST(Class) PLANLOOM_QTEST_IN(Class, QApplication)
