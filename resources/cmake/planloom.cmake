# Helpers that keep one rule: a folder is one target, and its link line (USES) is the layering.

find_package(Threads REQUIRED)

# Flags every Planloom target is compiled with; dependencies are not.
add_library(planloom_options INTERFACE)
target_include_directories(planloom_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(planloom_options INTERFACE Threads::Threads)
target_compile_options(planloom_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns wrongly inside libstdc++ once these two are inlined at -O2 (GCC bugs 105329, 105651).
    target_compile_options(planloom_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-missing-field-initializers)
else()
    target_compile_options(planloom_options INTERFACE -Wno-missing-field-initializers)
endif()
if(PLANLOOM_WERROR)
    target_compile_options(planloom_options INTERFACE -Werror)
endif()
if(PLANLOOM_SANITIZE)
    target_compile_options(planloom_options INTERFACE -fsanitize=${PLANLOOM_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(planloom_options INTERFACE -fsanitize=${PLANLOOM_SANITIZE})
endif()

# The allocator of programs that plan: lowering a plan makes and frees many small vectors, often on different threads, which the
# C library does slowly (a plan for 64 devices took 1.5 times as long). Without the package the C library's is used; sanitizers bring their own.
add_library(planloom_allocator INTERFACE)
find_package(mimalloc 2.0 QUIET)
if(TARGET mimalloc AND NOT PLANLOOM_SANITIZE)
    # Nothing calls it by name, so the linker has to be told that it is needed.
    target_link_libraries(planloom_allocator INTERFACE -Wl,--push-state,--no-as-needed mimalloc -Wl,--pop-state)
endif()

# planloom_library(<room> SOURCES <file>... [USES <room>...] [LIBRARIES <target>...] [PRIVATE_LIBRARIES <target>...])
# Declares the target planloom_<room> from the files of the current folder.
function(planloom_library room)
    cmake_parse_arguments(ARG "QT" "" "SOURCES;USES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
    set(type STATIC)
    set(scope PUBLIC)
    if(NOT ARG_SOURCES)
        set(type INTERFACE)
        set(scope INTERFACE)
    endif()
    add_library(planloom_${room} ${type} ${ARG_SOURCES})
    list(TRANSFORM ARG_USES PREPEND planloom_)
    target_link_libraries(planloom_${room} ${scope} planloom_options ${ARG_USES} ${ARG_LIBRARIES})
    if(ARG_PRIVATE_LIBRARIES)
        target_link_libraries(planloom_${room} PRIVATE ${ARG_PRIVATE_LIBRARIES})
    endif()
    if(ARG_QT)
        set_target_properties(planloom_${room} PROPERTIES AUTOMOC ON)
        target_compile_definitions(planloom_${room} PUBLIC QT_NO_KEYWORDS)
    endif()
endfunction()

# planloom_test(<room> <path/stem_test.cpp> [USES <room>...] [LIBRARIES <target>...] [LABELS <label>...] [TIMEOUT <s>])
# One executable and one CTest entry named <room>.<stem_test>.
function(planloom_test room source)
    cmake_parse_arguments(ARG "QT" "TIMEOUT" "USES;LIBRARIES;LABELS" ${ARGN})
    get_filename_component(stem ${source} NAME_WE)
    set(target ${room}_${stem})
    add_executable(${target} ${source})
    list(TRANSFORM ARG_USES PREPEND planloom_)
    if(NOT ARG_QT AND NOT ARG_LIBRARIES)
        set(ARG_LIBRARIES GTest::gtest_main)
    endif()
    target_link_libraries(${target} PRIVATE planloom_${room} ${ARG_USES} ${ARG_LIBRARIES})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_compile_definitions(${target} PRIVATE
        PLANLOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PLANLOOM_BINARY_DIR="${PROJECT_BINARY_DIR}")
    if(ARG_QT)
        set_target_properties(${target} PROPERTIES AUTOMOC ON)
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    add_test(NAME ${room}.${stem} COMMAND ${target})
    set_tests_properties(${room}.${stem} PROPERTIES LABELS "${room};${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
        ENVIRONMENT "QT_QPA_PLATFORM=offscreen")
endfunction()
