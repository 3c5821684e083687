#include "widgets/run/machine_devices.h"

#include "engine/runtime/machine/machine_cluster.h"
#include "widgets/common/format.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFutureWatcher>
#include <QtCore/QStringList>

#include <algorithm>
#include <utility>

namespace planloom {

MachineProbe::MachineProbe(QObject *parent)
    : QObject(parent)
{
    m_timer.setSingleShot(true);
    m_timer.setInterval(kPatienceMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, [this] {
        if (m_process)
            m_process->kill(); // `finished` follows
    });
}

MachineProbe::~MachineProbe()
{
    if (!m_process)
        return;
    m_process->disconnect(this);
    m_process->kill();
    m_process->waitForFinished(kPatienceMilliseconds);
}

void MachineProbe::look(const QString &program)
{
    if (m_looking)
        return;
    m_looking = true;
    m_process = std::make_unique<QProcess>();
    m_process->setProgram(program);
    m_process->setArguments({QStringLiteral("probe")});
    m_process->setStandardErrorFile(QProcess::nullDevice());
    connect(m_process.get(), &QProcess::finished, this, [this](int, QProcess::ExitStatus status) {
        if (status == QProcess::CrashExit)
            return ended(tr("The search for devices ended badly; a driver may not answer."));
        take(m_process->readAllStandardOutput());
    });
    connect(m_process.get(), &QProcess::errorOccurred, this, [this, program](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            ended(tr("%1 cannot be started: %2").arg(program, m_process->errorString()));
    });
    m_timer.start();
    m_process->start(QIODevice::ReadOnly);
    Q_EMIT changed();
}

bool MachineProbe::hasGpus() const
{
    return m_found && std::any_of(m_found->gpus.begin(), m_found->gpus.end(), [](const ProbedGpu &gpu) {
        return gpu.problem.empty();
    });
}

/// What was measured on this machine is a file of some size: read on a pool thread.
void MachineProbe::take(const QByteArray &text)
{
    auto found = probeFromJson(text.toStdString());
    if (!found)
        return ended(QString::fromStdString(found.error().message));
    m_found = *std::move(found);
    auto *watcher = new QFutureWatcher<std::shared_ptr<Result<Cluster>>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
        watcher->deleteLater();
        m_cluster = *watcher->result();
        ended({});
    });
    watcher->setFuture(QtConcurrent::run([probe = *m_found] {
        std::optional<MachineProfile> measured;
        if (auto profile = readProfile(profilePath()); profile && profile->machine == machineName())
            measured = *std::move(profile);
        return std::make_shared<Result<Cluster>>(machineCluster(probe, measured));
    }));
}

void MachineProbe::ended(const QString &problem)
{
    m_timer.stop();
    m_looking = false;
    m_problem = problem;
    m_process->disconnect(this);
    m_process.release()->deleteLater(); // it may be the sender of what brought us here
    Q_EMIT changed();
}

namespace {

QString sizeText(Bytes bytes)
{
    return bytes.count > 0 ? QString::fromStdString(formatBytes(bytes)) : QString();
}

QString stateText(const std::string &problem)
{
    return problem.empty() ? QStringLiteral("✓") : QStringLiteral("✖  ") + QString::fromStdString(problem);
}

QString detailsOf(const ProbedGpu &gpu)
{
    QStringList details;
    if (gpu.computeCapability > 0)
        details << MachineDevicesModel::tr("compute capability %1.%2")
                       .arg(gpu.computeCapability / 10)
                       .arg(gpu.computeCapability % 10);
    int links = 0;
    for (const ProbedLinks &each : gpu.links)
        links += each.count;
    if (links > 0)
        details << MachineDevicesModel::tr("%1 NVLinks").arg(links);
    if (gpu.pcieGeneration > 0)
        details << MachineDevicesModel::tr("PCIe %1 x%2").arg(gpu.pcieGeneration).arg(gpu.pcieWidth);
    if (gpu.temperature)
        details << MachineDevicesModel::tr("%1 °C").arg(*gpu.temperature);
    return details.join(QStringLiteral(" · "));
}

} // namespace

void MachineDevicesModel::setFound(const std::optional<Probe> &found, const QString &instead)
{
    beginResetModel();
    m_lines.clear();
    if (!instead.isEmpty() || !found)
        m_lines.push_back({.device = tr("This machine"), .state = instead});
    if (found) {
        QStringList cpu{found->cpu.cores == 1 ? tr("1 core") : tr("%1 cores").arg(found->cpu.cores)};
        if (!found->cpu.vectorUnits.empty())
            cpu << QString::fromStdString(found->cpu.vectorUnits);
        m_lines.push_back(
            {found->cpu.name.empty() ? tr("Processor") : QString::fromStdString(found->cpu.name),
                sizeText(found->cpu.memory), cpu.join(QStringLiteral(" · ")), stateText({})});
        for (const ProbedGpu &gpu : found->gpus)
            m_lines.push_back({tr("GPU %1: %2").arg(gpu.index).arg(QString::fromStdString(gpu.name)),
                sizeText(gpu.memory), detailsOf(gpu), stateText(gpu.problem)});
        if (!found->gpuProblem.empty())
            m_lines.push_back({tr("GPUs"), {}, {}, stateText(found->gpuProblem)});
        if (!found->driver.empty())
            m_lines.push_back({tr("NVIDIA driver"), {},
                tr("%1, CUDA %2")
                    .arg(QString::fromStdString(found->driver), QString::fromStdString(found->cuda)),
                stateText({})});
        for (const ProbedLibrary &library : found->libraries)
            m_lines.push_back({QString::fromStdString(library.name), {},
                QString::fromStdString(library.version), stateText(library.problem)});
    }
    endResetModel();
}

int MachineDevicesModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int MachineDevicesModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant MachineDevicesModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == Memory ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case Device:
        return line.device;
    case Memory:
        return line.memory;
    case Details:
        return line.details;
    default:
        return line.state;
    }
}

QVariant MachineDevicesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Device:
        return tr("Device");
    case Memory:
        return tr("Memory");
    case Details:
        return tr("What it is");
    default:
        return tr("Can be used");
    }
}

} // namespace planloom

#include "moc_machine_devices.cpp"
