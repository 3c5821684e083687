#pragma once

#include "engine/lesson/lesson.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// The blocks of a lesson's file, one by one. Errors have the line of the file: `where` is "lesson.md:LINE".

struct LessonLine {
    std::string text{};
    std::int32_t line = 0;
};

/// What stands between a fence and the next one.
struct LessonBlock {
    std::string name{};
    std::string argument{}; ///< Behind the name.
    std::vector<LessonLine> lines{};
    std::int32_t line = 0; ///< Of the fence.
};

/// What blocks are read against.
struct LessonSetting {
    std::filesystem::path folder{}; ///< Empty: nothing is asked of the disk.
    std::set<std::string, std::less<>>
        plans{}; ///< Names of all plans of the file, and of those that always are.
};

Error lessonError(std::int32_t line, std::string message, std::string advice = {});
/// "expected A, found B", and what would do; for a word that is none of `known`.
Error unknownWord(std::int32_t line, std::string_view what, std::string_view word,
    const std::vector<std::string_view> &known);

/// A text whose values name plans that there are.
Result<LessonText> textIn(const LessonSetting &setting, const std::string &text, std::int32_t line);
/// `order`, `minutes` and `idea`.
Result<void> readAbout(const LessonBlock &block, Lesson &lesson);
Result<LessonDesign> designIn(const LessonSetting &setting, const LessonBlock &block);
Result<LessonShow> showIn(const LessonBlock &block);
Result<LessonPoint> pointIn(const LessonSetting &setting, const LessonBlock &block);
Result<LessonChoice> choiceIn(const LessonSetting &setting, const LessonBlock &block);
Result<LessonNumber> numberIn(const LessonSetting &setting, const LessonBlock &block);
/// Goal and needs.
Result<LessonTask> taskIn(const LessonSetting &setting, const LessonBlock &block);
Result<LessonText> hintIn(const LessonSetting &setting, const LessonBlock &block);
Result<std::vector<LessonDeed>> solutionIn(const LessonSetting &setting, const LessonBlock &block);
Result<LessonWrong> wrongIn(const LessonSetting &setting, const LessonBlock &block);
Result<std::vector<LessonClaim>> claimsIn(const LessonSetting &setting, const LessonBlock &block);

} // namespace planloom
