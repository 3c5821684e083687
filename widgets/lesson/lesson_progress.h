#pragma once

#include "sessions/history.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace planloom {

/// How far somebody is in a lesson. Kept with the lesson's session.
struct LessonProgress {
    std::string lesson{}; ///< Its name; empty for none.
    std::string folder{}; ///< Where its file is; empty for one that comes with the program.
    std::string cluster{}; ///< That it is worked through on; empty for its own.
    std::int32_t step = 0;
    std::int32_t reached = 0; ///< The last step that was seen.
    std::int32_t open = -1; ///< Which of the lesson's designs the session began with; -1 for none yet.
    std::map<std::int32_t, StepId> begins{}; ///< By step of the lesson: where in the history it began.
    std::set<std::int32_t> done{}; ///< Steps whose task was done.
    std::map<std::int32_t, std::int32_t> hints{}; ///< By step: how many were asked for.
    std::map<std::string, std::string> answers{}; ///< By "STEP/PART": the number of the answer, or what was typed.
    friend bool operator==(const LessonProgress &, const LessonProgress &) = default;

    bool isSeen(std::int32_t which) const { return which <= reached && begins.contains(which); }
};

std::string toJson(const LessonProgress &progress);
/// What `toJson` gave; of other texts as much as makes sense, or none at all.
LessonProgress lessonProgressFromJson(const std::string &text);

} // namespace planloom
