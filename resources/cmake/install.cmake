# What is installed where, in three components that are packages of their own: tools (command line and runner, no Qt), window
# and cuda (the plugin). `cmake --install` takes all of them; `cpack -G DEB` makes a package of each (resources/package.sh).
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
# What is opened or started by programs alone. cudaPluginPaths() and app/desktop/main.cpp look in ../lib/planloom of bin.
set(PLANLOOM_INSTALL_LIBDIR lib/planloom)

# planloom_install_program(<target> <component>): the program with its man page and its completions, which it makes itself
function(planloom_install_program target component)
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
    set(words ${PROJECT_BINARY_DIR}/words/${target})
    set(script ${PROJECT_SOURCE_DIR}/resources/cmake/program_words.cmake)
    add_custom_command(OUTPUT ${words}/man/man1/${target}.1.gz
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DNAME=${target} -DOUTPUT=${words} -P ${script}
        DEPENDS ${target} ${script}
        COMMENT "Writing man page and completions of ${target}"
        VERBATIM)
    add_custom_target(${target}-words ALL DEPENDS ${words}/man/man1/${target}.1.gz)
    install(DIRECTORY ${words}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT ${component})
endfunction()

# planloom_install_licence(<package> <component>)
function(planloom_install_licence package component)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright
        COMPONENT ${component})
endfunction()

planloom_install_program(planloom-exec tools)
set(CPACK_COMPONENTS_ALL tools)
planloom_install_licence(planloom-tools tools)
if(TARGET planloom-cli)
    planloom_install_program(planloom-cli tools)
    # How models of PyTorch's code become files that Planloom reads.
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/resources/export_model.py DESTINATION ${CMAKE_INSTALL_DATADIR}/planloom
        COMPONENT tools)
endif()
if(TARGET planloom)
    planloom_install_program(planloom window)
    install(TARGETS planloom-layout planloom-report RUNTIME DESTINATION ${PLANLOOM_INSTALL_LIBDIR} COMPONENT window)
    set(desktop ${PROJECT_SOURCE_DIR}/resources/desktop)
    install(FILES ${desktop}/planloom.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications COMPONENT window)
    install(FILES ${desktop}/planloom.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps COMPONENT window)
    install(FILES ${desktop}/planloom.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages COMPONENT window)
    planloom_install_licence(planloom window)
    list(APPEND CPACK_COMPONENTS_ALL window)
endif()
if(TARGET planloom-cuda)
    install(TARGETS planloom-cuda LIBRARY DESTINATION ${PLANLOOM_INSTALL_LIBDIR} COMPONENT cuda)
    planloom_install_licence(planloom-cuda cuda)
    list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()

set(CPACK_PACKAGE_NAME planloom)
set(CPACK_PACKAGE_VENDOR "The Planloom authors")
set(CPACK_PACKAGE_CONTACT "The Planloom authors <planloom@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1) # more of them cut what is compressed into other pieces
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/resources/cmake/same_times.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same "(= ${PROJECT_VERSION})")

# Each is told behind the line that describes the project.
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME planloom-tools)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "Plans of distributed training, from the command line
Finds, predicts, proves and runs parallelization plans of neural networks,
without a display. planloom-cli is the command line, planloom-exec the runner.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "planloom-cuda ${same}, python3")

set(CPACK_DEBIAN_WINDOW_PACKAGE_NAME planloom)
set(CPACK_DEBIAN_WINDOW_DESCRIPTION "The window
Opens a model, shows its operators and the timeline of every device, and lets
an expert shape how it is split, placed and ordered.")
# The plugin of the platform is none of the libraries that the program links.
set(CPACK_DEBIAN_WINDOW_PACKAGE_DEPENDS "planloom-tools ${same}, qt6-qpa-plugins, fonts-dejavu-core")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME planloom-cuda)
set(CPACK_DEBIAN_CUDA_DESCRIPTION "Runs of Planloom on GPUs
The plugin that runs plans on GPUs of NVIDIA's. It does nothing without a GPU,
its driver, cuBLASLt and NVRTC: planloom-cli doctor says what is missing.")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "planloom-tools ${same}")
set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/postinst)
configure_file(${PROJECT_SOURCE_DIR}/resources/desktop/cuda-postinst ${PROJECT_BINARY_DIR}/packaging/postinst COPYONLY)
include(CPack)
