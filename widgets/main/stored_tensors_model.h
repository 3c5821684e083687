#pragma once

#include <QtCore/QAbstractTableModel>

#include "engine/design/models/model_options.h"
#include "engine/graph/graph.h"

#include <optional>
#include <vector>

namespace planloom {

/// What a model's file stores, what each tensor was taken as and why, and what a person says instead: one row
/// for each tensor of the file. The third column can be edited.
class StoredTensorsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Name, Shape, TakenAs, Why, ColumnCount };
    /// Of `Qt::EditRole` in the column `TakenAs`: the importer decides.
    static constexpr int kByRule = -1;
    static constexpr int kAsInput = -2; ///< An input, which a run is given or draws.

    /// @param options  whose `storedAs` and `asInputs` are where editing begins
    StoredTensorsModel(const Graph &graph, const ModelOptions &options, QObject *parent = nullptr);

    /// The options with what was chosen.
    const ModelOptions &options() const { return m_options; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    /// @param value  a `StoredAs` as int, `kAsInput` or `kByRule`. False for integers that shall be
    /// parameters.
    bool setData(const QModelIndex &index, const QVariant &value, int role) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// "Parameter": as people read it. @param as  as `setData` takes it, but for `kByRule`
    static QString wordOf(int as);

private:
    struct Line {
        std::string name{}; ///< In the file: what choices are kept by.
        std::string shown{}; ///< The model's name for it.
        TensorType type{};
        Classification found{}; ///< As the model is open now.
    };
    /// As `setData` takes it.
    int chosen(const Line &line) const;

    ModelOptions m_options;
    std::vector<Line> m_lines;
};

} // namespace planloom
