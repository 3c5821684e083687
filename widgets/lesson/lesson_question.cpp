#include "widgets/lesson/lesson_question.h"

#include <QtGui/QTextDocument>
#include <QtWidgets/QButtonGroup>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QRadioButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"

#include <cmath>

namespace planloom {

namespace {

/// Rich text as buttons and screen readers have it.
QString wordsOf(const QString &rich)
{
    QTextDocument document;
    document.setHtml(rich);
    return document.toPlainText();
}

} // namespace

LessonQuestionBox::LessonQuestionBox(QWidget *parent)
    : QFrame(parent)
{
    setFrameShape(QFrame::StyledPanel);
    new QVBoxLayout(this);
}

QLabel *LessonQuestionBox::addLabel(const QString &text)
{
    auto *label = new QLabel(text, this);
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    connect(label, &QLabel::linkActivated, this, &LessonQuestionBox::linkActivated);
    layout()->addWidget(label);
    return label;
}

void LessonQuestionBox::setTexts(const QuestionTexts &texts, const QString &given)
{
    m_texts = texts;
    QLabel *question = addLabel(QStringLiteral("<b>%1</b>").arg(texts.question));
    setAccessibleName(wordsOf(texts.question));
    if (texts.answer)
        addNumber();
    else if (!texts.answers.empty())
        addAnswers();
    m_reply = addLabel({});
    m_reply->setObjectName(QStringLiteral("reply"));
    m_reply->hide();
    question->setBuddy(m_number);
    if (given.isEmpty())
        return;
    if (m_number) {
        m_number->setText(given);
        checkNumber();
    } else if (QAbstractButton *button = m_answers ? m_answers->button(given.toInt()) : nullptr) {
        button->setChecked(true);
        choose(given.toInt());
    }
}

void LessonQuestionBox::addAnswers()
{
    m_answers = new QButtonGroup(this);
    for (std::size_t i = 0; i < m_texts.answers.size(); ++i) {
        // A button breaks no lines: its words stand beside it.
        auto *row = new QHBoxLayout;
        auto *button = new QRadioButton(this);
        auto *words = new QLabel(m_texts.answers[i].text, this);
        button->setAccessibleName(wordsOf(m_texts.answers[i].text));
        button->setObjectName(QStringLiteral("answer%1").arg(i));
        words->setWordWrap(true);
        words->setTextFormat(Qt::RichText);
        words->setBuddy(button);
        m_answers->addButton(button, static_cast<int>(i));
        row->addWidget(button, 0, Qt::AlignTop);
        row->addWidget(words, 1);
        static_cast<QVBoxLayout *>(layout())->addLayout(row);
    }
    connect(m_answers, &QButtonGroup::idClicked, this, [this](int answer) {
        choose(answer);
        Q_EMIT answered();
    });
}

void LessonQuestionBox::addNumber()
{
    auto *row = new QHBoxLayout;
    m_number = new QLineEdit(this);
    m_number->setObjectName(QStringLiteral("number"));
    m_number->setMaximumWidth(fontMetrics().averageCharWidth() * 16);
    m_number->setAccessibleName(wordsOf(m_texts.question));
    auto *unit = new QLabel(unitOfAnswer(*m_texts.answer), this);
    auto *check = new QPushButton(tr("&Check"), this);
    check->setObjectName(QStringLiteral("check"));
    row->addWidget(m_number);
    row->addWidget(unit);
    row->addWidget(check);
    row->addStretch(1);
    static_cast<QVBoxLayout *>(layout())->addLayout(row);
    const auto answer = [this] {
        checkNumber();
        Q_EMIT answered();
    };
    connect(check, &QPushButton::clicked, this, answer);
    connect(m_number, &QLineEdit::returnPressed, this, answer);
}

void LessonQuestionBox::choose(int answer)
{
    const QuestionTexts::Answer &chosen = m_texts.answers[static_cast<std::size_t>(answer)];
    m_given = QString::number(answer);
    reply(chosen.right, chosen.reply);
}

void LessonQuestionBox::checkNumber()
{
    m_given = m_number->text().trimmed();
    const std::optional<double> number = typedNumber(m_given, *m_texts.answer);
    if (!number) {
        reply(false, tr("That is not a number: it is asked for in %1.").arg(unitOfAnswer(*m_texts.answer)));
        return;
    }
    const bool right = std::abs(*number - m_texts.answer->number) <= m_texts.tolerance;
    reply(right, right ? m_texts.right : m_texts.wrong);
}

void LessonQuestionBox::reply(bool right, const QString &words)
{
    m_right = right;
    const Palette &palette = paletteFor(*this);
    m_reply->setText(QStringLiteral("<span style=\"color:%1\"><b>%2</b></span> %3")
                         .arg((right ? palette.success : palette.warning).name(),
                             right ? tr("✓ Right.") : tr("Not quite."), words));
    m_reply->setAccessibleName(wordsOf(m_reply->text()));
    m_reply->show();
}

} // namespace planloom

#include "moc_lesson_question.cpp"
