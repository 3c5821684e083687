#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtWidgets/QWidget>

#include "engine/analyse/waterfall.h"
#include "widgets/run/run_analysis.h"

#include <optional>
#include <vector>

namespace planloom {

/// From the predicted step to the measured one: what each part of a step adds or saves, as bars that hang on
/// one another and sum exactly.
class RunDifference : public QWidget
{
    Q_OBJECT
public:
    explicit RunDifference(QWidget *parent = nullptr);

    /// Nothing takes it away.
    void setWaterfall(std::optional<Waterfall> waterfall);
    const std::optional<Waterfall> &waterfall() const { return m_waterfall; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    std::optional<Waterfall> m_waterfall;
};

/// Collectives and sends of a run by size, with the bandwidth they reached.
class CollectivesModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Kind, Size, Members, Count, Predicted, Measured, Bandwidth, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setFigures(std::vector<CollectiveFigures> figures);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<CollectiveFigures> m_figures;
};

} // namespace planloom
