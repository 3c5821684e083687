#pragma once

#include <QtWidgets/QWidget>

#include <cstdint>
#include <vector>

namespace planloom {

/// What both axes of a chart count.
enum class ScatterUnit : std::uint8_t { Seconds, Bytes };

/// A run, both figures above 0.
struct RunPoint {
    double measured = 1;
    double predicted = 1;
    int group = 0; ///< Colours tell groups apart.
    int row = 0; ///< What the point is called when it is picked.
    QString words{}; ///< For its tool tip.
};

/// Predicted over measured figures, both on a logarithmic scale: on the diagonal where they agree, between
/// the lines beside it where they are within 10%.
class ScatterChart : public QWidget
{
    Q_OBJECT
public:
    explicit ScatterChart(QWidget *parent = nullptr);

    void setPoints(std::vector<RunPoint> points, ScatterUnit unit);
    const std::vector<RunPoint> &points() const { return m_points; }
    /// Marks the point of a row; none is marked where there is none.
    void setCurrent(int row);
    int current() const { return m_current; }
    QPointF placeOf(const RunPoint &point) const; ///< In the widget.

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void picked(int row);

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    QRectF plot() const;
    double along(double value) const; ///< 0 at the lower end of the axes, 1 at the upper one.
    std::vector<double> ticks() const;
    QString wordsOfTick(double value) const;
    void paintAxes(QPainter &painter) const;
    void paintLines(QPainter &painter) const;
    const RunPoint *pointAt(const QPointF &place) const;
    void describe();

    std::vector<RunPoint> m_points;
    ScatterUnit m_unit = ScatterUnit::Seconds;
    double m_least = 1; ///< Of both axes.
    double m_most = 10;
    int m_current = -1;
};

} // namespace planloom
