// Reports of the plan, tables of it, and clusters of topology files.

#include "widgets/main/main_window.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFileInfo>
#include <QtCore/QFutureWatcher>
#include <QtWidgets/QFileDialog>

#include "engine/analyse/communication_lines.h"
#include "engine/analyse/memory_fit.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "engine/interop/machines/machine_cluster.h"
#include "engine/report/report.h"
#include "engine/report/report_csv.h"
#include "widgets/common/qt_text.h"
#include "widgets/exchange/data_export.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/present/talk_maker.h"
#include "widgets/reports/report_pdf.h"

namespace planloom {

namespace {

Result<void> writeReport(const Report &report, const QString &path)
{
    return path.endsWith(QLatin1String(".pdf"), Qt::CaseInsensitive)
        ? writeReportPdf(report, path)
        : writeFile(path.toStdString(), htmlOf(report));
}

/// What communicates, and what memory each rank holds; empty tables where it was stopped.
std::pair<std::string, std::string> reportTables(const PlanUpdate &update)
{
    const ExecutionPlan &plan = *update.scene->plan;
    const Timeline &timeline = *update.scene->timeline;
    const auto lines = communicationLines(plan, timeline, update.cluster);
    return {communicationCsv(lines.value_or(std::vector<CommunicationLine>{})),
        ranksCsv(memoryOfRanks(plan, timeline, update.cluster))};
}

} // namespace

/// Says when `work`, on a worker, has written what it is about.
void MainWindow::writeOnWorker(const QString &done, std::function<Result<void>()> work)
{
    auto *watcher = new QFutureWatcher<std::shared_ptr<Result<void>>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, done] {
        watcher->deleteLater();
        const Result<void> outcome = *watcher->result();
        if (!outcome)
            onProblem(outcome.error());
        else
            m_log->model()->add(LogKind::Session, done);
    });
    watcher->setFuture(
        QtConcurrent::run([work = std::move(work)] { return std::make_shared<Result<void>>(work()); }));
}

void MainWindow::exportReport()
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good || !good->scene)
        return;
    askFile(tr("Export a report of the plan"), tr("Web pages (*.html);;PDF (*.pdf)"),
        m_workspace.title() + QStringLiteral(".html"), true,
        [this, good, name = m_workspace.title().toStdString()](const QString &path) {
            writeOnWorker(tr("Wrote %1").arg(path), [good, name, path] {
                return writeReport({{reportedPlanOf(*good, name)}, {}}, path);
            });
        });
}

void MainWindow::exportTables()
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good)
        return;
    auto *dialog = new QFileDialog(
        this, tr("Folder for rows.csv, spans.csv, memory.csv, traffic.csv, communication.csv and ranks.csv"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this,
        [this, good](const QString &folder) { writeTables(good, folder); });
    dialog->open();
}

void MainWindow::writeTables(const PlanUpdateSnapshot &good, const QString &folder)
{
    writeOnWorker(tr("Wrote six tables to %1").arg(folder), [good, folder, table = m_workspace.table()] {
        const auto [communication, ranks] = reportTables(*good);
        const std::pair<const char *, std::string> files[] = {{"rows.csv", rowsCsv(table, good.get())},
            {"spans.csv", spansCsv(*good->scene)}, {"memory.csv", memoryCsv(*good->scene->timeline)},
            {"traffic.csv", trafficCsv(*good->scene->timeline)}, {"communication.csv", communication},
            {"ranks.csv", ranks}};
        Result<void> outcome{};
        for (const auto &[name, text] : files)
            if (outcome)
                outcome = writeFile((folder + QLatin1Char('/') + QLatin1String(name)).toStdString(), text);
        return outcome;
    });
}

void MainWindow::topologyDialog()
{
    auto *dialog = new QFileDialog(this, tr("Files about machines: one of each host, and Slurm's topology"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFiles);
    dialog->setNameFilter(tr("Topologies (*.xml *.txt *.log *.conf *.yaml *.yml *.json);;All files (*)"));
    connect(dialog, &QFileDialog::filesSelected, this, &MainWindow::useTopologies);
    dialog->open();
}

/// Plans for the machines that files describe. What devices they are, where no file says, are those of the
/// design.
void MainWindow::useTopologies(const QStringList &paths)
{
    std::vector<std::string> names;
    for (const QString &path : paths)
        names.push_back(path.toStdString());
    const std::string planned = splitFramework(m_workspace.cluster()).first;
    using Made = std::shared_ptr<Result<MachineCluster>>;
    auto *watcher = new QFutureWatcher<Made>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
        watcher->deleteLater();
        const Made made = watcher->result();
        if (!*made) {
            m_notices->show(
                {QStringLiteral("cluster"), NoticeKind::Error, toQString(describe(made->error())), {}, true});
            return;
        }
        QStringList lines;
        for (const std::string &sentence : (*made)->read)
            lines << toQString(sentence);
        for (const std::string &sentence : (*made)->assumed)
            m_log->model()->add(LogKind::Session, tr("Assumed of the cluster: %1").arg(toQString(sentence)));
        lines << tr("%1, listed in the log.")
                     .arg(toQString(
                         counted(static_cast<std::int64_t>((*made)->assumed.size()), "assumption")));
        m_notices->show(
            {QStringLiteral("cluster"), NoticeKind::Info, lines.join(QLatin1Char('\n')), {}, true});
        const Cluster &cluster = (*made)->cluster;
        planFor(cluster.name, toJson(cluster), 0);
    });
    watcher->setFuture(QtConcurrent::run([names, device = planned.substr(0, planned.find(':'))] {
        auto made = machineClusterOf(names, {}, 0);
        if (!made && made.error().where == "--device")
            made = machineClusterOf(names, device, 0);
        return std::make_shared<Result<MachineCluster>>(std::move(made));
    }));
}

} // namespace planloom
