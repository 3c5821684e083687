#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QTextBrowser>

#include <memory>

#include "widgets/common/selection_model.h"
#include "widgets/design/plan_update.h"

namespace planloom {

/// Says what is known of the selection: kind, dimensions, decision and why, tensors, cost. Written on a
/// worker, and only while it is in sight.
class InspectorPanel : public QTextBrowser
{
    Q_OBJECT
public:
    explicit InspectorPanel(SelectionModel *selection, QWidget *parent = nullptr);
    ~InspectorPanel() override;

    void setModel(ModelSnapshot model);
    /// @param update  the plan that is shown; null for none
    void setPlan(PlanUpdateSnapshot update);
    /// Rows behind a decision are shown as they read, or in a line each.
    void setInFull(bool isInFull);

protected:
    void changeEvent(QEvent *event) override;
    void showEvent(QShowEvent *event) override;

private:
    void refresh();
    void take();

    SelectionModel *m_selection;
    ModelSnapshot m_model;
    PlanUpdateSnapshot m_update;
    QFutureWatcher<std::shared_ptr<QTextDocument>> m_watcher{this};
    std::shared_ptr<QTextDocument> m_text; ///< What is shown; null before the first text.
    bool m_isInFull = false;
    bool m_outdated =
        false; ///< Something has changed out of sight, or while the last text was being written.
};

} // namespace planloom
