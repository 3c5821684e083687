#pragma once

#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include "sessions/history.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// One plan in the scatter.
struct ScatterPoint {
    StepId step = 0;
    double seconds = 0; ///< Of a step.
    std::int64_t bytes = 0; ///< Largest peak of a device.
    QString label{}; ///< Its name; empty for steps without one.
    QString words{}; ///< The edit that led there, for its tooltip.
    QString letter{}; ///< "A", "B" where it is compared.
    friend bool operator==(const ScatterPoint &, const ScatterPoint &) = default;
};

/// Every plan of the session by step time and peak memory, with those that no other beats joined by a line. A
/// click opens a plan; the arrow keys go from plan to plan by step time, Enter opens.
class ParetoView : public QWidget
{
    Q_OBJECT
public:
    explicit ParetoView(QWidget *parent = nullptr);

    /// Plans with equal figures are one point: the one with a name, else the latest. `cap` is a device's
    /// memory; 0 if unknown.
    void setPoints(std::vector<ScatterPoint> points, StepId current, std::int64_t cap);
    const std::vector<ScatterPoint> &points() const { return m_points; } ///< Ascending in step time.
    const std::vector<std::size_t> &front() const { return m_front; } ///< Indices of points on the front.
    QPointF positionOf(std::size_t point) const; ///< In the widget.

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void activated(planloom::StepId step);

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;

private:
    QRectF plot() const;
    int pointAt(QPointF position) const; ///< -1 if none is near.
    QString tooltipOf(std::size_t point) const;
    void describe();

    std::vector<ScatterPoint> m_points;
    std::vector<std::size_t> m_front;
    std::vector<bool> m_onFront;
    StepId m_current = 0;
    std::int64_t m_cap = 0;
    double m_fromX = 0; ///< Ends of the axes: nanoseconds, bytes.
    double m_toX = 1;
    double m_fromY = 0;
    double m_toY = 1;
    int m_hovered = -1;
    int m_focused = -1;
};

} // namespace planloom
