#pragma once

#include <QtCore/QAbstractItemModel>

#include "engine/graph/graph.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The model's modules and, in them, its forward operators, in order of first appearance.
class OutlineModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum Column { Name, Content, ColumnCount };

    explicit OutlineModel(QObject *parent = nullptr);

    void setGraph(GraphSnapshot graph);

    /// The operator of a row; invalid for modules.
    OperatorId operatorAt(const QModelIndex &index) const;
    /// Forward operators of a row: itself, or all that lie in the module.
    std::vector<OperatorId> operatorsIn(const QModelIndex &index) const;
    /// Where a forward operator, or the forward one of a backward operator, is shown; invalid if nowhere.
    QModelIndex indexOf(OperatorId op) const;

    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Node {
        std::int32_t parent = -1; ///< -1 for the root, which is not shown.
        std::int32_t row = 0; ///< Among the parent's children.
        ScopeId scope{}; ///< Of modules.
        OperatorId op{}; ///< Of operators.
        std::int32_t operators = 0; ///< In it, for modules.
        std::vector<std::int32_t> children{};
    };

    const Node &nodeAt(const QModelIndex &index) const;
    std::int32_t nodeOfScope(ScopeId scope);
    std::int32_t addNode(Node node);
    void collect(std::int32_t node, std::vector<OperatorId> &operators) const;

    GraphSnapshot m_graph;
    std::vector<Node> m_nodes; ///< 0 is the root.
    std::vector<std::int32_t> m_scopeNode; ///< By scope; -1 if not shown.
    std::vector<std::int32_t> m_operatorNode; ///< By operator; -1 if not shown.
};

} // namespace planloom
