// What the simulator assumes, and what of it can be chosen.

#include "widgets/main/main_window.h"

#include "engine/hardware/cluster_json.h"
#include "widgets/main/command_registry.h"

namespace planloom {

namespace {

constexpr const char *kOneQueueSuffix = "-one-queue"; ///< Of the name of a cluster that is changed so.

} // namespace

QAction *MainWindow::buildOneQueue()
{
    QAction *one = m_commands->add("plan.oneQueue", tr("All Communication in One &Queue"), {}, nullptr);
    one->setCheckable(true);
    one->setToolTip(tr("The simulation lets collectives, gradients and transfers between stages wait in one "
                       "queue, in place of one for each"));
    m_commands->enableWhile(
        one, [this] { return isPlannable() && !m_workspace.isReadOnly() && m_workspace.lastGood(); });
    connect(one, &QAction::triggered, this, [this](bool on) {
        setCommunicationQueues(on ? CommunicationQueues::One : CommunicationQueues::Own);
    });
    connect(&m_workspace, &Workspace::planChanged, one, [this, one] {
        const PlanUpdateSnapshot good = m_workspace.lastGood();
        one->setChecked(good && good->cluster.communicationQueues == CommunicationQueues::One);
    });
    return one;
}

/// The cluster with other queues, as a cluster of the design's own; a profile that is itself again is named
/// as one.
void MainWindow::setCommunicationQueues(CommunicationQueues queues)
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good || good->cluster.communicationQueues == queues)
        return;
    Cluster cluster = good->cluster;
    std::string name = m_workspace.cluster().substr(0, m_workspace.cluster().find(':'));
    if (name.ends_with(kOneQueueSuffix))
        name.resize(name.size() - std::string(kOneQueueSuffix).size());
    cluster.communicationQueues = queues;
    const auto profile = clusterNamed(name + ":" + std::to_string(cluster.deviceCount));
    if (queues == CommunicationQueues::Own && profile) {
        cluster.name = profile->name;
        if (cluster == *profile) {
            m_workspace.setCluster(name);
            return;
        }
    }
    if (queues == CommunicationQueues::One)
        name += kOneQueueSuffix;
    cluster.name = name;
    m_workspace.setCluster(name, toJson(cluster));
}

} // namespace planloom
