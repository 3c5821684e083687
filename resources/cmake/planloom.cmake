# Helpers that keep one rule: a folder is one target, and its link line (USES) is the layering.

find_package(Threads REQUIRED)

# Flags every Planloom target is compiled with; dependencies are not.
add_library(planloom_options INTERFACE)
target_include_directories(planloom_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(planloom_options INTERFACE Threads::Threads)
target_compile_options(planloom_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns wrongly inside libstdc++ once strings are inlined there (GCC bugs 105329, 105651).
    target_compile_options(planloom_options INTERFACE
        -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-missing-field-initializers)
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
    target_sources(planloom_allocator INTERFACE ${PROJECT_SOURCE_DIR}/app/allocator.cpp)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)

# Bytes of sources of one target that are compiled together with PLANLOOM_UNITY: what they include is read once for all of
# them. Of a library fewer, so that a change of one source does not wait long for its neighbours.
set(PLANLOOM_BYTES_TOGETHER 64000)
set(PLANLOOM_TEST_BYTES_TOGETHER 160000)
if(PLANLOOM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes a source that another one includes for a header, where types without linkage would be a mistake.
    target_compile_options(planloom_options INTERFACE -Wno-subobject-linkage)
endif()

# planloom_unite(<target> <bytes> <source>...): the sources, in stretches of about so many bytes, are compiled together with
# PLANLOOM_UNITY. Of a target that is declared in several steps, each step's sources follow those before it.
function(planloom_unite target bytes)
    if(NOT PLANLOOM_UNITY)
        return()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(sum ${target} PLANLOOM_UNITED)
    if(NOT sum)
        set(sum 0)
    endif()
    foreach(source ${ARGN})
        if(NOT source MATCHES "\\.cpp$" OR IS_ABSOLUTE ${source}) # a header, or generated
            continue()
        endif()
        file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} size)
        math(EXPR group "${sum} / ${bytes}")
        math(EXPR sum "${sum} + ${size}")
        set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/${source} TARGET_DIRECTORY ${target}
            PROPERTIES UNITY_GROUP ${target}_${group})
    endforeach()
    set_target_properties(${target} PROPERTIES PLANLOOM_UNITED ${sum})
endfunction()

# planloom_library(<room> [QT] [OWN_FLAGS] SOURCES <file>... [USES <room>...] [LIBRARIES <target>...]
#     [PRIVATE_LIBRARIES <target>...])
# Declares the target planloom_<room> from the files of the current folder. QT: it has classes for moc. OWN_FLAGS: its
# compiler flags are others than those of the precompiled headers. What it uses is written down in
# <build folder>/rooms.txt, which tests/layering reads.
function(planloom_library room)
    cmake_parse_arguments(ARG "QT;OWN_FLAGS" "" "SOURCES;USES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
    set(type STATIC)
    set(scope PUBLIC)
    if(NOT ARG_SOURCES)
        set(type INTERFACE)
        set(scope INTERFACE)
    endif()
    add_library(planloom_${room} ${type} ${ARG_SOURCES})
    set(rooms ${ARG_USES})
    list(TRANSFORM rooms PREPEND planloom_)
    target_link_libraries(planloom_${room} ${scope} planloom_options ${rooms} ${ARG_LIBRARIES})
    if(ARG_PRIVATE_LIBRARIES)
        target_link_libraries(planloom_${room} PRIVATE ${ARG_PRIVATE_LIBRARIES})
    endif()
    if(ARG_QT)
        set_target_properties(planloom_${room} PROPERTIES AUTOMOC ON)
        target_link_libraries(planloom_${room} PUBLIC planloom_qt)
    endif()
    planloom_find_qt(qt ${ARG_QT} ${rooms})
    set_target_properties(planloom_${room} PROPERTIES PLANLOOM_QT ${qt})
    if(type STREQUAL "STATIC")
        planloom_unite(planloom_${room} ${PLANLOOM_BYTES_TOGETHER} ${ARG_SOURCES})
        if(ARG_OWN_FLAGS)
            planloom_precompile_alone(planloom_${room})
        elseif(qt)
            planloom_precompile(planloom_${room} widgets)
        else()
            planloom_precompile(planloom_${room} engine)
        endif()
    endif()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    list(JOIN ARG_USES " " uses)
    list(JOIN ARG_SOURCES " " sources)
    set_property(GLOBAL APPEND_STRING PROPERTY PLANLOOM_ROOMS
        "room ${room} ${folder}\nuses ${uses}\nsources ${sources}\n")
endfunction()

# planloom_find_qt(<variable> <own> <target>...): ON where <own> is, or one of the rooms has Qt's flags
function(planloom_find_qt variable own)
    set(qt ${own})
    foreach(target ${ARGN})
        if(TARGET ${target})
            get_target_property(theirs ${target} PLANLOOM_QT)
            if(theirs)
                set(qt ON)
            endif()
        endif()
    endforeach()
    set(${variable} ${qt} PARENT_SCOPE)
endfunction()

# planloom_write_rooms(): writes what every planloom_library() uses, once they are all declared
function(planloom_write_rooms)
    get_property(rooms GLOBAL PROPERTY PLANLOOM_ROOMS)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/rooms.txt CONTENT "${rooms}" @ONLY)
