#include "widgets/glossary/plan_tip.h"

#include <QtGui/QHelpEvent>
#include <QtWidgets/QToolTip>
#include <QtWidgets/QWidget>

#include "engine/naming/plan_name.h"
#include "widgets/design/workspace.h"
#include "widgets/glossary/glossary.h"

namespace planloom {

QString planSentence(const Workspace &workspace)
{
    const PlanUpdateSnapshot &shown = workspace.lastGood();
    return shown && shown->plan && shown->model
        ? QString::fromStdString(planNameOf(*shown->plan, *shown->model).sentence)
        : QString();
}

PlanTip::PlanTip(const Workspace *workspace, QWidget *widget)
    : QObject(widget)
    , m_workspace(workspace)
{
    widget->installEventFilter(this);
}

bool PlanTip::eventFilter(QObject *watched, QEvent *event)
{
    auto *widget = event->type() == QEvent::ToolTip ? qobject_cast<QWidget *>(watched) : nullptr;
    if (!widget)
        return QObject::eventFilter(watched, event);
    if (m_named != m_workspace->lastGood()) {
        m_named = m_workspace->lastGood();
        m_sentence = planSentence(*m_workspace);
    }
    const GlossaryEntry *pill = findTerm(QStringLiteral("Pill"));
    const QString plan =
        m_sentence.isEmpty() ? QString() : QStringLiteral("<p>%1</p>").arg(m_sentence.toHtmlEscaped());
    QToolTip::showText(static_cast<const QHelpEvent *>(event)->globalPos(),
        plan + (pill ? tipOf(*pill) : QString()), widget);
    return true;
}

} // namespace planloom

#include "moc_plan_tip.cpp"
