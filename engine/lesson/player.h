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

/// What a plan of a lesson is asked for with: simulated, not verified.
/// @param design  complete: an element of `Lesson::designs`, or one filled up with `filledUp`
/// @param known   a model that was opened before, which is taken where it is the one asked for; may be null
/// @return as `openModel`; waits for the disk and for the model.
Result<PlanRequest> requestOf(const Lesson &lesson, const LessonDesign &design,
    const LessonTarget &target = {}, const std::stop_token &stop = {}, const ModelSnapshot &known = {});
LessonDesign filledUp(const Lesson &lesson, const LessonPlan &plan);

/// The request with all its rows in its table: those of its gallery plan, its own, and those that a search
/// finds where one is asked for. This is the table that a session begins with.
/// @return what is wrong with the gallery plan; Cancelled
Result<PlanRequest> withAllRows(PlanRequest request, const std::stop_token &stop = {});

/// What a deed does to a table.
/// @return InvalidInput for deeds that are not about rows, and where a row to be removed or replaced is not
/// there, or is one of several; `where` is the deed's line, "lesson.md:LINE"
Result<TableEdit> editOf(const TableDocument &table, const LessonDeed &deed);

/// Carries deeds out on a design: what *Show me* would leave behind.
/// @return as `editOf` and `withAllRows`
Result<PlanRequest> afterDeeds(
    PlanRequest request, const std::vector<LessonDeed> &deeds, const std::stop_token &stop = {});

/// What the design is when a step begins: its `open`; else that of the step before with its solution carried
/// out, and so on. @return NotFound before the first `open`
Result<PlanRequest> beginningOf(const Lesson &lesson, std::size_t step, const LessonTarget &target = {},
    const std::stop_token &stop = {}, const ModelSnapshot &known = {});

/// The figures of the plans of one step: the learner's own and those that texts compare it with. The latter
/// are worked out when a value asks for them and kept. Not thread-safe: one worker's.
class LessonFigures
{
public:
    LessonFigures(const Lesson &lesson, std::size_t step, LessonTarget target = {});
    /// Of another step of the same lesson: what is known of named plans and of the model stays.
    LessonFigures(const LessonFigures &before, std::size_t step);

    /// The learner's plan; may be null: then none of its figures is known. The other plans stay known.
    void setOwn(PlanAnswerSnapshot answer, std::optional<LessonRun> run = {});
    /// @return as `FigureSource`; Cancelled where `stop` was requested
    Result<FigureValue> operator()(const FigureName &name, const std::stop_token &stop = {});
    FigureSource source(const std::stop_token &stop = {});

    /// A named plan, "start" or "goal" (of the step's task, or of the last one before it under the same
    /// `open`), simulated as far as its rows let it. @return NotFound, or why it could not be made
    Result<PlanAnswerSnapshot> plan(const std::string &name, const std::stop_token &stop = {});
    /// `text` with its values in place; those of a run that was not made are "not run yet".
    /// @return the first error of a value
    Result<std::string> textOf(const LessonText &text, const std::stop_token &stop = {});

private:
    struct Known;
    Result<PlanRequest> requestFor(const std::string &name, const std::stop_token &stop);
    Result<void> verifyPlan(const std::string &name, const std::stop_token &stop);

    const Lesson *m_lesson;
    std::size_t m_step;
    LessonTarget m_target;
    std::shared_ptr<Known> m_known;
};

/// What keeps a task from being done, as sentences in the order of its needs; empty where it is.
std::vector<std::string> whatIsMissing(
    const LessonTask &task, LessonFigures &figures, const std::stop_token &stop = {});

/// Something that `checkLesson` found.
struct LessonFinding {
    std::int32_t line = 0;
    std::string sentence{};
    bool isWrong = false; ///< Else a remark.
};

constexpr const char *kNotRunYet = "not run yet"; ///< In place of figures of a run that was not made.

/// Tries all of a lesson: models open, plans are made, every value is known, claims hold, solutions do their
/// task and take less than all of it away, wrong plans are refused with what they say. Thread-safe.
std::vector<LessonFinding> checkLesson(
    const Lesson &lesson, const LessonTarget &target = {}, const std::stop_token &stop = {});

} // namespace planloom
