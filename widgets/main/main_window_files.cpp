// Files in and out: opening, importing, dropping, copies, exports.

#include "widgets/main/main_window.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFileInfo>
#include <QtCore/QFutureWatcher>
#include <QtCore/QMimeData>
#include <QtCore/QPointer>
#include <QtCore/QSaveFile>
#include <QtGui/QDropEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QPushButton>

#include "engine/frontend/torch/module_classes.h"
#include "engine/hardware/cluster_json.h"
#include "engine/interop/autodist_yaml.h"
#include "engine/interop/perfetto.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"
#include "widgets/design/cluster_values.h"
#include "widgets/exchange/data_export.h"
#include "widgets/frame/dock_board.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/dimensions_dialog.h"
#include "widgets/main/export_help.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/model_options_dialog.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/operator_files_dialog.h"
#include "widgets/main/recent_list.h"
#include "widgets/main/stored_tensors_dialog.h"
#include "widgets/run/run_panel.h"
#include "widgets/target/framework_chooser.h"
#include "widgets/target/measurements_dialog.h"

#include <nlohmann/json.hpp>

#include <set>
#include <sstream>
#include <string>

namespace planloom {

namespace {

constexpr const char *kSessionSuffix = "planloom";

Error writeFailed(const QString &path, const QString &why)
{
    return {ErrorCode::Io,
        "\"" + QFileInfo(path).fileName().toStdString() + "\" could not be written: " + why.toStdString(),
        "choose a folder you may write to, with room on its disk", path.toStdString()};
}

/// Writes the whole file, or leaves what there was.
Result<void> writeWhole(const QString &path, const std::string &bytes)
{
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return writeFailed(path, file.errorString());
    if (file.write(bytes.data(), static_cast<qint64>(bytes.size())) != static_cast<qint64>(bytes.size())
        || !file.commit())
        return writeFailed(path, file.errorString());
    return {};
}

} // namespace

void MainWindow::askFile(const QString &title, const QString &filter, const QString &suggestion, bool save,
    std::function<void(QString)> use)
{
    auto *dialog = new QFileDialog(this, title);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(save ? QFileDialog::AcceptSave : QFileDialog::AcceptOpen);
    dialog->setFileMode(save ? QFileDialog::AnyFile : QFileDialog::ExistingFile);
    dialog->setNameFilter(filter);
    if (save) {
        dialog->setDefaultSuffix(QFileInfo(suggestion).suffix());
        dialog->selectFile(suggestion);
    }
    connect(
        dialog, &QFileDialog::fileSelected, this, [use = std::move(use)](const QString &path) { use(path); });
    dialog->open();
}

void MainWindow::openDialog()
{
    askFile(tr("Open a model or a session"),
        tr("Models and sessions (*.onnx *.pt2 *.%1);;All files (*)").arg(QLatin1String(kSessionSuffix)), {},
        false, [this](const QString &path) { openHere(path); });
}

void MainWindow::exportHelp()
{
    auto *dialog = new ExportHelp(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

void MainWindow::operatorFileHelp()
{
    auto *dialog = new OperatorFileHelp(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

void MainWindow::operatorFileDialog()
{
    auto *dialog = new OperatorFilesDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    const auto list = [this, dialog] {
        if (!m_workspace.model())
            return;
        std::set<std::string> files = m_workspace.model()->source.options.operatorFiles;
        const auto asked = m_workspace.modelOptions().operatorFiles; // also those that define nothing it has
        files.insert(asked.begin(), asked.end());
        dialog->setFiles({files.begin(), files.end()}, m_workspace.model()->source.source);
    };
    const auto change = [this, window = QPointer(dialog)](const QString &path, bool isAdded) {
        ModelOptions options = m_workspace.modelOptions();
        const std::string file = QFileInfo(path).absoluteFilePath().toStdString();
        if (window)
            window->setProblem({});
        if (isAdded)
            options.operatorFiles.insert(file);
        else
            options.operatorFiles.erase(file);
        m_workspace.setModelOptions(options);
    };
    connect(dialog, &OperatorFilesDialog::addAsked, this, [this, change] {
        askFile(tr("Take what operators are from a file"), tr("Operator files (*.ops);;All files (*)"), {},
            false, [change](const QString &path) { change(path, true); });
    });
    connect(&m_workspace, &Workspace::problem, dialog,
        [dialog](const Error &error) { dialog->setProblem(QString::fromStdString(describe(error))); });
    connect(dialog, &OperatorFilesDialog::removeAsked, this,
        [change](const QString &path) { change(path, false); });
    connect(dialog, &OperatorFilesDialog::helpAsked, this, &MainWindow::operatorFileHelp);
    connect(&m_workspace, &Workspace::modelChanged, dialog, list);
    connect(&m_workspace, &Workspace::stateChanged, dialog, list);
    list();
    dialog->open();
}

void MainWindow::locate(const QString &missing)
{
    askFile(tr("Where is %1 now?").arg(QFileInfo(missing).fileName()),
        tr("Sessions (*.%1);;All files (*)").arg(QLatin1String(kSessionSuffix)), {}, false,
        [this, missing](const QString &path) {
            m_recent->remove(missing);
            openHere(path);
        });
}

void MainWindow::importModelDialog()
{
    askFile(tr("Import a model; rows are bound to it by name"), tr("Models (*.onnx *.pt2);;All files (*)"),
        {}, false, [this](const QString &path) {
            m_openingName = QFileInfo(path).fileName();
            m_workspace.openModel({path.toStdString(), {}, {}}, m_workspace.model() != nullptr);
        });
}

void MainWindow::importRowsDialog()
{
    askFile(tr("Import rows"), tr("Texts with rows (*.txt *.rows *.json *.yaml *.yml);;All files (*)"), {},
        false, [this](const QString &path) {
            const Dropped rows = readDroppedFile(path);
            if (rows.kind == DropKind::Rows)
                importRows(rows.text, QFileInfo(path).fileName());
            else
                m_notices->show({QStringLiteral("drop"), NoticeKind::Error,
                    rows.kind == DropKind::Unsupported ? rows.reason : tr("That is no text with rows."), {},
                    true});
        });
}

void MainWindow::clusterDialog()
{
    askFile(tr("Plan for the cluster of a file"), tr("Clusters (*.json);;All files (*)"), {}, false,
        [this](const QString &path) { openCluster(path); });
}

void MainWindow::modelOptionsDialog()
{
    auto *dialog = new ModelOptionsDialog(m_workspace.modelOptions(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &ModelOptionsDialog::chosen, &m_workspace, &Workspace::setModelOptions);
    dialog->open();
}

void MainWindow::storedTensorsDialog()
{
    auto *dialog = new StoredTensorsDialog(*m_workspace.model()->graph, m_workspace.modelOptions(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &StoredTensorsDialog::chosen, &m_workspace, &Workspace::setModelOptions);
    dialog->open();
}

void MainWindow::sizesDialog()
{
    if (m_workspace.model()->graph->dimensions.empty()) {
        m_notices->show({QStringLiteral("sizes"), NoticeKind::Info,
            tr("All sizes of this model's inputs are fixed in its file. Exported with dynamic shapes, batch "
               "and "
               "sequence length can be chosen here."),
            {}, true});
        return;
    }
    auto *dialog = new DimensionsDialog(
        m_workspace.model()->graph->dimensions, DimensionsDialog::Purpose::Change, {}, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &DimensionsDialog::chosen, &m_workspace, &Workspace::setSizes);
    dialog->open();
}

/// A model waits for the sizes of its inputs.
void MainWindow::askSizes(const std::vector<InputDimension> &dimensions, const QString &problem)
{
    auto *dialog = new DimensionsDialog(dimensions, DimensionsDialog::Purpose::Open, problem, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &DimensionsDialog::chosen, &m_workspace, &Workspace::giveSizes);
    connect(dialog, &QDialog::rejected, &m_workspace, &Workspace::cancelOpening);
    dialog->open();
}

void MainWindow::openCluster(const QString &path)
{
    auto *watcher = new QFutureWatcher<std::shared_ptr<Result<ClusterFile>>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
        watcher->deleteLater();
        const Result<ClusterFile> file = *watcher->result();
        if (!file)
            m_notices->show({QStringLiteral("cluster"), NoticeKind::Error,
                QString::fromStdString(describe(file.error())), {}, true});
        else
            planFor(file->name, file->json, file->deviceCount);
    });
    watcher->setFuture(QtConcurrent::run([name = path.toStdString()] {
        return std::make_shared<Result<ClusterFile>>(readClusterFile(name));
    }));
}

void MainWindow::planFor(const std::string &cluster, const std::string &json, std::int32_t devices)
{
    m_workspace.setCluster(keepingFramework(cluster, json, m_workspace.framework()), json, devices);
}

void MainWindow::planForThisMachine()
{
    MachineProbe &machine = m_run->machine();
    disconnect(&machine, &MachineProbe::changed, this, nullptr); // asked before
    connect(&machine, &MachineProbe::changed, this, [this, &machine] {
        if (machine.isLooking())
            return;
        disconnect(&machine, &MachineProbe::changed, this, nullptr);
        if (!machine.problem().isEmpty() || !*machine.cluster()) {
            m_notices->show({QStringLiteral("cluster"), NoticeKind::Error,
                machine.problem().isEmpty() ? QString::fromStdString(describe(machine.cluster()->error()))
                                            : machine.problem(),
                {}, true});
            return;
        }
        const Cluster &cluster = **machine.cluster();
        // Emulated devices may be more than cores.
        m_workspace.setCluster(cluster.name, toJson(cluster), machine.hasGpus() ? cluster.deviceCount : 0);
    });
    machine.look(m_run->service().program());
}

void MainWindow::measurementsDialog()
{
    auto *dialog = new MeasurementsDialog(splitFramework(m_workspace.cluster()).first, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &MeasurementsDialog::saved, this,
        [this](const std::string &name, const std::string &json) { planFor(name, json, 0); });
    dialog->open();
}

void MainWindow::exportCluster()
{
    if (const PlanUpdateSnapshot good = m_workspace.lastGood())
        exportText(tr("Export the cluster, as a file to change"), QStringLiteral("json"),
            tr("Clusters (*.json)"), [good] { return toJson(good->cluster) + "\n"; });
}

/// What became of autodist's constraints: how many rows, and what is not in them.
void MainWindow::showConstraintNotes(const AutodistRows &read, const QString &name, const std::string &axis)
{
    constexpr std::size_t kMostTold = 3; // all of them are in the log
    QStringList lines;
    const std::size_t rows = read.table.rows.size();
    lines << (rows == 0 ? tr("%1 gives no rows for this model.").arg(name)
            : rows == 1
            ? tr("%1 gave 1 row over %2.").arg(name, QString::fromStdString(axis))
            : tr("%1 gave %2 rows over %3.").arg(name).arg(rows).arg(QString::fromStdString(axis)));
    for (std::size_t i = 0; i < read.notes.size(); ++i) {
        const QString note = QString::fromStdString(read.notes[i]);
        m_log->model()->add(LogKind::Session, name + QStringLiteral(": ") + note);
        if (i < kMostTold)
            lines << tr("Not taken, %1").arg(note);
    }
    std::vector<NoticeAction> actions;
    if (read.notes.size() > kMostTold)
        actions.push_back({tr("Show %1 More").arg(read.notes.size() - kMostTold),
            [this] { m_docks->reveal(QStringLiteral("log")); }});
    m_notices->show({QStringLiteral("drop"), read.notes.empty() ? NoticeKind::Info : NoticeKind::Warning,
        lines.join(QLatin1Char('\n')), std::move(actions), true});
}

void MainWindow::importRows(const QString &text, const QString &name)
{
    const TableDocument &table = m_workspace.table();
    std::string rows = text.trimmed().toStdString();
    if (isAutodistFile(name.toStdString()) && m_workspace.model()) {
        const std::string axis =
            autodistAxis(planMeaning(*m_workspace.model(), m_workspace.deviceCount(), table.table()).mesh);
        const ModelSource &source = m_workspace.model()->source;
        const auto classes = moduleClassesOf(source.source, source.content);
        const auto read = classes
            ? readAutodist(text.toStdString(), name.toStdString(), *m_workspace.model(), axis, *classes)
            : Result<AutodistRows>(classes.error());
        if (!read) {
            m_notices->show({QStringLiteral("drop"), NoticeKind::Error,
                QString::fromStdString(describe(read.error())), {}, true});
            return;
        }
        showConstraintNotes(*read, name, axis);
        if (read->table.rows.empty())
            return;
        rows = print(read->table);
    }
    const TableEdit edit = insertText(table, table.lineCount(), rows);
    m_workspace.editTable(name.isEmpty() ? tr("import rows") : tr("import rows of %1").arg(name), edit);
}

void MainWindow::saveCopyAs()
{
    if (!m_workspace.model())
        return;
    askFile(tr("Save a copy of the session"), tr("Sessions (*.%1)").arg(QLatin1String(kSessionSuffix)),
        m_workspace.title() + QLatin1Char('.') + QLatin1String(kSessionSuffix), true,
        [this](const QString &path) {
            auto *once = new QObject(this);
            connect(&m_workspace, &Workspace::copySaved, once, [this, once](const QString &copy) {
                once->deleteLater();
                m_log->model()->add(LogKind::Session, tr("Saved a copy as %1").arg(copy));
            });
            m_workspace.saveCopyAs(path);
        });
}

/// The disk has refused edits until now; closing would lose them.
void MainWindow::askBeforeLosingWork(const QString &lose, const std::function<void()> &then)
{
    if (findChild<QMessageBox *>(QStringLiteral("unsavedBox")))
        return;
    const std::int32_t edits = m_workspace.unkeptEdits();
    const QString lost = edits == 0 ? tr("What you did last is not in a file: %1.")
                                          .arg(m_workspace.saveRemark().isEmpty()
                                                  ? tr("a session that was open before could not be written")
                                                  : m_workspace.saveRemark())
        : edits == 1 ? tr("1 edit isn't kept anywhere: this session is read-only.")
                     : tr("%1 edits aren't kept anywhere: this session is read-only.").arg(edits);
    auto *box =
        new QMessageBox(QMessageBox::Warning, tr("Not everything is saved"), lost, QMessageBox::Cancel, this);
    box->setObjectName(QStringLiteral("unsavedBox"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setInformativeText(tr("Save a copy elsewhere, or go on and lose it."));
    const QAbstractButton *save = box->addButton(tr("Save Copy As…"), QMessageBox::AcceptRole);
    const QAbstractButton *loses = box->addButton(lose, QMessageBox::DestructiveRole);
    box->setDefaultButton(QMessageBox::Cancel);
    connect(box, &QMessageBox::buttonClicked, this, [this, save, loses, then](const QAbstractButton *button) {
        if (button == save)
            saveCopyAs();
        else if (button == loses)
            then();
    });
    box->open();
}

void MainWindow::moveSession()
{
    if (!m_workspace.model())
        return;
    askFile(tr("Keep the session in another file from now on"),
        tr("Sessions (*.%1)").arg(QLatin1String(kSessionSuffix)),
        m_workspace.title() + QLatin1Char('.') + QLatin1String(kSessionSuffix), true,
        [this](const QString &path) { m_workspace.saveAs(path); });
}

void MainWindow::exportText(
    const QString &title, const QString &suffix, const QString &filter, std::function<std::string()> make)
{
    askFile(title, filter, m_workspace.title() + QLatin1Char('.') + suffix, true,
        [this, make = std::move(make)](const QString &path) {
            auto *watcher = new QFutureWatcher<std::shared_ptr<Result<void>>>(this);
            connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, path] {
                watcher->deleteLater();
                const Result<void> outcome = *watcher->result();
                if (!outcome)
                    onProblem(outcome.error());
                else
                    m_log->model()->add(LogKind::Session, tr("Wrote %1").arg(path));
            });
            watcher->setFuture(QtConcurrent::run(
                [make, path] { return std::make_shared<Result<void>>(writeWhole(path, make())); }));
        });
}

void MainWindow::exportPerfetto()
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good)
        return;
    exportText(
        tr("Export the timeline for ui.perfetto.dev"), QStringLiteral("json"), tr("Traces (*.json)"), [good] {
            std::ostringstream stream;
            writePerfetto(stream, *good->scene->plan, *good->scene->timeline);
            return std::move(stream).str();
        });
}

void MainWindow::exportPlanJson()
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (good)
        exportText(tr("Export the execution plan"), QStringLiteral("json"), tr("Plans (*.json)"),
            [good] { return toJson(*good->scene->plan); });
}

void MainWindow::exportRowsJson()
{
    exportText(tr("Export the rows"), QStringLiteral("json"), tr("Tables (*.json)"),
        [table = m_workspace.table()] { return toJson(table.table()).dump(2) + "\n"; });
}

void MainWindow::exportAutodist()
{
    if (!m_workspace.model())
        return;
    const AutodistText written = writeAutodist(m_workspace.table().table(), *m_workspace.model(),
        m_workspace.deviceCount(),
        autodistAxis(
            planMeaning(*m_workspace.model(), m_workspace.deviceCount(), m_workspace.table().table()).mesh));
    for (const std::string &note : written.notes)
        m_log->model()->add(LogKind::Session, tr("Not in the YAML: %1").arg(QString::fromStdString(note)));
    exportText(tr("Export the rows as partition constraints of autodist"), QStringLiteral("yaml"),
        tr("Constraints (*.yaml)"), [text = written.yaml] { return text; });
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    // Everything is taken, so that what can't be used is said in words.
    if (event->mimeData()->hasUrls() || event->mimeData()->hasText())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent *event)
{
    event->acceptProposedAction();
    takeDrop(readDrop(*event->mimeData()));
}

void MainWindow::takeDrop(const Dropped &dropped)
{
    const QString id = QStringLiteral("drop");
    const QString name = QFileInfo(dropped.path).fileName();
    switch (dropped.kind) {
    case DropKind::Unsupported:
        m_notices->show({id, NoticeKind::Warning, dropped.reason, {}, true});
        return;
    case DropKind::Rows:
        if (!m_workspace.model()) {
            m_notices->show({id, NoticeKind::Warning,
                tr("Rows need a model: open one first, then drop the rows on it."), {}, true});
            return;
        }
        m_notices->show({id, NoticeKind::Info,
            name.isEmpty() ? tr("The dropped text holds rows.") : tr("\"%1\" holds rows.").arg(name),
            {{tr("Import Rows"), [this, text = dropped.text, name] { importRows(text, name); }},
                {tr("Cancel"), {}}},
            true});
        return;
    case DropKind::Cluster:
    case DropKind::Topology:
        if (!m_workspace.model()) {
            m_notices->show({id, NoticeKind::Warning,
                tr("A cluster needs a model: open one first, then drop the cluster on it."), {}, true});
            return;
        }
        m_notices->show({id, NoticeKind::Info,
            dropped.kind == DropKind::Cluster ? tr("\"%1\" describes a cluster.").arg(name)
                                              : tr("\"%1\" describes machines.").arg(name),
            {{tr("Plan for It"),
                 [this, path = dropped.path, isCluster = dropped.kind == DropKind::Cluster] {
                     if (isCluster)
                         openCluster(path);
                     else
                         useTopologies({path});
                 }},
                {tr("Cancel"), {}}},
            true});
        return;
    case DropKind::Config:
        importConfig(dropped.text, name);
        return;
    case DropKind::Trace:
        openTrace({dropped.path});
        return;
    case DropKind::Model:
    case DropKind::Session:
        break;
    }
    if (!m_workspace.model()) {
        openHere(dropped.path);
        return;
    }
    std::vector<NoticeAction> actions{{tr("Replace"), [this, path = dropped.path] { openHere(path); }},
        {tr("New Window"), [this, path = dropped.path] { openWindow()->openHere(path); }}};
    if (dropped.kind == DropKind::Model) {
        actions.push_back({tr("Keep Rows"), [this, path = dropped.path] {
                               m_openingName = QFileInfo(path).fileName();
                               m_workspace.openModel({path.toStdString(), {}, {}}, true);
                           }});
    }
    actions.push_back({tr("Cancel"), {}});
    m_notices->show({id, NoticeKind::Info,
        tr("\"%1\" was dropped: open it here, or beside this session?").arg(name), std::move(actions), true});
}

void MainWindow::about()
{
    auto *box = new QMessageBox(QMessageBox::NoIcon, tr("About Planloom"),
        tr("<h3>Planloom %1</h3><p>A designer for parallelization plans of deep-neural-network training.</p>"
           "<p>Its ideas are those of nnScaler (OSDI '24), SuperScaler (arXiv 2301.08984) and Tessel (HPCA "
           "'24).</p>")
            .arg(QApplication::applicationVersion()),
        QMessageBox::Ok, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

} // namespace planloom
