#include "widgets/main/constraint_panel.h"

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTableView>

namespace planloom {

ConstraintPanel::ConstraintPanel(QWidget *parent)
    : QWidget(parent), m_editor(new ConstraintEditor(this)), m_model(new ReportModel(this)),
      m_reports(new QTableView(this))
{
    m_reports->setModel(m_model);
    m_reports->setFrameShape(QFrame::NoFrame);
    m_reports->setShowGrid(false);
    m_reports->setAlternatingRowColors(true);
    m_reports->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_reports->setSelectionMode(QAbstractItemView::SingleSelection);
    m_reports->setAccessibleName(tr("Rows and what became of them"));
    m_reports->verticalHeader()->hide();
    m_reports->verticalHeader()->setDefaultSectionSize(m_reports->fontMetrics().height() + 8);
    m_reports->horizontalHeader()->setHighlightSections(false);
    m_reports->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_reports->horizontalHeader()->setStretchLastSection(true);
    m_reports->setColumnWidth(ReportModel::Line, 46);
    m_reports->setColumnWidth(ReportModel::Row, 190);
    m_reports->setColumnWidth(ReportModel::Selected, 66);
    m_reports->setColumnWidth(ReportModel::Bound, 60);
    auto *splitter = new QSplitter(this);
    splitter->addWidget(m_editor);
    splitter->addWidget(m_reports);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 3);
    splitter->setSizes({620, 440});
    splitter->setChildrenCollapsible(false);
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(splitter);
    connect(m_reports, &QTableView::clicked, this,
        [this](const QModelIndex &index) { m_editor->showLine(m_model->lineAt(index.row())); });
}

void ConstraintPanel::setUpdate(const PlanUpdateSnapshot &update)
{
    m_editor->setReports(update);
    m_model->setUpdate(update);
}

} // namespace planloom
