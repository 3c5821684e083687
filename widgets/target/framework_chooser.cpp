#include "widgets/target/framework_chooser.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QSignalBlocker>
#include <QtGui/QWheelEvent>

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "engine/runtime/machine/machine_cluster.h"
#include "widgets/design/workspace.h"

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct FrameworkTexts {
    Q_DECLARE_TR_FUNCTIONS(Frameworks)
};

} // namespace

FrameworkChooser::FrameworkChooser(Workspace &workspace, QWidget *parent)
    : QComboBox(parent)
    , m_workspace(workspace)
{
    setObjectName(QStringLiteral("framework"));
    setAccessibleName(tr("Framework"));
    setSizeAdjustPolicy(QComboBox::AdjustToContents);
    addItem(tr("no framework"), QString());
    for (const std::string &name : frameworkNames())
        addItem(QString::fromStdString(name), QString::fromStdString(name));
    for (int i = 0; i < count(); ++i)
        setItemData(i, tipOfFramework(itemData(i).toString().toStdString()), Qt::ToolTipRole);
    connect(this, &QComboBox::activated, this,
        [this](int index) { m_workspace.setFramework(itemData(index).toString().toStdString()); });
    connect(&workspace, &Workspace::clusterChanged, this, &FrameworkChooser::showDesign);
    showDesign();
}

/// A cluster whose file has the figures of a framework leaves nothing to choose.
void FrameworkChooser::showDesign()
{
    const QSignalBlocker blocker(this);
    const std::string own = frameworkOfFile(m_workspace.clusterJson());
    const std::string name = own.empty() ? m_workspace.framework() : own;
    int index = findData(QString::fromStdString(name));
    if (index < 0) { // one that no profile is of, as a file may name it: what is planned says so
        index = count();
        addItem(QString::fromStdString(name), QString::fromStdString(name));
    }
    setCurrentIndex(index);
    setEnabled(own.empty());
    setToolTip(own.empty()
            ? tipOfFramework(name)
            : tr("<p>The cluster's file has the figures of %1 in it: choose another cluster to choose a "
                 "framework.</p>")
                    .arg(QString::fromStdString(own).toHtmlEscaped())
                + tipOfFramework(own));
}

void FrameworkChooser::wheelEvent(QWheelEvent *event)
{
    event->ignore();
}

QString tipOfFramework(const std::string &name)
{
    if (name.empty())
        return FrameworkTexts::tr(
            "<p>The step is predicted for no framework: kernels take what timings of them say, each is "
            "launched as fast as the device takes it, and element-wise operators that follow one another are "
            "one launch. This is the default.</p>");
    QString text =
        QStringLiteral("<p>%1</p>").arg(QString::fromStdString(meaningOfFramework(name)).toHtmlEscaped());
    for (const FrameworkAssumption &each : assumptionsOfFramework(name)) {
        const QString words = QString::fromStdString(each.words).toHtmlEscaped();
        text += each.source.empty() ? QStringLiteral("<p>• %1</p>").arg(words)
                                    : FrameworkTexts::tr("<p>• %1<br><small>Source: %2</small></p>")
                                          .arg(words, QString::fromStdString(each.source).toHtmlEscaped());
    }
    return text;
}

std::string frameworkOfFile(const std::string &json)
{
    const auto cluster = json.empty() ? Result<Cluster>(Cluster{}) : clusterFromJson(json, 1);
    return cluster ? cluster->framework : std::string();
}

std::string keepingFramework(const std::string &name, const std::string &json, const std::string &framework)
{
    const bool isOwn = name == kThisMachine || !splitFramework(name).second.empty();
    return isOwn || !frameworkOfFile(json).empty() ? name : joinFramework(name, framework);
}

} // namespace planloom

#include "moc_framework_chooser.cpp"
