#pragma once

#include <QtCore/QPoint>
#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

namespace planloom {

/// Darkens a window softly but for a circle around the pointer. Lets all of the mouse through; a move
/// repaints the two circles alone.
class Spotlight : public QWidget
{
    Q_OBJECT
public:
    explicit Spotlight(QWidget *window);

    void setOn(bool on);
    bool isOn() const { return !isHidden(); }
    /// Puts the light there, in the window's coordinates: what the pointer does.
    void moveTo(QPoint place);
    QPoint place() const { return m_place; }
    int radius() const;

protected:
    void paintEvent(QPaintEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QRect lightAt(QPoint place) const;

    QTimer m_follow;
    QPoint m_place;
};

} // namespace planloom
