#pragma once

#include <map>
#include <string>

namespace planloom {

/// The modules of runtime/operators with what programs call as `ops.name`, and what that calls itself; what
/// none of them needs is left out, so that people read no more than their plan uses. O(bytes of the modules).
/// @param programs  the text of all programs
/// @return by path: "runtime/operators/norms.py"; one of them lists all names
std::map<std::string, std::string> operatorModules(const std::string &programs);

} // namespace planloom
