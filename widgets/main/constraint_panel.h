#pragma once

#include <QtWidgets/QWidget>

#include "widgets/main/constraint_editor.h"
#include "widgets/main/report_model.h"

class QTableView;

namespace planloom {

/// The constraint table: its text, and beside it what became of each row.
class ConstraintPanel : public QWidget
{
    Q_OBJECT
public:
    explicit ConstraintPanel(QWidget *parent = nullptr);

    ConstraintEditor *editor() const { return m_editor; }
    QTableView *reports() const { return m_reports; }
    void setUpdate(const PlanUpdateSnapshot &update);

private:
    ConstraintEditor *m_editor;
    ReportModel *m_model;
    QTableView *m_reports;
};

} // namespace planloom
