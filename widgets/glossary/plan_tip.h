#pragma once

#include <QtCore/QObject>
#include <QtCore/QPointer>
#include <QtCore/QString>

#include "widgets/design/plan_update.h"

class QWidget;

namespace planloom {

class Workspace;

/// What the plan that is shown is (`planNameOf`), in a sentence; empty without one.
QString planSentence(const Workspace &workspace);

/// Says in a widget's tool tip what the plan is. It is found when the tip is asked for, and kept until there
/// is another plan.
class PlanTip : public QObject
{
    Q_OBJECT
public:
    /// @param widget  whose child it becomes
    PlanTip(const Workspace *workspace, QWidget *widget);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    const Workspace *m_workspace;
    PlanUpdateSnapshot m_named; ///< That `m_sentence` is of.
    QString m_sentence;
};

} // namespace planloom
