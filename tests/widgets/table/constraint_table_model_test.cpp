#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QtTest>

#include "tests/qt_test.h"
#include "widgets/table/constraint_table_model.h"
#include "widgets/table/table_list_model.h"

#include <random>

using namespace planloom;

namespace {

/// A copy of a model kept up to date by its signals alone, to compare with what the model says.
class Mirror : public QObject
{
public:
    explicit Mirror(QAbstractItemModel *model)
        : m_model(model)
    {
        connect(
            model, &QAbstractItemModel::rowsInserted, this, [this](const QModelIndex &, int first, int last) {
                for (int row = first; row <= last; ++row)
                    m_rows.insert(m_rows.begin() + row, QStringList());
                m_inserted += last - first + 1;
                m_dirty = true;
            });
        connect(
            model, &QAbstractItemModel::rowsRemoved, this, [this](const QModelIndex &, int first, int last) {
                m_rows.erase(m_rows.begin() + first, m_rows.begin() + last + 1);
            });
        connect(model, &QAbstractItemModel::dataChanged, this,
            [this](const QModelIndex &a, const QModelIndex &b) {
                for (int row = a.row(); row <= b.row(); ++row) {
                    if (m_rows[static_cast<std::size_t>(row)].isEmpty())
                        continue; // inserted: read whole later
                    for (int column = a.column(); column <= b.column(); ++column)
                        m_rows[static_cast<std::size_t>(row)][column] = text(row, column);
                }
                ++m_changes;
            });
        connect(model, &QAbstractItemModel::modelReset, this, [this] {
            ++m_resets;
            readAll();
        });
        readAll();
    }

    void fill()
    {
        for (std::size_t row = 0; row < m_rows.size(); ++row) {
            if (m_rows[row].isEmpty())
                m_rows[row] = textsOf(static_cast<int>(row));
        }
    }
    bool matches() const
    {
        if (static_cast<int>(m_rows.size()) != m_model->rowCount())
            return false;
        for (int row = 0; row < m_model->rowCount(); ++row) {
            if (m_rows[static_cast<std::size_t>(row)] != textsOf(row))
                return false;
        }
        return true;
    }
    int resets() const { return m_resets; }
    int inserted() const { return m_inserted; }
    void forgetInserted() { m_inserted = 0; }

private:
    QString text(int row, int column) const { return m_model->index(row, column).data().toString(); }
    QStringList textsOf(int row) const
    {
        QStringList texts;
        for (int column = 0; column < m_model->columnCount(); ++column)
            texts << text(row, column);
        return texts;
    }
    void readAll()
    {
        m_rows.clear();
        for (int row = 0; row < m_model->rowCount(); ++row)
            m_rows.push_back(textsOf(row));
    }

    QAbstractItemModel *m_model;
    std::vector<QStringList> m_rows;
    int m_resets = 0;
    int m_inserted = 0;
    int m_changes = 0;
    bool m_dirty = false;
};

std::string randomLine(std::mt19937 &random)
{
    const auto number = [&](int most) { return std::to_string(random() % static_cast<unsigned>(most)); };
    switch (random() % 8) {
    case 0:
        return "# remark " + number(100);
    case 1:
        return "";
    case 2:
        return "not a row " + number(100);
    case 3:
        return "place layer:" + number(50) + " : devices " + number(8) + "  # note " + number(9);
    case 4:
        return "off split all : batch by " + number(8);
    default:
        return "split layer:" + number(100) + " : batch by 2  @gesture";
    }
}

TableDocument randomDocument(int lines, std::mt19937 &random)
{
    std::string text;
    for (int i = 0; i < lines; ++i)
        text += randomLine(random) + '\n';
    return TableDocument(text);
}

} // namespace

class ConstraintTableModelTest : public QObject
{
    Q_OBJECT

    TableDocument m_document;
    QStringList m_words;

