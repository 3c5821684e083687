#include "widgets/main/outline_model.h"

#include "widgets/common/format.h"

namespace planloom {

namespace {

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

} // namespace

OutlineModel::OutlineModel(QObject *parent) : QAbstractItemModel(parent), m_nodes(1) { }

void OutlineModel::setGraph(GraphSnapshot graph)
{
    beginResetModel();
    m_graph = std::move(graph);
    m_nodes.assign(1, {});
    m_scopeNode.clear();
    m_operatorNode.clear();
    if (m_graph) {
        m_scopeNode.assign(m_graph->scopes.size(), -1);
        m_operatorNode.assign(m_graph->operators.size(), -1);
        if (!m_scopeNode.empty())
            m_scopeNode.front() = 0;
        for (std::size_t i = 0; i < m_graph->operators.size(); ++i) {
            const Operator &op = m_graph->operators[i];
            if (op.direction != Direction::Forward)
                continue;
            const OperatorId id{static_cast<std::int32_t>(i)};
            const std::int32_t parent = nodeOfScope(op.scope);
            m_operatorNode[i] = addNode({parent, 0, {}, id, 0, {}});
            for (std::int32_t node = parent; node >= 0; node = m_nodes[at(node)].parent)
                ++m_nodes[at(node)].operators;
        }
    }
    endResetModel();
}

std::int32_t OutlineModel::addNode(Node node)
{
    const auto index = static_cast<std::int32_t>(m_nodes.size());
    Node &parent = m_nodes[at(node.parent)];
    node.row = static_cast<std::int32_t>(parent.children.size());
    parent.children.push_back(index);
    m_nodes.push_back(std::move(node));
    return index;
}

std::int32_t OutlineModel::nodeOfScope(ScopeId scope)
{
    // Outermost missing ancestor first, without recursion: scopes nest as deep as files say.
    std::vector<ScopeId> missing;
    while (scope.valid() && m_scopeNode[at(scope.index)] < 0) {
        missing.push_back(scope);
        scope = m_graph->at(scope).parent;
    }
    std::int32_t node = scope.valid() ? m_scopeNode[at(scope.index)] : 0;
    for (auto next = missing.rbegin(); next != missing.rend(); ++next) {
        node = addNode({node, 0, *next, {}, 0, {}});
        m_scopeNode[at(next->index)] = node;
    }
    return node;
}

const OutlineModel::Node &OutlineModel::nodeAt(const QModelIndex &index) const
{
    return index.isValid() ? m_nodes[static_cast<std::size_t>(index.internalId())] : m_nodes.front();
}

OperatorId OutlineModel::operatorAt(const QModelIndex &index) const
{
    return nodeAt(index).op;
}

void OutlineModel::collect(std::int32_t node, std::vector<OperatorId> &operators) const
{
    std::vector<std::int32_t> open{node};
    while (!open.empty()) {
        const Node &next = m_nodes[at(open.back())];
        open.pop_back();
        if (next.op.valid())
            operators.push_back(next.op);
        open.insert(open.end(), next.children.begin(), next.children.end());
    }
}

std::vector<OperatorId> OutlineModel::operatorsIn(const QModelIndex &index) const
{
    std::vector<OperatorId> operators;
    if (index.isValid())
        collect(static_cast<std::int32_t>(index.internalId()), operators);
    return operators;
}

QModelIndex OutlineModel::indexOf(OperatorId op) const
{
    if (!m_graph || !op.valid() || at(op.index) >= m_operatorNode.size())
        return {};
    if (m_operatorNode[at(op.index)] < 0)
        op = m_graph->at(op).mirror;
    if (!op.valid() || m_operatorNode[at(op.index)] < 0)
        return {};
    const std::int32_t node = m_operatorNode[at(op.index)];
    return createIndex(m_nodes[at(node)].row, 0, static_cast<quintptr>(node));
}

QModelIndex OutlineModel::index(int row, int column, const QModelIndex &parent) const
{
    const Node &node = nodeAt(parent);
    if (row < 0 || row >= static_cast<int>(node.children.size()) || column < 0 || column >= ColumnCount
        || parent.column() > 0)
        return {};
    return createIndex(row, column, static_cast<quintptr>(node.children[static_cast<std::size_t>(row)]));
}

QModelIndex OutlineModel::parent(const QModelIndex &child) const
{
    if (!child.isValid())
        return {};
    const std::int32_t parent = nodeAt(child).parent;
    return parent <= 0 ? QModelIndex() : createIndex(m_nodes[at(parent)].row, 0, static_cast<quintptr>(parent));
}

int OutlineModel::rowCount(const QModelIndex &parent) const
{
    return parent.column() > 0 ? 0 : static_cast<int>(nodeAt(parent).children.size());
}

int OutlineModel::columnCount(const QModelIndex &) const
{
    return ColumnCount;
}

QVariant OutlineModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !m_graph)
        return {};
    const Node &node = nodeAt(index);
    if (node.op.valid()) {
        const Operator &op = m_graph->at(node.op);
        if (role == Qt::DisplayRole)
            return QString::fromStdString(index.column() == Name ? shortName(*m_graph, op) : nameOf(op.kind));
        if (role == Qt::ToolTipRole)
            return QString::fromStdString(op.name);
        return {};
    }
    const Scope &scope = m_graph->at(node.scope);
    if (role == Qt::DisplayRole) {
        return index.column() == Name ? QString::fromStdString(scope.name)
                                      : QString::fromStdString(formatCount(node.operators));
    }
    if (role == Qt::ToolTipRole)
        return tr("%1: operators %2")
            .arg(QString::fromStdString(pathOf(*m_graph, node.scope)), QString::fromStdString(formatCount(node.operators)));
    return {};
}

QVariant OutlineModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == Name ? tr("Module") : tr("Operators");
}

} // namespace planloom
