#pragma once

#include <QtWidgets/QWidget>

#include "engine/analyse/communication.h"
#include "engine/hardware/cluster.h"
#include "widgets/memory/topology_layout.h"

#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// The cluster as a map: nodes with their devices, and on every link a gauge of how much of what it could
/// carry in the step it does (ux.md, F51). As high as the map: put it in a scroll area.
class TopologyView : public QWidget
{
    Q_OBJECT
public:
    explicit TopologyView(QWidget *parent = nullptr);

    /// Null shows what would fill it.
    void setMatrix(std::shared_ptr<const CommunicationMatrix> matrix, const Cluster &cluster);
    /// The chosen link; none at first.
    const LinkLoad *current() const;
    const TopologyLayout &layoutOfMap() const { return m_layout; }
    QSize sizeHint() const override;

Q_SIGNALS:
    /// Of `CommunicationMatrix::links`; null for none any more.
    void linkChosen(const planloom::LinkLoad *link);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    void layOut();
    /// Index into the matrix's links; -1 for none.
    std::int32_t linkOf(bool betweenNodes, std::int32_t index) const;
    std::int32_t linkAt(QPointF at) const;
    void choose(std::int32_t link);
    QString factOf(const LinkLoad &link) const;

    std::shared_ptr<const CommunicationMatrix> m_matrix;
    std::vector<std::int32_t> m_ofDevice; ///< Link by device; -1 for none.
    std::vector<std::int32_t> m_ofNode;
    std::int32_t m_perNode = 8;
    TopologyLayout m_layout;
    std::int32_t m_current = -1;
};

} // namespace planloom
