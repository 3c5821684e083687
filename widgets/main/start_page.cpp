#include "widgets/main/start_page.h"

#include <QtCore/QDateTime>
#include <QtCore/QFileInfo>
#include <QtCore/QLocale>
#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtWidgets/QCompleter>
#include <QtWidgets/QGridLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "engine/frontend/zoo/zoo.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/settings.h"
#include "widgets/main/lesson_window.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kColumns = 3;
constexpr int kMostRecentShown = 6;
constexpr double kPictureShare = 120.0 / 320; ///< Height of a picture by its width.

QLabel *label(const QString &text, double size, bool muted, QWidget *parent)
{
    auto *label = new QLabel(text, parent);
    QFont font = label->font();
    font.setPointSizeF(font.pointSizeF() * size);
    font.setBold(size > 1.3);
    label->setFont(font);
    label->setWordWrap(true);
    if (muted)
        label->setForegroundRole(QPalette::PlaceholderText);
    return label;
}

} // namespace

StartCard::StartCard(QWidget *parent)
    : QAbstractButton(parent)
{
    setCursor(Qt::PointingHandCursor);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void StartCard::setTexts(const QString &title, const QString &about, const QString &footer)
{
    setText(title);
    m_about = about;
    m_footer = footer;
    setAccessibleName(title);
    setAccessibleDescription(about + QStringLiteral(" ") + footer);
    updateGeometry();
    update();
}

void StartCard::setPictures(const QPixmap &light, const QPixmap &dark)
{
    m_light = light;
    m_dark = dark;
    updateGeometry();
    update();
}

void StartCard::setWarning(const QString &text)
{
    m_warning = text;
    setAccessibleDescription(text + QStringLiteral(" ") + accessibleDescription());
    update();
}

QSize StartCard::sizeHint() const
{
    const int line = fontMetrics().height();
    const int width = fontMetrics().averageCharWidth() * 44;
    const int picture = m_light.isNull() ? 0 : static_cast<int>(width * kPictureShare);
    const int about = m_about.isEmpty() ? 0 : line * 33 / 10;
    return {width, picture + line * 5 / 4 + about + line * 5 / 4 + line * 3 / 2};
}

void StartCard::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    const Palette &palette = paletteFor(*this);
    const bool lifted = underMouse() || hasFocus();
    const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
    QPainterPath outline;
    outline.addRoundedRect(box, 8, 8);
    // The keyboard has a thick frame, the pointer a raised ground: they may be on different cards.
    painter.fillPath(outline, isDown() || underMouse() ? palette.surfaceRaised : palette.surface);
    const int line = fontMetrics().height();
    QRect inside = rect().adjusted(line * 4 / 5, line / 2, -line * 4 / 5, -line / 2);
    const QPixmap &picture = palette.dark ? m_dark : m_light;
    if (!picture.isNull()) {
        const auto height = static_cast<int>(width() * kPictureShare);
        painter.save();
        painter.setClipPath(outline);
        const QRectF place(box.left(), box.top(), box.width(), height);
        // All of its width; what is too high is cut below.
        const double scale = place.width() / picture.width();
        painter.drawPixmap(place, picture, QRectF(0, 0, picture.width(), place.height() / scale));
        painter.fillRect(QRectF(box.left(), box.top() + height, box.width(), 1), palette.grid);
        painter.restore();
        inside.setTop(height + line / 2);
    }
    painter.setPen(QPen(lifted     ? palette.accent
            : palette.highContrast ? palette.border
                                   : palette.grid,
        hasFocus() ? 3 : 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(outline);

    QFont bold = font();
    bold.setBold(true);
    painter.setFont(bold);
    painter.setPen(palette.text);
    const int title = line * 5 / 4;
    painter.drawText(QRect(inside.left(), inside.top(), inside.width(), title),
        Qt::AlignLeft | Qt::AlignVCenter,
        QFontMetrics(bold).elidedText(text(), Qt::ElideRight, inside.width()));
    painter.setFont(font());
    painter.setPen(palette.textMuted);
    painter.drawText(
        QRect(inside.left(), inside.top() + title, inside.width(), inside.height() - title - line * 5 / 4),
        Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, m_about);
    const QString footer = m_warning.isEmpty() ? m_footer : QStringLiteral("⚠ ") + m_warning;
    painter.setPen(m_warning.isEmpty() ? palette.accent : palette.warning);
    painter.drawText(QRect(inside.left(), inside.bottom() - line, inside.width(), line + 1),
        Qt::AlignLeft | Qt::AlignVCenter, fontMetrics().elidedText(footer, Qt::ElideRight, inside.width()));
}

void StartCard::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
        click();
    else
        QAbstractButton::keyPressEvent(event);
}

void StartCard::enterEvent(QEnterEvent *event)
{
    QAbstractButton::enterEvent(event);
    update();
}

void StartCard::leaveEvent(QEvent *event)
{
    QAbstractButton::leaveEvent(event);
    update();
}

SampleCard::SampleCard(Sample sample, QWidget *parent)
    : StartCard(parent)
    , m_sample(std::move(sample))
{
    setTexts(QString::fromStdString(m_sample.title), QString::fromStdString(m_sample.about),
        tr("%1 × %2 · %3")
            .arg(m_sample.devices)
            .arg(QString::fromStdString(m_sample.cluster),
                QString::fromStdString(m_sample.gallery.substr(0, m_sample.gallery.find(':')))));
    const QString file =
        QStringLiteral(":/planloom/samples/%1-%2.png").arg(QString::fromStdString(m_sample.name));
    setPictures(QPixmap(file.arg(QStringLiteral("light"))), QPixmap(file.arg(QStringLiteral("dark"))));
}

LessonCard::LessonCard(const Lesson &lesson, int number, QWidget *parent)
    : StartCard(parent)
    , m_command(QStringLiteral("lesson.") + toQString(lesson.name))
    , m_idea(toQString(lesson.idea))
    , m_minutes(lesson.minutes)
{
    setText(tr("%1. %2").arg(number).arg(toQString(lesson.title)));
    showMark({});
}

void LessonCard::showMark(const std::optional<LessonMark> &mark)
{
    QString footer = tr("%1 minutes").arg(m_minutes);
    if (mark && mark->finished)
        footer = tr("✓ finished");
    else if (mark)
        footer = tr("at step %1 of %2").arg(mark->step + 1).arg(mark->steps);
    setTexts(text(), m_idea, footer);
}

RecentCard::RecentCard(const RecentEntry &entry, QWidget *parent)
    : StartCard(parent)
    , m_path(QString::fromStdString(entry.session.path.string()))
    , m_missing(entry.session.missing)
{
    const RecentSession &session = entry.session;
    const SessionSummary &summary = entry.summary;
    QString facts = QString::fromStdString(session.model);
    if (summary.devices > 0)
        facts += (facts.isEmpty() ? QString() : QStringLiteral(" · "))
            + (summary.devices == 1 ? tr("1 device") : tr("%1 devices").arg(summary.devices));
    if (summary.stepSeconds > 0)
        facts += tr(" · step %1").arg(QString::fromStdString(formatSeconds(summary.stepSeconds)));
    const QDateTime opened = QDateTime::fromMSecsSinceEpoch(session.opened);
    setTexts(QFileInfo(m_path).completeBaseName(), facts,
        opened.isValid() ? QLocale().toString(opened, QLocale::ShortFormat) : QString());
    QPixmap picture;
    const std::string &png = summary.thumbnail;
    if (!png.empty()
        && picture.loadFromData(reinterpret_cast<const uchar *>(png.data()), static_cast<uint>(png.size())))
        setPictures(picture, picture);
    if (m_missing)
        setWarning(tr("not there any more: click to locate it"));
    else if (entry.cutOff)
        setWarning(tr("was cut off; everything acknowledged is kept"));
    setToolTip(m_path);
}

StartPage::StartPage(RecentList *recent, QWidget *parent)
    : QScrollArea(parent)
    , m_lessons(new QVBoxLayout)
    , m_recent(recent)
    , m_recentPart(new QWidget(this))
    , m_recentGrid(new QGridLayout)
    , m_continuePart(new QWidget(this))
    , m_continueLayout(new QVBoxLayout(m_continuePart))
    , m_spec(new QLineEdit(this))
{
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    auto *page = new QWidget(this);
    auto *column = new QWidget(page);
    column->setMaximumWidth(fontMetrics().averageCharWidth() * 150);
    auto *layout = new QVBoxLayout(column);
    layout->setSpacing(10);
    layout->addStretch(1);
    layout->addWidget(label(QStringLiteral("Planloom"), 2.2, false, column));
    layout->addWidget(label(
        tr("Design how a neural network is trained on many devices: what is split, where it runs, and in "
           "what order."),
        1.1, true, column));
    m_continuePart->setParent(column);
    m_continueLayout->setContentsMargins(0, 8, 0, 0);
    m_continuePart->hide();
    layout->addWidget(m_continuePart);

    layout->addWidget(addOpening(column));
    m_recentPart->setParent(column);
    auto *recentLayout = new QVBoxLayout(m_recentPart);
    recentLayout->setContentsMargins(0, 10, 0, 0);
    recentLayout->addWidget(label(tr("Recent sessions"), 1.35, false, m_recentPart));
    m_recentGrid->setSpacing(14);
    recentLayout->addLayout(m_recentGrid);
    m_recentPart->hide();
    layout->addWidget(m_recentPart);

    layout->addLayout(m_lessons);
    addSamples(column);
    layout->addStretch(2);

    auto *across = new QHBoxLayout(page);
    across->setContentsMargins(32, 16, 32, 16);
    across->addStretch(1);
    across->addWidget(column, 100);
    across->addStretch(1);
    setWidget(page);
    if (m_recent) {
        connect(m_recent, &RecentList::changed, this, &StartPage::refreshRecent);
        refreshRecent();
    }
}

/// A file, or a model of the zoo.
QWidget *StartPage::addOpening(QWidget *column)
{
    auto *part = new QWidget(column);
    auto *layout = new QVBoxLayout(part);
    layout->setContentsMargins(0, 0, 0, 0);
    auto *row = new QHBoxLayout;
    auto *open = new QPushButton(tr("&Open model or session…"), part);
    open->setDefault(true);
    row->addWidget(open);
    m_spec->setPlaceholderText(tr("or a new model of the zoo: zoo:gpt?layers=24&hidden=1024&heads=16"));
    m_spec->setAccessibleName(tr("Model of the zoo"));
    QStringList specs;
    for (const ZooFamily &family : zooFamilies()) {
        QString spec = QStringLiteral("zoo:") + QString::fromStdString(family.name);
        specs.append(spec);
        QChar between = QLatin1Char('?');
        for (const ZooParameter &parameter : family.parameters) {
            if (parameter.name != "layers" && parameter.name != "hidden" && parameter.name != "batch")
                continue;
            spec += between + QString::fromStdString(parameter.name) + QLatin1Char('=')
                + QString::number(parameter.fallback);
            between = QLatin1Char('&');
        }
        specs.append(spec);
    }
    auto *completer = new QCompleter(specs, m_spec);
    completer->setFilterMode(Qt::MatchContains);
    completer->setCaseSensitivity(Qt::CaseInsensitive);
    m_spec->setCompleter(completer);
    row->addWidget(m_spec, 1);
    auto *make = new QPushButton(tr("&Create"), part);
    make->setAccessibleName(tr("Create from the zoo"));
    row->addWidget(make);
    layout->addLayout(row);
    layout->addWidget(
        label(tr("Models are ONNX files (.onnx) and programs of torch.export.save (.pt2). You can "
                 "also drop one, or a session, anywhere on this window."),
            0.95, true, part));
    auto *fromPyTorch = new QPushButton(tr("How do I get a file of my PyTorch model?"), part);
    fromPyTorch->setFlat(true);
    fromPyTorch->setAccessibleName(tr("Model from PyTorch"));
    layout->addWidget(fromPyTorch, 0, Qt::AlignLeft);
    connect(fromPyTorch, &QPushButton::clicked, this, &StartPage::exportHelpAsked);
    const auto create = [this] {
        QString spec = m_spec->text().trimmed();
        if (spec.isEmpty()) {
            m_spec->setFocus();
            return;
        }
        Q_EMIT specEntered(spec);
    };
    connect(open, &QPushButton::clicked, this, &StartPage::openAsked);
    connect(m_spec, &QLineEdit::returnPressed, this, create);
    connect(make, &QPushButton::clicked, this, create);
    return part;
}

void StartPage::addSamples(QWidget *column)
{
    auto *layout = static_cast<QVBoxLayout *>(column->layout());
    layout->addSpacing(10);
    layout->addWidget(label(tr("Samples"), 1.35, false, column));
    auto *grid = new QGridLayout;
    grid->setSpacing(14);
    int place = 0;
    for (const Sample &sample : samples()) {
        auto *card = new SampleCard(sample, column);
        connect(card, &QAbstractButton::clicked, this, [this, card] { Q_EMIT sampleChosen(card->sample()); });
        grid->addWidget(card, place / kColumns, place % kColumns);
        ++place;
    }
    layout->addLayout(grid);
}

void StartPage::showLessons(std::shared_ptr<Settings> settings)
{
    m_settings = std::move(settings);
    if (bundledLessons().empty())
        return;
    auto *column = m_lessons->parentWidget();
    m_lessons->addSpacing(10);
    m_lessons->addWidget(label(tr("Lessons"), 1.35, false, column));
    auto *grid = new QGridLayout;
    grid->setSpacing(14);
    int place = 0;
    for (const Lesson &lesson : bundledLessons()) {
        auto *card = new LessonCard(lesson, place + 1, column);
        connect(
            card, &QAbstractButton::clicked, this, [this, card] { Q_EMIT lessonChosen(card->command()); });
        grid->addWidget(card, place / kColumns, place % kColumns);
        ++place;
    }
    for (int i = 0; i < kColumns; ++i)
        grid->setColumnStretch(i, 1);
    m_lessons->addLayout(grid);
    refreshLessons();
}

void StartPage::refreshLessons()
{
    for (LessonCard *card : findChildren<LessonCard *>())
        card->showMark(lessonMark(*m_settings, card->command().section(QLatin1Char('.'), 1)));
}

QStringList StartPage::recentSessions() const
{
    QStringList paths;
    if (m_recent) {
        for (const RecentEntry &entry : m_recent->entries()) {
            if (!entry.session.missing)
                paths.append(QString::fromStdString(entry.session.path.string()));
        }
    }
    return paths;
}

void StartPage::refreshRecent()
{
    while (QLayoutItem *item = m_recentGrid->takeAt(0)) {
        item->widget()->deleteLater();
        delete item;
    }
    while (QLayoutItem *item = m_continueLayout->takeAt(0)) {
        item->widget()->deleteLater();
        delete item;
    }
    int place = 0;
    const RecentEntry *cutOff = nullptr;
    for (const RecentEntry &entry : m_recent->entries()) {
        if (entry.cutOff && !cutOff)
            cutOff = &entry;
        if (place == kMostRecentShown)
            continue;
        auto *card = new RecentCard(entry, m_recentPart);
        connect(card, &QAbstractButton::clicked, this, [this, card] {
            if (card->isMissing())
                Q_EMIT locateAsked(card->path());
            else
                Q_EMIT sessionChosen(card->path());
        });
        m_recentGrid->addWidget(card, place / kColumns, place % kColumns);
        ++place;
    }
    for (int column = 0; column < kColumns; ++column)
        m_recentGrid->setColumnStretch(column, 1);
    m_recentPart->setVisible(place > 0);
    m_continuePart->setVisible(cutOff != nullptr);
    if (cutOff) {
        const QString path = QString::fromStdString(cutOff->session.path.string());
        m_continueLayout->addWidget(
            label(tr("Planloom did not close properly. \"%1\" has every edit that was acknowledged.")
                      .arg(QFileInfo(path).completeBaseName()),
                1.0, false, m_continuePart));
        auto *button = new QPushButton(tr("Continue &where you were"), m_continuePart);
        button->setObjectName(QStringLiteral("continueButton"));
        button->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
        connect(button, &QPushButton::clicked, this, [this, path] { Q_EMIT sessionChosen(path); });
        m_continueLayout->addWidget(button);
    }
}

} // namespace planloom

#include "moc_start_page.cpp"
