// Whether a lesson teaches what it says: all of it is tried.

#include "engine/base/text.h"
#include "engine/lesson/player.h"

#include <algorithm>
#include <charconv>

namespace planloom {

namespace {

bool asksOf(const std::vector<FigureName> &figures, std::initializer_list<Figure> wanted)
{
    return std::any_of(figures.begin(), figures.end(), [&](const FigureName &name) {
        return std::find(wanted.begin(), wanted.end(), name.figure) != wanted.end();
    });
}

/// Known only once the plan has run.
bool needsRun(const Condition &condition)
{
    return asksOf(condition.figures(), {Figure::Run, Figure::Measured});
}

std::string joinedWords(const Error &error)
{
    return error.advice.empty() ? error.message : error.message + " (" + error.advice + ")";
}

class LessonCheck
{
public:
    LessonCheck(const Lesson &lesson, const LessonTarget &target, const std::stop_token &stop)
        : m_lesson(lesson)
        , m_target(target)
        , m_stop(stop)
        , m_figures(lesson, 0, target)
    {
    }

    std::vector<LessonFinding> run()
    {
        for (const Error &problem : m_lesson.problems) {
            std::int32_t line = 0;
            const std::size_t colon = problem.where.rfind(':') + 1;
            std::from_chars(problem.where.data() + colon, problem.where.data() + problem.where.size(), line);
            wrong(line, joinedWords(problem));
        }
        if (m_lesson.idea.empty() || m_lesson.minutes == 0)
            remark(1, "The block \"lesson\" says no idea or no minutes.");
        for (m_step = 0; m_step < m_lesson.steps.size() && !m_stop.stop_requested(); ++m_step) {
            m_figures = LessonFigures(m_figures, m_step);
            checkStep(m_lesson.steps[m_step]);
        }
        for (const LessonPlan &plan : m_lesson.plans)
            checkPlan(plan);
        std::stable_sort(m_findings.begin(), m_findings.end(),
            [](const LessonFinding &a, const LessonFinding &b) { return a.line < b.line; });
        return std::move(m_findings);
    }

private:
    void wrong(std::int32_t line, std::string sentence)
    {
        if (!m_stop.stop_requested())
            m_findings.push_back({line, std::move(sentence), true});
    }

    void remark(std::int32_t line, std::string sentence)
    {
        m_findings.push_back({line, std::move(sentence), false});
    }

    std::int32_t designLine(const LessonStep &step) const
    {
        return step.opens ? m_lesson.designs[static_cast<std::size_t>(step.open)].line : step.line;
    }

    Result<PlanAnswerSnapshot> answerTo(PlanRequest request)
    {
        m_model = request.model;
        request.upTo = PlanGrade::Verified;
        return answerOf(request, m_stop);
    }

    void checkStep(const LessonStep &step)
    {
        m_beginning.reset();
        PlanAnswerSnapshot own;
        if (step.open >= 0) {
            auto request = beginningOf(m_lesson, m_step, m_target, m_stop, m_model);
            auto answer = request ? answerTo(*request) : Result<PlanAnswerSnapshot>(request.error());
            if (!answer) {
                wrong(designLine(step), "The design cannot be opened: " + joinedWords(answer.error()));
                return; // nothing of the step can be worked out
            }
            m_beginning = *std::move(request);
            own = *std::move(answer);
            checkOwn(step, *own);
        }
        m_figures.setOwn(own);
        checkTexts(step);
        for (const LessonClaim &claim : step.claims)
            checkClaim(claim);
        if (own) {
            checkPlaces(step, *own);
            if (step.task)
                checkTask(*step.task);
        }
    }

    /// What is open when the step begins has no plan: wrong, but where that is what it is about.
    void checkOwn(const LessonStep &step, const PlanAnswer &own)
    {
        const auto error = own.firstError();
        if (!error)
            return;
        bool isMeant = false;
        for (const LessonClaim &claim : step.claims)
            isMeant |= asksOf(claim.condition.figures(), {Figure::Conflicts, Figure::Planned, Figure::Fits});
        if (step.task)
            for (const LessonNeed &need : step.task->needs)
                isMeant |=
                    asksOf(need.condition.figures(), {Figure::Conflicts, Figure::Planned, Figure::Fits});
        const std::string sentence = "The design has no plan that holds: " + joinedWords(*error);
        isMeant ? remark(designLine(step), sentence) : wrong(designLine(step), sentence);
    }