    ConstraintTableModel::Edit editOf(ConstraintTableModel &model)
    {
        return [this, &model](const QString &words, const TableEdit &edit, const QString &) {
            if (!m_document.apply(edit))
                return false;
            m_words << words;
            model.setDocument(m_document);
            return true;
        };
    }
    void open(ConstraintTableModel &model, const char *text)
    {
        m_document = TableDocument(text);
        m_words.clear();
        model.setEdit(editOf(model));
        model.setDocument(m_document);
    }
    static QString cell(const QAbstractItemModel &model, int row, TableColumn column)
    {
        return model.index(row, static_cast<int>(column)).data().toString();
    }

private Q_SLOTS:
    void oneLineOfTheTextIsOneRow()
    {
        ConstraintTableModel model;
        const QAbstractItemModelTester tester(&model);
        open(model,
            "# why\n\nsplit layer:0 : batch by 2  @gesture # and so\nnonsense\noff schedule 1f1b\n# end\n");
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(cell(model, 0, TableColumn::Number), QStringLiteral("3"));
        QCOMPARE(cell(model, 0, TableColumn::Selector), QStringLiteral("layer:0"));
        QCOMPARE(cell(model, 0, TableColumn::Rule), QStringLiteral("split"));
        QCOMPARE(cell(model, 0, TableColumn::Value), QStringLiteral("batch by 2"));
        QCOMPARE(cell(model, 0, TableColumn::Origin), QStringLiteral("gesture"));
        QCOMPARE(model.noteAt(0), QStringLiteral("why\nand so"));
        QVERIFY(model.isError(1));
        QVERIFY(model.problemAt(1).startsWith(QStringLiteral("Rule: expected split, ")));
        QCOMPARE(model.index(2, 0).data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::Unchecked));
        QCOMPARE(model.accessibleText(0, static_cast<int>(TableColumn::Value)),
            QStringLiteral("row 3, value: batch by 2"));
        QVERIFY(model.accessibleText(1, static_cast<int>(TableColumn::Rule))
                    .contains(QStringLiteral(", error: Rule: expected")));
        QCOMPARE(model.rowOfLine(4), 2);
        QCOMPARE(model.rowOfLine(5), -1);
    }

    void aCellWrittenIsAStepInWords()
    {
        ConstraintTableModel model;
        const QAbstractItemModelTester tester(&model);
        open(model, "# note\nsplit layer:0   : batch by 2 # mine\nschedule 1f1b\n");
        QVERIFY(model.setData(
            model.index(0, static_cast<int>(TableColumn::Value)), QStringLiteral("batch by 4")));
        QCOMPARE(
            m_document.text(), std::string("# note\nsplit layer:0 : batch by 4  # mine\nschedule 1f1b\n"));
        QCOMPARE(m_words.last(), QStringLiteral("change row 2 to split layer:0: batch by 4"));
        // A wrong cell is kept as a line with an error.
        QVERIFY(model.setData(
            model.index(0, static_cast<int>(TableColumn::Value)), QStringLiteral("batch by x")));
        QVERIFY(model.isError(0));
        QCOMPARE(cell(model, 0, TableColumn::Value), QStringLiteral("batch by x"));
        QVERIFY(model.index(0, static_cast<int>(TableColumn::Value))
                    .data(ConstraintTableModel::ProblemRole)
                    .toString()
                    .startsWith(QStringLiteral(
                        "Value: expected a number of parts, found 'x'. For example: batch by 2")));
        QVERIFY(model.setData(model.index(0, static_cast<int>(TableColumn::Rule)), QStringLiteral("place")));
        QCOMPARE(
            m_document.text(), std::string("# note\nplace layer:0 : devices 0,1  # mine\nschedule 1f1b\n"));
        QVERIFY(model.setRowsEnabled({0, 1}, false));
        QCOMPARE(m_document.text(),
            std::string("# note\noff place layer:0 : devices 0,1  # mine\noff schedule 1f1b\n"));
        QCOMPARE(m_words.last(), QStringLiteral("switch off 2 rows"));
        QVERIFY(model.setData(model.index(0, static_cast<int>(TableColumn::Note)), QStringLiteral("a\nb")));
        QCOMPARE(
            m_document.text(), std::string("# a\n# b\noff place layer:0 : devices 0,1\noff schedule 1f1b\n"));
        QVERIFY(model.setData(model.index(0, static_cast<int>(TableColumn::Note)), QStringLiteral("c")));
        QCOMPARE(m_document.text(), std::string("off place layer:0 : devices 0,1  # c\noff schedule 1f1b\n"));
        // What changes nothing is no step.
        const auto steps = m_words.size();
        QVERIFY(!model.setData(model.index(0, static_cast<int>(TableColumn::Note)), QStringLiteral("c")));
        QVERIFY(!model.setData(
            model.index(0, static_cast<int>(TableColumn::Selector)), QStringLiteral("layer:0")));
        QCOMPARE(m_words.size(), steps);
    }

    void severalRowsAreWrittenAtOnce()
    {
        ConstraintTableModel model;
        open(model, "split layer:0 : batch by 2\n# n\nsplit layer:1 : m by 2\nschedule 1f1b\n");
        QVERIFY(model.writeCells({0, 1}, TableColumn::Value, QStringLiteral("batch by 4")));
        QCOMPARE(m_document.text(),
            std::string("split layer:0 : batch by 4\n# n\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        QCOMPARE(m_words, QStringList{QStringLiteral("change the value of 2 rows to batch by 4")});
        QVERIFY(model.writeCells({1, 0}, TableColumn::Note, QStringLiteral("x\ny")));
        QCOMPARE(m_document.text(),
            std::string("# x\n# y\nsplit layer:0 : batch by 4\n# x\n# y\nsplit layer:1 : batch by "
                        "4\nschedule 1f1b\n"));
    }

    void rowsKeepWhatTheyAreWhileTheyStay()
    {
        ConstraintTableModel model;
        open(model, "split layer:0 : batch by 2\nsplit layer:1 : batch by 2\nsplit layer:2 : batch by 2\n");
        const auto key = [&](int row) { return model.keyAt(row); };
        const auto first = key(0);
        const auto second = key(1);
        const auto third = key(2);
        QVERIFY(model.apply(QStringLiteral("move"), moveLines(m_document, {2}, 0)));
        QCOMPARE(key(0), third);
        QCOMPARE(key(1), first);
        QCOMPARE(key(2), second);
        QVERIFY(model.setData(
            model.index(1, static_cast<int>(TableColumn::Value)), QStringLiteral("batch by 8")));
        QCOMPARE(key(1), first);
        QVERIFY(model.apply(QStringLiteral("remove"), removeLines(m_document, {0})));
        QCOMPARE(key(0), first);
        QCOMPARE(model.rowOfKey(third), -1);
        QCOMPARE(model.rowOfKey(second), 1);
    }

    void thousandRandomEditsAreToldAsTheyHappen()
    {
        std::mt19937 random(7);
        ConstraintTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        m_document = randomDocument(300, random);
        model.setDocument(m_document);
        Mirror mirror(&model);
        for (int step = 0; step < 1000; ++step) {
            const auto line = [&] {
                return static_cast<std::int32_t>(
                    random() % static_cast<unsigned>(m_document.lineCount() + 1));
            };
            TableEdit edit;
            mirror.forgetInserted();
            const unsigned kind = random() % 7;
            switch (kind) {
            case 0:
                edit = insertText(m_document, line(), randomLine(random));
                break;
            case 1:
                edit = removeLines(m_document, {line()});
                break;
            case 2:
                edit = replaceLine(m_document, line(), randomLine(random));
                break;
            case 3:
                edit = moveLines(m_document, {line(), line(), line()}, line());
                break;
            case 4:
                edit = setEnabled(m_document, {line(), line(), line(), line()}, random() % 2 == 0);
                break;
            case 5:
                for (int i = 0; i < 5; ++i) {
                    TableDocument now = m_document;
                    QVERIFY(now.apply(edit).has_value());
                    edit = joined(edit,
                        random() % 2 ? insertText(now, line() % (now.lineCount() + 1), randomLine(random))
                                     : removeLines(now, {line()}));
                }
                break;
            default:
                edit = insertText(m_document, line(), randomLine(random) + "\n" + randomLine(random));
                break;
            }
            QVERIFY(m_document.apply(edit).has_value());
            model.setDocument(m_document);
            mirror.fill();
            QVERIFY(mirror.matches());
            QCOMPARE(mirror.resets(), 0);
            QVERIFY(mirror.inserted() <= 16); // what did not change was not told anew
            ConstraintTableModel fresh;
            fresh.setDocument(m_document);
            QCOMPARE(model.rowCount(), fresh.rowCount());
            std::set<ConstraintTableModel::RowKey> keys;
            for (int row = 0; row < model.rowCount(); ++row) {
                keys.insert(model.keyAt(row));
                QCOMPARE(model.rowOfKey(model.keyAt(row)), row);
                QCOMPARE(model.noteAt(row), fresh.noteAt(row));
            }
            QCOMPARE(static_cast<int>(keys.size()), model.rowCount());
        }
    }

    void theListSortsFiltersAndGroups()
    {
        ConstraintTableModel model;
        TableListModel list(&model);
        const QAbstractItemModelTester tester(&list);
        open(model,
            "split layer:2 : batch by 2\nplace layer:0 : devices 1  @gesture # first\nsplit layer:1 : m by "
            "2\nschedule 1f1b\n");
        QCOMPARE(list.rowCount(), 5);
        QCOMPARE(list.kindOf(4), TableListModel::Kind::NewRow);
        QVERIFY(list.isInTextOrder());
        list.sort(static_cast<int>(TableColumn::Selector));
        QVERIFY(!list.isInTextOrder());
        QCOMPARE(cell(list, 0, TableColumn::Rule), QStringLiteral("schedule"));
        QCOMPARE(cell(list, 1, TableColumn::Selector), QStringLiteral("layer:0"));
        QCOMPARE(cell(list, 3, TableColumn::Selector), QStringLiteral("layer:2"));
        list.sort(-1);
        list.setFilter(QStringLiteral("SPLIT by"));
        QCOMPARE(list.rowCount(), 3);
        list.setFilter(QStringLiteral("first"));
        QCOMPARE(list.rowCount(), 2);
        list.setFilter({});
        list.setGrouping(RowGrouping::Rule);
        QCOMPARE(list.rowCount(), 8);
        QCOMPARE(list.kindOf(0), TableListModel::Kind::Heading);
        QCOMPARE(cell(list, 0, TableColumn::Selector), QStringLiteral("split · 2 rows"));
        list.setCollapsed(0, true);
        QCOMPARE(list.rowCount(), 6);
        QCOMPARE(list.index(0, 0).data(Qt::AccessibleTextRole).toString(),
            QStringLiteral("group split, 2 rows, collapsed"));
        list.setCollapsed(0, false);
        list.setGrouping(RowGrouping::Origin);
        QCOMPARE(cell(list, 0, TableColumn::Selector), QStringLiteral("text · 3 rows"));
        list.setGrouping(RowGrouping::None);
        list.setActingFilter(true, false, {model.keyAt(1)});
        QCOMPARE(list.rowCount(), 2);
        list.setActingFilter(false, true, {model.keyAt(2)});
        QCOMPARE(list.sourceRow(0), 2);
        QVERIFY(!list.isInTextOrder());
    }

    void theNewRowBecomesOne()
    {
        ConstraintTableModel model;
        TableListModel list(&model);
        const QAbstractItemModelTester tester(&list);
        open(model, "schedule 1f1b\n# end\n");
        const auto write = [&](TableColumn column, const char *text) {
            return list.setData(
                list.index(list.newRow(), static_cast<int>(column)), QString::fromLatin1(text));
        };
        QVERIFY(write(TableColumn::Rule, "split"));
        QCOMPARE(cell(list, list.newRow(), TableColumn::Selector), QStringLiteral("all"));
        QCOMPARE(model.rowCount(), 1); // half typed: not sent
        QVERIFY(write(TableColumn::Selector, "layer:0"));
        QVERIFY(write(TableColumn::Value, "batch by 2"));
        QCOMPARE(m_document.text(), std::string("schedule 1f1b\nsplit layer:0 : batch by 2\n# end\n"));
        QCOMPARE(list.draft(), RowCells{});
        QVERIFY(write(TableColumn::Selector, "place layer:1 : devices 0"));
        QCOMPARE(m_document.text(),
            std::string("schedule 1f1b\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\n# end\n"));
        QVERIFY(write(TableColumn::Rule, "recompute"));
        QCOMPARE(model.rowCount(), 4);
    }

    void theListFollowsRandomEditsInEveryOrder()
    {
        std::mt19937 random(11);
        ConstraintTableModel model;
        TableListModel list(&model);
        const QAbstractItemModelTester tester(&list, QAbstractItemModelTester::FailureReportingMode::QtTest);
        m_document = randomDocument(120, random);
        model.setDocument(m_document);
        for (int step = 0; step < 300; ++step) {
            const auto line = [&] {
                return static_cast<std::int32_t>(
                    random() % static_cast<unsigned>(m_document.lineCount() + 1));
            };
            switch (random() % 8) {
            case 0:
                list.sort(static_cast<int>(random() % kTableColumns) - 1,
                    random() % 2 ? Qt::AscendingOrder : Qt::DescendingOrder);
                break;
            case 1:
                list.setGrouping(static_cast<RowGrouping>(random() % 3));
                break;
            case 2:
                list.setFilter(random() % 2 ? QStringLiteral("layer:1") : QString());
                break;
            case 3:
                list.setCollapsed(
                    static_cast<int>(random() % static_cast<unsigned>(list.rowCount())), random() % 2 == 0);
                break;
            default:
                QVERIFY(m_document
                            .apply(random() % 2 ? replaceLine(m_document, line(), randomLine(random))
                                                : moveLines(m_document, {line(), line()}, line()))
                            .has_value());
                model.setDocument(m_document);
                break;
            }
            TableListModel fresh(&model);
            fresh.setGrouping(list.grouping());
            fresh.setFilter(list.filter());
            fresh.sort(list.sortColumn(), list.sortOrder());
            for (int row = 0; row < list.rowCount(); ++row) {
                if (list.isCollapsed(row))
                    fresh.setCollapsed(row, true);
            }
            QCOMPARE(list.rowCount(), fresh.rowCount());
            for (int row = 0; row < list.rowCount(); ++row)
                QCOMPARE(list.keyOf(row), fresh.keyOf(row));
        }
    }
};

PLANLOOM_QTEST_IN(ConstraintTableModelTest, QCoreApplication)
#include "constraint_table_model_test.moc"
