#include "widgets/main/notice_bar.h"

#include <QtGui/QPainter>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/common/themed_icon.h"

namespace planloom {

namespace {

const char *iconOf(NoticeKind kind)
{
    switch (kind) {
    case NoticeKind::Info:
        return "info";
    case NoticeKind::Warning:
        return "warning";
    case NoticeKind::Error:
        return "error";
    }
    return "info";
}

QColor colourOf(const Palette &palette, NoticeKind kind)
{
    switch (kind) {
    case NoticeKind::Info:
        return palette.accent;
    case NoticeKind::Warning:
        return palette.warning;
    case NoticeKind::Error:
        return palette.error;
    }
    return palette.accent;
}

} // namespace

/// One notice.
class NoticeBar::Strip : public QWidget
{
public:
    Strip(const Notice &notice, NoticeBar *bar)
        : QWidget(bar)
        , m_kind(notice.kind)
        , m_actions(notice.actions)
    {
        auto *row = new QHBoxLayout(this);
        const int space = fontMetrics().height() / 2;
        row->setContentsMargins(2 * space, space / 2, space, space / 2);
        row->setSpacing(space);
        auto *icon = new QLabel(this);
        const int size = fontMetrics().height() * 5 / 4;
        icon->setPixmap(themedIcon(QLatin1String(iconOf(notice.kind))).pixmap(size));
        row->addWidget(icon);
        m_text = new QLabel(notice.text, this);
        m_text->setWordWrap(true);
        m_text->setTextFormat(Qt::PlainText);
        m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
        m_inside = new QBoxLayout(QBoxLayout::LeftToRight);
        m_inside->setSpacing(space);
        m_inside->addWidget(m_text, 1);
        row->addLayout(m_inside, 1);
        if (!m_actions.empty()) {
            m_deeds = new QWidget(this);
            m_inside->addWidget(m_deeds);
        }
        auto *deeds = m_deeds ? new QHBoxLayout(m_deeds) : nullptr;
        if (deeds) {
            deeds->setContentsMargins(0, 0, 0, 0);
            deeds->setSpacing(space);
        }
        for (std::size_t i = 0; i < m_actions.size(); ++i) {
            auto *button = new QPushButton(m_actions[i].text, this);
            button->setAutoDefault(true);
            connect(button, &QPushButton::clicked, bar, [this, bar, i, id = notice.id] {
                const NoticeAction action = m_actions[i]; // the strip may go first
                if (!action.keeps)
                    bar->dismiss(id);
                if (action.act)
                    action.act();
            });
            deeds->addWidget(button);
            m_buttons.push_back(button);
        }
        if (deeds)
            deeds->addStretch();
        if (notice.closable) {
            auto *close = new QToolButton(this);
            close->setAutoRaise(true);
            close->setIcon(themedIcon(QStringLiteral("close")));
            close->setAccessibleName(NoticeBar::tr("Dismiss this notice"));
            close->setToolTip(NoticeBar::tr("Dismiss"));
            close->setFocusPolicy(Qt::TabFocus);
            connect(close, &QToolButton::clicked, bar, [bar, id = notice.id] { bar->dismiss(id); });
            row->addWidget(close);
        }
        setAccessibleName(notice.text);
    }

    /// Takes another text and other deeds for the same buttons. @return false if the buttons are others
    bool renew(const Notice &notice)
    {
        if (notice.kind != m_kind || notice.actions.size() != m_actions.size())
            return false;
        for (std::size_t i = 0; i < m_actions.size(); ++i) {
            if (m_actions[i].text != notice.actions[i].text)
                return false;
        }
        m_actions = notice.actions;
        m_text->setText(notice.text);
        setAccessibleName(notice.text);
        placeDeeds();
        return true;
    }

    QLabel *text() const { return m_text; }
    const std::vector<QPushButton *> &buttons() const { return m_buttons; }

protected:
    void paintEvent(QPaintEvent *) override
    {
        QPainter painter(this);
        const Palette &palette = paletteFor(*this);
        const QColor colour = colourOf(palette, m_kind);
        painter.fillRect(
            rect(), palette.highContrast ? palette.surface : mixed(palette.surface, colour, 0.08));
        painter.fillRect(QRect(0, 0, 4, height()), colour);
        painter.fillRect(QRect(0, height() - 1, width(), 1), palette.grid);
    }

    void resizeEvent(QResizeEvent *) override { placeDeeds(); }

private:
    /// Below the text, where beside it they would leave it too narrow a column.
    void placeDeeds()
    {
        constexpr int kMostLines = 2;
        if (!m_deeds)
            return;
        const int beside = width() - m_deeds->sizeHint().width() - 6 * fontMetrics().height();
        const bool isNarrow = m_text->fontMetrics().horizontalAdvance(m_text->text()) > kMostLines * beside;
        m_inside->setDirection(isNarrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    }

    NoticeKind m_kind;
    std::vector<NoticeAction> m_actions;
    QLabel *m_text;
    QBoxLayout *m_inside; ///< The text and the deeds.
    QWidget *m_deeds = nullptr; ///< Null where there are none.
    std::vector<QPushButton *> m_buttons;
};

NoticeBar::NoticeBar(QWidget *parent)
    : QWidget(parent)
    , m_layout(new QVBoxLayout(this))
{
    setObjectName(QStringLiteral("noticeBar"));
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
}

void NoticeBar::show(Notice notice)
{
    const auto shown = m_strips.find(notice.id);
    if (shown != m_strips.end() && shown->second->renew(notice))
        return; // a button that is being pressed stays
    dismiss(notice.id);
    auto *strip = new Strip(notice, this);
    m_strips[notice.id] = strip;
    m_layout->addWidget(strip);
}

void NoticeBar::dismiss(const QString &id)
{
    const auto shown = m_strips.find(id);
    if (shown == m_strips.end())
        return;
    shown->second->hide();
    shown->second->deleteLater();
    m_strips.erase(shown);
}

QString NoticeBar::textOf(const QString &id) const
{
    const auto shown = m_strips.find(id);
    return shown == m_strips.end() ? QString() : shown->second->text()->text();
}

QPushButton *NoticeBar::button(const QString &id, const QString &text) const
{
    const auto shown = m_strips.find(id);
    if (shown == m_strips.end())
        return nullptr;
    for (QPushButton *button : shown->second->buttons()) {
        if (button->text() == text)
            return button;
    }
    return nullptr;
}

} // namespace planloom

#include "moc_notice_bar.cpp"
