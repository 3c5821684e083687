#include "widgets/frame/dock_board.h"

#include <QtCore/QDataStream>
#include <QtCore/QEvent>
#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QStyle>
#include <QtWidgets/QVBoxLayout>

#include "widgets/frame/settings.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr int kGather = 300; ///< ms
constexpr QSize kMostLeastSize{300, 60};
constexpr double kLeftShare = 0.18;
constexpr double kRightShare = 0.22;
constexpr double kFoldedShare = 0.3; ///< Of one column instead of two.
constexpr quint32 kFoldedMark = 0x464f4c44; ///< Before what is remembered of folded docks.
const QString kOwnKey = QStringLiteral("perspectives/");

/// Holds a dock's panel, and its room while it is hidden.
class DockContent : public QWidget
{
public:
    explicit DockContent(QWidget *panel)
        : m_panel(panel)
    {
        auto *layout = new QVBoxLayout(this);
        layout->setContentsMargins(0, 0, 0, 0);
        layout->setSizeConstraint(QLayout::SetNoConstraint);
        layout->addWidget(panel);
    }
    QSize sizeHint() const override { return m_panel->sizeHint(); }
    QSize minimumSizeHint() const override
    {
        // No more of a large panel: those behind tabs count too, and would make the window larger than a
        // small screen.
        return m_panel->minimumSizeHint().expandedTo(m_panel->minimumSize()).boundedTo(kMostLeastSize);
    }

private:
    QWidget *m_panel;
};

} // namespace

DockBoard::DockBoard(QMainWindow *window, std::shared_ptr<Settings> settings, QObject *parent)
    : QObject(parent)
    , m_window(window)
    , m_settings(std::move(settings))
{
    m_window->setDockNestingEnabled(true);
    m_window->setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
    m_window->setTabPosition(Qt::LeftDockWidgetArea, QTabWidget::North);
    m_window->setTabPosition(Qt::RightDockWidgetArea, QTabWidget::North);
    m_window->setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window->setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    m_window->installEventFilter(this);
    m_resized.setSingleShot(true);
    m_resized.setInterval(0); // not amid what else a new size leads to
    connect(&m_resized, &QTimer::timeout, this, &DockBoard::foldOrUnfold);
    m_changed.setSingleShot(true);
    m_changed.setInterval(kGather);
    connect(&m_changed, &QTimer::timeout, this, [this] {
        if (m_shown)
            Q_EMIT layoutChanged();
    });
}

QDockWidget *DockBoard::add(const QString &title, const char *name, QWidget *widget, Qt::DockWidgetArea area,
    QWidget *focus, bool below)
{
    auto *dock = new QDockWidget(title, m_window);
    dock->setObjectName(QLatin1String(name));
    dock->setWidget(new DockContent(widget));
    dock->setAllowedAreas(Qt::LeftDockWidgetArea | Qt::RightDockWidgetArea | Qt::BottomDockWidgetArea);
    dock->toggleViewAction()->setObjectName(QStringLiteral("view.dock.%1").arg(QLatin1String(name)));
    m_window->addAction(dock->toggleViewAction());
    if (!widget->objectName().isEmpty() && widget->accessibleName().isEmpty())
        widget->setAccessibleName(title);
    m_places.push_back({dock, area, widget, focus ? focus : widget, below});
    m_docks.push_back(dock);
    const auto changed = [this] {
        if (!m_changed.isActive())
            m_changed.start();
    };
    connect(dock, &QDockWidget::dockLocationChanged, this, changed);
    connect(dock, &QDockWidget::topLevelChanged, this, [this, changed] {
        limitSizes();
        changed();
    });
    // What is behind another tab is out of sight, but visible to Qt: Tab would lead into it, and it would go
    // on painting.
    connect(dock, &QDockWidget::visibilityChanged, widget, [this, dock, widget](bool visible) {
        const bool hadFocus = !visible && widget->isAncestorOf(QApplication::focusWidget());
        widget->setVisible(visible);
        if (hadFocus)
            passFocusOn(dock);
    });
    connect(dock, &QDockWidget::visibilityChanged, this, changed);
    return dock;
}

