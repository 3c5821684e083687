#include "widgets/main/start_page.h"

#include <QtGui/QPainter>
#include <QtWidgets/QGridLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"

namespace planloom {

namespace {

constexpr int kColumns = 3;
constexpr int kPadding = 14;
constexpr int kAccentBar = 4;

QLabel *label(const QString &text, double size, bool muted, QWidget *parent)
{
    auto *label = new QLabel(text, parent);
    QFont font = label->font();
    font.setPointSizeF(font.pointSizeF() * size);
    font.setBold(size > 1.4);
    label->setFont(font);
    label->setWordWrap(true);
    if (muted)
        label->setForegroundRole(QPalette::PlaceholderText);
    return label;
}

} // namespace

SampleCard::SampleCard(Sample sample, QWidget *parent) : QAbstractButton(parent), m_sample(std::move(sample))
{
    setText(QString::fromStdString(m_sample.title));
    setAccessibleName(text());
    setAccessibleDescription(QString::fromStdString(m_sample.about));
    setCursor(Qt::PointingHandCursor);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void SampleCard::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Palette &palette = paletteFor(*this);
    const bool lifted = underMouse() || hasFocus();
    const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
    painter.setPen(QPen(lifted ? palette.accent : palette.grid, lifted ? 2 : 1));
    painter.setBrush(isDown() ? palette.surfaceRaised : palette.surface);
    painter.drawRoundedRect(box, 8, 8);
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette.accent);
    painter.drawRoundedRect(QRectF(box.left(), box.top() + 12, kAccentBar, box.height() - 24), 2, 2);

    QRect inside = rect().adjusted(kPadding + kAccentBar, kPadding - 2, -kPadding, -kPadding + 2);
    QFont bold = font();
    bold.setBold(true);
    bold.setPointSizeF(font().pointSizeF() * 1.12);
    painter.setFont(bold);
    painter.setPen(palette.text);
    const int title = QFontMetrics(bold).height();
    painter.drawText(QRect(inside.left(), inside.top(), inside.width(), title), Qt::AlignLeft | Qt::AlignVCenter, text());
    painter.setFont(font());
    painter.setPen(palette.textMuted);
    const int line = fontMetrics().height();
    painter.drawText(QRect(inside.left(), inside.top() + title + 6, inside.width(), inside.height() - title - line - 8),
        Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, QString::fromStdString(m_sample.about));
    QFont small = font();
    small.setPointSizeF(font().pointSizeF() * 0.86);
    painter.setFont(small);
    const QString on = tr("%1 × %2 · %3")
                           .arg(m_sample.devices)
                           .arg(QString::fromStdString(m_sample.cluster),
                               QString::fromStdString(m_sample.gallery.substr(0, m_sample.gallery.find(':'))));
    painter.setPen(palette.accent);
    painter.drawText(QRect(inside.left(), inside.bottom() - line + 1, inside.width(), line), Qt::AlignLeft | Qt::AlignVCenter, on);
}

void SampleCard::enterEvent(QEnterEvent *event)
{
    QAbstractButton::enterEvent(event);
    update();
}

void SampleCard::leaveEvent(QEvent *event)
{
    QAbstractButton::leaveEvent(event);
    update();
}

StartPage::StartPage(QWidget *parent) : QScrollArea(parent)
{
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    auto *page = new QWidget(this);
    auto *column = new QWidget(page);
    column->setMaximumWidth(1020);
    auto *layout = new QVBoxLayout(column);
    layout->setSpacing(10);
    layout->addStretch(1);
    layout->addWidget(label(QStringLiteral("Planloom"), 2.4, false, column));
    layout->addWidget(label(tr("Design how a neural network is trained on many devices: what is split, where it runs, and in "
                               "what order."),
        1.1, true, column));
    m_notice = label({}, 1.0, false, column);
    m_notice->hide();
    layout->addWidget(m_notice);
    layout->addSpacing(16);

    auto *row = new QHBoxLayout;
    auto *open = new QPushButton(tr("Open model or session…"), column);
    open->setDefault(true);
    row->addWidget(open);
    auto *spec = new QLineEdit(column);
    spec->setPlaceholderText(tr("or a model of the zoo: zoo:gpt?layers=24&hidden=1024&heads=16"));
    spec->setAccessibleName(tr("Model of the zoo"));
    row->addWidget(spec, 1);
    layout->addLayout(row);
    layout->addWidget(label(tr("You can also drop an .onnx file or a session anywhere on this window."), 0.92, true, column));
    layout->addSpacing(18);
    layout->addWidget(label(tr("Samples"), 1.45, false, column));

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
    layout->addStretch(2);

    auto *across = new QHBoxLayout(page);
    across->setContentsMargins(32, 24, 32, 24);
    across->addStretch(1);
    across->addWidget(column, 100);
    across->addStretch(1);
    setWidget(page);
    connect(open, &QPushButton::clicked, this, &StartPage::openAsked);
    connect(spec, &QLineEdit::returnPressed, this, [this, spec] {
        if (!spec->text().trimmed().isEmpty())
            Q_EMIT specEntered(spec->text().trimmed());
    });
}

void StartPage::setNotice(const QString &text, bool error)
{
    const Palette &palette = paletteFor(*this);
    QPalette colours = m_notice->palette();
    colours.setColor(QPalette::WindowText, error ? palette.error : palette.accent);
    m_notice->setPalette(colours);
    m_notice->setText(text);
    m_notice->setVisible(!text.isEmpty());
}

} // namespace planloom
