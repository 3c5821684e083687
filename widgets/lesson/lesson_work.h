#pragma once

#include <QtCore/QString>
#include <QtGui/QImage>

#include "engine/lesson/player.h"
#include "widgets/common/palette.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

using LessonSnapshot = std::shared_ptr<const Lesson>;

/// A choice or a number that is asked for, with the values of the step's plan.
struct QuestionTexts {
    QString question{};
    /// Of a choice.
    struct Answer {
        QString text{};
        QString reply{};
        bool right = false;
    };
    std::vector<Answer> answers{};
    /// Of a number.
    std::optional<FigureValue> answer{};
    double tolerance = 0; ///< In the answer's unit.
    QString right{};
    QString wrong{};
};

/// What is read at one place of a step.
struct PartTexts {
    ProseKind kind = ProseKind::Paragraph;
    QString text{}; ///< Rich text; of a picture what is on it.
    QString picture{}; ///< Path; empty for none.
    std::optional<QuestionTexts> question{}; ///< In place of a text.
};

/// All texts of a step as they are read: rich text.
struct StepTexts {
    std::vector<PartTexts> parts{};
    std::vector<QString> points{}; ///< As `LessonStep::points`, without markup.
    QString goal{};
    std::vector<QString> hints{};
    std::vector<QString> moves{}; ///< By move of the solution (lesson_moves.h): what it is about.
    std::vector<QString> otherwise{}; ///< Claims that don't hold here.
    QImage picture{}; ///< Of the goal's timeline; null without a solution.
};

/// What is to be worked out.
struct LessonQuestionOfPlan {
    LessonSnapshot lesson{};
    std::size_t step = 0;
    std::shared_ptr<LessonFigures> figures{}; ///< Of this step: kept from one question to the next.
    PlanAnswerSnapshot begun{}; ///< The plan that the step began with; texts speak of it.
    PlanAnswerSnapshot own{}; ///< The learner's as it is; null: nothing is checked.
    std::optional<LessonRun> run{};
    bool texts = false; ///< They are wanted.
    Palette palette{}; ///< Of the picture.
    double ratio = 1; ///< The screen's pixels for each of the picture's.
};

/// What came of it.
struct LessonFindings {
    std::optional<StepTexts> texts{};
    std::optional<std::vector<std::string>> missing{}; ///< Of the task, as `whatIsMissing`; nothing where it was not asked.
    bool stopped = false;
};

/// Works on any thread, for as long as the plans take that the lesson compares with.
LessonFindings findingsOf(const LessonQuestionOfPlan &question, const std::stop_token &stop);

/// A number as somebody typed it, in the unit of `answer` where none stands behind it; nothing if it is none.
std::optional<double> typedNumber(const QString &typed, const FigureValue &answer);
/// The unit that a number is asked for in: "ms", "GiB", "%"; empty for counts.
QString unitOfAnswer(const FigureValue &answer);

} // namespace planloom
