// The Constraints dock with 10,000 rows: what is done does what it does with ten. tests/bench/table_bench.cpp
// has the times.

#include "tests/qt_test.h"
#include "tests/widgets/table/table_panel_fixture.h"

#include <QtWidgets/QScrollBar>

#include <set>

using namespace planloom;

namespace {

constexpr int kRowCount = 10'000;

/// Every 8th row is off, every 50th can't be read, every 4th has a remark of its own above it.
std::string manyRows()
{
    std::string text = "mesh dp=2 tp=2\n";
    for (int i = 1; i < kRowCount; ++i) {
        const std::string layer = std::to_string(i % 2);
        if (i % 4 == 0)
            text += "# remark " + std::to_string(i) + "\n";
        if (i % 50 == 0)
            text += "splt layer:" + layer + "\n";
        else if (i % 8 == 0)
            text += "off place layer:" + layer + " : devices " + std::to_string(i % 4) + "\n";
        else
            text += "split layer:" + layer + " : batch over dp" + (i % 3 == 0 ? " @gesture\n" : "\n");
    }
    return text;
}

} // namespace

class LargeTableTest : public TablePanelFixture
{
    Q_OBJECT

    void openMany()
    {
        open("mesh dp=2\n");
        m_workspace->setLive(false);
        m_workspace->setTableText(manyRows());
        QCOMPARE(m_panel->rows()->rowCount(), kRowCount);
        QCOMPARE(m_panel->list()->rowCount(), kRowCount + 1);
    }
    /// Keys of the shown rows.
    std::set<std::uint64_t> shown() const
    {
        std::set<std::uint64_t> keys;
        for (int row = 0; row < m_panel->list()->rowCount(); ++row) {
            if (m_panel->list()->keyOf(row) != 0)
                keys.insert(m_panel->list()->keyOf(row));
        }
        return keys;
    }
    void selectRange(int first, int last)
    {
        m_panel->grid()->selectionModel()->select(
            QItemSelection(cell(first, TableColumn::On), cell(last, TableColumn::Note)),
            QItemSelectionModel::ClearAndSelect);
    }

private Q_SLOTS:
    void cleanup() { close(); }

    void rowsAreSwitchedTogetherAndBackByteForByte()
    {
        openMany();
        const QString before = text();
        selectRange(1, 2000); // some of them off, some no rows
        m_panel->switchRows();
        for (int row = 1; row <= 2000; ++row)
            QVERIFY2(m_panel->rows()->cellsAt(row).enabled, qPrintable(QString::number(row)));
        selectRange(1, 2000);
        m_panel->switchRows();
        for (int row = 1; row <= 2000; ++row)
            QVERIFY2(!m_panel->rows()->cellsAt(row).enabled, qPrintable(QString::number(row)));
        m_workspace->undo();
        m_workspace->undo();
        QCOMPARE(text(), before);
        m_workspace->redo();
        QVERIFY(m_panel->rows()->cellsAt(8).enabled);
    }

    void oneRowIsEditedAndTheOthersStayThemselves()
    {
        openMany();
        const auto keys = shown();
        QVERIFY(
            m_panel->list()->setData(cell(5000, TableColumn::Note), QStringLiteral("here"), Qt::EditRole));
        QVERIFY(shown() == keys);
        QVERIFY(cell(5000, TableColumn::Note).data().toString().contains(QStringLiteral("here")));
        QVERIFY(!cell(4999, TableColumn::Note).data().toString().contains(QStringLiteral("here")));
    }

