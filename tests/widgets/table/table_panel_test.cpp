#include <QtCore/QMimeData>
#include <QtGui/QAction>
#include <QtCore/QTimer>
#include <QtGui/QClipboard>
#include <QtGui/QWindow>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QtTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QCompleter>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QSpinBox>

#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/table/cell_editors.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"
#include "widgets/table/table_text_editor.h"

#include <random>

using namespace planloom;

namespace {

constexpr int kLong = 20'000;
const std::string kSmall = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=8";
const std::string kTiny = "zoo:mlp?layers=2&hidden=32&batch=8";
const std::string kRows = "# data parallel\n"
                          "mesh dp=2 tp=2\n"
                          "split all : batch over dp\n"
                          "split kind:Linear : m by 2  # wrong by intent\n"
                          "place layer:0 : devices 0\n";

} // namespace

class TablePanelTest : public QObject
{
    Q_OBJECT

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
        QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(m_workspace->tableText()), QString::fromStdString(rows), kLong);
    }
    QString text() const { return QString::fromStdString(m_workspace->tableText()); }
    QModelIndex cell(int row, TableColumn column) const { return m_panel->list()->index(row, static_cast<int>(column)); }
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
    QAction *action(const char *name) const { return m_panel->findChild<QAction *>(QString::fromLatin1(name)); }
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
        return std::unique_ptr<QMimeData>(m_panel->list()->mimeData(m_panel->grid()->selectionModel()->selectedIndexes()));
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

