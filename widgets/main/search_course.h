#pragma once

#include <QtWidgets/QWidget>

#include "engine/search/solver.h"

#include <memory>

namespace planloom {

/// How a search went: the fastest plan so far and what no plan can be below, in the search's model, over the
/// time that it took; dots are plans that were simulated. What is between the two lines at the end is the
/// gap.
class SearchCourse : public QWidget
{
    Q_OBJECT
public:
    explicit SearchCourse(std::shared_ptr<const SearchResult> result, QWidget *parent = nullptr);

    QSize sizeHint() const override;
    /// Of a moment and a step time.
    QPointF placeOf(double at, double seconds) const;
    /// "best 32.7 ms, bound 31.4 ms after 0.42 s"; what the pointer at `x` is told.
    QString wordsAt(double x) const;

protected:
    void paintEvent(QPaintEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF area() const;
    void paintLine(QPainter &painter, const QColor &colour, Qt::PenStyle style, bool ofBound) const;

    std::shared_ptr<const SearchResult> m_result; ///< Not null.
    double m_least = 0; ///< Seconds of a step at the lower edge,
    double m_most = 1; ///< and at the upper one.
    double m_end = 1; ///< Seconds that the search took.
};

} // namespace planloom
