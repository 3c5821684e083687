# Precompiled headers: what nearly every source includes of other projects is read once for the whole build, not once for
# each source. There are four, each with the flags of the targets that use it: planloom_pch_engine (no Qt),
# planloom_pch_widgets (Qt), and those with the test libraries, planloom_pch_tests and planloom_pch_widgets_tests.
#
# They hold no header of Planloom's: changing one would compile everything anew, and a source would see rooms that it does
# not include. Sources include what they use all the same: with -DPLANLOOM_PCH=OFF they compile without.

# Only GCC's are checked for fitting (-Winvalid-pch); clang compiles the fuzzers, and clang-tidy cannot read GCC's.
set(PLANLOOM_PRECOMPILE OFF)
if(PLANLOOM_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(PLANLOOM_PRECOMPILE ON)
endif()

# What at least every fifth source needs. Each header has its price in all the others, too: functions that its templates
# leave for the end of a compilation are made anew in each (0.08 s for <filesystem>, 0.5 s for nlohmann/json.hpp, of 1 s
# that an ordinary source takes).
set(PLANLOOM_STANDARD_HEADERS
    <algorithm> <array> <cassert> <chrono> <cmath> <compare> <cstddef> <cstdint> <cstring> <functional> <initializer_list>
    <limits> <map> <memory> <numeric> <optional> <set> <span> <stop_token> <string> <string_view> <tuple> <type_traits>
    <unordered_map> <utility> <variant> <vector>)
# Qt's come first: moc's rule for sources (<compare> met first) holds for what stands before them, too.
set(PLANLOOM_QT_HEADERS
    <QtCore/QAbstractTableModel> <QtCore/QCoreApplication> <QtCore/QElapsedTimer> <QtCore/QEvent> <QtCore/QFutureWatcher>
    <QtCore/QMimeData> <QtCore/QObject> <QtCore/QPointer> <QtCore/QRectF> <QtCore/QString> <QtCore/QStringList>
    <QtCore/QThreadPool> <QtCore/QTimer> <QtCore/QVariant>
    <QtGui/QAction> <QtGui/QColor> <QtGui/QFont> <QtGui/QFontMetrics> <QtGui/QImage> <QtGui/QKeyEvent> <QtGui/QMouseEvent>
    <QtGui/QPainter> <QtGui/QPainterPath> <QtGui/QPalette> <QtGui/QPixmap> <QtGui/QWheelEvent>
    <QtWidgets/QApplication> <QtWidgets/QComboBox> <QtWidgets/QDialog> <QtWidgets/QFrame> <QtWidgets/QHBoxLayout>
    <QtWidgets/QHeaderView> <QtWidgets/QLabel> <QtWidgets/QLineEdit> <QtWidgets/QMenu> <QtWidgets/QPushButton>
    <QtWidgets/QScrollBar> <QtWidgets/QSplitter> <QtWidgets/QTableView> <QtWidgets/QToolButton> <QtWidgets/QVBoxLayout>
    <QtWidgets/QWidget>)

# Everything with Qt is compiled with the same parts of it: a precompiled header fits only where the same macros are
# defined, and Qt has one for each part.
if(PLANLOOM_GUI)
    find_package(Qt6 6.4 COMPONENTS Core Gui Widgets Concurrent Svg REQUIRED)
    add_library(planloom_qt INTERFACE)
    target_link_libraries(planloom_qt INTERFACE Qt6::Core Qt6::Gui Qt6::Widgets Qt6::Concurrent Qt6::Svg)
    target_compile_definitions(planloom_qt INTERFACE QT_NO_KEYWORDS)
    target_compile_options(planloom_qt INTERFACE ${PLANLOOM_WINDOW_FLAGS})
    if(PLANLOOM_TESTS OR PLANLOOM_BENCH)
        find_package(Qt6 6.4 COMPONENTS Test REQUIRED)
        add_library(planloom_qt_test INTERFACE)
        target_link_libraries(planloom_qt_test INTERFACE planloom_qt Qt6::Test)
        # Paths, different for each target, that only QFINDTESTDATA needs.
        target_compile_options(planloom_qt_test INTERFACE -UQT_TESTCASE_BUILDDIR -UQT_TESTCASE_SOURCEDIR)
    endif()
endif()

# planloom_add_pch(<name> LIBRARIES <target>... HEADERS <header>...): the target planloom_pch_<name>, which compiles it
function(planloom_add_pch name)
    cmake_parse_arguments(ARG "" "" "LIBRARIES;HEADERS" ${ARGN})
    set(source ${PROJECT_BINARY_DIR}/planloom_pch_${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// A target needs a source to have a precompiled header.\n")
    add_library(planloom_pch_${name} OBJECT ${source})
    target_link_libraries(planloom_pch_${name} PRIVATE planloom_options ${ARG_LIBRARIES})
    target_precompile_headers(planloom_pch_${name} PRIVATE ${ARG_HEADERS})
endfunction()

if(PLANLOOM_PRECOMPILE)
    # ccache can then preprocess a source without reading the precompiled header away.
    target_compile_options(planloom_options INTERFACE -fpch-preprocess)
    planloom_add_pch(engine HEADERS ${PLANLOOM_STANDARD_HEADERS})
    if(PLANLOOM_TESTS)
        find_package(GTest REQUIRED)
        planloom_add_pch(tests LIBRARIES GTest::gtest HEADERS ${PLANLOOM_STANDARD_HEADERS} <random> <gtest/gtest.h>)
    endif()
    if(PLANLOOM_GUI)
        planloom_add_pch(widgets LIBRARIES planloom_qt HEADERS ${PLANLOOM_QT_HEADERS} ${PLANLOOM_STANDARD_HEADERS})
        if(PLANLOOM_TESTS)
            planloom_add_pch(widgets_tests LIBRARIES planloom_qt_test GTest::gtest
                HEADERS ${PLANLOOM_QT_HEADERS} <QtTest/QSignalSpy> <QtTest/QTest> ${PLANLOOM_STANDARD_HEADERS} <gtest/gtest.h>)
            target_compile_options(planloom_pch_widgets_tests PRIVATE ${PLANLOOM_WINDOW_TEST_FLAGS})
        endif()
    endif()
endif()

# planloom_precompile_alone(<target>): a target without Qt whose flags are its own gets a precompiled header of its own
function(planloom_precompile_alone target)
    if(PLANLOOM_PRECOMPILE)
        target_precompile_headers(${target} PRIVATE ${PLANLOOM_STANDARD_HEADERS})
    endif()
endfunction()

# planloom_precompile(<target> <name>): compiles the target with planloom_pch_<name>, where there is one
function(planloom_precompile target name)
    if(TARGET planloom_pch_${name})
        target_precompile_headers(${target} REUSE_FROM planloom_pch_${name})
    endif()
endfunction()
