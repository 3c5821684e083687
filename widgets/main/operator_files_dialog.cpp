#include "widgets/main/operator_files_dialog.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

namespace {

enum Column { File, Folder, Origin };
constexpr int kPathRole = Qt::UserRole;
constexpr int kNamedRole = Qt::UserRole + 1;

QString wordsOf(OperatorFileOrigin origin)
{
    switch (origin) {
    case OperatorFileOrigin::Named:
        return OperatorFilesDialog::tr("named here");
    case OperatorFileOrigin::BesideModel:
        return OperatorFilesDialog::tr("beside the model");
    case OperatorFileOrigin::UserFolder:
        return OperatorFilesDialog::tr("in your folder");
    }
    return {};
}

} // namespace

OperatorFilesDialog::OperatorFilesDialog(QWidget *parent)
    : QDialog(parent)
    , m_list(new QTreeWidget(this))
    , m_problem(new QLabel(this))
    , m_remove(new QPushButton(tr("&Remove"), this))
{
    setWindowTitle(tr("Operator Files"));
    auto *about =
        new QLabel(tr("These files say what operators are that Planloom does not know, or knows otherwise. "
                      "A file that is added or removed opens the model anew."),
            this);
    about->setWordWrap(true);
    m_list->setColumnCount(3);
    m_list->setHeaderLabels({tr("File"), tr("Folder"), tr("Found")});
    m_list->setRootIsDecorated(false);
    m_list->setUniformRowHeights(true);
    m_list->setTextElideMode(Qt::ElideMiddle);
    m_list->setAccessibleName(windowTitle());
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setSectionResizeMode(File, QHeaderView::ResizeToContents);
    m_list->header()->setSectionResizeMode(Folder, QHeaderView::Stretch);
    m_list->header()->setSectionResizeMode(Origin, QHeaderView::ResizeToContents);
    m_problem->setObjectName(QStringLiteral("problem"));
    m_problem->setWordWrap(true);
    m_problem->setTextFormat(Qt::PlainText);
    m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_problem->hide();
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close | QDialogButtonBox::Help, this);
    QPushButton *add = buttons->addButton(tr("&Add…"), QDialogButtonBox::ActionRole);
    buttons->addButton(m_remove, QDialogButtonBox::ActionRole);
    connect(add, &QPushButton::clicked, this, &OperatorFilesDialog::addAsked);
    connect(m_remove, &QPushButton::clicked, this, [this] {
        if (const QTreeWidgetItem *item = m_list->currentItem())
            Q_EMIT removeAsked(item->data(File, kPathRole).toString());
    });
    connect(buttons, &QDialogButtonBox::helpRequested, this, &OperatorFilesDialog::helpAsked);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_list, &QTreeWidget::currentItemChanged, this, &OperatorFilesDialog::refresh);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(about);
    layout->addWidget(m_list);
    layout->addWidget(m_problem);
    layout->addWidget(buttons);
    resize(700, 320);
    refresh();
}

void OperatorFilesDialog::setFiles(const std::vector<std::string> &files, const std::string &model)
{
    const QTreeWidgetItem *current = m_list->currentItem();
    const QString before = current == nullptr ? QString() : current->data(File, kPathRole).toString();
    m_list->clear();
    for (const std::string &file : files) {
        const QFileInfo info(QString::fromStdString(file));
        const OperatorFileOrigin origin = originOfOperatorFile(file, model);
        auto *item = new QTreeWidgetItem(
            m_list, {info.fileName(), QDir::toNativeSeparators(info.absolutePath()), wordsOf(origin)});
        item->setData(File, kPathRole, QString::fromStdString(file));
        item->setData(File, kNamedRole, origin == OperatorFileOrigin::Named);
        item->setToolTip(Folder, item->text(Folder));
        if (item->data(File, kPathRole).toString() == before)
            m_list->setCurrentItem(item);
    }
    if (m_list->currentItem() == nullptr && m_list->topLevelItemCount() > 0)
        m_list->setCurrentItem(m_list->topLevelItem(0));
    refresh();
}

void OperatorFilesDialog::setProblem(const QString &text)
{
    m_problem->setText(text.isEmpty() ? QString() : tr("The model stays as it was: %1").arg(text));
    m_problem->setVisible(!text.isEmpty());
}

void OperatorFilesDialog::refresh()
{
    const QTreeWidgetItem *item = m_list->currentItem();
    const bool isNamed = item != nullptr && item->data(File, kNamedRole).toBool();
    m_remove->setEnabled(isNamed);
    m_remove->setToolTip(item == nullptr || isNamed
            ? QString()
            : tr("It is found by itself: to do without it, move it away from where it is."));
}

} // namespace planloom

#include "moc_operator_files_dialog.cpp"
