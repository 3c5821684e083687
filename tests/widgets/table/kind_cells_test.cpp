#include <QtTest/QtTest>
#include <QtWidgets/QApplication>

#include "tests/qt_test.h"
#include "widgets/table/cell_editors.h"
#include "widgets/table/constraint_table_model.h"
#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/table_text.h"

#include <memory>
#include <set>

using namespace planloom;

namespace {

/// A row of `word` about everything.
RowCells cellsWith(const RuleWord &word, std::string value)
{
    RowCells cells;
    cells.rule = word.word;
    if (word.shape != RuleShape::Plain)
        cells.selector = "all";
    cells.value = std::move(value);
    return cells;
}

QByteArray bytes(std::string_view text)
{
    return {text.data(), static_cast<qsizetype>(text.size())};
}

} // namespace

/// What the grid knows of each kind of row, against its language.
class KindCellsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyWordOfTheLanguageIsKnownOnce()
    {
        std::set<std::string_view> words;
        for (const RuleWord &word : ruleWords()) {
            QVERIFY2(words.insert(word.word).second, word.word.data());
            QVERIFY2(shapeOf(word.word) == word.shape, word.word.data());
            QVERIFY2(!meaningOfRule(QString::fromUtf8(word.word.data())).isEmpty(), word.word.data());
        }
        QVERIFY(words == std::set<std::string_view>(ruleNames().begin(), ruleNames().end()));
        QVERIFY(!findRuleCells("dance"));
        QVERIFY(meaningOfRule(QStringLiteral("dance")).isEmpty());
    }

    void examplesAreRowsAndNeededWhereItIsSaid_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < ruleWords().size(); ++i)
            QTest::newRow(ruleWords()[i].word.data()) << static_cast<int>(i);
    }

    void examplesAreRowsAndNeededWhereItIsSaid()
    {
        QFETCH(int, index);
        const RuleWord &word = ruleWords()[static_cast<std::size_t>(index)];
        const RowCells example = cellsWith(word, std::string(word.value));
        QVERIFY(!checkCells(example));
        QCOMPARE(bytes(lineOf(cellsOf(lineOf(example)))), bytes(lineOf(example)));
        QVERIFY(cellsOf(lineOf(example)) == example);
        QCOMPARE(checkCells(cellsWith(word, "")).has_value(), word.needsValue);
        // The value of a row that can't be read is found by how values begin.
        if (word.shape == RuleShape::Open) {
            RowCells torn = example;
            torn.selector = "layer:x";
            QVERIFY(cellsOf(lineOf(torn)) == torn);
        }
    }

    void editorsShowTheExample_data() { examplesAreRowsAndNeededWhereItIsSaid_data(); }

    void editorsShowTheExample()
    {
        QFETCH(int, index);
        const RuleWord &word = ruleWords()[static_cast<std::size_t>(index)];
        const RuleCells &cells = *findRuleCells(word.word);
        const std::string value(word.value);
        QWidget parent;
        if (!cells.newEditor) {
            QVERIFY2(cells.suggest, "edited as text without anything to choose from");
            return;
        }
        const std::unique_ptr<CellEditor> editor(cells.newEditor(value, {}, &parent));
        QVERIFY(editor);
        editor->setText(QString::fromStdString(value));
        QCOMPARE(editor->text(), QString::fromStdString(value));
        QVERIFY(!editor->isTouched());
        // Nor does a row that has none yet stop it.
        const std::unique_ptr<CellEditor> empty(cells.newEditor("", {}, &parent));
        QVERIFY(empty);
    }

    void suggestionsAreValues_data() { examplesAreRowsAndNeededWhereItIsSaid_data(); }

    void suggestionsAreValues()
    {
        QFETCH(int, index);
        const RuleWord &word = ruleWords()[static_cast<std::size_t>(index)];
        ValueChoices choices;
        choices.dimensions = {
            {"batch", "batch (8)", {2, 4, 8}, 3}, {"m", "m (6)", {2, 3, 6}, 1}, {"odd", "odd (7)", {}, 1}};
        choices.valueSplit = true;
        choices.mesh = {{"dp", 2}, {"two words", 4}};
        choices.deviceCount = 8;
        choices.inputDimensions = {{.name = "batch", .size = 8}, {.name = "two words", .size = 1, .most = 1}};
        choices.rooms = {{"all", {}}, {"h.0.places", {.kind = Capacity::Kind::Rows, .rows = 128}}};
        choices.recurrences = {"two words"};
        const auto suggested = valueSuggestions(word.word, choices, "", 1000);
        QCOMPARE(suggested.empty(), findRuleCells(word.word)->suggest == nullptr);
        for (const std::string &value : suggested) {
            const auto problem = checkCells(cellsWith(word, value));
            QVERIFY2(!problem, problem ? problem->message.c_str() : "");
        }
    }
};

PLANLOOM_QTEST(KindCellsTest)
#include "kind_cells_test.moc"