endfunction()

# planloom_test(<room> <stem_test.cpp> [QT] [USES <room>...] [LIBRARIES <target>...] [DEPENDS <target>...]
#     [LABELS <label>...] [TIMEOUT <s>])
# Adds the file to the room's one program, <room>_tests, with a CTest entry <room>.<stem_test> that runs this file's tests
# in a process of their own (tests/test_main.h says how). QT: it has classes of Qt Test. DEPENDS: programs that it starts.
function(planloom_test room source)
    cmake_parse_arguments(ARG "QT" "TIMEOUT" "USES;LIBRARIES;DEPENDS;LABELS" ${ARGN})
    cmake_path(GET source STEM stem)
    set(program ${room}_tests)
    list(TRANSFORM ARG_USES PREPEND planloom_)
    if(TARGET planloom_${room})
        list(PREPEND ARG_USES planloom_${room})
    endif()
    if(NOT TARGET ${program})
        add_executable(${program})
        planloom_find_qt(qt ${ARG_QT} ${ARG_USES})
        target_link_libraries(${program} PRIVATE planloom_test_main)
        if(qt)
            target_link_libraries(${program} PRIVATE planloom_qt_test)
            target_compile_options(${program} PRIVATE ${PLANLOOM_WINDOW_TEST_FLAGS})
            set_target_properties(${program} PROPERTIES AUTOMOC ON)
            planloom_precompile(${program} widgets_tests)
        else()
            planloom_precompile(${program} tests)
        endif()
        set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        set_property(GLOBAL APPEND PROPERTY PLANLOOM_TEST_PROGRAMS ${program})
    endif()
    target_sources(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    planloom_unite(${program} ${PLANLOOM_TEST_BYTES_TOGETHER} ${source})
    target_link_libraries(${program} PRIVATE ${ARG_USES} ${ARG_LIBRARIES})
    if(ARG_DEPENDS)
        add_dependencies(${program} ${ARG_DEPENDS})
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    add_test(NAME ${room}.${stem} COMMAND ${program} --file=${source})
    set_tests_properties(${room}.${stem} PROPERTIES LABELS "${room};${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
        ENVIRONMENT "QT_QPA_PLATFORM=offscreen;XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/cache")
    set_property(TARGET ${program} APPEND PROPERTY PLANLOOM_ENTRIES ${source})
endfunction()

# planloom_check_tests(): the CTest entry tests.every_file_has_an_entry, once all planloom_test() are declared
function(planloom_check_tests)
    set(lines "")
    get_property(programs GLOBAL PROPERTY PLANLOOM_TEST_PROGRAMS)
    foreach(program ${programs})
        get_target_property(entries ${program} PLANLOOM_ENTRIES)
        list(SORT entries)
        list(JOIN entries " " entries)
        string(APPEND lines "${program} ${entries}\n")
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tests/entries.txt CONTENT "${lines}" @ONLY)
    add_test(NAME tests.every_file_has_an_entry
        COMMAND bash ${PROJECT_SOURCE_DIR}/tests/check_entries.sh ${CMAKE_BINARY_DIR}/tests)
    set_tests_properties(tests.every_file_has_an_entry PROPERTIES LABELS "tests" TIMEOUT 60)
endfunction()
