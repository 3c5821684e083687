# cmake -DPROGRAM=... -DNAME=... -DOUTPUT=<folder> -P program_words.cmake
#
# Writes the man page and the completions of a program, all made by itself from the table of its --help, into folders as they
# are installed below share.
function(ask file option)
    execute_process(COMMAND ${PROGRAM} ${option} OUTPUT_FILE ${OUTPUT}/${file} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${PROGRAM} ${option} ended with ${status}, expected 0")
    endif()
endfunction()

file(MAKE_DIRECTORY ${OUTPUT}/man/man1 ${OUTPUT}/bash-completion/completions ${OUTPUT}/zsh/vendor-completions
    ${OUTPUT}/fish/vendor_completions.d)
ask(man/man1/${NAME}.1 --print-manual)
ask(bash-completion/completions/${NAME} --print-completions=bash)
ask(zsh/vendor-completions/_${NAME} --print-completions=zsh)
ask(fish/vendor_completions.d/${NAME}.fish --print-completions=fish)
find_program(gzip gzip REQUIRED)
# -n: no name and no time, so that equal pages give equal bytes.
execute_process(COMMAND ${gzip} -9nf ${OUTPUT}/man/man1/${NAME}.1 COMMAND_ERROR_IS_FATAL ANY)
