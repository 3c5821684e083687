#include "widgets/lesson/lesson_pane.h"

#include <QtGui/QImageReader>
#include <QtGui/QPixmap>
#include <QtGui/QTextDocument>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/lesson/lesson_question.h"
#include "widgets/lesson/lesson_task_card.h"

namespace planloom {

namespace {

constexpr int kLetters = 46; ///< In a line of the pane.
constexpr int kLeastLetters = 34;
constexpr QSize kLargestPicture{4096, 4096};

QFont scaled(QFont font, double factor)
{
    font.setPointSizeF(font.pointSizeF() * factor);
    font.setBold(true);
    return font;
}

} // namespace

LessonPane::LessonPane(QWidget *parent)
    : QWidget(parent)
{
    setObjectName(QStringLiteral("lessonPane"));
    setAccessibleName(tr("Lesson"));
    auto *column = new QVBoxLayout(this);
    m_title = new QLabel(this);
    m_title->setFont(scaled(font(), 1.25));
    m_title->setWordWrap(true);
    m_leave = new QPushButton(tr("&Leave"), this);
    m_leave->setObjectName(QStringLiteral("leave"));
    m_leave->setToolTip(tr("The lesson is closed; how far you are is kept, and the session stays open."));
    auto *head = new QHBoxLayout;
    head->addWidget(m_title, 1);
    head->addWidget(m_leave, 0, Qt::AlignTop);
    column->addLayout(head);
    m_where = new QLabel(this);
    m_where->setForegroundRole(QPalette::PlaceholderText);
    column->addWidget(m_where);
    m_scroll = new QScrollArea(this);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    column->addWidget(m_scroll, 1);
    auto *foot = new QHBoxLayout;
    m_back = new QPushButton(tr("&Back"), this);
    m_next = new QPushButton(tr("&Next"), this);
    m_back->setObjectName(QStringLiteral("back"));
    m_next->setObjectName(QStringLiteral("next"));
    foot->addWidget(m_back);
    foot->addStretch(1);
    foot->addWidget(m_next);
    column->addLayout(foot);
    connect(m_leave, &QPushButton::clicked, this, &LessonPane::leaveAsked);
    connect(m_back, &QPushButton::clicked, this, [this] { Q_EMIT stepAsked(m_step - 1); });
    connect(m_next, &QPushButton::clicked, this, [this] {
        if (m_step + 1 < m_steps)
            Q_EMIT stepAsked(m_step + 1);
        else
            Q_EMIT leaveAsked();
    });
    clearStep();
}

QSize LessonPane::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * kLetters, fontMetrics().height() * 30};
}

QSize LessonPane::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * kLeastLetters, fontMetrics().height() * 10};
}

void LessonPane::clearStep()
{
    m_task = nullptr;
    m_questions.clear();
    auto *page = new QWidget(this);
    m_body = new QVBoxLayout(page);
    m_body->setContentsMargins(0, 0, 4, 0);
    m_scroll->setWidget(page); // deletes the one before
    m_scroll->verticalScrollBar()->setValue(0);
}

void LessonPane::showStep(const Lesson &lesson, const LessonProgress &progress)
{
    clearStep();
    m_texts = {};
    m_step = progress.step;
    m_steps = static_cast<int>(lesson.steps.size());
    const LessonStep &step = lesson.steps[static_cast<std::size_t>(m_step)];
    m_title->setText(toQString(step.title.empty() ? lesson.title : step.title));
    m_where->setText(tr("%1 · step %2 of %3").arg(toQString(lesson.title)).arg(m_step + 1).arg(m_steps));
    addText(tr("One moment: the engine works out the numbers of this step."))
        ->setForegroundRole(QPalette::PlaceholderText);
    m_body->addStretch(1);
    refreshHead();
}

void LessonPane::setProblem(const QString &sentence)
{
    clearStep();
    const Palette &palette = paletteFor(*this);
    addText(QStringLiteral("<span style=\"color:%1\">%2</span>").arg(palette.error.name(), sentence.toHtmlEscaped()));
    m_body->addStretch(1);
    refreshHead();
}

