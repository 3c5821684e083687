# CPack runs this once files are staged: with SOURCE_DATE_EPOCH all of them are as old as that, so that packages of equal
# files are equal, whenever they were built.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
        COMMAND_ERROR_IS_FATAL ANY)
endif()