QDockWidget *DockBoard::find(const QString &name) const
{
    const auto found = std::find_if(m_docks.begin(), m_docks.end(),
        [&name](const QDockWidget *dock) { return dock->objectName() == name; });
    return found == m_docks.end() ? nullptr : *found;
}

void DockBoard::reveal(const QString &name, bool focus)
{
    const auto place = std::find_if(m_places.begin(), m_places.end(),
        [&name](const Place &candidate) { return candidate.dock->objectName() == name; });
    if (place == m_places.end() || !m_shown)
        return;
    place->dock->show();
    place->dock->raise();
    place->panel->show();
    if (focus && place->focus)
        place->focus->setFocus(Qt::ShortcutFocusReason);
}

/// To the dock whose tab came to the front in the place of `gone`; not before both know of it.
void DockBoard::passFocusOn(QDockWidget *gone)
{
    const QPointer<QWidget> interim = QApplication::focusWidget();
    QTimer::singleShot(0, gone, [this, gone, interim] {
        if (QApplication::focusWidget() != interim)
            return; // somebody knew better
        const auto beside = m_window->tabifiedDockWidgets(gone);
        for (const Place &place : m_places) {
            if (beside.contains(place.dock) && place.panel->isVisible() && place.focus)
                place.focus->setFocus(Qt::OtherFocusReason);
        }
    });
}

void DockBoard::revealHolderOf(const QWidget *widget)
{
    for (const QDockWidget *dock : m_docks) {
        if (dock->isAncestorOf(widget)) {
            reveal(dock->objectName(), false);
            return;
        }
    }
}

void DockBoard::setTitle(const QString &name, const QString &title)
{
    if (QDockWidget *dock = find(name))
        dock->setWindowTitle(title);
}

void DockBoard::addPerspective(Perspective perspective)
{
    if (m_current.isEmpty())
        m_current = perspective.id;
    m_perspectives.push_back(std::move(perspective));
}

QStringList DockBoard::ownPerspectives() const
{
    QStringList names = m_settings->keysUnder(kOwnKey);
    names.sort(Qt::CaseInsensitive);
    return names;
}

void DockBoard::saveOwn(const QString &name)
{
    const QString plain = name.trimmed().replace(QLatin1Char('/'), QLatin1Char('-'));
    if (plain.isEmpty())
        return;
    m_settings->setValue(kOwnKey + plain, state());
    m_current = plain;
    Q_EMIT perspectivesChanged();
    Q_EMIT currentChanged(m_current);
}

void DockBoard::removeOwn(const QString &name)
{
    m_settings->setValue(kOwnKey + name, {});
    Q_EMIT perspectivesChanged();
}

/// All docks where they belong: the left ones below each other, the others as tabs.
void DockBoard::arrange()
{
    QDockWidget *first[3] = {nullptr, nullptr, nullptr};
    QDockWidget *last[3] = {nullptr, nullptr, nullptr};
    for (const Place &place : m_places) {
        place.dock->setFloating(false);
        const std::size_t side = place.area == Qt::LeftDockWidgetArea ? 0
            : place.area == Qt::RightDockWidgetArea                   ? 1
                                                                      : 2;
        m_window->addDockWidget(place.area, place.dock);
        if (last[side] && place.below)
            m_window->splitDockWidget(last[side], place.dock, Qt::Vertical);
        else if (last[side])
            m_window->tabifyDockWidget(last[side], place.dock);
        if (!first[side])
            first[side] = place.dock;
        last[side] = place.dock;
    }
    const int width = m_window->width();
    if (first[0] && first[1]) {
        m_window->resizeDocks({first[0], first[1]},
            {std::min(260, static_cast<int>(width * kLeftShare)),
                std::min(360, static_cast<int>(width * kRightShare))},
            Qt::Horizontal);
    }
    QList<QDockWidget *> left;
    QList<int> heights;
    for (const Place &place : m_places) {
        if (place.area == Qt::LeftDockWidgetArea && (place.below || place.dock == first[0])) {
            left.append(place.dock);
            // The gallery's form needs more room than a tree that folds.
            heights.append(
                place.dock == first[0] ? m_window->height() * 3 / 10 : m_window->height() * 6 / 10);
        }
    }
    m_window->resizeDocks(left, heights, Qt::Vertical);
}

