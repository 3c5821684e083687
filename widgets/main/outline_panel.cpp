#include "widgets/main/outline_panel.h"

#include <QtCore/QSortFilterProxyModel>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

namespace {

/// More hits than this are not opened one by one.
constexpr int kMostExpanded = 300;
constexpr int kMostRoots = 5;

} // namespace

OutlinePanel::OutlinePanel(SelectionModel *selection, QWidget *parent)
    : QWidget(parent), m_selection(selection), m_model(new OutlineModel(this)),
      m_proxy(new QSortFilterProxyModel(this)), m_find(new QLineEdit(this)), m_tree(new QTreeView(this))
{
    m_proxy->setSourceModel(m_model);
    m_proxy->setRecursiveFilteringEnabled(true);
    m_proxy->setAutoAcceptChildRows(true);
    m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_proxy->setFilterKeyColumn(-1);
    m_find->setPlaceholderText(tr("Find operators and modules"));
    m_find->setClearButtonEnabled(true);
    m_find->setAccessibleName(tr("Find in the outline"));
    m_tree->setModel(m_proxy);
    m_tree->setUniformRowHeights(true);
    m_tree->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_tree->setAccessibleName(tr("Model outline"));
    m_tree->setFrameShape(QFrame::NoFrame);
    m_tree->header()->setStretchLastSection(false);
    m_tree->header()->setSectionResizeMode(OutlineModel::Name, QHeaderView::Stretch);
    m_tree->header()->setSectionResizeMode(OutlineModel::Content, QHeaderView::ResizeToContents);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addWidget(m_find);
    layout->addWidget(m_tree, 1);

    connect(m_find, &QLineEdit::textChanged, this, &OutlinePanel::filter);
    connect(m_tree->selectionModel(), &QItemSelectionModel::selectionChanged, this, &OutlinePanel::pushSelection);
    connect(m_selection, &SelectionModel::selectionChanged, this, &OutlinePanel::pullSelection);
}

void OutlinePanel::setGraph(GraphSnapshot graph)
{
    m_model->setGraph(std::move(graph));
    expandRoots();
    pullSelection();
}

void OutlinePanel::expandRoots()
{
    // A model of a few modules opens; a long list of layers stays a list of layers.
    if (m_proxy->rowCount() <= kMostRoots)
        m_tree->expandToDepth(0);
}

void OutlinePanel::filter(const QString &text)
{
    m_proxy->setFilterFixedString(text);
    if (text.isEmpty()) {
        m_tree->collapseAll();
        expandRoots();
        pullSelection();
        return;
    }
    // Opens as much as fits a few screens.
    int open = 0;
    for (QModelIndex index = m_proxy->index(0, 0); index.isValid() && open < kMostExpanded;
         index = m_tree->indexBelow(index), ++open)
        m_tree->expand(index);
}

void OutlinePanel::pushSelection()
{
    if (m_syncing)
        return;
    m_syncing = true;
    std::vector<OperatorId> operators;
    for (const QModelIndex &index : m_tree->selectionModel()->selectedRows()) {
        const auto in = m_model->operatorsIn(m_proxy->mapToSource(index));
        operators.insert(operators.end(), in.begin(), in.end());
    }
    m_selection->select(std::move(operators));
    m_syncing = false;
    if (m_tree->hasFocus())
        Q_EMIT activated();
}

void OutlinePanel::pullSelection()
{
    if (m_syncing)
        return;
    m_syncing = true;
    m_tree->clearSelection();
    if (!m_selection->selected().empty()) {
        const QModelIndex index = m_proxy->mapFromSource(m_model->indexOf(m_selection->selected().front()));
        if (index.isValid()) {
            m_tree->scrollTo(index);
            m_tree->selectionModel()->select(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        }
    }
    m_syncing = false;
}

} // namespace planloom
