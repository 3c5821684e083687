#pragma once

#include <QtWidgets/QWidget>

#include "widgets/common/selection_model.h"
#include "widgets/main/outline_model.h"

class QLineEdit;
class QSortFilterProxyModel;
class QTreeView;

namespace planloom {

/// The outline of the model with a line to find operators and modules in it; selecting there selects everywhere.
class OutlinePanel : public QWidget
{
    Q_OBJECT
public:
    explicit OutlinePanel(SelectionModel *selection, QWidget *parent = nullptr);

    void setGraph(GraphSnapshot graph);
    QLineEdit *findLine() const { return m_find; }
    QTreeView *tree() const { return m_tree; }

Q_SIGNALS:
    /// The person chose a row here (the selection has changed already).
    void activated();

private:
    void filter(const QString &text);
    void expandRoots();
    void pushSelection();
    void pullSelection();

    SelectionModel *m_selection;
    OutlineModel *m_model;
    QSortFilterProxyModel *m_proxy;
    QLineEdit *m_find;
    QTreeView *m_tree;
    bool m_syncing = false; ///< One of the two selections is following the other.
};

} // namespace planloom
