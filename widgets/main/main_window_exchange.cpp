// Configs of training frameworks, in and out.

#include "widgets/main/main_window.h"

#include <QtCore/QFileInfo>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>

#include "widgets/exchange/config_export_dialog.h"
#include "widgets/exchange/config_import_dialog.h"
#include "widgets/exchange/torch_export_dialog.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/log_panel.h"

namespace planloom {

void MainWindow::importConfig(const QString &text, const QString &name)
{
    auto *dialog = new ConfigImportDialog(text, name, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setCanTakeRows(isPlannable() && !m_workspace.isReadOnly());
    connect(dialog, &ConfigImportDialog::openAsked, this,
        [this, name](
            const std::string &model, const std::string &cluster, int devices, const std::string &rows) {
            const auto open = [this, name, model, cluster, devices, rows] {
                m_openingName = name.isEmpty() ? tr("the imported config") : name;
                m_workspace.openWith({model, {}, {}}, cluster, devices, {}, rows);
            };
            if (m_workspace.unkeptEdits() > 0)
                askBeforeLosingWork(tr("Open and Lose It"), open);
            else
                open();
        });
    connect(dialog, &ConfigImportDialog::rowsAsked, this, [this, name](const std::string &rows) {
        replaceRows(name.isEmpty() ? tr("rows of a config") : tr("rows of %1").arg(name), rows);
    });
    dialog->open();
}

void MainWindow::replaceRows(const QString &words, const std::string &rows)
{
    if (const TableEdit edit = difference(m_workspace.table(), TableDocument(rows)); !edit.empty())
        m_workspace.editTable(words, edit);
}

/// @param find  begins with the search of the best plan that the format says
void MainWindow::exportConfig(bool find)
{
    auto *dialog = findChild<ConfigExportDialog *>();
    if (!dialog) {
        dialog = new ConfigExportDialog(this);
        // The plan is written anew with every change of the design, while anybody sees it.
        const auto follow = [this, dialog, seen = std::uint64_t{0}]() mutable {
            const PlanUpdateSnapshot &good = m_workspace.lastGood();
            if (!dialog->isVisible() || m_workspace.isStale() || seen == m_workspace.designRevision())
                return;
            seen = m_workspace.designRevision();
            dialog->setPlan(good ? m_workspace.planRequest() : std::nullopt);
        };
        connect(&m_workspace, &Workspace::planChanged, dialog, follow);
        connect(dialog, &ConfigExportDialog::rowsAsked, this, &MainWindow::replaceRows);
        connect(dialog, &ConfigExportDialog::saveAsked, this,
            [this](const QString &suggestion, const std::string &text) {
                exportText(tr("Save the config"), QFileInfo(suggestion).suffix(),
                    tr("Configs (*.%1);;All files (*)").arg(QFileInfo(suggestion).suffix()),
                    [text] { return text; });
            });
    }
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
    dialog->setPlan(m_workspace.lastGood() ? m_workspace.planRequest() : std::nullopt);
    if (find)
        dialog->findPlan();
}

void MainWindow::exportTorch()
{
    auto *dialog = findChild<TorchExportDialog *>();
    if (!dialog) {
        dialog = new TorchExportDialog(this);
        connect(&m_workspace, &Workspace::planChanged, dialog, [this, dialog] {
            if (dialog->isVisible() && !m_workspace.isStale())
                dialog->setPlan(m_workspace.lastGood(), m_workspace.planRequest());
        });
        connect(dialog, &TorchExportDialog::written, this,
            [this](const QString &sentence) { m_log->model()->add(LogKind::Session, sentence); });
    }
    dialog->suggestFolder(m_workspace.title() + QStringLiteral("-torch"));
    dialog->setPlan(m_workspace.lastGood(), m_workspace.planRequest());
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
}

void MainWindow::buildConfigCommands(QMenu *out)
{
    QAction *in = m_commands->add("file.importConfig", tr("Import Launch Script or Confi&g…"), {}, nullptr,
        this, [this] { importConfig({}, {}); });
    in->setToolTip(
        tr("A launch script or config of Megatron-LM, torchtitan, DeepSpeed and others as a design"));
    QAction *paste = m_commands->add("file.pasteConfig", tr("Paste Launch Script or Config"), {}, nullptr,
        this, [this] { importConfig(QGuiApplication::clipboard()->text(), {}); });
    paste->setToolTip(tr("What is on the clipboard, as a design"));
    QAction *config = m_commands->add(
        "file.exportConfig", tr("Framework's &Config…"), {}, nullptr, this, [this] { exportConfig(false); });
    config->setToolTip(tr("The plan as a config of Megatron-LM, torchtitan, DeepSpeed and others"));
    const auto hasPlan = [this] { return m_workspace.lastGood() != nullptr; };
    QAction *torch =
        m_commands->add("file.exportTorch", tr("P&yTorch…"), {}, nullptr, this, [this] { exportTorch(); });
    torch->setToolTip(tr("The plan as a folder of PyTorch code that torchrun, Slurm or MPI start"));
    m_commands->enableWhile(torch, hasPlan);
    out->addAction(torch);
    m_commands->enableWhile(config, hasPlan);
    out->addAction(config);
    QAction *find = m_commands->add("solve.bestFor", tr("Find Best Plan for a Frame&work…"), {}, nullptr,
        this, [this] { exportConfig(true); });
    find->setToolTip(tr("The fastest plan that a framework's config says whole"));
    m_commands->enableWhile(find, hasPlan);
}

} // namespace planloom
