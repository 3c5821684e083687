#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QWidget>

#include "widgets/common/selection_model.h"
#include "widgets/main/outline_model.h"

#include <stop_token>

class QLineEdit;
class QTreeView;

namespace planloom {

/// The outline of the model with a line to find operators and modules in it; selecting there selects
/// everywhere. Outlines are made on a worker; until one is there the last one stays.
class OutlinePanel : public QWidget
{
    Q_OBJECT
public:
    explicit OutlinePanel(SelectionModel *selection, QWidget *parent = nullptr);
    ~OutlinePanel() override;

    void setGraph(GraphSnapshot graph);
    QLineEdit *findLine() const { return m_find; }
    QTreeView *tree() const { return m_tree; }
    /// What is shown is the outline that was asked for last.
    bool isSettled() const { return !m_making; }

Q_SIGNALS:
    /// The person chose a row here (the selection has changed already).
    void activated();

private:
    void make();
    void take();
    void openSome();
    void pushSelection();
    void pullSelection();

    SelectionModel *m_selection;
    OutlineModel *m_model;
    QLineEdit *m_find;
    QTreeView *m_tree;
    GraphSnapshot m_graph;
    QFutureWatcher<OutlineTreeSnapshot> m_watcher{this};
    std::stop_source m_stop;
    bool m_making = false;
    bool m_syncing = false; ///< One of the two selections is following the other.
};

} // namespace planloom
