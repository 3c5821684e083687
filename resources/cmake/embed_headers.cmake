# cmake -DROOT=... -DOUTPUT=... -DHEADERS="a.h;b.h" -DSTANDARD="cmath;limits" -P embed_headers.cmake
#
# Writes a source with the texts of headers, for kernels that are compiled while a plan runs (engine/cuda/kernels/element_chain.h).
# The standard's headers are all the same one: engine/cuda/kernels/device_standard.h.
set(text "// Made by resources/cmake/embed_headers.cmake.\n\n#include \"engine/cuda/kernels/element_chain.h\"\n\nnamespace planloom {\n\n")
string(APPEND text "const std::vector<std::pair<std::string, std::string>> &chainHeaders()\n{\n"
    "    static const std::vector<std::pair<std::string, std::string>> kHeaders{\n")
foreach(header ${HEADERS})
    # Semicolons and brackets mean something to CMake, so the bytes are taken as numbers.
    file(READ ${ROOT}/${header} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
    # Lines of the source: a literal's end keeps the next digit from becoming part of a number.
    string(REPLACE "\\x0a" "\\x0a\"\n            \"" bytes "${bytes}")
    string(APPEND text "        {\"${header}\",\n            \"${bytes}\"},\n")
endforeach()
foreach(header ${STANDARD})
    string(APPEND text "        {\"${header}\", \"#include \\\"engine/cuda/kernels/device_standard.h\\\"\\n\"},\n")
endforeach()
string(APPEND text "    };\n    return kHeaders;\n}\n\n} // namespace planloom\n")
file(WRITE ${OUTPUT} "${text}")
