#pragma once

#include <QtCore/QByteArray>
#include <QtCore/QObject>
#include <QtCore/QPointer>
#include <QtCore/QRect>
#include <QtGui/QFont>

#include "widgets/scenes/scene.h"

#include <functional>
#include <utility>
#include <vector>

class QMainWindow;
class QWidget;

namespace planloom {

/// What a window consists of, for who presents it.
struct PresentParts {
    QMainWindow *window = nullptr;
    QWidget *graph = nullptr; ///< Each canvas with what belongs to it.
    QWidget *timeline = nullptr;
    std::vector<QWidget *> canvases{}; ///< Whose type becomes larger: the graph's, the timeline's.
    std::vector<QWidget *> chrome{}; ///< Hidden while it presents.
    std::vector<QWidget *> bars{}; ///< Those that come and go by themselves: they have no height meanwhile.
    std::function<QByteArray()> dockState{};
    std::function<void(bool)> showDocks{};
    std::function<void(const QByteArray &)> restoreDocks{};
};

/// Takes a window's frame away and brings back all of it: menus, bars, docks in their places and sizes, the
/// window's place and state, what had the keyboard.
class PresentFrame : public QObject
{
    Q_OBJECT
public:
    static constexpr double kLargerType = 1.4;

    explicit PresentFrame(PresentParts parts, QObject *parent = nullptr);

    bool isEntered() const { return m_entered; }
    void enter();
    void leave();
    /// What is not shown comes back with `leave`.
    void showCanvases(SceneCanvases canvases);
    SceneCanvases canvases() const { return m_canvases; }
    /// Gives the keyboard to a canvas that is seen.
    void focusCanvas();
    const PresentParts &parts() const { return m_parts; }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    PresentParts m_parts;
    bool m_entered = false;
    SceneCanvases m_canvases = SceneCanvases::Both;
    Qt::WindowStates m_state;
    QRect m_geometry;
    QByteArray m_docks;
    bool m_restores = false; ///< The docks get their sizes as soon as the window has its own again.
    std::vector<std::pair<QPointer<QWidget>, bool>> m_shown; ///< What was hidden, and whether it was seen.
    std::vector<std::pair<QWidget *, QFont>> m_fonts;
    QPointer<QWidget> m_focus;
};

} // namespace planloom
