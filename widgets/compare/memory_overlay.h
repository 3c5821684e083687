#pragma once

#include <QtWidgets/QAbstractScrollArea>

#include "widgets/compare/compare_result.h"
#include "widgets/compare/compared_lanes.h"

#include <vector>

namespace planloom {

/// The memory of every device over the step, A's curve dashed and B's solid, on one axis of time and one of
/// bytes.
class MemoryOverlay : public QAbstractScrollArea
{
    Q_OBJECT
public:
    explicit MemoryOverlay(QWidget *parent = nullptr);

    void setResult(CompareSnapshot result);
    const std::vector<ComparedLane> &lanes() const { return m_lanes; }
    /// "peak 71.0 → 63.0 GiB (−11.3%)" of a lane.
    QString peakText(const ComparedLane &lane) const;

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    int laneHeight() const;
    void relayout();

    CompareSnapshot m_result;
    std::vector<ComparedLane> m_lanes;
};

} // namespace planloom
