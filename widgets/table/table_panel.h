#pragma once

#include <QtWidgets/QWidget>

#include "widgets/table/constraint_table_model.h"
#include "widgets/table/table_list_model.h"

#include <cstdint>
#include <string>
#include <vector>

class QAction;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTabBar;
class QToolButton;

namespace planloom {

class PastePreview;
class PriceService;
class RowsView;
class SelectionModel;
class TableDelegate;
class TableLinks;
class TableTextEditor;
class Workspace;

/// The *Constraints* dock: the workspace's rows as a grid with typed editors, and as text; linked both ways
/// with what is selected in the views. Every edit is a step of the workspace's history.
class TablePanel : public QWidget
{
    Q_OBJECT
public:
    TablePanel(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);
    ~TablePanel() override;

    /// Shows the row at `line` of the document (0-based) in the present mode, selects it and takes the focus.
    void focusRow(std::int32_t line);
    /// Lines of the selected rows, ascending.
    std::vector<std::int32_t> selectedLines() const;
    /// *Acting on Selection* (Ctrl+L): only rows that act on what is selected. All actions are among
    /// `actions()`.
    QAction *actingOnSelectionAction() const { return m_acting; }
    /// Mode, order, grouping, filter, widths; a text to be given to `restoreViewState`.
    std::string viewState() const;
    void restoreViewState(const std::string &state);

    bool isTextMode() const;
    void setTextMode(bool text);
    RowsView *grid() const { return m_view; }
    TableTextEditor *textEditor() const { return m_text; }
    QLineEdit *filterLine() const { return m_filter; }
    TableListModel *list() const { return m_list; }
    ConstraintTableModel *rows() const { return m_rows; }
    PastePreview *pastePreview() const { return m_pastePreview; }
    PriceService *prices() const { return m_prices; }
    /// What the last action had to say; empty for nothing.
    QString message() const;

    void copyRows();
    void cutRows();
    void pasteRows(); ///< Shows what they will bind; they are written when that is accepted.
    void duplicateRows();
    void removeRows();
    void switchRows(); ///< On, if one of the selected is off.
    void switchStrength(); ///< To preferences, if one of the selected must hold.
    void moveRows(int by); ///< -1 up, 1 down.
    void fillDown();
    void newRow();
    void selectOperators();
    void keepRows(bool all); ///< Rows of the solver, the selected ones or all: they become a person's own.
    void copyPlan();

protected:
    void focusInEvent(QFocusEvent *event) override; ///< The grid or the text takes it.
    void resizeEvent(QResizeEvent *event) override;

private:
    static constexpr int kGridTab = 0;
    static constexpr int kTextTab = 1;

    void buildBar();
    void fitBar();
    void buildActions();
    QAction *addRowAction(
        const char *name, const QString &text, const QKeySequence &shortcut, const QString &tip);
    void connectWorkspace();
    void connectLinks();

    void takeDocument();
    void takeUpdate();
    void takeModel();
    void takeSelection();
    void findActing();
    void rowsSelected();
    void selectLines(const std::vector<std::int32_t> &lines, int column = -1);
    void say(const QString &text, bool problem = false);
    void refreshActions();
    void refreshMessage();
    void sortBy(int column);
    void showContextMenu(const QPoint &position);
    void insertPasted(const struct PastedRows &pasted);
    bool edit(const QString &words, const TableEdit &edit, const QString &mergeKey = {});
    void keepLines(const std::vector<std::int32_t> &lines);

    std::vector<int> selectedRows() const; ///< Rows of the model, ascending.
    std::vector<struct LinkedRow> linkedRows(const std::vector<int> &rows) const;
    std::vector<std::int32_t> blockLines(const std::vector<int> &rows) const;
    QString nameOfRows(const std::vector<int> &rows) const;

    Workspace *m_workspace;
    SelectionModel *m_selection;
    ConstraintTableModel *m_rows;
    TableListModel *m_list;
    TableDelegate *m_delegate;
    TableLinks *m_links;
    PriceService *m_prices;
    RowsView *m_view;
    PastePreview *m_pastePreview;
    TableTextEditor *m_text;
    QStackedWidget *m_stack;
    QTabBar *m_tabs;
    QLineEdit *m_filter;
    QLabel *m_message;
    QToolButton *m_menu;
    QToolButton *m_grouping;
    QToolButton *m_keepButton;
    QToolButton *m_actingButton;
    QHBoxLayout *m_bar;

    QAction *m_acting = nullptr;
    QAction *m_actingFirst = nullptr;
    QAction *m_pricesAction = nullptr;
    QAction *m_textMode = nullptr;
    QAction *m_textOrder = nullptr;
    QAction *m_groupBy[3] = {nullptr, nullptr, nullptr};
    QAction *m_cut = nullptr;
    QAction *m_copy = nullptr;
    QAction *m_paste = nullptr;
    QAction *m_duplicate = nullptr;
    QAction *m_remove = nullptr;
    QAction *m_switch = nullptr;
    QAction *m_prefer = nullptr;
    QAction *m_up = nullptr;
    QAction *m_down = nullptr;
    QAction *m_fill = nullptr;
    QAction *m_new = nullptr;
    QAction *m_edit = nullptr;
    QAction *m_operators = nullptr;
    QAction *m_keep = nullptr;
    QAction *m_keepAll = nullptr;
    QAction *m_copyPlan = nullptr;

    std::unordered_set<ConstraintTableModel::RowKey> m_actingRows; ///< On what is selected elsewhere.
    std::vector<ConstraintTableModel::RowKey> m_keptSelection; ///< While the list is reset.
    bool m_ownSelection = false; ///< What is selected was selected by rows.
    bool m_selecting = false; ///< This panel is changing the shared selection.
    bool m_quiet = false; ///< The grid's selection changes without a person.
    int m_textLine = -1; ///< Where the text's cursor was.
    bool m_lastMessageIsProblem = false;
};

} // namespace planloom
