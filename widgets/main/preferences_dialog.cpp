#include "widgets/main/preferences_dialog.h"

#include <QtCore/QSortFilterProxyModel>
#include <QtGui/QAction>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QKeySequenceEdit>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include "widgets/frame/application_style.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/shortcut_model.h"

namespace planloom {

namespace {

/// Edits a shortcut by pressing it.
class KeysDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QWidget *createEditor(QWidget *parent, const QStyleOptionViewItem &, const QModelIndex &) const override
    {
        auto *edit = new QKeySequenceEdit(parent);
        edit->setClearButtonEnabled(true);
        edit->setAccessibleName(PreferencesDialog::tr("Press the new shortcut"));
        connect(edit, &QKeySequenceEdit::editingFinished, this, [this, edit] {
            auto *self = const_cast<KeysDelegate *>(this); // Qt's delegates commit from const functions
            Q_EMIT self->commitData(edit);
            Q_EMIT self->closeEditor(edit);
        });
        return edit;
    }
    void setEditorData(QWidget *editor, const QModelIndex &index) const override
    {
        static_cast<QKeySequenceEdit *>(editor)->setKeySequence(
            index.data(Qt::EditRole).value<QKeySequence>());
    }
    void setModelData(QWidget *editor, QAbstractItemModel *model, const QModelIndex &index) const override
    {
        model->setData(
            index, QVariant::fromValue(static_cast<QKeySequenceEdit *>(editor)->keySequence()), Qt::EditRole);
    }
};

} // namespace

PreferencesDialog::PreferencesDialog(CommandRegistry *registry, ThemeKeeper *keeper, QWidget *parent)
    : QDialog(parent)
    , m_registry(registry)
    , m_model(new ShortcutModel(registry, this))
    , m_proxy(new QSortFilterProxyModel(this))
    , m_filter(new QLineEdit(this))
    , m_shortcuts(new QTableView(this))
    , m_reset(new QPushButton(tr("&Reset Shortcut"), this))
{
    setWindowTitle(tr("Preferences"));
    auto *layout = new QVBoxLayout(this);
    auto *form = new QFormLayout;
    if (keeper) {
        m_themes = new QComboBox(this);
        m_themes->setAccessibleName(tr("Theme"));
        m_themes->addItem(tr("As the desktop"), QStringLiteral("system"));
        for (const Theme theme : kThemes)
            m_themes->addItem(nameOfTheme(theme), nameForTheme(theme));
        const int current = keeper->followsDesktop() ? 0 : m_themes->findData(nameForTheme(keeper->theme()));
        m_themes->setCurrentIndex(current);
        form->addRow(tr("&Theme"), m_themes);
        connect(m_themes, &QComboBox::currentIndexChanged, keeper,
            [this, keeper](int index) { keeper->choose(m_themes->itemData(index).toString()); });
    }
    if (QAction *still = registry->find(QStringLiteral("view.reducedMotion"))) {
        auto *box = new QCheckBox(still->text(), this);
        box->setToolTip(still->toolTip());
        box->setChecked(still->isChecked());
        connect(box, &QCheckBox::toggled, still, &QAction::setChecked);
        connect(still, &QAction::toggled, box, &QCheckBox::setChecked);
        form->addRow({}, box);
    }
    layout->addLayout(form);
    auto *label = new QLabel(tr("&Shortcuts"), this);
    label->setBuddy(m_filter);
    layout->addWidget(label);
    m_filter->setPlaceholderText(tr("Find a command or a shortcut"));
    m_filter->setAccessibleName(tr("Find a command or a shortcut"));
    m_filter->setClearButtonEnabled(true);
    layout->addWidget(m_filter);
    m_proxy->setSourceModel(m_model);
    m_proxy->setFilterKeyColumn(-1);
    m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_shortcuts->setModel(m_proxy);
    m_shortcuts->setAccessibleName(tr("Shortcuts"));
    m_shortcuts->setItemDelegateForColumn(ShortcutModel::Keys, new KeysDelegate(m_shortcuts));
    m_shortcuts->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed
        | QAbstractItemView::SelectedClicked);
    m_shortcuts->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_shortcuts->setSelectionMode(QAbstractItemView::SingleSelection);
    m_shortcuts->setTabKeyNavigation(false);
    m_shortcuts->setShowGrid(false);
    m_shortcuts->verticalHeader()->hide();
    m_shortcuts->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 3 / 2);
    m_shortcuts->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_shortcuts->horizontalHeader()->setStretchLastSection(true);
    const int letter = fontMetrics().averageCharWidth();
    m_shortcuts->setColumnWidth(ShortcutModel::Category, letter * 18);
    m_shortcuts->setColumnWidth(ShortcutModel::Name, letter * 44);
    m_shortcuts->setColumnWidth(ShortcutModel::Keys, letter * 24);
    layout->addWidget(m_shortcuts, 1);
    auto *row = new QHBoxLayout;
    row->addWidget(m_reset);
    row->addStretch(1);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    row->addWidget(buttons);
    layout->addLayout(row);
    resize(letter * 120, fontMetrics().height() * 34);
    connect(m_filter, &QLineEdit::textChanged, m_proxy, &QSortFilterProxyModel::setFilterFixedString);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
    const auto selected = [this] {
        return m_proxy->mapToSource(m_shortcuts->currentIndex()).data(ShortcutModel::IdRole).toString();
    };
    const auto refresh = [this, selected] { m_reset->setEnabled(m_registry->isCustom(selected())); };
    connect(m_shortcuts->selectionModel(), &QItemSelectionModel::currentChanged, this, refresh);
    connect(registry, &CommandRegistry::shortcutsChanged, this, refresh);
    connect(
        m_reset, &QPushButton::clicked, this, [this, selected] { m_registry->resetShortcut(selected()); });
    refresh();
}

} // namespace planloom

#include "moc_preferences_dialog.cpp"
