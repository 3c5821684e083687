#include "widgets/main/shortcut_sheet.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QVBoxLayout>

#include "widgets/main/command_registry.h"

#include <algorithm>
#include <map>
#include <vector>

namespace planloom {

ShortcutSheet::ShortcutSheet(CommandRegistry *registry, QWidget *parent)
    : QFrame(parent)
    , m_registry(registry)
    , m_filter(new QLineEdit(this))
    , m_area(new QScrollArea(this))
{
    setObjectName(QStringLiteral("shortcutSheet"));
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setAccessibleName(tr("Shortcuts"));
    m_filter->setPlaceholderText(tr("Shortcuts: type to filter, Escape to leave"));
    m_filter->setAccessibleName(tr("Filter shortcuts"));
    m_area->setWidgetResizable(true);
    m_area->setFrameShape(QFrame::NoFrame);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(m_filter);
    layout->addWidget(m_area, 1);
    m_filter->installEventFilter(this);
    parent->installEventFilter(this);
    connect(m_filter, &QLineEdit::textChanged, this, &ShortcutSheet::fill);
    hide();
}

void ShortcutSheet::open()
{
    m_before = QApplication::focusWidget();
    m_filter->clear();
    m_registry->rescan();
    place();
    fill();
    show();
    raise();
    m_filter->setFocus(Qt::PopupFocusReason);
}

void ShortcutSheet::close()
{
    if (isHidden())
        return;
    hide();
    if (m_before)
        m_before->setFocus(Qt::PopupFocusReason);
}

void ShortcutSheet::place()
{
    const QRect all = parentWidget()->rect();
    const int margin = fontMetrics().height() * 2;
    setGeometry(all.adjusted(margin, margin * 2, -margin, -margin));
}

void ShortcutSheet::fill()
{
    const QString wanted = m_filter->text().trimmed();
    std::vector<std::pair<QString, std::vector<std::pair<QString, QString>>>> groups;
    m_text.clear();
    for (const Command &command : m_registry->commands()) {
        if (!command.action || command.action->shortcuts().isEmpty() || command.action->shortcut().isEmpty())
            continue;
        const QString name = CommandRegistry::plainText(*command.action).section(QLatin1Char('\t'), 0, 0);
        QStringList keys;
        for (const QKeySequence &sequence : command.action->shortcuts())
            keys.append(sequence.toString(QKeySequence::NativeText));
        const QString all = keys.join(QStringLiteral(", "));
        if (!wanted.isEmpty() && !name.contains(wanted, Qt::CaseInsensitive)
            && !all.contains(wanted, Qt::CaseInsensitive)
            && !command.category.contains(wanted, Qt::CaseInsensitive))
            continue;
        auto group = std::find_if(
            groups.begin(), groups.end(), [&](const auto &known) { return known.first == command.category; });
        if (group == groups.end())
            group = groups.insert(groups.end(), {command.category, {}});
        group->second.emplace_back(name, all);
        m_text +=
            command.category + QStringLiteral(": ") + name + QLatin1Char('\t') + all + QLatin1Char('\n');
    }
    const int columns = std::max(1, width() / (fontMetrics().averageCharWidth() * 52));
    auto *page = new QWidget(m_area);
    auto *across = new QHBoxLayout(page);
    std::vector<QVBoxLayout *> down;
    std::vector<std::size_t> filled(static_cast<std::size_t>(columns), 0);
    for (int column = 0; column < columns; ++column) {
        down.push_back(new QVBoxLayout);
        across->addLayout(down.back(), 1);
    }
    for (const auto &[category, lines] : groups) {
        QString html = QStringLiteral("<b>%1</b><table width='100%'>").arg(category.toHtmlEscaped());
        for (const auto &[name, keys] : lines)
            html += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align='right'><b>%2</b></td></tr>")
                        .arg(name.toHtmlEscaped(), keys.toHtmlEscaped());
        auto *label = new QLabel(html + QStringLiteral("</table>"), page);
        label->setTextFormat(Qt::RichText);
        label->setAlignment(Qt::AlignTop);
        const auto least =
            static_cast<std::size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
        down[least]->addWidget(label);
        filled[least] += lines.size() + 2;
    }
    if (groups.empty())
        down.front()->addWidget(new QLabel(tr("No shortcut fits \"%1\".").arg(wanted), page));
    for (QVBoxLayout *column : down)
        column->addStretch(1);
    m_area->setWidget(page);
}

bool ShortcutSheet::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parentWidget()) {
        if (event->type() == QEvent::Resize && isVisible()) {
            place();
            fill();
        }
        if (event->type() == QEvent::MouseButtonPress && isVisible())
            close();
        return false;
    }
    if (event->type() == QEvent::ShortcutOverride
        && static_cast<QKeyEvent *>(event)->key() == Qt::Key_Escape) {
        event->accept();
        return true;
    }
    if (event->type() == QEvent::KeyPress && static_cast<QKeyEvent *>(event)->key() == Qt::Key_Escape) {
        close();
        return true;
    }
    return false;
}

} // namespace planloom

#include "moc_shortcut_sheet.cpp"