void LessonPane::setTexts(const StepTexts &texts, const LessonProgress &progress)
{
    clearStep();
    m_texts = texts;
    for (std::size_t i = 0; i < texts.parts.size(); ++i)
        addPart(texts.parts[i], QStringLiteral("%1/%2").arg(m_step).arg(i), progress);
    const Palette &palette = paletteFor(*this);
    for (const QString &point : texts.points) {
        addText(QStringLiteral("<span style=\"color:%1\">➜</span> %2").arg(palette.accent.name(), point.toHtmlEscaped()));
    }
    for (const QString &claim : texts.otherwise) {
        addText(QStringLiteral("<span style=\"color:%1\">%2</span> %3")
                    .arg(palette.warning.name(), tr("Here it is otherwise:"), claim.toHtmlEscaped()));
    }
    if (!texts.goal.isEmpty())
        addTask(texts, progress);
    m_body->addStretch(1);
    refreshHead();
}

QLabel *LessonPane::addText(const QString &rich)
{
    auto *label = new QLabel(rich, m_scroll->widget());
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    connect(label, &QLabel::linkActivated, this, &LessonPane::followLink);
    m_body->addWidget(label);
    return label;
}

void LessonPane::addPart(const PartTexts &part, const QString &place, const LessonProgress &progress)
{
    if (part.question) {
        auto *box = new LessonQuestionBox(m_scroll->widget());
        const auto given = progress.answers.find(place.toStdString());
        box->setTexts(*part.question, given == progress.answers.end() ? QString() : toQString(given->second));
        connect(box, &LessonQuestionBox::answered, this,
            [this, box, place] { Q_EMIT answered(place, box->given()); });
        connect(box, &LessonQuestionBox::linkActivated, this, &LessonPane::followLink);
        m_body->addWidget(box);
        m_questions.push_back(box);
        return;
    }
    if (part.picture.isEmpty()) {
        addText(part.kind == ProseKind::Item ? QStringLiteral("• ") + part.text : part.text);
        return;
    }
    auto *label = new QLabel(m_scroll->widget());
    label->setAccessibleName(part.text);
    label->setToolTip(part.text);
    QImageReader reader(part.picture);
    const QSize size = reader.size();
    if (size.isValid() && size.width() <= kLargestPicture.width() && size.height() <= kLargestPicture.height()) {
        const int width = std::min(size.width(), sizeHint().width() - fontMetrics().averageCharWidth() * 4);
        reader.setScaledSize(size.scaled(width, size.height(), Qt::KeepAspectRatio));
        label->setPixmap(QPixmap::fromImage(reader.read()));
    }
    if (label->pixmap().isNull())
        label->setText(part.text); // what is on it, where it can't be shown
    m_body->addWidget(label);
}

void LessonPane::addTask(const StepTexts &texts, const LessonProgress &progress)
{
    m_task = new LessonTaskCard(m_scroll->widget());
    const auto hints = progress.hints.find(m_step);
    m_task->setTexts(texts, hints == progress.hints.end() ? 0 : hints->second);
    m_body->addWidget(m_task);
    connect(m_task, &LessonTaskCard::hintAsked, this, &LessonPane::hintAsked);
    connect(m_task, &LessonTaskCard::moveAsked, this, &LessonPane::moveAsked);
    connect(m_task, &LessonTaskCard::beginAgainAsked, this, &LessonPane::beginAgainAsked);
    connect(m_task, &LessonTaskCard::linkActivated, this, &LessonPane::followLink);
}

void LessonPane::setMissing(const std::vector<std::string> &missing)
{
    if (!m_task)
        return;
    m_task->setMissing(missing);
    refreshHead();
}

void LessonPane::setBusy(bool busy)
{
    if (m_task)
        m_task->setBusy(busy);
}

void LessonPane::setMoves(int made)
{
    if (!m_task)
        return;
    const bool any = made > 0 && made <= static_cast<int>(m_texts.moves.size());
    m_task->setMoves(made, any ? m_texts.moves[static_cast<std::size_t>(made - 1)] : QString());
}

void LessonPane::followLink(const QString &address)
{
    const QString glossary = QStringLiteral("glossary:");
    if (address.startsWith(glossary))
        Q_EMIT termAsked(address.mid(glossary.size()));
}

void LessonPane::refreshHead()
{
    const bool last = m_step + 1 >= m_steps;
    m_back->setEnabled(m_step > 0);
    const bool open = m_task && !m_task->isDone();
    m_next->setText(last ? tr("&Finish") : open ? tr("&Skip") : tr("&Next"));
    m_next->setDefault(!open);
}

QString LessonPane::plainText() const
{
    QStringList lines{m_title->text()};
    for (const QLabel *label : m_scroll->widget()->findChildren<QLabel *>()) {
        if (label->text().isEmpty() || label->isHidden())
            continue;
        QTextDocument document;
        document.setHtml(label->text());
        lines << document.toPlainText();
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace planloom

#include "moc_lesson_pane.cpp"
