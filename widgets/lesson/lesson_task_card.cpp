#include "widgets/lesson/lesson_task_card.h"

#include <QtGui/QPixmap>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

namespace planloom {

LessonTaskCard::LessonTaskCard(QWidget *parent)
    : QFrame(parent)
{
    setFrameShape(QFrame::StyledPanel);
    setAccessibleName(tr("Your turn"));
    auto *column = new QVBoxLayout(this);
    auto *title = new QLabel(QStringLiteral("<b>%1</b>").arg(tr("Your turn")), this);
    column->addWidget(title);
    m_goal = addLabel("goal");
    m_picture = new QLabel(this);
    m_picture->setObjectName(QStringLiteral("goalPicture"));
    m_picture->setToolTip(tr("A plan that does it. Yours may be another one."));
    m_picture->setAccessibleName(tr("Timeline of a plan that does it"));
    column->addWidget(m_picture);
    m_state = addLabel("missing");
    m_hints = addLabel("hints");
    m_said = addLabel("said");
    auto *row = new QHBoxLayout;
    m_hint = new QPushButton(tr("&Hint"), this);
    m_show = new QPushButton(tr("Show &Me"), this);
    m_again = new QPushButton(tr("Begin &Again"), this);
    m_hint->setObjectName(QStringLiteral("hint"));
    m_show->setObjectName(QStringLiteral("showMe"));
    m_again->setObjectName(QStringLiteral("beginAgain"));
    m_show->setToolTip(tr("Makes the next move towards a solution. Undo takes it back."));
    m_again->setToolTip(tr("The design becomes what this step began with. Undo takes that back."));
    for (QPushButton *button : {m_hint, m_show, m_again})
        row->addWidget(button);
    row->addStretch(1);
    column->addLayout(row);
    connect(m_hint, &QPushButton::clicked, this, [this] {
        ++m_shownHints;
        showHints();
        Q_EMIT hintAsked();
    });
    connect(m_show, &QPushButton::clicked, this, &LessonTaskCard::moveAsked);
    connect(m_again, &QPushButton::clicked, this, &LessonTaskCard::beginAgainAsked);
}

QLabel *LessonTaskCard::addLabel(const char *name)
{
    auto *label = new QLabel(this);
    label->setObjectName(QLatin1String(name));
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    connect(label, &QLabel::linkActivated, this, &LessonTaskCard::linkActivated);
    layout()->addWidget(label);
    return label;
}

void LessonTaskCard::setTexts(const StepTexts &texts, int hints)
{
    m_texts = texts;
    m_shownHints = hints;
    m_goal->setText(texts.goal);
    m_picture->setVisible(!texts.picture.isNull());
    if (!texts.picture.isNull())
        m_picture->setPixmap(QPixmap::fromImage(texts.picture));
    m_state->hide();
    m_said->hide();
    showHints();
}

void LessonTaskCard::setMissing(const std::vector<std::string> &missing)
{
    const Palette &palette = paletteFor(*this);
    m_done = missing.empty();
    m_missing.clear();
    QString text;
    for (const std::string &sentence : missing) {
        m_missing << toQString(sentence);
        text += QStringLiteral("<p style=\"margin:2px 0\"><span style=\"color:%1\">○</span> %2</p>")
                    .arg(palette.warning.name(), toQString(sentence).toHtmlEscaped());
    }
    if (m_done)
        text = QStringLiteral("<span style=\"color:%1\"><b>%2</b></span>")
                   .arg(palette.success.name(), tr("✓ Done: your plan has all that was asked for."));
    m_state->setText(text);
    m_state->show();
    refreshButtons();
}

void LessonTaskCard::setBusy(bool busy)
{
    m_state->setEnabled(!busy);
}

void LessonTaskCard::setMoves(int made, const QString &said)
{
    m_made = made;
    m_said->setText(said);
    m_said->setVisible(!said.isEmpty());
    refreshButtons();
}

void LessonTaskCard::showHints()
{
    QString text;
    for (int i = 0; i < m_shownHints && i < static_cast<int>(m_texts.hints.size()); ++i) {
        text += QStringLiteral("<p style=\"margin:2px 0\"><i>%1</i> %2</p>")
                    .arg(tr("Hint %1.").arg(i + 1), m_texts.hints[static_cast<std::size_t>(i)]);
    }
    m_hints->setText(text);
    m_hints->setVisible(!text.isEmpty());
    refreshButtons();
}

void LessonTaskCard::refreshButtons()
{
    const int hints = static_cast<int>(m_texts.hints.size());
    const int moves = static_cast<int>(m_texts.moves.size());
    m_hint->setVisible(hints > 0);
    m_hint->setEnabled(m_shownHints < hints);
    m_show->setVisible(moves > 0);
    m_show->setEnabled(m_made < moves);
    m_show->setText(m_made > 0 && m_made < moves ? tr("Show &Me (%1 of %2)").arg(m_made + 1).arg(moves)
                                                 : tr("Show &Me"));
}

} // namespace planloom

#include "moc_lesson_task_card.cpp"
