#include "widgets/target/cluster_chooser.h"

#include <QtCore/QSignalBlocker>
#include <QtGui/QWheelEvent>

#include "engine/hardware/cluster.h"
#include "engine/runtime/machine/machine_cluster.h"

namespace planloom {

namespace {

enum Role : int { NameRole = Qt::UserRole, JsonRole };

constexpr int kAsking = 3; ///< Entries at the end that ask for more.

} // namespace

ClusterChooser::ClusterChooser(QWidget *parent)
    : QComboBox(parent)
{
    setAccessibleName(tr("Cluster"));
    setSizeAdjustPolicy(QComboBox::AdjustToContents);
    for (const std::string &name : clusterNames()) {
        const QString text = QString::fromStdString(name);
        addItem(text);
        setItemData(count() - 1, text, NameRole);
    }
    insertSeparator(count());
    addItem(tr("This Machine…"));
    addItem(tr("From a File…"));
    addItem(tr("From Measurements…"));
    connect(this, &QComboBox::activated, this, &ClusterChooser::onActivated);
}

int ClusterChooser::indexOf(const QString &name, const QByteArray &json) const
{
    for (int i = 0; i < count(); ++i) {
        if (itemData(i, NameRole).toString() == name && itemData(i, JsonRole).toByteArray() == json)
            return i;
    }
    return -1;
}

void ClusterChooser::showCluster(const std::string &name, const std::string &json)
{
    const QSignalBlocker blocker(this);
    const QString text = QString::fromStdString(name);
    const QByteArray content = QByteArray::fromStdString(json);
    int index = indexOf(text, content);
    if (index < 0) { // before the separator
        index = count() - kAsking - 1;
        insertItem(index, content.isEmpty() || name == kThisMachine ? text : tr("%1 (file)").arg(text));
        setItemData(index, text, NameRole);
        setItemData(index, content, JsonRole);
    }
    setCurrentIndex(index);
    m_shown = index;
}

void ClusterChooser::wheelEvent(QWheelEvent *event)
{
    event->ignore();
}

void ClusterChooser::onActivated(int index)
{
    if (const int asking = index - (count() - kAsking); asking >= 0) {
        setCurrentIndex(m_shown); // until there is one
        if (asking == 0)
            Q_EMIT machineAsked();
        else if (asking == 1)
            Q_EMIT fileAsked();
        else
            Q_EMIT measurementsAsked();
        return;
    }
    m_shown = index;
    Q_EMIT chosen(itemData(index, NameRole).toString().toStdString(),
        itemData(index, JsonRole).toByteArray().toStdString());
}

} // namespace planloom

#include "moc_cluster_chooser.cpp"
