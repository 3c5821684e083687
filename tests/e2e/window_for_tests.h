#pragma once

#include <QtCore/QMimeData>
#include <QtCore/QTemporaryDir>
#include <QtCore/QUrl>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QDragMoveEvent>
#include <QtGui/QDropEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>

#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/main/main_window.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

constexpr int kPatience = 15'000; ///< ms that something may take on a busy machine.

inline bool waitFor(const std::function<bool()> &done)
{
    return QTest::qWaitFor(done, kPatience);
}

constexpr const char *kSmallGpt = "zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8&fused=0";

/// The designer's window as a person meets it, with a folder of its own for sessions.
struct WindowForTests {
    explicit WindowForTests(const QString &sessions = {}) { open(sessions); }

    void open(const QString &sessions = {})
    {
        WindowServices services;
        services.settings = std::make_shared<Settings>();
        services.sessionFolder = sessions;
        services.recentFolder = sessions;
        window = std::make_unique<MainWindow>(services);
        window->resize(1600, 1000);
        window->show();
        window->activateWindow();
    }
    Workspace &workspace() { return window->workspace(); }
    const Workspace &workspace() const { return window->workspace(); }
    DagView *dag() const { return window->dag(); }
    TimelineView *timeline() const { return window->timeline(); }
    /// Nothing is under way, and the plan is that of the rows.
    bool settled() const
    {
        return window->isSettled() && workspace().latest() && workspace().latest()->final
            && !workspace().isStale();
    }
    const Graph &graph() const { return *workspace().model()->graph; }
    OperatorId named(const std::string &name) const
    {
        for (std::size_t i = 0; i < graph().operators.size(); ++i) {
            if (graph().operators[i].name == name)
                return OperatorId{static_cast<std::int32_t>(i)};
        }
        return {};
    }
    const OperatorDecision &decision(OperatorId op) const
    {
        return workspace().lastGood()->plan->decisions[static_cast<std::size_t>(op.index)];
    }

    std::unique_ptr<MainWindow> window;
};

/// A canvas' events.
inline void pressAt(QWidget *on, QPoint at, Qt::KeyboardModifiers held = {})
{
    QTest::mousePress(on, Qt::LeftButton, held, at);
}
inline void moveTo(QWidget *on, QPoint at, Qt::KeyboardModifiers held = {})
{
    QMouseEvent event(
        QEvent::MouseMove, QPointF(at), on->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::LeftButton, held);
    QApplication::sendEvent(on, &event);
}
inline void releaseAt(QWidget *on, QPoint at, Qt::KeyboardModifiers held = {})
{
    QTest::mouseRelease(on, Qt::LeftButton, held, at);
}
/// To whatever has the keyboard.
inline void key(QWidget *otherwise, int key, Qt::KeyboardModifiers held = {})
{
    if (QWidget *popup = QApplication::activePopupWidget()) {
        QTest::keyClick(popup, static_cast<Qt::Key>(key), held);
        // Both close what completes first, then act on what is being written.
        if ((key != Qt::Key_Escape && key != Qt::Key_Return) || QApplication::activePopupWidget())
            return;
    }
    QWidget *focus = QApplication::focusWidget();
    QTest::keyClick(focus ? focus : otherwise, static_cast<Qt::Key>(key), held);
}
inline void dropFile(QWidget *on, const QString &path)
{
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path)});
    QDragEnterEvent enter({300, 300}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(on, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop({300, 300}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(on, &drop);
}

// --- the DAG
// ---------------------------------------------------------------------------------------------------------

/// One copy of the layers stands for all, everything inside is open.
inline void openOneLayer(const WindowForTests &at)
{
    QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled() && at.dag()->picture(), kPatience);
    at.dag()->expandAll();
    QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled(), kPatience);
    const auto picture = at.dag()->picture();
    for (std::size_t item = 0; item < picture->outline->items.size(); ++item) {
        if (picture->outline->items[item].kind == OutlineItem::Kind::Stack)
            at.dag()->toggleCopies(static_cast<std::int32_t>(item));
    }
    QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled(), kPatience);
}
inline std::int32_t boxOf(const WindowForTests &at, const std::string &name)
{
    const auto picture = at.dag()->picture();
    const auto unit = picture->outline->unitOfOperator[static_cast<std::size_t>(at.named(name).index)];
    return unit < 0 ? -1 : picture->visible.boxOfUnit[static_cast<std::size_t>(unit)];
}
inline QPoint middleOf(const WindowForTests &at, std::int32_t box)
{
    return at.dag()->viewRect(box).center().toPoint();
}
/// Brings an operator into the middle of the canvas, and clicks on it.
inline std::int32_t selectOperator(const WindowForTests &at, const std::string &name)
{
    at.dag()->setFocus();
    at.dag()->showOperator(at.named(name));
    [&] { QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled(), kPatience); }();
    const std::int32_t box = boxOf(at, name);
    at.dag()->zoomBy(1.0 / at.dag()->camera().scale);
    const QPointF off = QRectF(at.dag()->rect()).center() - at.dag()->viewRect(box).center();
    at.dag()->panBy(off.x(), off.y());
    QTest::mouseClick(at.dag(), Qt::LeftButton, {}, middleOf(at, box));
    return box;
}
/// The last chip on the bottom edge that can be split.
inline std::int32_t freeChip(const WindowForTests &at)
{
    const auto &chips = at.dag()->gestures().chips();
    for (std::size_t i = chips.size(); i-- > 0;) {
        if (chips[i].output && chips[i].locked.empty() && chips[i].size >= 8)
            return static_cast<std::int32_t>(i);
    }
    return -1;
}
inline QPoint chipAt(const WindowForTests &at, std::int32_t chip)
{
    return at.dag()->gestures().chipRect(chip).center().toPoint();
}

} // namespace planloom
