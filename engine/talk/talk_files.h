#pragma once

#include <string>

namespace planloom {

/// resources/talk/talk.css, compiled in.
std::string talkStyle();
/// resources/talk/talk.js, compiled in.
std::string talkScript();

} // namespace planloom
