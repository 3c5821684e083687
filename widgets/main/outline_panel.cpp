#include "widgets/main/outline_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

#include <utility>

namespace planloom {

namespace {

/// More hits than this are not opened one by one.
constexpr int kMostExpanded = 300;
constexpr int kMostRoots = 5;

} // namespace

OutlinePanel::OutlinePanel(SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_selection(selection)
    , m_model(new OutlineModel(this))
    , m_find(new QLineEdit(this))
    , m_tree(new QTreeView(this))
{
    m_find->setPlaceholderText(tr("Find operators and modules"));
    m_find->setClearButtonEnabled(true);
    m_find->setAccessibleName(tr("Find in the outline"));
    m_tree->setModel(m_model);
    m_tree->setUniformRowHeights(true);
    m_tree->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_tree->setAccessibleName(tr("Model outline"));
    m_tree->setFrameShape(QFrame::NoFrame);
    m_tree->header()->setStretchLastSection(false);
    m_tree->header()->setSectionResizeMode(OutlineModel::Name, QHeaderView::Stretch);
    m_tree->header()->setSectionResizeMode(OutlineModel::Content, QHeaderView::ResizeToContents);
    m_tree->header()->setResizeContentsPrecision(0); // of what is in sight
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addWidget(m_find);
    layout->addWidget(m_tree, 1);

    connect(m_find, &QLineEdit::textChanged, this, &OutlinePanel::make);
    connect(
        m_tree->selectionModel(), &QItemSelectionModel::selectionChanged, this, &OutlinePanel::pushSelection);
    connect(m_selection, &SelectionModel::selectionChanged, this, &OutlinePanel::pullSelection);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &OutlinePanel::take);
}

OutlinePanel::~OutlinePanel()
{
    m_stop.request_stop();
}

void OutlinePanel::setGraph(GraphSnapshot graph)
{
    m_graph = std::move(graph);
    m_model->setTree(nullptr); // what it shows is gone
    make();
}

void OutlinePanel::make()
{
    m_stop.request_stop();
    m_stop = {};
    m_making = true;
    m_watcher.setFuture(
        QtConcurrent::run([graph = m_graph, filter = m_find->text().trimmed().toStdString(),
                              stop = m_stop.get_token()] { return makeOutlineTree(graph, filter, stop); }));
}

void OutlinePanel::take()
{
    const OutlineTreeSnapshot tree = m_watcher.result();
    if (!tree)
        return; // a newer one is on its way
    m_making = false;
    m_syncing = true; // a reset takes the selection away, which means nothing
    m_model->setTree(tree);
    openSome();
    m_syncing = false;
    pullSelection();
}

/// A model of a few modules opens, a long list of layers stays a list of layers; of what was found opens what
/// fits a few screens.
void OutlinePanel::openSome()
{
    if (m_model->tree()->filter.empty()) {
        if (m_model->rowCount() <= kMostRoots)
            m_tree->expandToDepth(0);
        return;
    }
    int open = 0;
    for (QModelIndex index = m_model->index(0, 0); index.isValid() && open < kMostExpanded;
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
        const auto in = m_model->operatorsIn(index);
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
        const QModelIndex index = m_model->indexOf(m_selection->selected().front());
        if (index.isValid()) {
            m_tree->scrollTo(index);
            m_tree->selectionModel()->select(
                index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        }
    }
    m_syncing = false;
}

} // namespace planloom

#include "moc_outline_panel.cpp"