void DockBoard::show(const Perspective &perspective)
{
    for (QDockWidget *dock : m_docks)
        dock->setVisible(perspective.docks.contains(dock->objectName()));
    for (const QString &name : perspective.front) {
        if (QDockWidget *dock = find(name))
            dock->raise();
    }
    if (QDockWidget *lower = lowerDock()) {
        const auto known = m_lowerHeights.find(perspective.id);
        const int height = known != m_lowerHeights.end()
            ? known->second
            : static_cast<int>(m_window->height() * perspective.lowerShare);
        m_window->resizeDocks({lower}, {height}, Qt::Vertical);
    }
}

QStringList DockBoard::open() const
{
    QStringList names;
    for (const QDockWidget *dock : m_docks)
        if (!dock->isHidden())
            names.append(dock->objectName());
    return names;
}

void DockBoard::openOnly(const QStringList &names)
{
    for (QDockWidget *dock : m_docks)
        dock->setVisible(names.contains(dock->objectName()));
}

void DockBoard::foldOrUnfold()
{
    const bool narrow = m_window->width() < kWide;
    if (!m_shown || narrow == m_folded)
        return;
    narrow ? fold() : unfold();
    limitSizes();
}

void DockBoard::fold()
{
    m_unfolded = m_window->saveState(kVersion);
    m_folded = true;
    const QStringList shown = open();
    QDockWidget *last = nullptr;
    for (const Place &place : m_places) { // those of the right come last, and to the front
        const bool aside = m_window->dockWidgetArea(place.dock) == Qt::LeftDockWidgetArea
            || m_window->dockWidgetArea(place.dock) == Qt::RightDockWidgetArea;
        if (!aside || place.dock->isFloating())
            continue;
        m_window->addDockWidget(Qt::RightDockWidgetArea, place.dock);
        if (last)
            m_window->tabifyDockWidget(last, place.dock);
        last = place.dock;
    }
    openOnly(shown);
    limitSizes();
    for (const Place &place : m_places)
        if (last && place.area == Qt::RightDockWidgetArea && !place.dock->isHidden()) {
            place.dock->raise();
            m_window->resizeDocks(
                {place.dock}, {static_cast<int>(m_window->width() * kFoldedShare)}, Qt::Horizontal);
        }
}

/// As they lay before; what was closed or opened since then stays so.
void DockBoard::unfold()
{
    const QStringList shown = open();
    m_folded = false;
    m_window->restoreState(m_unfolded, kVersion);
    openOnly(shown);
}

QDockWidget *DockBoard::lowerDock() const
{
    const auto found = std::find_if(m_places.begin(), m_places.end(), [this](const Place &place) {
        return !place.dock->isHidden() && !place.dock->isFloating()
            && m_window->dockWidgetArea(place.dock) == Qt::BottomDockWidgetArea;
    });
    return found == m_places.end() ? nullptr : found->dock;
}

void DockBoard::rememberLowerHeight()
{
    if (!lowerDock() || !m_window->centralWidget())
        return;
    // From the centre to the status bar: a dock itself does not count the tabs above it.
    const int bottom = m_window->statusBar()->isVisible() ? m_window->statusBar()->y() : m_window->height();
    const int separator =
        m_window->style()->pixelMetric(QStyle::PM_DockWidgetSeparatorExtent, nullptr, m_window);
    const int height = bottom - m_window->centralWidget()->geometry().bottom() - 1 - separator;
    if (height > 0)
        m_lowerHeights[m_current] = height;
}

