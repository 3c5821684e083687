#pragma once

#include <string>

namespace planloom {

/// resources/report/page.css and page.js, compiled in: what all pages have in common.
std::string pageStyle();
std::string pageScript();
/// resources/report/report.css, compiled in.
std::string reportStyle();
/// resources/report/report.js, compiled in.
std::string reportScript();

} // namespace planloom
