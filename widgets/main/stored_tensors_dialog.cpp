#include "widgets/main/stored_tensors_dialog.h"

#include <QtCore/QSortFilterProxyModel>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include "widgets/main/stored_tensors_model.h"

namespace planloom {

namespace {

/// Edits what a tensor is by a list of what it can be.
class StoredAsDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QWidget *createEditor(QWidget *parent, const QStyleOptionViewItem &, const QModelIndex &) const override
    {
        auto *list = new QComboBox(parent);
        list->setAccessibleName(StoredTensorsDialog::tr("Taken as"));
        list->addItem(StoredTensorsDialog::tr("By Rule"), StoredTensorsModel::kByRule);
        for (const StoredAs as : {StoredAs::Parameter, StoredAs::Buffer, StoredAs::Constant})
            list->addItem(StoredTensorsModel::wordOf(static_cast<int>(as)), static_cast<int>(as));
        list->addItem(StoredTensorsModel::wordOf(StoredTensorsModel::kAsInput), StoredTensorsModel::kAsInput);
        connect(list, &QComboBox::activated, this, [this, list] {
            auto *self = const_cast<StoredAsDelegate *>(this); // Qt's delegates commit from const functions
            Q_EMIT self->commitData(list);
            Q_EMIT self->closeEditor(list);
        });
        return list;
    }
    void setEditorData(QWidget *editor, const QModelIndex &index) const override
    {
        auto *list = static_cast<QComboBox *>(editor);
        list->setCurrentIndex(list->findData(index.data(Qt::EditRole)));
    }
    void setModelData(QWidget *editor, QAbstractItemModel *model, const QModelIndex &index) const override
    {
        model->setData(index, static_cast<QComboBox *>(editor)->currentData(), Qt::EditRole);
    }
};

} // namespace

StoredTensorsDialog::StoredTensorsDialog(const Graph &graph, const ModelOptions &options, QWidget *parent)
    : QDialog(parent)
    , m_model(new StoredTensorsModel(graph, options, this))
    , m_proxy(new QSortFilterProxyModel(this))
{
    setWindowTitle(tr("Parameters, Buffers and Constants"));
    auto *filter = new QLineEdit(this);
    filter->setPlaceholderText(tr("Filter"));
    filter->setAccessibleName(tr("Filter"));
    filter->setClearButtonEnabled(true);
    m_proxy->setSourceModel(m_model);
    m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_proxy->setFilterKeyColumn(-1);
    connect(filter, &QLineEdit::textChanged, m_proxy, &QSortFilterProxyModel::setFilterFixedString);
    auto *view = new QTableView(this);
    view->setModel(m_proxy);
    view->setAccessibleName(windowTitle());
    view->setItemDelegateForColumn(StoredTensorsModel::TakenAs, new StoredAsDelegate(view));
    view->setEditTriggers(QAbstractItemView::AllEditTriggers);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSortingEnabled(true);
    view->sortByColumn(-1, Qt::AscendingOrder); // as in the model, until a header is clicked
    view->verticalHeader()->hide();
    view->horizontalHeader()->setStretchLastSection(true);
    view->setWordWrap(false);
    view->setColumnWidth(StoredTensorsModel::Name, fontMetrics().averageCharWidth() * 52);
    view->setColumnWidth(StoredTensorsModel::Shape, fontMetrics().averageCharWidth() * 24);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    QPushButton *anew = buttons->addButton(tr("Open &Anew"), QDialogButtonBox::AcceptRole);
    anew->setDefault(true);
    anew->setEnabled(false);
    connect(m_model, &QAbstractItemModel::dataChanged, this, [this, anew, before = options] {
        const ModelOptions &now = m_model->options();
        anew->setEnabled(now.storedAs != before.storedAs || now.asInputs != before.asInputs);
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        const ModelOptions made = m_model->options();
        accept();
        Q_EMIT chosen(made);
    });
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(filter);
    layout->addWidget(view);
    if (m_model->rowCount() == 0) {
        auto *nothing = new QLabel(
            tr("This model was built here: it says itself what is trained. Files of models store tensors."),
            this);
        nothing->setWordWrap(true);
        layout->addWidget(nothing);
    }
    layout->addWidget(buttons);
    resize(900, 520);
}

} // namespace planloom

#include "moc_stored_tensors_dialog.cpp"
