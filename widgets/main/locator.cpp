#include "widgets/main/locator.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QApplication>
#include <QtWidgets/QGraphicsDropShadowEffect>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListView>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/common/themed_icon.h"
#include "widgets/design/gesture_host.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kVisibleRows = 11;

const char *iconOf(LocatorKind kind)
{
    switch (kind) {
    case LocatorKind::Command:
        return "command";
    case LocatorKind::Write:
        return "write";
    case LocatorKind::Operator:
        return "operator";
    case LocatorKind::Row:
        return "row";
    case LocatorKind::Time:
        return "time";
    case LocatorKind::Device:
        return "device";
    case LocatorKind::Select:
        return "select";
    }
    return "command";
}

/// Icon, title, detail behind it, shortcut at the right.
class LocatorDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &) const override
    {
        return {100, option.fontMetrics.height() * 8 / 5};
    }

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const Palette &palette = paletteFor(*option.widget);
        const bool current = option.state & QStyle::State_Selected;
        const bool enabled = index.flags() & Qt::ItemIsEnabled;
        const QFontMetrics &metrics = option.fontMetrics;
        const int space = metrics.height() / 2;
        painter->fillRect(option.rect, current ? palette.accent : palette.surface);
        const QColor ink = current ? readableOn(palette.accent) : enabled ? palette.text : palette.textMuted;
        const QColor muted = current ? ink : palette.textMuted;
        QRect rest = option.rect.adjusted(space, 0, -space, 0);
        const int icon = metrics.height();
        index.data(Qt::DecorationRole)
            .value<QIcon>()
            .paint(painter, QRect(rest.left(), rest.center().y() - icon / 2, icon, icon), Qt::AlignCenter,
                current ? QIcon::Selected : QIcon::Normal);
        rest.setLeft(rest.left() + icon + space);
        painter->setFont(option.font);
        if (const QString keys = index.data(LocatorModel::KeysRole).toString(); !keys.isEmpty()) {
            const int width = metrics.horizontalAdvance(keys);
            painter->setPen(muted);
            painter->drawText(QRect(rest.right() - width + 1, rest.top(), width, rest.height()),
                Qt::AlignVCenter | Qt::AlignRight, keys);
            rest.setRight(rest.right() - width - 2 * space);
        }
        const QString title = metrics.elidedText(index.data().toString(), Qt::ElideMiddle, rest.width());
        painter->setPen(ink);
        painter->drawText(rest, Qt::AlignVCenter | Qt::AlignLeft, title);
        rest.setLeft(rest.left() + metrics.horizontalAdvance(title) + 2 * space);
        if (rest.width() > 3 * space) {
            painter->setPen(muted);
            painter->drawText(rest, Qt::AlignVCenter | Qt::AlignLeft,
                metrics.elidedText(
                    index.data(LocatorModel::DetailRole).toString(), Qt::ElideRight, rest.width()));
        }
    }
};

} // namespace

void LocatorModel::setEntries(std::vector<LocatorEntry> entries)
{
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
}

int LocatorModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

QVariant LocatorModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const LocatorEntry &entry = m_entries[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return entry.title;
    case Qt::ToolTipRole:
        return entry.detail;
    case Qt::DecorationRole:
        return themedIcon(QLatin1String(iconOf(entry.kind)));
    case DetailRole:
        return entry.detail;
    case KeysRole:
        return entry.keys;
    case Qt::AccessibleTextRole:
        return QStringLiteral("%1, %2 %3").arg(entry.title, entry.detail, entry.keys).trimmed();
    default:
        return {};
    }
}

Qt::ItemFlags LocatorModel::flags(const QModelIndex &index) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return Qt::NoItemFlags;
    Qt::ItemFlags flags = Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
    if (m_entries[static_cast<std::size_t>(index.row())].enabled)
        flags |= Qt::ItemIsEnabled;
    return flags;
}

Locator::Locator(GestureHost *host, std::function<LocatorSources()> sources, QWidget *parent)
    : QFrame(parent)
    , m_host(host)
    , m_collect(std::move(sources))
    , m_line(new QLineEdit(this))
    , m_list(new QListView(this))
    , m_hint(new QLabel(this))
    , m_model(new LocatorModel(this))
{
    setObjectName(QStringLiteral("locator"));
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    m_pool.setMaxThreadCount(1);
    m_line->setClearButtonEnabled(true);
    m_list->setModel(m_model);
    m_list->setItemDelegate(new LocatorDelegate(m_list));
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setUniformItemSizes(true);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setAccessibleName(tr("Results"));
    m_hint->setForegroundRole(QPalette::PlaceholderText);
    m_hint->setText(tr("@ operator   = selector   # row   : time   d device   > command   or type a row: "
                       "split k by 4 where fc1"));
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->addWidget(m_line);
    layout->addWidget(m_list, 1);
    layout->addWidget(m_hint);
    m_line->installEventFilter(this);
    parent->installEventFilter(this);
    connect(m_line, &QLineEdit::textEdited, this, &Locator::search);
    connect(m_list, &QListView::clicked, this, &Locator::choose);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &Locator::take);
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, &Locator::onCurrent);
    hide();
}

Locator::~Locator()
{
    m_stop.request_stop();
}

