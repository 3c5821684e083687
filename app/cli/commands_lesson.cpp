#include "app/cli/commands.h"

#include "engine/base/words.h"
#include "engine/lesson/player.h"
#include "engine/terminal/exit_status.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

/// A lesson that comes with Planloom, or one of a folder (which may have the same name: "./NAME").
Result<Lesson> lessonNamed(const std::string &name)
{
    std::string known;
    for (const Lesson &lesson : bundledLessons()) {
        if (lesson.name == name)
            return lesson;
        known += (known.empty() ? "" : ", ") + lesson.name;
    }
    if (std::filesystem::exists(name))
        return readLesson(name);
    return Error{ErrorCode::NotFound, "there is no lesson \"" + name + "\", nor a folder of this name",
        known.empty() ? std::string() : "known lessons: " + known, name};
}

int printLessons(bool asJson)
{
    json list = json::array();
    for (const Lesson &lesson : bundledLessons()) {
        if (asJson)
            list.push_back({{"name", lesson.name}, {"title", lesson.title}, {"order", lesson.order},
                {"minutes", lesson.minutes}, {"idea", lesson.idea}});
        else
            std::printf("  %-24s %3d min  %s\n", lesson.name.c_str(), lesson.minutes, lesson.idea.c_str());
    }
    if (asJson)
        std::cout << json{{"lessons", list}} << "\n";
    else
        std::printf("\nplanloom-cli lesson show NAME prints one with its values.\n");
    return kExitDone;
}

/// The text of one step, as a learner reads it.
class StepPrinter
{
public:
    explicit StepPrinter(LessonFigures &figures)
        : m_figures(figures)
    {
    }

    Result<void> print(const LessonStep &step)
    {
        for (const LessonPart &part : step.parts)
            TRY_VOID(printPart(part));
        for (const LessonPoint &point : step.points)
            TRY_VOID(say("-> ", point.words));
        if (!step.task)
            return {};
        TRY_VOID(say("Task: ", step.task->goal));
        for (const LessonText &hint : step.task->hints)
            TRY_VOID(say("  Hint: ", hint));
        for (const LessonDeed &deed : step.task->solution)
            if (deed.kind == DeedKind::Say)
                TRY_VOID(say("  Solution: ", deed.words));
        return {};
    }

private:
    Result<void> say(const char *before, const LessonText &text)
    {
        TRY(const std::string words, m_figures.textOf(text));
        std::printf("%s%s\n\n", before, words.c_str());
        return {};
    }

    Result<void> printPart(const LessonPart &part)
    {
        if (const auto *prose = std::get_if<Prose>(&part))
            return say(prose->kind == ProseKind::Item   ? "- "
                    : prose->kind == ProseKind::Picture ? "Picture: "
                                                        : "",
                prose->text);
        const auto &question = std::get<LessonQuestion>(part);
        if (const auto *number = std::get_if<LessonNumber>(&question)) {
            TRY_VOID(say("? ", number->question));
            TRY(const FigureValue value, number->answer.valueOf(m_figures.source()));
            std::printf("  = %s\n\n", toString(value).c_str());
            return {};
        }
        const auto &choice = std::get<LessonChoice>(question);
        TRY_VOID(say("? ", choice.question));
        for (const LessonAnswer &answer : choice.answers) {
            bool isRight = answer.right;
            if (answer.condition) {
                TRY(isRight, answer.condition->holds(m_figures.source()));
            }
            TRY_VOID(say(isRight ? "  + " : "  - ", answer.text));
        }
        return {};
    }

    LessonFigures &m_figures;
};

Result<int> showLesson(const Lesson &lesson, const LessonTarget &target)
{
    std::printf("%s\n", lesson.title.c_str());
    LessonFigures figures(lesson, 0, target);
    for (std::size_t i = 0; i < lesson.steps.size(); ++i) {
        const LessonStep &step = lesson.steps[i];
        figures = LessonFigures(figures, i);
        if (step.open >= 0) {
            TRY(PlanRequest request, beginningOf(lesson, i, target));
            request.upTo = PlanGrade::Verified;
            TRY(PlanAnswerSnapshot answer, answerOf(request));
            figures.setOwn(std::move(answer));
        }
        std::printf("\n%s%s%s", i == 0 ? "" : "## ", step.title.c_str(), i == 0 ? "" : "\n\n");
        if (auto printed = StepPrinter(figures).print(step); !printed) {
            Error error = std::move(printed).error();
            error.where = lesson.name + "/" + kLessonFile + ", step " + std::to_string(i);
            return error;
        }
    }
    for (const Error &problem : lesson.problems)
        std::fprintf(stderr, "planloom-cli: warning: %s\n", describe(problem).c_str());
    return kExitDone;
}

Result<int> checkLessons(const std::vector<std::string> &names, const LessonTarget &target, bool asJson)
{
    json list = json::array();
    bool isWrong = false;
    for (const std::string &name : names) {
        TRY(const Lesson lesson, lessonNamed(name));
        const std::vector<LessonFinding> findings = checkLesson(lesson, target);
        json each = json::array();
        for (const LessonFinding &finding : findings) {
            isWrong |= finding.isWrong;
            each.push_back(
                {{"line", finding.line}, {"sentence", finding.sentence}, {"wrong", finding.isWrong}});
            if (!asJson)
                std::printf("%s/%s:%d: %s%s\n", lesson.name.c_str(), kLessonFile, finding.line,
                    finding.isWrong ? "" : "remark: ", finding.sentence.c_str());
        }
        if (!asJson)
            std::printf("%s: %s, %s\n", lesson.name.c_str(),
                counted(static_cast<std::int64_t>(lesson.steps.size()), "step").c_str(),
                counted(std::count_if(findings.begin(), findings.end(),
                            [](const LessonFinding &finding) { return finding.isWrong; }),
                    "fault")
                    .c_str());
        list.push_back({{"lesson", lesson.name}, {"findings", std::move(each)}});
    }
    if (asJson)
        std::cout << json{{"lessons", list}}.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    return isWrong ? kExitFailed : kExitDone;
}

} // namespace

Result<int> runLesson(const Arguments &arguments)
{
    const std::vector<std::string> &words = arguments.positionals();
    const LessonTarget target{arguments.text("cluster"), arguments.text("framework")};
    const bool asJson = arguments.has("json");
    const std::string &what = words[0];
    const std::vector<std::string> names(words.begin() + 1, words.end());
    if (what == "list" && names.empty())
        return printLessons(asJson);
    if (what == "show" && names.size() == 1) {
        TRY(const Lesson lesson, lessonNamed(names[0]));
        return showLesson(lesson, target);
    }
    if (what == "check" && !names.empty())
        return checkLessons(names, target, asJson);
    const bool isKnown = what == "list" || what == "show" || what == "check";
    return Error{ErrorCode::InvalidInput,
        isKnown ? "lesson " + what + " takes "
                + (what == "list"        ? "no name"
                        : what == "show" ? "one name"
                                         : "names")
                : "expected list, show or check, found \"" + what + "\"",
        "planloom-cli lesson list, lesson show NAME, lesson check NAME...", what};
}

} // namespace planloom::cli
