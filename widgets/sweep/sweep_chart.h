#pragma once

#include <QtWidgets/QWidget>

#include "engine/design/explain/what_if_sweep.h"

#include <vector>

namespace planloom {

/// Time (a line) and memory (bars) of a few plans that differ in one number, side by side. A click, or Enter
/// on the one that the arrow keys chose, opens a plan.
class SweepChart : public QWidget
{
    Q_OBJECT
public:
    explicit SweepChart(const QString &title, QWidget *parent = nullptr);

    /// @param choices  all that are asked; those without a point are still being worked out
    void setPoints(std::vector<SweepChoice> choices, std::vector<SweepPoint> points, Bytes memory);
    const std::vector<SweepChoice> &choices() const { return m_choices; }
    const SweepPoint *pointOf(std::size_t choice) const;
    /// Where a choice is, in widget coordinates.
    QRectF columnRect(std::size_t choice) const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void chosen(const planloom::SweepChoice &choice);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF plot() const;
    QString wordsOf(std::size_t choice) const;
    void choose(std::size_t choice);
    void describe();

    QString m_title;
    std::vector<SweepChoice> m_choices;
    std::vector<SweepPoint> m_points;
    Bytes m_memory{}; ///< That a device has.
    int m_current = -1; ///< Where the keyboard is.
};

} // namespace planloom
