#include "widgets/present/present_frame.h"

#include <QtCore/QEvent>
#include <QtCore/QTimer>
#include <QtWidgets/QApplication>
#include <QtWidgets/QMainWindow>

#include <utility>

namespace planloom {

namespace {

constexpr int kRestoreMilliseconds = 1500; ///< That a desktop may take to give a window its size again.

} // namespace

PresentFrame::PresentFrame(PresentParts parts, QObject *parent)
    : QObject(parent)
    , m_parts(std::move(parts))
{
    m_parts.window->installEventFilter(this);
}

void PresentFrame::enter()
{
    if (m_entered)
        return;
    m_entered = true;
    m_restores = false;
    m_state = m_parts.window->windowState();
    m_geometry = m_parts.window->geometry();
    m_docks = m_parts.dockState();
    m_focus = QApplication::focusWidget();
    m_canvases = SceneCanvases::Both;
    m_parts.showDocks(false);
    for (QWidget *widget : m_parts.chrome) {
        m_shown.emplace_back(widget, !widget->isHidden());
        widget->hide();
    }
    for (QWidget *bar : m_parts.bars)
        bar->setMaximumHeight(0);
    for (QWidget *canvas : m_parts.canvases) {
        m_fonts.emplace_back(canvas, canvas->font());
        QFont larger = canvas->font();
        larger.setPointSizeF(larger.pointSizeF() * kLargerType);
        canvas->setFont(larger);
    }
    m_parts.window->setWindowState(m_state | Qt::WindowFullScreen);
    focusCanvas();
}

void PresentFrame::leave()
{
    if (!m_entered)
        return;
    showCanvases(SceneCanvases::Both);
    m_entered = false;
    for (const auto &[canvas, font] : std::exchange(m_fonts, {}))
        canvas->setFont(font);
    for (QWidget *bar : m_parts.bars)
        bar->setMaximumHeight(QWIDGETSIZE_MAX);
    for (const auto &[widget, shown] : std::exchange(m_shown, {}))
        if (widget)
            widget->setVisible(shown);
    m_parts.window->setWindowState(m_state);
    if (!(m_state & (Qt::WindowFullScreen | Qt::WindowMaximized)))
        m_parts.window->setGeometry(m_geometry);
    m_parts.showDocks(true);
    m_parts.restoreDocks(m_docks);
    m_restores = m_parts.window->size() != m_geometry.size();
    QTimer::singleShot(kRestoreMilliseconds, this, [this] { m_restores = false; });
    if (m_focus && m_focus->isVisible())
        m_focus->setFocus(Qt::OtherFocusReason);
    else
        focusCanvas();
}

void PresentFrame::showCanvases(SceneCanvases canvases)
{
    if (!m_entered)
        return;
    m_canvases = canvases;
    m_parts.graph->setVisible(canvases != SceneCanvases::Timeline);
    m_parts.timeline->setVisible(canvases != SceneCanvases::Graph);
    focusCanvas();
}

void PresentFrame::focusCanvas()
{
    QWidget *timeline = m_parts.canvases.back();
    (timeline->isVisible() ? timeline : m_parts.canvases.front())->setFocus(Qt::OtherFocusReason);
}

/// A desktop gives a window its size back when it likes; docks that were restored before were squeezed.
bool PresentFrame::eventFilter(QObject *watched, QEvent *event)
{
    if (m_restores && watched == m_parts.window && event->type() == QEvent::Resize
        && m_parts.window->size() == m_geometry.size()) {
        m_restores = false;
        QTimer::singleShot(0, this, [this] { m_parts.restoreDocks(m_docks); });
    }
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_present_frame.cpp"
