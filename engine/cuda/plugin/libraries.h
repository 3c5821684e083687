#pragma once

#include <string>
#include <vector>

namespace planloom {

/// Opens a library of NVIDIA's by the first of its names that the loader, or one of the folders where such
/// libraries lie, has: those of the toolkit, and of Python's packages. Null where there is none; `why` then
/// says where it was looked for.
void *openLibrary(const std::vector<std::string> &names, std::string &why);

} // namespace planloom
