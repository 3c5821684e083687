#pragma once

#include <string>
#include <vector>

namespace planloom {

// Libraries of NVIDIA's that nothing links: they are opened when they are needed, and looked at by `probe`.
// By the names under which they are looked for, newest first.
inline const std::vector<std::string> kNcclNames{"libnccl.so.2", "libnccl.so"};
inline const std::vector<std::string> kProductNames{
    "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
inline const std::vector<std::string> kCompilerNames{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// Opens a library of NVIDIA's by the first of its names that the loader, or one of the folders where such
/// libraries lie, has: those of the toolkit, and of Python's packages. It stays open. Null where there is
/// none; `why` then says where it was looked for.
void *openVendorLibrary(const std::vector<std::string> &names, std::string &why);

} // namespace planloom