    void checkPlan(const LessonPlan &plan)
    {
        const auto answer = m_figures.plan(plan.name, m_stop);
        if (!answer)
            wrong(plan.design.line,
                "The plan \"" + plan.name + "\" cannot be made: " + joinedWords(answer.error()));
        else if (!(*answer)->plan)
            wrong(plan.design.line,
                "The plan \"" + plan.name
                    + "\" is none: " + joinedWords((*answer)->firstError().value_or(Error{})));
    }

    void checkText(const LessonText &text)
    {
        if (const auto words = m_figures.textOf(text, m_stop); !words)
            wrong(text.line, joinedWords(words.error()));
    }

    void checkTexts(const LessonStep &step)
    {
        for (const LessonPart &part : step.parts) {
            if (const auto *prose = std::get_if<Prose>(&part))
                checkText(prose->text);
            else if (const auto *choice = std::get_if<LessonChoice>(&std::get<LessonQuestion>(part)))
                checkChoice(*choice);
            else
                checkNumber(std::get<LessonNumber>(std::get<LessonQuestion>(part)));
        }
        for (const LessonPoint &point : step.points)
            checkText(point.words);
        if (!step.task)
            return;
        checkText(step.task->goal);
        for (const LessonText &hint : step.task->hints)
            checkText(hint);
        for (const LessonDeed &deed : step.task->solution)
            checkText(deed.words);
    }

    void checkChoice(const LessonChoice &choice)
    {
        checkText(choice.question);
        std::size_t right = 0;
        for (const LessonAnswer &answer : choice.answers) {
            checkText(answer.text);
            checkText(answer.reply);
            right += answer.right ? 1 : 0;
            if (!answer.condition)
                continue;
            const auto holds = answer.condition->holds(m_figures.source(m_stop));
            if (!holds)
                wrong(answer.text.line,
                    "Whether this answer is right cannot be told: " + joinedWords(holds.error()));
            else
                right += *holds ? 1 : 0;
        }
        if (right == 0)
            wrong(choice.line, "No answer of this choice is right here.");
    }

    void checkNumber(const LessonNumber &number)
    {
        for (const LessonText *text : {&number.question, &number.right, &number.wrong})
            checkText(*text);
        for (const Expression *expression : {&number.answer, &number.tolerance})
            if (const auto value = expression->valueOf(m_figures.source(m_stop));
                !value && !asksOf(expression->figures(), {Figure::Measured}))
                wrong(number.line,
                    "\"" + expression->text() + "\" cannot be worked out: " + joinedWords(value.error()));
    }

    void checkClaim(const LessonClaim &claim)
    {
        if (needsRun(claim.condition)) {
            remark(claim.line, "\"" + claim.text + "\" is known once the plan has run.");
            return;
        }
        const FigureSource source = m_figures.source(m_stop);
        const auto holds = claim.condition.holds(source);
        if (!holds || !*holds)
            wrong(claim.line, "This does not hold: " + claim.condition.whyNot(source) + ".");
    }

    void checkSelector(const std::string &text, std::int32_t line, const PlanAnswer &own)
    {
        const auto selector = parseSelector(text);
        if (selector && own.model && own.model->index->select(*selector).empty())
            wrong(line, "No operator of the model is \"" + text + "\".");
    }

    /// What is shown and pointed at is there.
    void checkPlaces(const LessonStep &step, const PlanAnswer &own)
    {
        if (step.show && !step.show->select.empty())
            checkSelector(step.show->select, step.show->line, own);
        for (const LessonPoint &point : step.points) {
            if (point.kind == PlaceKind::Operator)
                checkSelector(point.what, point.line, own);
            if (point.kind == PlaceKind::Device && point.device >= own.deviceCount)
                wrong(point.line, "There is no device " + std::to_string(point.device) + ".");
            if (point.kind == PlaceKind::Block && own.plan
                && (point.stage >= own.plan->stageCount || point.microBatch >= own.plan->microBatches))
                wrong(point.line,
                    "There is no such block: the plan has " + std::to_string(own.plan->stageCount)
                        + " stages and " + std::to_string(own.plan->microBatches) + " micro-batches.");
            if (point.kind == PlaceKind::Row
                && std::none_of(own.rows.begin(), own.rows.end(),
                    [&](const RowLine &row) { return row.text.find(point.what) != std::string::npos; }))
                wrong(point.line, "There is no row with \"" + point.what + "\".");
        }
    }

