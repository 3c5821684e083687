#pragma once

#include "engine/design/make_plan.h"
#include "engine/lesson/lesson.h"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What a run of the learner's plan came to.
struct LessonRun {
    double stepSeconds = 0;
    bool isEqual = false; ///< To the unpartitioned model, as checked.
};

/// The cluster that a lesson is worked through on, where that is not the lesson's own.
struct LessonTarget {
    std::string cluster{}; ///< A profile's name; empty for the lesson's.
    std::string framework{};
};

/// What a plan of a lesson is asked for with.
/// @param design  complete: an element of `Lesson::designs`, or one filled up with `filledUp`
/// @return as `openModel`; waits for the disk and for the model.
Result<PlanRequest> requestOf(const Lesson &lesson, const LessonDesign &design, const LessonTarget &target = {},
    const std::stop_token &stop = {});
LessonDesign filledUp(const Lesson &lesson, const LessonPlan &plan);

/// Carries deeds out on a design: what *Show me* would leave behind.
/// @return InvalidInput, `where` the deed's line, where a row to be removed or replaced is not there
Result<PlanRequest> afterDeeds(PlanRequest request, const std::vector<LessonDeed> &deeds);

/// The figures of the plans of one step: the learner's own and those that texts compare it with. The latter
/// are worked out when a value asks for them and kept. Not thread-safe: one worker's.
class LessonFigures
{
public:
    LessonFigures(const Lesson &lesson, std::size_t step, LessonTarget target = {});

    /// The learner's plan; may be null: then none of its figures is known.
    void setOwn(PlanAnswerSnapshot answer, std::optional<LessonRun> run = {});
    /// @return as `FigureSource`; Cancelled where `stop` was requested
    Result<FigureValue> operator()(const FigureName &name, const std::stop_token &stop = {});
    FigureSource source(const std::stop_token &stop = {});

    /// A named plan, "start" or "goal". @return NotFound, or why it could not be made
    Result<PlanAnswerSnapshot> plan(const std::string &name, const std::stop_token &stop = {});
    /// `text` with its values in place. @return the first error of a value
    Result<std::string> textOf(const LessonText &text, const std::stop_token &stop = {});

private:
    struct Known;
    const Lesson *m_lesson;
    std::size_t m_step;
    LessonTarget m_target;
    std::shared_ptr<Known> m_known;
};

/// What keeps a task from being done, in the order of its needs; empty where it is.
std::vector<std::string> whatIsMissing(
    const LessonTask &task, LessonFigures &figures, const std::stop_token &stop = {});

/// Something that `checkLesson` found.
struct LessonFinding {
    std::int32_t line = 0;
    std::string sentence{};
    bool isWrong = false; ///< Else a remark.
};

/// Tries all of a lesson: models open, plans are made, every value is known, claims hold, solutions do their
/// task and take less than all of it away, wrong plans are refused with what they say. Thread-safe.
std::vector<LessonFinding> checkLesson(
    const Lesson &lesson, const LessonTarget &target = {}, const std::stop_token &stop = {});

} // namespace planloom
