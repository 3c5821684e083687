#pragma once

#include <QtWidgets/QDialog>

#include "engine/search/solver.h"

#include <memory>
#include <vector>

class QTableWidget;

namespace planloom {

/// Every plan that a search looked at, by its step and its fullest device: dots for those that were priced,
/// discs for those that were simulated, a ring around the best, a line where memory ends. Hovering says which
/// plan a dot is, a click chooses it.
class SearchChart : public QWidget
{
    Q_OBJECT
public:
    explicit SearchChart(std::shared_ptr<const SearchResult> result, QWidget *parent = nullptr);

    QSize sizeHint() const override;
    void choose(int plan); ///< By index of `SearchResult::seen`; -1 for none.
    QPointF placeOf(int plan) const;

Q_SIGNALS:
    void chosen(int plan);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF area() const;
    int planAt(QPointF place) const;

    std::shared_ptr<const SearchResult> m_result; ///< Not null.
    int m_chosen = -1;
    double m_mostSeconds = 0;
    double m_mostBytes = 0;
};

/// What a search found: how good it is and why that is known, the plans it looked at as a chart and as a
/// list. Those that were simulated open by a double click.
class SearchReport : public QDialog
{
    Q_OBJECT
public:
    explicit SearchReport(std::shared_ptr<const SearchResult> result, QWidget *parent = nullptr);

    /// "dp 2, tp 4, zero1 takes 32.7 ms. None of 153 configurations is likely to be below 31.4 ms ..."
    static QString sentence(const SearchResult &result);

Q_SIGNALS:
    /// A person wants to see this plan, which has rows.
    void opened(const planloom::SearchedPlan &plan);

private:
    void fill();
    void open(int row);

    std::shared_ptr<const SearchResult> m_result;
    SearchChart *m_chart = nullptr;
    QTableWidget *m_list = nullptr;
};

} // namespace planloom