    /// What the task says to a plan, as one text; empty where it is done.
    std::string saidTo(const LessonTask &task, PlanAnswerSnapshot answer)
    {
        m_figures.setOwn(std::move(answer));
        std::string said;
        for (const std::string &sentence : whatIsMissing(task, m_figures, m_stop))
            said += (said.empty() ? "" : " ") + sentence;
        return said;
    }

    void checkTask(const LessonTask &whole)
    {
        LessonTask task = whole; // without what is known once the plan has run
        std::erase_if(task.needs, [](const LessonNeed &need) { return needsRun(need.condition); });
        for (const LessonNeed &need : whole.needs)
            if (needsRun(need.condition))
                remark(need.line, "\"" + need.condition.text() + "\" is known once the plan has run.");
        const bool isDecided = task.needs.size() == whole.needs.size();
        if (isDecided && whatIsMissing(task, m_figures, m_stop).empty())
            wrong(task.line, "The task is done before anything was done.");
        checkSolution(task, isDecided);
        for (const LessonWrong &refused : task.wrong)
            checkWrong(task, refused);
    }

    /// Sentences for what does not hold have values where the step begins, or where it ends.
    void checkSentences(const LessonTask &task, LessonFigures &beginning)
    {
        for (const LessonNeed &need : task.needs)
            if (need.otherwise && !beginning.textOf(*need.otherwise, m_stop))
                checkText(*need.otherwise);
    }

    void checkSolution(const LessonTask &task, bool isDecided)
    {
        if (task.solution.empty()) {
            isDecided ? wrong(task.line, "The task has no solution.")
                      : remark(task.line, "The task has no solution.");
            return;
        }
        LessonFigures beginning(m_figures, m_step);
        if (auto answer = answerTo(*m_beginning))
            beginning.setOwn(*std::move(answer));
        const std::int32_t line = task.solution.front().line;
        auto request = afterDeeds(*m_beginning, task.solution, m_stop);
        if (!request) {
            wrong(lineOf(request.error(), line),
                "The solution cannot be carried out: " + joinedWords(request.error()));
            return;
        }
        const auto answer = answerTo(*std::move(request));
        if (!answer) {
            wrong(line, "The solution has no plan: " + joinedWords(answer.error()));
            return;
        }
        if (const std::string said = saidTo(task, *answer); !said.empty())
            wrong(line, "The solution does not do the task: " + said);
        if ((*answer)->table.rowLines().empty())
            wrong(line, "The solution leaves no row.");
        checkSentences(task, beginning);
    }

    static std::int32_t lineOf(const Error &error, std::int32_t otherwise)
    {
        const std::string start = std::string(kLessonFile) + ":";
        std::int32_t line = otherwise;
        if (error.where.starts_with(start))
            std::from_chars(error.where.data() + start.size(), error.where.data() + error.where.size(), line);
        return line;
    }

    Result<std::string> saidToWrong(const LessonTask &task, const LessonWrong &refused)
    {
        Result<PlanRequest> request = Error{};
        if (refused.design) {
            const auto open = static_cast<std::size_t>(m_lesson.steps[m_step].open);
            request = requestOf(
                m_lesson, filledUp(*refused.design, m_lesson.designs[open]), m_target, m_stop, m_model);
        } else {
            request = afterDeeds(*m_beginning, refused.deeds, m_stop);
        }
        if (!request)
            return std::move(request).error();
        TRY(PlanAnswerSnapshot answer, answerTo(*std::move(request)));
        return saidTo(task, std::move(answer));
    }

    void checkWrong(const LessonTask &task, const LessonWrong &refused)
    {
        const auto said = saidToWrong(task, refused);
        if (!said)
            wrong(lineOf(said.error(), refused.line),
                "The wrong plan cannot be made: " + joinedWords(said.error()));
        else if (said->empty())
            wrong(refused.line, "The task takes this plan, which is to be wrong.");
        else if (!containsLetters(*said, refused.says))
            wrong(refused.line, "The task does not say \"" + refused.says + "\" to this plan, but: " + *said);
    }

    const Lesson &m_lesson;
    const LessonTarget &m_target;
    const std::stop_token &m_stop;
    LessonFigures m_figures;
    std::size_t m_step = 0;
    std::optional<PlanRequest> m_beginning{}; ///< Of the step, where a design is open.
    ModelSnapshot m_model{}; ///< Opened last.
    std::vector<LessonFinding> m_findings{};
};

} // namespace

std::vector<LessonFinding> checkLesson(
    const Lesson &lesson, const LessonTarget &target, const std::stop_token &stop)
{
    return LessonCheck(lesson, target, stop).run();
}

} // namespace planloom