void DockBoard::apply(const QString &perspective)
{
    const auto found = std::find_if(m_perspectives.begin(), m_perspectives.end(),
        [&perspective](const Perspective &candidate) { return candidate.id == perspective; });
    if (m_shown && perspective != m_current)
        rememberLowerHeight();
    if (found != m_perspectives.end()) {
        m_current = perspective;
        if (m_shown)
            show(*found);
    } else {
        const QByteArray stored = m_settings->value(kOwnKey + perspective).toByteArray();
        if (stored.isEmpty() || !restore(stored))
            return;
        m_current = perspective;
    }
    limitSizes();
    Q_EMIT currentChanged(m_current);
}

void DockBoard::reset()
{
    const auto found = std::find_if(m_perspectives.begin(), m_perspectives.end(),
        [this](const Perspective &candidate) { return candidate.id == m_current; });
    if (found == m_perspectives.end() && !m_perspectives.empty())
        m_current = m_perspectives.front().id;
    if (!m_shown)
        return;
    m_lowerHeights.erase(m_current);
    m_folded = false;
    arrange();
    apply(m_current);
    foldOrUnfold();
}

void DockBoard::setShown(bool shown)
{
    if (shown == m_shown)
        return;
    if (!shown) {
        m_hidden = state();
        m_shown = false;
        for (QDockWidget *dock : m_docks)
            dock->hide();
        return;
    }
    m_shown = true;
    if (m_hidden.isEmpty() || !restore(std::exchange(m_hidden, {})))
        reset();
}

QByteArray DockBoard::state() const
{
    if (!m_shown)
        return m_hidden;
    if (!m_folded)
        return m_window->saveState(kVersion);
    QByteArray bytes;
    QDataStream stream(&bytes, QIODevice::WriteOnly);
    stream << kFoldedMark << m_unfolded << open();
    return bytes;
}

bool DockBoard::restore(const QByteArray &state)
{
    if (!m_shown) {
        m_hidden = state;
        return true;
    }
    QDataStream stream(state);
    quint32 mark = 0;
    QByteArray unfolded;
    QStringList shown;
    stream >> mark;
    if (mark == kFoldedMark)
        stream >> unfolded >> shown;
    if (mark != kFoldedMark || stream.status() != QDataStream::Ok)
        unfolded = state;
    if (!m_window->restoreState(unfolded, kVersion))
        return false;
    m_folded = false;
    if (!shown.isEmpty())
        openOnly(shown);
    foldOrUnfold();
    limitSizes();
    return true;
}

void DockBoard::recall(const QByteArray &state, const QString &perspective)
{
    const bool isKnown = ownPerspectives().contains(perspective)
        || std::any_of(m_perspectives.begin(), m_perspectives.end(),
            [&perspective](const Perspective &each) { return each.id == perspective; });
    if (!restore(state) || !isKnown || perspective == m_current)
        return;
    m_current = perspective;
    Q_EMIT currentChanged(m_current);
}

/// The centre keeps its share of the window, whatever the docks would like.
void DockBoard::limitSizes()
{
    const int wide = m_window->width();
    const int high = m_window->height();
    for (const Place &place : m_places) {
        if (place.dock->isFloating()) {
            place.dock->setMaximumSize(QWIDGETSIZE_MAX, QWIDGETSIZE_MAX);
            continue;
        }
        const Qt::DockWidgetArea area = m_window->dockWidgetArea(place.dock);
        const double share = m_folded        ? kFoldedShare
            : area == Qt::LeftDockWidgetArea ? kLeftShare
                                             : kRightShare;
        if (area == Qt::BottomDockWidgetArea)
            place.dock->setMaximumSize(
                QWIDGETSIZE_MAX, std::max(120, static_cast<int>(high * (1 - kCentreShare))));
        else
            place.dock->setMaximumSize(std::max(160, static_cast<int>(wide * share)), QWIDGETSIZE_MAX);
    }
}

bool DockBoard::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_window && event->type() == QEvent::Resize) {
        limitSizes();
        m_resized.start();
        if (!m_changed.isActive())
            m_changed.start();
    }
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_dock_board.cpp"