void Locator::open(bool commandsOnly, const QString &text, int selectFrom, int selectLength)
{
    m_before = QApplication::focusWidget();
    m_enterWhenFound = false;
    const LocatorNamesSnapshot names = m_sources.names;
    m_sources = m_collect();
    m_sources.names = names;
    m_sources.commandsOnly = commandsOnly;
    m_line->setPlaceholderText(commandsOnly ? tr("Type a command, or a row")
                                            : tr("Go to an operator, a row, a time, a device, a command"));
    m_line->setAccessibleName(commandsOnly ? tr("Command Palette") : tr("Go to Anything"));
    m_line->setText(text);
    if (selectFrom >= 0)
        m_line->setSelection(
            selectFrom, selectLength < 0 ? static_cast<int>(text.size()) - selectFrom : selectLength);
    m_model->setEntries({});
    place();
    show();
    raise();
    m_line->setFocus(Qt::PopupFocusReason);
    search();
}

void Locator::close()
{
    if (isHidden())
        return;
    m_stop.request_stop();
    m_busy = false;
    if (m_previewing)
        m_host->endPreview();
    m_previewing = false;
    const bool mine = isAncestorOf(QApplication::focusWidget());
    hide();
    if (mine && m_before)
        m_before->setFocus(Qt::PopupFocusReason);
}

void Locator::place()
{
    const QWidget *window = parentWidget();
    const int width = std::min(window->width() - 24, fontMetrics().averageCharWidth() * 110);
    const int shown = std::clamp(m_model->rowCount(), 3, kVisibleRows);
    const int rows = fontMetrics().height() * 8 / 5 * shown;
    const int height = rows + m_line->sizeHint().height() + m_hint->sizeHint().height() + 40;
    setGeometry((window->width() - width) / 2, std::min(48, window->height() / 12), width,
        std::min(height, window->height() - 60));
}

void Locator::search()
{
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_busy = true;
    m_watcher.setFuture(
        QtConcurrent::run(&m_pool, [sources = m_sources, text = m_line->text(), stop = m_stop.get_token()] {
            return searchLocator(sources, text, stop);
        }));
}

void Locator::take()
{
    if (isHidden() || m_watcher.future().resultCount() == 0)
        return;
    const LocatorResults results = m_watcher.result();
    if (results.text != m_line->text())
        return;
    m_busy = false;
    m_sources.names = results.names;
    m_model->setEntries(results.entries);
    place();
    int first = 0;
    while (first < m_model->rowCount() && !m_model->entries()[static_cast<std::size_t>(first)].enabled
        && m_model->entries()[static_cast<std::size_t>(first)].kind != LocatorKind::Write)
        ++first;
    m_list->setCurrentIndex(m_model->index(first < m_model->rowCount() ? first : 0));
    if (m_model->rowCount() == 0)
        onCurrent();
    if (std::exchange(m_enterWhenFound, false))
        choose(m_list->currentIndex());
}

/// A row that is typed in full is shown as a ghost.
void Locator::onCurrent()
{
    const QModelIndex index = m_list->currentIndex();
    const LocatorEntry *entry =
        index.isValid() ? &m_model->entries()[static_cast<std::size_t>(index.row())] : nullptr;
    if (entry && entry->kind == LocatorKind::Write && entry->proposal && entry->enabled) {
        m_previewing = true;
        m_host->preview(*entry->proposal);
    } else if (m_previewing) {
        m_previewing = false;
        m_host->endPreview();
    }
}

void Locator::choose(const QModelIndex &index)
{
    if (!index.isValid())
        return;
    const LocatorEntry entry = m_model->entries()[static_cast<std::size_t>(index.row())];
    if (!entry.enabled)
        return; // its line says why
    if (entry.kind == LocatorKind::Write) {
        m_previewing = false; // commit ends it
        m_host->commit(*entry.proposal);
    }
    close();
    Q_EMIT chosen(entry);
}

void Locator::move(int rows)
{
    const int count = m_model->rowCount();
    if (count == 0)
        return;
    const int now = std::max(0, m_list->currentIndex().row());
    const int next =
        std::abs(rows) == 1 ? (now + rows + count) % count : std::clamp(now + rows, 0, count - 1);
    m_list->setCurrentIndex(m_model->index(next));
    m_list->scrollTo(m_model->index(next));
}

bool Locator::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parentWidget()) {
        if (event->type() == QEvent::Resize && isVisible())
            place();
        return false;
    }
    if (event->type() == QEvent::FocusOut && isVisible()
        && static_cast<QFocusEvent *>(event)->reason() != Qt::ActiveWindowFocusReason
        && static_cast<QFocusEvent *>(event)->reason() != Qt::PopupFocusReason) {
        close();
        return false;
    }
    if (event->type() == QEvent::ShortcutOverride
        && static_cast<QKeyEvent *>(event)->key() == Qt::Key_Escape) {
        event->accept();
        return true;
    }
    if (event->type() != QEvent::KeyPress)
        return false;
    switch (static_cast<QKeyEvent *>(event)->key()) {
    case Qt::Key_Escape:
        close();
        return true;
    case Qt::Key_Up:
        move(-1);
        return true;
    case Qt::Key_Down:
        move(1);
        return true;
    case Qt::Key_PageUp:
        move(-kVisibleRows + 1);
        return true;
    case Qt::Key_PageDown:
        move(kVisibleRows - 1);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_busy)
            m_enterWhenFound = true;
        else
            choose(m_list->currentIndex());
        return true;
    default:
        return false;
    }
}

void Locator::changeEvent(QEvent *event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::FontChange && isVisible())
        place();
}

} // namespace planloom

#include "moc_locator.cpp"
