#include <QtWidgets/QCheckBox>

#include "tests/qt_test.h"
#include "tests/widgets/table/table_panel_fixture.h"

#include <random>

using namespace planloom;

class TablePanelTest : public TablePanelFixture
{
    Q_OBJECT
private Q_SLOTS:
    void cleanup() { close(); }

    void rowsTellWhatTheyBindAndWhatIsWrong()
    {
        open(kRows);
        const QAbstractItemModelTester tester(m_panel->list());
        QTRY_VERIFY_WITH_TIMEOUT(
            !cell(1, TableColumn::Binds).data().toString().isEmpty() || m_panel->rows()->isError(2), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(
            cell(1, TableColumn::Binds).data().toString().contains(QStringLiteral(" ops")), kLong);
        QCOMPARE(cell(0, TableColumn::Note).data(Qt::EditRole).toString(), QStringLiteral("data parallel"));
        m_workspace->setTableText("mesh dp=2 tp=2\nsplit all : batch over dp\nsplit layer:0 : batch over "
                                  "tp\nplace name:none : devices 0\n");
        QTRY_VERIFY_WITH_TIMEOUT(
            cell(2, TableColumn::Binds).data().toString().contains(QStringLiteral(" ops")), kLong);
    }

    void aRowThatCannotHoldIsRedWithTheSentence()
    {
        open("mesh dp=2 tp=2\nmesh dp=4\nsplit all : batch over dp\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->rows()->isError(1), kLong);
        // Both rows are named, by their numbers.
        const auto sentence = [&](int row) {
            return cell(row, TableColumn::Value).data(ConstraintTableModel::ProblemRole).toString();
        };
        QTRY_VERIFY2_WITH_TIMEOUT(
            sentence(1).startsWith(QStringLiteral("Rows 1 and 2 ")), qPrintable(sentence(1)), kLong);
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
        QVERIFY2(editor()->problem().startsWith(
                     QStringLiteral("Selector: expected layers as 3, 0-11, 4-* or *, found 'x'")),
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
        QCOMPARE(box->count(), static_cast<int>(ruleNames().size()));
        box->setCurrentIndex(box->findData(QStringLiteral("recompute")));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("recompute layer:0\n"));
    }

    void valuesHaveEditorsOfTheirRule()
    {
        open("mesh dp=2 tp=2\nsplit layer:0 : batch by 2\nmicro-batches 2\nlimit memory 40GiB\nin-flight "
             "2\nschedule gpipe\n");
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
        auto *limit = static_cast<LimitCellEditor *>(editor());
        QVERIFY(limit->links()->isHidden());
        for (const char *text :
            {"traffic 2GiB per link", "traffic 1.5GiB on node", "traffic 3MiB on rack", "traffic 3MiB"}) {
            QVERIFY(LimitCellEditor::canShow(text));
            limit->setText(QString::fromLatin1(text));
            QVERIFY(!limit->links()->isHidden());
            QCOMPARE(limit->text(), QString::fromLatin1(text));
        }
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

    void coshardsSayWhetherTheyKeep()
    {
        open("coshard layer:0 : batch by 2\n");
        for (const bool keep : {true, false}) {
            m_panel->grid()->setFocus();
            go(0, TableColumn::Value);
            key(Qt::Key_F2);
            QTRY_VERIFY(qobject_cast<SplitCellEditor *>(editor()));
            auto *coshard = static_cast<SplitCellEditor *>(editor());
            QVERIFY(!coshard->axis());
            QCOMPARE(coshard->keep()->isChecked(), !keep);
            QCOMPARE(coshard->parts()->currentText(), QStringLiteral("2"));
            key(Qt::Key_Tab);
            key(Qt::Key_Tab);
            QVERIFY(coshard->keep()->hasFocus());
            key(Qt::Key_Space);
            key(Qt::Key_Tab);
            QTRY_COMPARE(text(),
                keep ? QStringLiteral("coshard layer:0 : batch by 2 keep\n")
                     : QStringLiteral("coshard layer:0 : batch by 2\n"));
            QTRY_VERIFY(!qobject_cast<SplitCellEditor *>(editor())); // the next cell is open
        }
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
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b"));
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
                cursor.setPosition(
                    static_cast<int>(random() % static_cast<unsigned>(length)), QTextCursor::KeepAnchor);
                cursor.removeSelectedText();
                break;
            case 2:
                cursor.deletePreviousChar();
                break;
            case 3:
                m_workspace->canUndo() ? m_workspace->undo() : m_workspace->redo();
                break;
            case 4:
                m_workspace->editTable(
                    QStringLiteral("x"), insertText(m_workspace->table(), 0, "# \xc3\xbc\nmesh dp=2"));
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
        QTest::mouseClick(
            grid->viewport(), Qt::LeftButton, {}, grid->visualRect(cell(1, TableColumn::On)).center());
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 2\noff schedule 1f1b\n"));
        QCOMPARE(
            QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("switch off row 2"));
        QTest::mouseClick(
            grid->viewport(), Qt::LeftButton, {}, grid->visualRect(cell(1, TableColumn::On)).center());
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
};

PLANLOOM_QTEST(TablePanelTest)
#include "table_panel_test.moc"
