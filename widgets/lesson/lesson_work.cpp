#include "widgets/lesson/lesson_work.h"

#include "engine/base/text.h"
#include "widgets/common/qt_text.h"
#include "widgets/lesson/lesson_moves.h"
#include "widgets/lesson/lesson_words.h"
#include "widgets/scene/plan_thumbnail.h"
#include "widgets/scene/timeline_scene.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr QSize kGoalPicture{320, 110};

/// Texts of one step, with values.
class StepWriter
{
public:
    StepWriter(const LessonQuestionOfPlan &asked, const std::stop_token &stop)
        : m_asked(asked)
        , m_step(asked.lesson->steps[asked.step])
        , m_figures(asked.figures->figures)
        , m_stop(stop)
    {
    }

    StepTexts all()
    {
        StepTexts texts;
        for (const LessonPart &part : m_step.parts)
            texts.parts.push_back(partOf(part));
        for (const LessonPoint &point : m_step.points)
            texts.points.push_back(plain(point.words));
        for (const LessonClaim &claim : m_step.claims)
            addUnlessTrue(claim, texts.otherwise);
        if (!m_step.task)
            return texts;
        texts.goal = rich(m_step.task->goal);
        for (const LessonText &hint : m_step.task->hints)
            texts.hints.push_back(rich(hint));
        for (const LessonMove &move : movesOf(m_step.task->solution)) {
            QStringList said;
            for (const LessonDeed *deed : move.said)
                said << rich(deed->words);
            texts.moves.push_back(said.join(QLatin1Char(' ')));
        }
        if (!m_step.task->solution.empty())
            texts.picture = pictureOfGoal();
        return texts;
    }

private:
    /// A value that is not known is said where it would stand: the rest can be read.
    QString plain(const LessonText &text)
    {
        const Result<std::string> written = m_figures.textOf(text, m_stop);
        return toQString(written ? *written : "[" + written.error().message + "]");
    }
    QString rich(const LessonText &text) { return richTextOf(plain(text).toStdString()); }

    PartTexts partOf(const LessonPart &part)
    {
        PartTexts texts;
        if (const auto *prose = std::get_if<Prose>(&part)) {
            texts.kind = prose->kind;
            texts.text = rich(prose->text);
            if (prose->kind == ProseKind::Picture)
                texts.picture = toQString((m_asked.lesson->folder / prose->picture).string());
            return texts;
        }
        texts.question = std::visit(
            [this](const auto &question) { return questionOf(question); }, std::get<LessonQuestion>(part));
        return texts;
    }

    QuestionTexts questionOf(const LessonChoice &choice)
    {
        QuestionTexts texts;
        texts.question = rich(choice.question);
        const FigureSource source = m_figures.source(m_stop);
        for (const LessonAnswer &answer : choice.answers) {
            bool right = answer.right;
            if (answer.condition) {
                const Result<bool> holds = answer.condition->holds(source);
                right = holds && *holds;
            }
            texts.answers.push_back({rich(answer.text), rich(answer.reply), right});
        }
        return texts;
    }

    QuestionTexts questionOf(const LessonNumber &number)
    {
        QuestionTexts texts;
        texts.question = rich(number.question);
        texts.right = rich(number.right);
        texts.wrong = rich(number.wrong);
        const FigureSource source = m_figures.source(m_stop);
        Result<FigureValue> answer = number.answer.valueOf(source);
        const Result<FigureValue> tolerance = number.tolerance.valueOf(source);
        if (!answer || !tolerance) {
            texts.question += QStringLiteral(" [%1]").arg(
                toQString((answer ? tolerance : answer).error().message).toHtmlEscaped());
            return texts;
        }
        texts.tolerance = number.relative ? tolerance->number * std::abs(answer->number) : tolerance->number;
        texts.answer = *std::move(answer);
        return texts;
    }

    void addUnlessTrue(const LessonClaim &claim, std::vector<QString> &otherwise)
    {
        const std::string why = claim.condition.whyNot(m_figures.source(m_stop));
        if (!why.empty())
            otherwise.push_back(toQString(why));
    }

    QImage pictureOfGoal()
    {
        const Result<PlanAnswerSnapshot> goal = m_figures.plan("goal", m_stop);
        if (!goal || !(*goal)->timeline || !(*goal)->execution)
            return {};
        const TimelineSceneSnapshot scene =
            makeTimelineScene((*goal)->timeline, (*goal)->execution, (*goal)->cluster);
        return thumbnailOf(*scene, m_asked.palette, kGoalPicture, m_asked.ratio);
    }

    const LessonQuestionOfPlan &m_asked;
    const LessonStep &m_step;
    LessonFigures &m_figures;
    const std::stop_token &m_stop;
};

} // namespace

LessonFindings findingsOf(const LessonQuestionOfPlan &asked, const std::stop_token &stop)
{
    LessonFindings findings;
    LessonFigures &figures = asked.figures->figures;
    if (std::exchange(asked.figures->step, asked.step) != asked.step)
        figures = LessonFigures(figures, asked.step);
    if (asked.texts) {
        figures.setOwn(asked.begun, asked.run);
        findings.texts = StepWriter(asked, stop).all();
    }
    const auto &task = asked.lesson->steps[asked.step].task;
    if (asked.own && task && !stop.stop_requested()) {
        figures.setOwn(asked.own, asked.run);
        findings.missing = whatIsMissing(*task, figures, stop);
    }
    findings.stopped = stop.stop_requested();
    return findings;
}

QString unitOfAnswer(const FigureValue &answer)
{
    const QString written = toQString(toString(answer));
    const auto letter = std::find_if(
        written.begin(), written.end(), [](QChar c) { return c.isLetter() || c == QLatin1Char('%'); });
    return written.mid(letter - written.begin()).trimmed();
}

std::optional<double> typedNumber(const QString &typed, const FigureValue &answer)
{
    const auto valueOf = [](const QString &text) -> std::optional<FigureValue> {
        const auto expression = expressionFromText(text.toStdString());
        if (!expression || !expression->figures().empty())
            return std::nullopt;
        const auto value = expression->valueOf({});
        return value ? std::optional(*value) : std::nullopt;
    };
    const QString text = typed.trimmed().replace(QLatin1Char(','), QLatin1Char('.'));
    std::optional<FigureValue> value = valueOf(text);
    if (value && value->unit == FigureUnit::Number)
        value = valueOf(text + QLatin1Char(' ') + unitOfAnswer(answer));
    const auto isPlain = [](FigureUnit unit) {
        return unit == FigureUnit::Number || unit == FigureUnit::Share;
    };
    if (!value || (value->unit != answer.unit && !isPlain(value->unit))
        || (value->unit == FigureUnit::Share && !isPlain(answer.unit)))
        return std::nullopt;
    return value->number;
}

} // namespace planloom
