#pragma once

#include <QtCore/QMimeData>
#include <QtCore/QTimer>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QWindow>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QtTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QCompleter>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/limit_cell_editor.h"
#include "widgets/table/kinds/split_cell_editor.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"
#include "widgets/table/table_text_editor.h"

#include <memory>
#include <string>
#include <vector>

namespace planloom {

inline const std::string kSmall = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=8";
inline const std::string kTiny = "zoo:mlp?layers=2&hidden=32&batch=8";
inline const std::string kRows = "# data parallel\n"
                                 "mesh dp=2 tp=2\n"
                                 "split all : batch over dp\n"
                                 "split kind:Linear : m by 2  # wrong by intent\n"
                                 "place layer:0 : devices 0\n";

/// A Constraints dock on a workspace, and hands to use it with. What is tested is in the classes made from
/// it.
class TablePanelFixture : public QObject
{
protected:
    std::unique_ptr<Workspace> m_workspace;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TablePanel> m_panel;

    void open(const std::string &rows, const std::string &model = kSmall)
    {
        m_panel.reset();
        m_workspace = std::make_unique<Workspace>();
        m_selection = std::make_unique<SelectionModel>();
        m_workspace->openWith({model, {}, {}}, "dgx-a100", 4, {}, rows);
        QTRY_VERIFY_WITH_TIMEOUT(m_workspace->model() != nullptr, kLong);
        m_panel = std::make_unique<TablePanel>(m_workspace.get(), m_selection.get());
        m_panel->prices()->setEnabled(false);
        m_panel->resize(1200, 400);
        m_panel->show();
        m_panel->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_panel.get()));
        QTRY_COMPARE_WITH_TIMEOUT(
            QString::fromStdString(m_workspace->tableText()), QString::fromStdString(rows), kLong);
    }
    QString text() const { return QString::fromStdString(m_workspace->tableText()); }
    QModelIndex cell(int row, TableColumn column) const
    {
        return m_panel->list()->index(row, static_cast<int>(column));
    }
    /// Goes to a cell, as with the arrows.
    void go(int row, TableColumn column)
    {
        m_panel->grid()->setFocus();
        m_panel->grid()->setCurrentIndex(cell(row, column));
    }
    /// The editor that is open; null if none is.
    CellEditor *editor() const
    {
        const auto editors = m_panel->grid()->viewport()->findChildren<CellEditor *>();
        for (CellEditor *editor : editors) {
            if (editor->isVisible())
                return editor;
        }
        return nullptr;
    }
    void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QVERIFY(QApplication::focusWidget());
        QTest::keyClick(QApplication::focusWidget(), key, modifiers);
    }
    void type(const char *text)
    {
        // Key by key: the first one may open an editor.
        for (const QChar c : QString::fromLatin1(text)) {
            QVERIFY(QApplication::focusWidget());
            QTest::keyClick(QApplication::focusWidget(), c.toLatin1());
        }
    }
    void selectRows(std::initializer_list<int> rows)
    {
        QItemSelection selection;
        for (const int row : rows)
            selection.select(m_panel->list()->index(row, 0), m_panel->list()->index(row, kTableColumns - 1));
        m_panel->grid()->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
    }
    QAction *action(const char *name) const
    {
        return m_panel->findChild<QAction *>(QString::fromLatin1(name));
    }
    std::vector<OperatorId> selectedBy(const char *selector) const
    {
        std::vector<OperatorId> forward;
        for (const OperatorId op : m_workspace->model()->index->select(*parseSelector(selector))) {
            if (m_workspace->model()->graph->at(op).direction == Direction::Forward)
                forward.push_back(op);
        }
        return forward;
    }

    /// What the grid drags when the selected rows are pulled.
    std::unique_ptr<QMimeData> dragged() const
    {
        return std::unique_ptr<QMimeData>(
            m_panel->list()->mimeData(m_panel->grid()->selectionModel()->selectedIndexes()));
    }
    /// Carries `data` over the grid and lets go at `at`. @return whether it was taken
    bool drop(const QMimeData &data, QPoint at)
    {
        QWidget *viewport = m_panel->grid()->viewport();
        QDragEnterEvent enter(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(viewport, &enter);
        QDragMoveEvent move(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(viewport, &move);
        if (!move.isAccepted()) {
            QDragLeaveEvent leave;
            QApplication::sendEvent(viewport, &leave);
            return false;
        }
        QDropEvent event(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(viewport, &event);
        return event.isAccepted();
    }

    void close()
    {
        m_panel.reset();
        m_selection.reset();
        m_workspace.reset();
    }
};

} // namespace planloom