    void aThousandRowsArePastedAndRemoved()
    {
        openMany();
        const QString before = text();
        QString pasted;
        for (int i = 0; i < 1000; ++i)
            pasted += QStringLiteral("recompute layer:%1\n").arg(i % 2);
        QApplication::clipboard()->setText(pasted);
        m_panel->grid()->selectRow(100);
        m_panel->pasteRows();
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->pastePreview()->isVisible(), kLong);
        QTest::keyClick(m_panel->pastePreview(), Qt::Key_Return);
        QCOMPARE(m_panel->rows()->rowCount(), kRowCount + 1000);
        QCOMPARE(m_panel->selectedLines().size(), std::size_t{1000});
        QCOMPARE(m_panel->rows()->cellsAt(101).rule, std::string("recompute"));
        QCOMPARE(m_panel->rows()->cellsAt(1100).rule, std::string("recompute"));
        m_panel->removeRows();
        QCOMPARE(text(), before);
        m_panel->grid()->selectAll();
        m_panel->removeRows();
        QCOMPARE(m_panel->rows()->rowCount(), 0);
        m_workspace->undo();
        QCOMPARE(text(), before);
        QCOMPARE(m_panel->list()->rowCount(), kRowCount + 1);
    }

    void everyColumnSortsAllRows()
    {
        openMany();
        const auto keys = shown();
        QAbstractItemModelTester tester(
            m_panel->list(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (int column = 0; column < kTableColumns; ++column) {
            for (int times = 0; times < 2; ++times) {
                Q_EMIT m_panel->grid()->horizontalHeader()->sectionClicked(column);
                QVERIFY(shown() == keys);
                const QVariant first = m_panel->list()->index(0, column).data(ConstraintTableModel::SortRole);
                const QVariant last =
                    m_panel->list()->index(kRowCount - 1, column).data(ConstraintTableModel::SortRole);
                const auto order = QVariant::compare(first, last);
                QVERIFY2(order == QPartialOrdering::Equivalent
                        || order == (times == 0 ? QPartialOrdering::Less : QPartialOrdering::Greater),
                    qPrintable(titleOf(static_cast<TableColumn>(column))));
            }
            Q_EMIT m_panel->grid()->horizontalHeader()->sectionClicked(column);
            QVERIFY(m_panel->list()->isInTextOrder());
        }
        QCOMPARE(m_panel->list()->keyOf(0), m_panel->rows()->keyAt(0));
        QCOMPARE(m_panel->list()->keyOf(kRowCount - 1), m_panel->rows()->keyAt(kRowCount - 1));
    }

    void aFilterIsTypedLetterByLetter()
    {
        openMany();
        m_panel->filterLine()->setFocus();
        int before = m_panel->list()->rowCount();
        for (const char c : std::string("remark 444")) {
            QTest::keyClick(m_panel->filterLine(), c);
            QVERIFY(m_panel->list()->rowCount() <= before);
            before = m_panel->list()->rowCount();
        }
        QCOMPARE(before, 1 + 12); // numbers that 4 divides, with 444 in them
        m_panel->filterLine()->clear();
        QCOMPARE(m_panel->list()->rowCount(), kRowCount + 1);
    }

    void allAreSelectedAndThoseActingOnTheSelectionShown()
    {
        openMany();
        m_panel->grid()->selectAll();
        QCOMPARE(m_panel->selectedLines().size(), std::size_t{kRowCount});
        m_panel->grid()->clearSelection();
        m_selection->select(selectedBy("layer:1"));
        m_panel->actingOnSelectionAction()->setChecked(true);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_panel->list()->rowCount() < kRowCount / 2 + 2 && m_panel->list()->rowCount() > 2, kLong);
        for (int row = 0; row + 1 < m_panel->list()->rowCount(); ++row)
            QCOMPARE(cell(row, TableColumn::Selector).data().toString(), QStringLiteral("layer:1"));
        m_panel->actingOnSelectionAction()->setChecked(false);
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->rowCount(), kRowCount + 1, kLong);
    }

    void groupsCountAllRows()
    {
        openMany();
        action("rows.groupByRule")->trigger();
        int headings = 0;
        for (int row = 0; row < m_panel->list()->rowCount(); ++row)
            headings += m_panel->list()->kindOf(row) == TableListModel::Kind::Heading ? 1 : 0;
        QCOMPARE(headings, 4); // split, place, mesh, not yet rows
        QCOMPARE(m_panel->list()->rowCount(), kRowCount + headings + 1);
        for (int row = m_panel->list()->rowCount(); row-- > 0;) {
            if (m_panel->list()->kindOf(row) == TableListModel::Kind::Heading)
                m_panel->list()->setCollapsed(row, true);
        }
        QCOMPARE(m_panel->list()->rowCount(), headings + 1);
        action("rows.groupNone")->trigger();
        QCOMPARE(m_panel->list()->rowCount(), kRowCount + 1);
    }

    void theTextComesInPiecesAndCannotBeTypedIntoBefore()
    {
        openMany();
        TableTextEditor *editor = m_panel->textEditor();
        m_panel->selectedLines();
        m_panel->grid()->setCurrentIndex(cell(kRowCount - 10, TableColumn::Value));
        const int line = m_panel->rows()->lineAt(kRowCount - 10);
        m_panel->setTextMode(true);
        QVERIFY(editor->isFilling());
        QVERIFY(editor->isReadOnly());
        const QString before = text();
        QTest::keyClick(editor, Qt::Key_X);
        QCOMPARE(text(), before);
        QTRY_VERIFY_WITH_TIMEOUT(!editor->isFilling(), kLong);
        QVERIFY(!editor->isReadOnly());
        QCOMPARE(editor->toPlainText(), before);
        QCOMPARE(editor->currentLine(), line);
        QTest::keyClick(editor, Qt::Key_Home);
        QTest::keyClicks(editor, QStringLiteral("off "));
        QVERIFY(text() != before);
        QCOMPARE(text(), editor->toPlainText());
        QVERIFY(!m_panel->rows()->cellsAt(kRowCount - 10).enabled);
        m_panel->setTextMode(false);
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{line});
    }

    void theTextFollowsEditsWhileItComes()
    {
        openMany();
        TableTextEditor *editor = m_panel->textEditor();
        m_panel->setTextMode(true);
        QVERIFY(editor->isFilling());
        m_workspace->setTableText("mesh dp=4\n" + manyRows().substr(15) + "recompute layer:0\n");
        QTRY_VERIFY_WITH_TIMEOUT(!editor->isFilling(), kLong);
        QCOMPARE(editor->toPlainText(), text());
        m_workspace->setTableText("mesh dp=2\n");
        QTRY_VERIFY_WITH_TIMEOUT(!editor->isFilling(), kLong);
        QCOMPARE(editor->toPlainText(), QStringLiteral("mesh dp=2\n"));
        m_workspace->setTableText({});
        QTRY_VERIFY_WITH_TIMEOUT(!editor->isFilling(), kLong);
        QCOMPARE(editor->toPlainText(), QString());
        QVERIFY(!editor->isReadOnly());
    }
};

PLANLOOM_QTEST(LargeTableTest)
#include "large_table_test.moc"
