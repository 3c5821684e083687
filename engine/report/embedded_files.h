#pragma once

#include <string>

namespace planloom {

/// resources/report/report.css, compiled in.
std::string reportStyle();
/// resources/report/report.js, compiled in.
std::string reportScript();

} // namespace planloom
