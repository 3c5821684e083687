#include "widgets/main/outline_model.h"

#include "engine/base/ids.h"
#include "widgets/common/format.h"

#include <utility>

namespace planloom {

namespace {

OutlineTreeSnapshot nothing()
{
    auto tree = std::make_shared<OutlineTree>();
    tree->nodes.resize(1);
    return tree;
}

} // namespace

OutlineModel::OutlineModel(QObject *parent)
    : QAbstractItemModel(parent)
    , m_tree(nothing())
{
}

void OutlineModel::setTree(OutlineTreeSnapshot tree)
{
    beginResetModel();
    m_tree = tree && !tree->nodes.empty() ? std::move(tree) : nothing();
    endResetModel();
}

const OutlineTree::Node &OutlineModel::nodeAt(const QModelIndex &index) const
{
    return index.isValid() ? m_tree->nodes[static_cast<std::size_t>(index.internalId())]
                           : m_tree->nodes.front();
}

OperatorId OutlineModel::operatorAt(const QModelIndex &index) const
{
    return nodeAt(index).op;
}

std::vector<OperatorId> OutlineModel::operatorsIn(const QModelIndex &index) const
{
    std::vector<OperatorId> operators;
    if (!index.isValid())
        return operators;
    std::vector<std::int32_t> open{static_cast<std::int32_t>(index.internalId())};
    while (!open.empty()) {
        const OutlineTree::Node &next = m_tree->nodes[at(open.back())];
        open.pop_back();
        if (next.op.valid())
            operators.push_back(next.op);
        open.insert(open.end(), m_tree->children.begin() + next.childrenBegin,
            m_tree->children.begin() + next.childrenEnd);
    }
    return operators;
}

QModelIndex OutlineModel::indexOf(OperatorId op) const
{
    const auto &nodes = m_tree->nodeOfOperator;
    if (!op.valid() || at(op.index) >= nodes.size())
        return {};
    if (nodes[at(op.index)] < 0)
        op = m_tree->graph->at(op).mirror;
    if (!op.valid() || nodes[at(op.index)] < 0)
        return {};
    const std::int32_t node = nodes[at(op.index)];
    return createIndex(m_tree->nodes[at(node)].row, 0, static_cast<quintptr>(node));
}

QModelIndex OutlineModel::index(int row, int column, const QModelIndex &parent) const
{
    const OutlineTree::Node &node = nodeAt(parent);
    if (row < 0 || row >= node.childrenEnd - node.childrenBegin || column < 0 || column >= ColumnCount
        || parent.column() > 0)
        return {};
    return createIndex(row, column, static_cast<quintptr>(m_tree->children[at(node.childrenBegin + row)]));
}

QModelIndex OutlineModel::parent(const QModelIndex &child) const
{
    if (!child.isValid())
        return {};
    const std::int32_t parent = nodeAt(child).parent;
    return parent <= 0 ? QModelIndex()
                       : createIndex(m_tree->nodes[at(parent)].row, 0, static_cast<quintptr>(parent));
}

int OutlineModel::rowCount(const QModelIndex &parent) const
{
    const OutlineTree::Node &node = nodeAt(parent);
    return parent.column() > 0 ? 0 : node.childrenEnd - node.childrenBegin;
}

int OutlineModel::columnCount(const QModelIndex &) const
{
    return ColumnCount;
}

QVariant OutlineModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !m_tree->graph)
        return {};
    const OutlineTree::Node &node = nodeAt(index);
    const Graph &graph = *m_tree->graph;
    if (node.op.valid()) {
        const Operator &op = graph.at(node.op);
        if (role == Qt::DisplayRole)
            return QString::fromStdString(index.column() == Name ? shortName(graph, op) : typeNameOf(op));
        if (role == Qt::ToolTipRole)
            return QString::fromStdString(op.name);
        return {};
    }
    const Scope &scope = graph.at(node.scope);
    if (role == Qt::DisplayRole)
        return QString::fromStdString(index.column() == Name ? scope.name : formatCount(node.operators));
    if (role == Qt::ToolTipRole)
        return tr("%1: operators %2")
            .arg(QString::fromStdString(pathOf(graph, node.scope)),
                QString::fromStdString(formatCount(node.operators)));
    return {};
}

QVariant OutlineModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == Name ? tr("Module") : tr("Operators");
}

} // namespace planloom

#include "moc_outline_model.cpp"
