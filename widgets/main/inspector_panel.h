#pragma once

#include <QtWidgets/QTextBrowser>

#include "widgets/common/selection_model.h"
#include "widgets/design/engine_job.h"

namespace planloom {

/// Says what is known of the selection: kind, dimensions, decision and why, tensors, cost.
class InspectorPanel : public QTextBrowser
{
    Q_OBJECT
public:
    explicit InspectorPanel(SelectionModel *selection, QWidget *parent = nullptr);

    void setModel(ModelSnapshot model);
    /// @param update  the plan that is shown; null for none
    void setPlan(PlanUpdateSnapshot update);

protected:
    void changeEvent(QEvent *event) override;

private:
    void refresh();

    SelectionModel *m_selection;
    ModelSnapshot m_model;
    PlanUpdateSnapshot m_update;
};

} // namespace planloom
