#pragma once

#include <QtWidgets/QWidget>

#include "engine/base/ids.h"

#include <QtCore/QPointF>

#include <string>
#include <vector>

namespace planloom {

/// Where values lie between `least` and `most` in `extent` pixels; the middle if they are equal.
double placeBetween(double value, double least, double most, double extent);

/// The loss of every step as a curve.
class LossCurve : public QWidget
{
    Q_OBJECT
public:
    explicit LossCurve(QWidget *parent = nullptr);
    /// NaN leaves a gap. `steps` is how many there will be.
    void setLosses(std::vector<double> losses, int steps);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    std::vector<double> m_losses;
    int m_steps = 1;
};

/// One operator's predicted and measured seconds.
struct OperatorPoint {
    OperatorId op{};
    std::string name{};
    double predicted = 0;
    double measured = 0;
};

/// Operators by predicted and measured time, on logarithmic axes, with the diagonal of a perfect prediction.
/// The worst ones are named; a click chooses one, arrows go from one to the next.
class OperatorScatter : public QWidget
{
    Q_OBJECT
public:
    explicit OperatorScatter(QWidget *parent = nullptr);
    void setPoints(std::vector<OperatorPoint> points);
    const std::vector<OperatorPoint> &points() const { return m_points; }
    /// Indices of the points furthest from the diagonal by ratio, the worst first; at most `most`.
    static std::vector<std::size_t> outliers(const std::vector<OperatorPoint> &points, std::size_t most);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void chosen(planloom::OperatorId op);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF plot() const;
    QPointF placeOf(const OperatorPoint &point) const;
    int pointAt(QPointF at) const;
    void choose(int point);

    std::vector<OperatorPoint> m_points;
    double m_least = 1e-6;
    double m_most = 1;
    int m_current = -1;
};

} // namespace planloom
