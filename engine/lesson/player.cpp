#include "engine/lesson/player.h"

#include "engine/base/nearest_name.h"
#include "engine/lesson/plan_figures.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

struct LessonFigures::Known {
    std::optional<PlanFigures> own{};
    std::map<std::string, PlanFigures> plans{};
    std::map<std::string, PlanRequest> requests{}; ///< That plans were made of.
    ModelSnapshot model{}; ///< Opened last.
};

namespace {

std::string asSentence(std::string words)
{
    if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
        words[0] = static_cast<char>(words[0] - 'a' + 'A');
    if (!words.empty() && words.back() != '.')
        words += '.';
    return words;
}

bool hasSolution(const LessonStep &step)
{
    return step.task && !step.task->solution.empty();
}

bool isOfRun(const FigureName &name)
{
    return name.figure == Figure::Run || name.figure == Figure::Measured;
}

} // namespace

LessonFigures::LessonFigures(const Lesson &lesson, std::size_t step, LessonTarget target)
    : m_lesson(&lesson)
    , m_step(step)
    , m_target(std::move(target))
    , m_known(std::make_shared<Known>())
{
}

LessonFigures::LessonFigures(const LessonFigures &before, std::size_t step)
    : LessonFigures(*before.m_lesson, step, before.m_target)
{
    *m_known = *before.m_known;
    m_known->own.reset();
    for (const char *ofStep : {"start", "goal"})
        m_known->plans.erase(ofStep);
}

void LessonFigures::setOwn(PlanAnswerSnapshot answer, std::optional<LessonRun> run)
{
    m_known->own.reset();
    if (!answer)
        return;
    if (!m_known->model)
        m_known->model = answer->model;
    m_known->own.emplace(std::move(answer), run);
}

Result<PlanRequest> LessonFigures::requestFor(const std::string &name, const std::stop_token &stop)
{
    const LessonStep &step = m_lesson->steps[m_step];
    if (name == "start" && step.open >= 0)
        return requestOf(*m_lesson, m_lesson->designs[static_cast<std::size_t>(step.open)], m_target, stop,
            m_known->model);
    if (name == "goal") {
        std::size_t at = m_step; // the last task of what is open
        while (!hasSolution(m_lesson->steps[at])) {
            if (at == 0 || m_lesson->steps[at].opens)
                return Error{
                    ErrorCode::NotFound, "no task before this has a solution: there is no \"goal\"", {}, {}};
            --at;
        }
        TRY(PlanRequest request, beginningOf(*m_lesson, at, m_target, stop, m_known->model));
        return afterDeeds(std::move(request), m_lesson->steps[at].task->solution, stop);
    }
    std::vector<std::string_view> names;
    for (const LessonPlan &plan : m_lesson->plans) {
        if (plan.name == name)
            return requestOf(*m_lesson, filledUp(*m_lesson, plan), m_target, stop, m_known->model);
        names.push_back(plan.name);
    }
    return Error{ErrorCode::NotFound, "there is no plan \"" + name + "\"", didYouMean(name, names), {}};
}

Result<PlanAnswerSnapshot> LessonFigures::plan(const std::string &name, const std::stop_token &stop)
{
    if (const auto found = m_known->plans.find(name); found != m_known->plans.end())
        return found->second.answer();
    TRY(PlanRequest request, requestFor(name, stop));
    m_known->model = request.model;
    TRY(PlanAnswerSnapshot answer, answerOf(request, stop));
    m_known->requests.insert_or_assign(name, std::move(request));
    m_known->plans.insert_or_assign(name, PlanFigures(answer));
    return answer;
}

/// Plans are simulated first: a proof is made where it is asked for.
Result<void> LessonFigures::verifyPlan(const std::string &name, const std::stop_token &stop)
{
    TRY(const PlanAnswerSnapshot known, plan(name, stop));
    if (known->verdict || !known->plan || known->firstError())
        return {};
    PlanRequest request = m_known->requests.at(name);
    request.begin = known;
    request.upTo = PlanGrade::Verified;
    TRY(PlanAnswerSnapshot answer, answerOf(request, stop));
    m_known->plans.insert_or_assign(name, PlanFigures(std::move(answer)));
    return {};
}

Result<FigureValue> LessonFigures::operator()(const FigureName &name, const std::stop_token &stop)
{
    if (stop.stop_requested())
        return cancelled();
    if (name.plan.empty()) {
        if (!m_known->own)
            return Error{ErrorCode::NotFound, "there is no plan yet", {}, {}};
        return m_known->own->valueOf(name);
    }
    TRY_VOID(plan(name.plan, stop));
    if (name.figure == Figure::Verified)
        TRY_VOID(verifyPlan(name.plan, stop));
    return m_known->plans.at(name.plan).valueOf(name);
}

FigureSource LessonFigures::source(const std::stop_token &stop)
{
    return [figures = *this, stop](const FigureName &name) mutable { return figures(name, stop); };
}

Result<std::string> LessonFigures::textOf(const LessonText &text, const std::stop_token &stop)
{
    std::string result;
    const FigureSource figures = source(stop);
    for (const LessonText::Piece &piece : text.pieces) {
        if (const auto *words = std::get_if<std::string>(&piece)) {
            result += *words;
            continue;
        }
        const auto &expression = std::get<Expression>(piece);
        const auto value = expression.valueOf(figures);
        if (value)
            result += toString(*value);
        else if (const auto names = expression.figures(); value.error().code == ErrorCode::NotFound
                 && std::any_of(names.begin(), names.end(), isOfRun))
            result += kNotRunYet;
        else
            return Error{value.error().code, "{" + expression.text() + "}: " + value.error().message,
                value.error().advice, {}};
    }
    return result;
}

std::vector<std::string> whatIsMissing(
    const LessonTask &task, LessonFigures &figures, const std::stop_token &stop)
{
    std::vector<std::string> missing;
    const auto add = [&missing](std::string sentence) { // where there is no plan, all needs have one reason
        if (std::find(missing.begin(), missing.end(), sentence) == missing.end())
            missing.push_back(std::move(sentence));
    };
    const FigureSource source = figures.source(stop);
    for (const LessonNeed &need : task.needs) {
        const auto holds = need.condition.holds(source);
        if (holds && *holds)
            continue;
        if (stop.stop_requested())
            return missing;
        // Of a figure that is not there, it is said which; of others, what the lesson has to say.
        auto text =
            holds && need.otherwise ? figures.textOf(*need.otherwise, stop) : Result<std::string>(Error{});
        add(text ? *std::move(text)
                 : asSentence(holds ? need.condition.whyNot(source) : holds.error().message));
    }
    return missing;
}

} // namespace planloom
