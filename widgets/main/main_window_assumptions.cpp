// What the simulator assumes, and what of it can be chosen.

#include "widgets/main/main_window.h"

#include <QtWidgets/QMenu>

#include "engine/design/models/target.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "widgets/main/command_registry.h"

namespace planloom {

namespace {

constexpr const char *kOneQueueSuffix = "-one-queue"; ///< Of the name of a cluster that is changed so.
constexpr const char *kBlockingSuffix = "-blocking-sends";

} // namespace

void MainWindow::buildAssumptions(QMenu *menu)
{
    const auto add = [&](const char *id, const QString &text, const QString &tip, const auto &change,
                         const auto &isOn) {
        QAction *action = m_commands->add(id, text, {}, nullptr);
        action->setCheckable(true);
        action->setToolTip(tip);
        m_commands->enableWhile(
            action, [this] { return isPlannable() && !m_workspace.isReadOnly() && m_workspace.lastGood(); });
        connect(action, &QAction::triggered, this, [this, change](bool on) {
            if (const PlanUpdateSnapshot good = m_workspace.lastGood())
                change(good->cluster, on);
        });
        connect(&m_workspace, &Workspace::planChanged, action, [this, action, isOn] {
            const PlanUpdateSnapshot good = m_workspace.lastGood();
            action->setChecked(good && isOn(good->cluster));
        });
        menu->addAction(action);
    };
    add(
        "plan.oneQueue", tr("All Communication in One &Queue"),
        tr("The simulation lets collectives, gradients and transfers between stages wait in one queue, in "
           "place of one for each"),
        [this](const Cluster &cluster, bool on) {
            assume(on ? CommunicationQueues::One : CommunicationQueues::Own, cluster.blockingSends);
        },
        [](const Cluster &cluster) { return cluster.communicationQueues == CommunicationQueues::One; });
    add(
        "plan.blockingSends", tr("Sends &Block Computation"),
        tr("The simulation lets a device compute nothing while it sends to another stage, as with sends on "
           "the stream that computes"),
        [this](const Cluster &cluster, bool on) { assume(cluster.communicationQueues, on); },
        [](const Cluster &cluster) { return cluster.blockingSends; });
}

/// The cluster as it is simulated otherwise, as a cluster of the design's own; a profile that is itself again
/// is named as one.
void MainWindow::assume(CommunicationQueues queues, bool blockingSends)
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good
        || (good->cluster.communicationQueues == queues && good->cluster.blockingSends == blockingSends))
        return;
    const auto [word, framework] = splitFramework(m_workspace.cluster());
    const auto plain = resolve({word, m_workspace.clusterJson(), m_workspace.deviceCount()});
    if (!plain)
        return;
    Cluster cluster = plain->cluster;
    std::string name = word.substr(0, word.find(':'));
    for (const char *suffix : {kBlockingSuffix, kOneQueueSuffix}) // as they are put behind one another
        if (name.ends_with(suffix))
            name.resize(name.size() - std::string(suffix).size());
    cluster.communicationQueues = queues;
    cluster.blockingSends = blockingSends;
    const auto profile = clusterNamed(name + ":" + std::to_string(cluster.deviceCount));
    if (profile) {
        cluster.name = profile->name;
        if (cluster == *profile) {
            m_workspace.setCluster(joinFramework(name, framework));
            return;
        }
    }
    if (queues == CommunicationQueues::One)
        name += kOneQueueSuffix;
    if (blockingSends)
        name += kBlockingSuffix;
    cluster.name = name;
    m_workspace.setCluster(joinFramework(name, framework), toJson(cluster));
}

} // namespace planloom