private Q_SLOTS:
    void cleanup()
    {
        m_panel.reset();
        m_selection.reset();
        m_workspace.reset();
    }

    void rowsTellWhatTheyBindAndWhatIsWrong()
    {
        open(kRows);
        const QAbstractItemModelTester tester(m_panel->list());
        QTRY_VERIFY_WITH_TIMEOUT(
            !cell(1, TableColumn::Binds).data().toString().isEmpty() || m_panel->rows()->isError(2), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(cell(1, TableColumn::Binds).data().toString().contains(QStringLiteral(" ops")), kLong);
        QCOMPARE(cell(0, TableColumn::Note).data(Qt::EditRole).toString(), QStringLiteral("data parallel"));
        m_workspace->setTableText("mesh dp=2 tp=2\nsplit all : batch over dp\nsplit layer:0 : batch over tp\nplace name:none : devices 0\n");
        QTRY_VERIFY_WITH_TIMEOUT(cell(2, TableColumn::Binds).data().toString().contains(QStringLiteral(" ops")), kLong);
    }

    void aRowThatCannotHoldIsRedWithTheSentence()
    {
        open("mesh dp=2 tp=2\nmesh dp=4\nsplit all : batch over dp\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->rows()->isError(1), kLong);
        // Both rows are named, by their numbers.
        const auto sentence = [&](int row) {
            return cell(row, TableColumn::Value).data(ConstraintTableModel::ProblemRole).toString();
        };
        QTRY_VERIFY2_WITH_TIMEOUT(sentence(1).startsWith(QStringLiteral("Rows 1 and 2 ")), qPrintable(sentence(1)), kLong);
        QCOMPARE(sentence(0), sentence(1));
        go(1, TableColumn::Value);
        QVERIFY(m_panel->message().startsWith(QStringLiteral("✖ Row 2. Rows 1 and 2 ")));
    }

    void aCellIsEditedWithTheKeyboard()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        go(0, TableColumn::Selector);
        type("layer:1");
        QVERIFY(editor());
        QVERIFY(qobject_cast<TextCellEditor *>(editor()));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("split layer:1 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()),
            QStringLiteral("change row 1 to split layer:1: batch by 2"));
        m_workspace->undo();
        QCOMPARE(cell(0, TableColumn::Selector).data().toString(), QStringLiteral("layer:0"));
    }

    void aHalfTypedCellIsSaidToBeWrongAndNotSent()
    {
        open("split layer:0 : batch by 2\n");
        go(0, TableColumn::Selector);
        key(Qt::Key_F2);
        QTRY_VERIFY(editor());
        auto *line = static_cast<TextCellEditor *>(editor())->line();
        line->selectAll();
        type("layer:x");
        QVERIFY2(editor()->problem().startsWith(QStringLiteral("Selector: expected layers as 3, 0-11, 4-* or *, found 'x'")),
            qPrintable(editor()->problem()));
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 2\n"));
        key(Qt::Key_Escape);
        QTRY_VERIFY(!editor());
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 2\n"));
        // Committed all the same it is kept, in red.
        key(Qt::Key_F2);
        QTRY_VERIFY(editor());
        static_cast<TextCellEditor *>(editor())->line()->selectAll();
        type("layer:x");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("split layer:x : batch by 2\n"));
        QVERIFY(m_panel->rows()->isError(0));
    }

    void selectorsAreCompletedFromTheModel()
    {
        open("split layer:0 : batch by 2\n");
        go(0, TableColumn::Selector);
        const auto words = [&](const char *typed) {
            go(0, TableColumn::Selector);
            key(Qt::Key_F2);
            auto *made = editor();
            if (!made)
                return QStringList();
            auto *line = static_cast<TextCellEditor *>(made)->line();
            line->clear();
            type(typed);
            QStringList found;
            auto *list = static_cast<TextCellEditor *>(made)->completer()->model();
            for (int i = 0; i < list->rowCount(); ++i)
                found << list->index(i, 0).data().toString();
            static_cast<TextCellEditor *>(made)->completer()->popup()->hide();
            QTest::keyClick(line, Qt::Key_Escape);
            return found;
        };
        QTRY_VERIFY_WITH_TIMEOUT(words("lay").contains(QStringLiteral("layer:0")), kLong);
        QVERIFY(words("kind:Lin").contains(QStringLiteral("kind:Linear")));
        QVERIFY(words("opt").contains(QStringLiteral("optimizer")));
        QVERIFY(!words("weight:").isEmpty());
    }

    void theRuleIsChosenAndTheValueFollows()
    {
        open("split layer:0 : batch by 2\n");
        go(0, TableColumn::Rule);
        key(Qt::Key_F2);
        QTRY_VERIFY(editor());
        auto *box = static_cast<ChoiceCellEditor *>(editor())->box();
        QCOMPARE(box->count(), 13);
        box->setCurrentIndex(box->findData(QStringLiteral("recompute")));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("recompute layer:0\n"));
    }

    void valuesHaveEditorsOfTheirRule()
    {
        open("mesh dp=2 tp=2\nsplit layer:0 : batch by 2\nmicro-batches 2\nlimit memory 40GiB\nin-flight 2\nschedule gpipe\n");
        go(1, TableColumn::Value);
        key(Qt::Key_F2);
        auto *split = qobject_cast<SplitCellEditor *>(editor());
        QVERIFY(split);
        QCOMPARE(split->text(), QStringLiteral("batch by 2"));
        QTRY_VERIFY_WITH_TIMEOUT(split->dimension()->count() > 1, kLong);
        QCOMPARE(split->dimension()->itemData(0).toString(), QStringLiteral("batch"));
        QVERIFY(split->parts()->findText(QStringLiteral("4")) >= 0);
        QVERIFY(split->parts()->findText(QStringLiteral("3")) < 0); // 8 samples
        QCOMPARE(split->axis()->count(), 2);
        split->parts()->setEditText(QStringLiteral("4"));
        key(Qt::Key_Return);
        QTRY_VERIFY2(text().contains(QStringLiteral("split layer:0 : batch by 4\n")), qPrintable(text()));

        go(2, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<CountCellEditor *>(editor()));
        auto *count = static_cast<CountCellEditor *>(editor());
        QTRY_VERIFY_WITH_TIMEOUT(count->count()->toolTip().contains(QStringLiteral("8")), kLong);
        count->count()->stepUp();
        QCOMPARE(count->text(), QStringLiteral("4")); // what divides 8
        key(Qt::Key_Return);
        QTRY_VERIFY(text().contains(QStringLiteral("micro-batches 4\n")));

        go(3, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<LimitCellEditor *>(editor()));
        QCOMPARE(editor()->text(), QStringLiteral("memory 40GiB"));
        key(Qt::Key_Escape);
        go(4, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<CountCellEditor *>(editor()));
        QCOMPARE(editor()->text(), QStringLiteral("2"));
        key(Qt::Key_Escape);
        go(5, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<ChoiceCellEditor *>(editor()));
        QCOMPARE(editor()->text(), QStringLiteral("gpipe"));
        key(Qt::Key_Escape);
    }

    void tabGoesThroughTheFieldsAndOnToTheNextCell()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        go(0, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<SplitCellEditor *>(editor()));
        auto *split = static_cast<SplitCellEditor *>(editor());
        QVERIFY(split->dimension()->hasFocus() || split->dimension()->lineEdit()->hasFocus());
        key(Qt::Key_Tab);
        QVERIFY(split->parts()->hasFocus() || split->parts()->lineEdit()->hasFocus());
        split->parts()->setEditText(QStringLiteral("4"));
        key(Qt::Key_Tab);
        QVERIFY(split->axis()->hasFocus() || split->axis()->lineEdit()->hasFocus());
        key(Qt::Key_Tab);
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 4\nschedule 1f1b\n"));
        QTRY_VERIFY(!qobject_cast<SplitCellEditor *>(editor()));
        m_panel->grid()->setFocus();
        go(0, TableColumn::Value);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<SplitCellEditor *>(editor()));
        static_cast<SplitCellEditor *>(editor())->parts()->setEditText(QStringLiteral("8"));
        key(Qt::Key_Escape);
        QTRY_VERIFY(!editor());
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 4\nschedule 1f1b\n"));
        QVERIFY(m_panel->grid()->hasFocus());
    }

    void severalRowsAreEditedAtOnce()
    {
        open("split layer:0 : batch by 2\nsplit layer:1 : batch by 4\n");
        go(0, TableColumn::Note);
        selectRows({0, 1});
        key(Qt::Key_F2);
        QTRY_VERIFY(editor());
        type("both");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 2  # both\nsplit layer:1 : batch by 4  # both\n"));
        m_workspace->undo();
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 2\nsplit layer:1 : batch by 4\n"));
    }

    void keysActOnRows()
    {
        open("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n");
        go(0, TableColumn::Value);
        selectRows({0, 1});
        key(Qt::Key_Space);
        QTRY_COMPARE(text(), QStringLiteral("# a\noff split layer:0 : batch by 2\noff split layer:1 : batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_Space);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        selectRows({0});
        key(Qt::Key_Down, Qt::AltModifier);
        QTRY_COMPARE(text(), QStringLiteral("split layer:1 : batch by 4\n# a\nsplit layer:0 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{2});
        key(Qt::Key_Up, Qt::AltModifier);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_D, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\n# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_Delete);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        go(0, TableColumn::Value);
        selectRows({0, 1});
        key(Qt::Key_Down, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("fill the value of row 3 with batch by 2"));
    }

    void rowsAreMustOrPrefer()
    {
        open("prefer place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n");
        // What can't hold with a row that must is left out, and says so where it stands; that is no error.
        const auto notice = [&](int row) {
            return cell(row, TableColumn::Strength).data(ConstraintTableModel::WarningRole).toString();
        };
        QTRY_COMPARE_WITH_TIMEOUT(notice(0), QStringLiteral("left out: row 2 (must) says otherwise"), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_workspace->latest() && m_workspace->latest()->plan, kLong);
        QCOMPARE(m_workspace->latest()->errorCount(), std::size_t{0});
        QVERIFY(!m_panel->rows()->isError(0));
        QCOMPARE(cell(0, TableColumn::Strength).data().toString(), QStringLiteral("prefer"));
        QCOMPARE(cell(1, TableColumn::Strength).data().toString(), QStringLiteral("must"));
        go(0, TableColumn::Strength);
        QTRY_VERIFY2(m_panel->message().contains(QStringLiteral("left out: row 2")), qPrintable(m_panel->message()));
        // Must or prefer, and a weight.
        go(1, TableColumn::Strength);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<StrengthCellEditor *>(editor()));
        auto *strength = qobject_cast<StrengthCellEditor *>(editor());
        QVERIFY(!strength->weight()->isEnabled());
        QTest::keyClick(strength->kind(), Qt::Key_Down);
        QVERIFY(strength->weight()->isEnabled());
        strength->weight()->setFocus();
        strength->weight()->selectAll();
        type("12");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("prefer place all : devices 0\nprefer 12 place layer:1 : devices 1\nplace layer:0 : devices 0\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("prefer with weight 12: row 2"));
        m_workspace->undo();
        // The action: all to preferences if one of them must hold, back again; one step each.
        const auto steps = m_workspace->history().steps().size();
        go(0, TableColumn::Strength);
        selectRows({0, 1, 2});
        key(Qt::Key_Space, Qt::ShiftModifier);
        QTRY_COMPARE(text(), QStringLiteral("prefer place all : devices 0\nprefer place layer:1 : devices 1\nprefer place layer:0 : devices 0\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps + 1);
        QTRY_COMPARE_WITH_TIMEOUT(notice(1), QStringLiteral("left out: row 1 (prefer 1) says otherwise"), kLong);
        QVERIFY(notice(0).isEmpty());
        selectRows({0, 1, 2});
        action("rows.prefer")->trigger();
        QTRY_COMPARE(text(), QStringLiteral("place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"));
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->rows()->isError(0), kLong);
        m_workspace->undo();
        m_workspace->undo();
        QCOMPARE(text(), QStringLiteral("prefer place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"));
    }

    void aPasteShowsWhatItWillBindBeforeItIsWritten()
    {
        open("schedule 1f1b\n");
        const auto steps = m_workspace->history().steps().size();
        go(0, TableColumn::Value);
        QGuiApplication::clipboard()->setText(QStringLiteral("Selector\tRule\tValue\tMust/Prefer\nlayer:0\tsplit\tbatch by 2\t3\n"
                                                             "name:nothing.*\tplace\tdevices 0\t\n\tmicro-batches\t2\tmust\nlayer:1\tplace\tdevices x\t\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        PastePreview *preview = m_panel->pastePreview();
        QTRY_VERIFY(preview->isOpen());
        QTRY_VERIFY2(preview->summary().startsWith(QStringLiteral("2 rows will bind (%1 operators), 1 binds nothing, 1 line can't be read")
                                                       .arg(selectedBy("layer:0").size())),
            qPrintable(preview->summary()));
        QCOMPARE(preview->list()->count(), 4);
        QVERIFY(preview->list()->item(0)->text().contains(QStringLiteral("prefer 3 split layer:0 : batch by 2   →")));
        QVERIFY(preview->list()->item(1)->text().startsWith(QStringLiteral("⚠ ")));
        QVERIFY(preview->list()->item(2)->text().endsWith(QStringLiteral("whole plan")));
        QVERIFY(preview->list()->item(3)->text().startsWith(QStringLiteral("✖ ")));
        key(Qt::Key_Escape); // nothing was written, the grid has the keys again
        QVERIFY(!preview->isOpen());
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps);
        QVERIFY(m_panel->grid()->hasFocus());
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(preview->isOpen());
        QTest::mouseClick(preview->cancelButton(), Qt::LeftButton);
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(preview->isOpen());
        key(Qt::Key_Return); // at once: not waiting for what it binds
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nprefer 3 split layer:0 : batch by 2\nplace name:nothing.* : devices 0\n"
                                            "micro-batches 2\nplace layer:1 : devices x\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps + 1);
        m_workspace->undo();
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
    }

    void rowsAreDraggedToAnotherPlaceAndOutAsText()
    {
        open("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n");
        auto *grid = m_panel->grid();
        go(0, TableColumn::Value);
        selectRows({0});
        const auto middle = [&](int row) { return grid->visualRect(cell(row, TableColumn::Value)).center(); };
        const QRect last = grid->visualRect(cell(2, TableColumn::Value));
        QVERIFY(drop(*dragged(), QPoint(last.center().x(), last.bottom() - 1)));
        QTRY_COMPARE(text(), QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n# a\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{3});
        QCOMPARE(cell(0, TableColumn::Number).data().toString(), QStringLiteral("1")); // numbers follow the place
        QCOMPARE(cell(2, TableColumn::Number).data().toString(), QStringLiteral("4"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("move row 2"));
        m_workspace->undo();
        QCOMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n"));
        // Up, before the first row, with the remark above it.
        selectRows({1, 2});
        QVERIFY(drop(*dragged(), middle(0) - QPoint(0, grid->rowHeight(0) / 2 - 1)));
        QTRY_COMPARE(text(), QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n# a\nsplit layer:0 : batch by 2\n"));
        m_workspace->undo();
        // Out of the window they are text; what others bring is no row of this table.
        selectRows({1, 2});
        QCOMPARE(dragged()->text(), QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n"));
        QMimeData foreign;
        foreign.setText(QStringLiteral("schedule gpipe"));
        QVERIFY(!drop(foreign, middle(0)));
        // Sorted on the screen, places mean nothing.
        m_panel->list()->sort(static_cast<int>(TableColumn::Rule));
        QVERIFY(!drop(*dragged(), middle(0)));
        QCOMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n"));
    }

    void aPressAndAShortMoveAreNoDrag()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        auto *grid = m_panel->grid();
        go(0, TableColumn::Value);
        selectRows({0});
        const QPoint at = grid->visualRect(cell(0, TableColumn::Value)).center();
        QVERIFY(cell(0, TableColumn::Value).flags() & Qt::ItemIsDragEnabled);
        QTest::mousePress(grid->viewport(), Qt::LeftButton, {}, at);
        QTest::mouseMove(grid->viewport(), at + QPoint(1, 1));
        QTest::mouseRelease(grid->viewport(), Qt::LeftButton, {}, at + QPoint(1, 1));
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{0});
    }

    void rowsGoThroughTheClipboard()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        go(0, TableColumn::Value);
        selectRows({0});
        key(Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("split layer:0 : batch by 2\n"));
        key(Qt::Key_X, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        selectRows({0});
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(m_panel->pastePreview()->isOpen());
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("paste 1 row"));
        QVERIFY(!m_panel->pastePreview()->isOpen());
        QGuiApplication::clipboard()->setText(QStringLiteral("layer:0\tplace\tdevices 0\nlayer:1\tplace\tdevices x\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(m_panel->pastePreview()->isOpen());
        QTest::mouseClick(m_panel->pastePreview()->applyButton(), Qt::LeftButton);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\nplace layer:0 : devices 0\nplace layer:1 : devices x\n"));
        QVERIFY(m_panel->message().contains(QStringLiteral("Pasted 1 row from a spreadsheet; 1 line could not be read")));
        m_workspace->undo(); // one step
        const auto steps = m_workspace->history().steps().size();
        QGuiApplication::clipboard()->setText(QStringLiteral("Dear all,\nsee you tomorrow."));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps);
        QVERIFY2(m_panel->message().contains(QStringLiteral("nothing was changed")), qPrintable(m_panel->message()));
        QVERIFY(!m_panel->pastePreview()->isOpen());
        m_panel->copyPlan();
        QCOMPARE(QGuiApplication::clipboard()->text(), text());
    }

    void theNewRowIsTypedInto()
    {
        open("schedule 1f1b\n");
        m_panel->grid()->setFocus();
        key(Qt::Key_Insert);
        QTRY_VERIFY(qobject_cast<ChoiceCellEditor *>(editor()));
        auto *box = static_cast<ChoiceCellEditor *>(editor())->box();
        box->setCurrentIndex(box->findData(QStringLiteral("place")));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        go(1, TableColumn::Value);
        type("mesh");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nplace all : mesh\n"));
        go(2, TableColumn::Selector);
        type("off micro-batches 2");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nplace all : mesh\noff micro-batches 2\n"));
    }

    void rowsAndOperatorsAreLinkedBothWays()
    {
        open("split layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b\n");
        const QSignalSpy changes(m_selection.get(), &SelectionModel::selectionChanged);
        go(1, TableColumn::Value);
        selectRows({1});
        QTRY_COMPARE_WITH_TIMEOUT(m_selection->selected(), selectedBy("layer:1"), kLong);
        QTRY_VERIFY(cell(1, TableColumn::On).data(TableListModel::ActingRole).toBool());
        QVERIFY(!cell(0, TableColumn::On).data(TableListModel::ActingRole).toBool());
        QCOMPARE(m_panel->list()->sourceRow(1), 1); // the row stays where it is
        const auto before = changes.count();
        // Selected elsewhere: the rows come first, and what is selected stays.
        const auto layer = selectedBy("layer:1");
        m_selection->select({layer.front()});
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->sourceRow(0), 1, kLong);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{layer.front()});
        QCOMPARE(changes.count(), before + 1);
        // Backward operators belong to the rows of their forward ones.
        m_selection->select({m_workspace->model()->graph->at(selectedBy("layer:0").front()).mirror});
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->sourceRow(0), 0, kLong);
        m_panel->actingOnSelectionAction()->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->rowCount(), 2, kLong);
        m_panel->actingOnSelectionAction()->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->rowCount(), 4, kLong);
        m_selection->clear();
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->list()->isInTextOrder(), kLong);
        m_selection->setHovered(layer.front());
        QTRY_VERIFY_WITH_TIMEOUT(cell(1, TableColumn::On).data(TableListModel::HoverRole).toBool(), kLong);
        QVERIFY(!cell(0, TableColumn::On).data(TableListModel::HoverRole).toBool());
    }

    void theTextIsTheSameDocument()
    {
        open("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2");
        go(1, TableColumn::Value);
        m_panel->setTextMode(true);
        auto *editor = m_panel->textEditor();
        QCOMPARE(editor->toPlainText(), text());
        QCOMPARE(editor->currentLine(), 2); // the row that was current
        editor->setFocus();
        editor->moveCursor(QTextCursor::End);
        type("x");
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2x"));
        QVERIFY(m_panel->rows()->isError(1));
        QCOMPARE(editor->errorColumnAt(2), 25);
        QVERIFY(editor->messageAt(2).startsWith(QStringLiteral("Value: expected a number of parts")));
        key(Qt::Key_Backspace);
        key(Qt::Key_Return);
        type("schedule 1f1b");
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b"));
        // Undo is the design's, and what is undone elsewhere is undone here.
        key(Qt::Key_Z, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2"));
        QCOMPARE(editor->toPlainText(), text());
        m_workspace->redo();
        QCOMPARE(editor->toPlainText(), text());
        editor->showLine(1);
        m_panel->setTextMode(false);
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{1});
        QCOMPARE(m_panel->grid()->model()->rowCount(), 4);
    }

    void textAndDocumentStayInStepOverRandomEdits()
    {
        open("split layer:0 : batch by 2\n");
        m_panel->setTextMode(true);
        auto *editor = m_panel->textEditor();
        std::mt19937 random(3);
        for (int step = 0; step < 300; ++step) {
            QTextCursor cursor(editor->document());
            const int length = editor->document()->characterCount();
            cursor.setPosition(static_cast<int>(random() % static_cast<unsigned>(length)));
            switch (random() % 6) {
            case 0:
                cursor.insertText(QStringLiteral("\nschedule 1f1b\n"));
                break;
            case 1:
                cursor.setPosition(static_cast<int>(random() % static_cast<unsigned>(length)), QTextCursor::KeepAnchor);
                cursor.removeSelectedText();
                break;
            case 2:
                cursor.deletePreviousChar();
                break;
            case 3:
                m_workspace->canUndo() ? m_workspace->undo() : m_workspace->redo();
                break;
            case 4:
                m_workspace->editTable(QStringLiteral("x"), insertText(m_workspace->table(), 0, "# \xc3\xbc\nmesh dp=2"));
                break;
            default:
                cursor.insertText(QStringLiteral("x"));
                break;
            }
            QCOMPARE(editor->toPlainText(), text());
        }
    }

    void theBoxSwitchesItsRow()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        auto *grid = m_panel->grid();
        QTest::mouseClick(grid->viewport(), Qt::LeftButton, {}, grid->visualRect(cell(1, TableColumn::On)).center());
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 2\noff schedule 1f1b\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("switch off row 2"));
        QTest::mouseClick(grid->viewport(), Qt::LeftButton, {}, grid->visualRect(cell(1, TableColumn::On)).center());
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 2\nschedule 1f1b\n"));
    }

    void sortingIsForTheScreenAlone()
    {
        open("split layer:1 : batch by 2\nplace layer:0 : devices 0\n");
        const auto steps = m_workspace->history().steps().size();
        auto *header = m_panel->grid()->horizontalHeader();
        const auto click = [&](TableColumn column) {
            const int x = header->sectionViewportPosition(static_cast<int>(column)) + 8;
            QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, QPoint(x, header->height() / 2));
        };
        click(TableColumn::Selector);
        QCOMPARE(m_panel->list()->sourceRow(0), 1);
        QVERIFY(m_panel->message().contains(QStringLiteral("order has no meaning")));
        go(0, TableColumn::Selector);
        selectRows({0});
        QVERIFY(!action("rows.moveDown")->isEnabled());
        click(TableColumn::Selector);
        click(TableColumn::Selector);
        QVERIFY(m_panel->list()->isInTextOrder());
        QCOMPARE(m_workspace->history().steps().size(), steps);
    }

    void headingsCollapseByKeyboard()
    {
        open("split layer:1 : batch by 2\nplace layer:0 : devices 0\nsplit layer:0 : batch by 2\n");
        action("rows.groupByRule")->trigger();
        QCOMPARE(m_panel->list()->rowCount(), 6);
        go(0, TableColumn::Selector);
        key(Qt::Key_Left);
        QCOMPARE(m_panel->list()->rowCount(), 4);
        key(Qt::Key_Return);
        QCOMPARE(m_panel->list()->rowCount(), 6);
        m_panel->focusRow(1);
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{1});
    }

    void theViewComesBack()
    {
        open("split layer:1 : batch by 2\nplace layer:0 : devices 0\n");
        action("rows.groupByOrigin")->trigger();
        m_panel->filterLine()->setText(QStringLiteral("layer"));
        m_panel->list()->sort(2, Qt::DescendingOrder);
        const std::string state = m_panel->viewState();
        TablePanel other(m_workspace.get(), m_selection.get());
        other.restoreViewState(state);
        QCOMPARE(other.viewState(), state);
        QCOMPARE(other.list()->grouping(), RowGrouping::Origin);
        other.restoreViewState("nonsense");
        QCOMPARE(other.viewState(), state);
    }

    void aRowsPriceIsWhatSwitchingItOffGains()
    {
        open("schedule gpipe\n", kTiny);
        m_panel->prices()->setIdleMilliseconds(0);
        m_panel->prices()->setEnabled(true);
        const std::string rows = "mesh dp=4\nsplit all : batch over dp\n";
        m_workspace->setTableText(rows);
        const auto planned = [&](const std::string &text) {
            const auto &latest = m_workspace->latest();
            return latest && latest->final && latest->tableText == text;
        };
        QTRY_VERIFY_WITH_TIMEOUT(planned(rows), kLong);
        QVERIFY(m_workspace->lastGood());
        const double with = m_workspace->lastGood()->summary.stepSeconds;
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->rows()->priceAt(1).state, RowPrice::State::Known, kLong);
        QCOMPARE(m_panel->rows()->priceAt(0).state, RowPrice::State::Needed); // the split runs over it
        QCOMPARE(cell(0, TableColumn::Price).data().toString(), QStringLiteral("needed"));
        const double price = m_panel->rows()->priceAt(1).seconds;
        m_panel->prices()->setIdleMilliseconds(1'000'000);
        m_panel->rows()->setRowsEnabled({1}, false);
        const std::string without = "mesh dp=4\noff split all : batch over dp\n";
        QTRY_VERIFY_WITH_TIMEOUT(planned(without), kLong);
        QCOMPARE(with - m_workspace->lastGood()->summary.stepSeconds, price);
        QVERIFY2(cell(0, TableColumn::Price).data().toString().endsWith(QStringLiteral("1 edit ago")),
            qPrintable(cell(0, TableColumn::Price).data().toString()));
        m_panel->prices()->setEnabled(false);
        QCOMPARE(cell(0, TableColumn::Price).data().toString(), QString());
    }

    void actionsHaveNamesAndAreReachable()
    {
        open("schedule 1f1b\n");
        const auto actions = m_panel->actions();
        QVERIFY(actions.size() >= 20);
        for (const QAction *action : actions) {
            QVERIFY(!action->objectName().isEmpty());
            QVERIFY2(!action->text().isEmpty(), qPrintable(action->objectName()));
        }
        QVERIFY(actions.contains(m_panel->actingOnSelectionAction()));
        const auto widgets = m_panel->findChildren<QWidget *>();
        for (const QWidget *widget : widgets) {
            if (widget->focusPolicy() != Qt::NoFocus && widget->isVisible() && widget->parentWidget() == m_panel.get())
                QVERIFY2(!widget->accessibleName().isEmpty() || widget->inherits("QToolButton") || widget->inherits("QStackedWidget"),
                    widget->metaObject()->className());
        }
    }
};

QTEST_MAIN(TablePanelTest)
#include "table_panel_test.moc"
