#include "engine/lesson/expression.h"

#include "planloom_paths.h"
#include "tests/dice.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

namespace planloom {
namespace {

/// A plan of nothing but these figures.
Result<FigureValue> knownFigure(const FigureName &name)
{
    const FigureEntry &entry = entryOf(name.figure);
    if (name.index > 3)
        return Error{ErrorCode::NotFound, "there is no stage " + std::to_string(name.index), {}, {}};
    FigureValue value{.unit = entry.unit};
    if (name.figure == Figure::Step)
        value.number = name.plan == "start" ? 50e6 : 40e6;
    else if (name.figure == Figure::Bubble)
        value.number = 0.25;
    else if (name.figure == Figure::Peak)
        value.number = 12.6 * (1 << 30);
    else if (name.figure == Figure::InFlight)
        value.number = 3;
    else if (name.figure == Figure::Stages)
        value.number = 4;
    else if (name.figure == Figure::Verified)
        value.number = 1;
    else if (name.figure == Figure::Schedule)
        value.word = "gpipe";
    else if (name.figure == Figure::LargestPart)
        value.word = "exposed communication";
    return value;
}

std::string shown(const std::string &text)
{
    const auto expression = expressionFromText(text);
    if (!expression)
        return describe(expression.error());
    const auto value = expression->valueOf(knownFigure);
    return value ? toString(*value) : describe(value.error());
}

std::string decided(const std::string &text)
{
    const auto condition = conditionFromText(text);
    if (!condition)
        return describe(condition.error());
    const auto holds = condition->holds(knownFigure);
    return !holds ? describe(holds.error()) : *holds ? "yes" : condition->whyNot(knownFigure);
}

TEST(Expression, IsWrittenInItsUnit)
{
    EXPECT_EQ(shown("step"), "40.0 ms");
    EXPECT_EQ(shown("2 * step in start - 10 ms"), "90.0 ms");
    EXPECT_EQ(shown("step in start / step"), "1.25");
    EXPECT_EQ(shown("step / step in start as percent"), "80%");
    EXPECT_EQ(shown("bubble"), "25%");
    EXPECT_EQ(shown("1 - bubble"), "75%");
    EXPECT_EQ(shown("bubble / 5"), "5.0%");
    EXPECT_EQ(shown("peak  of   stage 0"), "12.6 GiB");
    EXPECT_EQ(shown("0.8 * peak of device 1"), "10.1 GiB");
    EXPECT_EQ(shown("(stages - 1) / (stages + 4)"), "0.375");
    EXPECT_EQ(shown("stages-1"), "3");
    EXPECT_EQ(shown("stages * 1000"), "4,000");
    EXPECT_EQ(shown("min(step, step in start) + max(1 ms, 2 ms)"), "42.0 ms");
    EXPECT_EQ(shown("-stages + 5"), "1");
    EXPECT_EQ(shown("verified"), "yes");
    EXPECT_EQ(shown("schedule"), "gpipe");
    EXPECT_EQ(shown("1.5 GiB + 512 MiB"), "2.00 GiB");
    EXPECT_EQ(shown("500 us"), "500 µs");
}

TEST(Expression, NamesWhatItAsksFor)
{
    const auto expression =
        expressionFromText("peak of stage 0 in start + sent by all-reduce + peak of stage 0 in start + peak");
    ASSERT_TRUE(expression) << describe(expression.error());
    const std::vector<FigureName> expected{
        {.figure = Figure::Peak, .index = 0, .ofStage = true, .plan = "start"},
        {.figure = Figure::Sent, .text = "all-reduce"}, {.figure = Figure::Peak}};
    EXPECT_EQ(expression->figures(), expected);
    const auto selected =
        conditionFromText("parts of kind:Linear & layer:0 in start = 2 and rows with \"tp\" > 0");
    ASSERT_TRUE(selected) << describe(selected.error());
    ASSERT_EQ(selected->figures().size(), 2U);
    EXPECT_EQ(selected->figures()[0].text, "kind:Linear & layer:0");
    EXPECT_EQ(selected->figures()[0].plan, "start");
    EXPECT_EQ(selected->figures()[1].text, "tp");
}

TEST(Expression, RefusesWithPlaceAndWayOut)
{
    const auto starts = [](const std::string &text, const std::string &expected) {
        const std::string said = shown(text);
        EXPECT_TRUE(said.starts_with(expected)) << text << " gives " << said;
    };
    starts("", "1: expected a figure or a number, found the end");
    starts("stepp", "1: expected a figure or a number, found \"stepp\" (did you mean 'step'?)");
    starts("step +", "7: expected a figure or a number, found the end");
    starts("step + peak", "12: a time cannot be added to a size");
    starts("step + 5", "9: a time cannot be added to a plain number (numbers may have a unit");
    starts("step * step", "12: a time cannot be multiplied by a time");
    starts("5 / step", "9: a plain number cannot be divided by a time");
    starts("(step", "6: expected a closing bracket");
    starts("step )", "6: expected an operator or the end, found \")\"");
    starts("step as percent", "16: a time cannot be written as percent");
    starts("busy", "5: \"busy\" needs \"of device N\"");
    starts("busy of stage 1", "9: expected \"device\" and its number, found \"stage\"");
    starts("in flight of stage x", "20: expected the number of a stage, found \"x\"");
    starts("peak of device 99999999999", "16: expected the number of a device");
    starts("sent by all-reduse",
        "9: expected a kind of communication, found \"all-reduse\" (did you mean 'all-reduce'?)");
    starts("parts of", "9: the selector cannot be read");
    starts("rows with tp", "11: expected a text in quotes");
    starts("rows with \"tp", "12: expected a closing quote");
    starts("min(step)", "9: expected a comma");
    starts("1.2.3", "1: this is no number");
    starts("step in ", "9: expected the name of a plan");
    starts("schedule + 1", "13: a word cannot be added to");
    starts(std::string(2000, '1'), "1: this is longer than 1000 letters");
    for (const std::string &deep : {std::string(400, '('), std::string(400, '-') + "1"})
        EXPECT_NE(shown(deep).find("nested too deep"), std::string::npos);
    std::string nots;
    for (int i = 0; i < 200; ++i)
        nots += "not ";
    EXPECT_NE(decided(nots + "verified").find("nested too deep"), std::string::npos);
    EXPECT_NE(shown("step / (stages - 4)").find("nothing can be divided by it"), std::string::npos);
    EXPECT_NE(decided("step").find("expected a condition, found a time"), std::string::npos);
    EXPECT_NE(decided("step < 5").find("cannot be compared with"), std::string::npos);
    EXPECT_NE(decided("schedule < 1f1b").find("by = and != alone"), std::string::npos);
    EXPECT_NE(decided("schedule = 1f2b").find("is no schedule (there are sequential"), std::string::npos);
    EXPECT_NE(decided("step < 1 ms and 5").find("expected a condition"), std::string::npos);
}

TEST(Condition, SaysWhyItDoesNotHold)
{
    EXPECT_EQ(decided("peak of stage 0 < 0.8 * peak of stage 0"),
        "the peak of stage 0 is 12.6 GiB; it has to be below 10.1 GiB");
    EXPECT_EQ(decided("in flight of stage 1 <= 2"),
        "the number of micro-batches in flight of stage 1 is 3; it may be at most 2");
    EXPECT_EQ(decided("2 >= in flight of stage 1"),
        "the number of micro-batches in flight of stage 1 is 3; it may be at most 2");
    EXPECT_EQ(
        decided("step in start < step"), "the step at the start is 50.0 ms; it has to be below 40.0 ms");
    EXPECT_EQ(
        decided("step / step in start > 0.9"), "\"step / step in start\" is 0.800; it has to be above 0.900");
    EXPECT_EQ(decided("schedule = 1f1b"), "the schedule is gpipe; it has to be 1f1b");
    EXPECT_EQ(decided("schedule = gpipe and largest part = exposed communication"), "yes");
    EXPECT_EQ(decided("not verified"), "the plan is proven to compute the model");
    EXPECT_EQ(decided("fits"), "the plan does not fit into the devices' memory");
    EXPECT_EQ(decided("fits in start"), "the plan does not fit into the devices' memory at the start");
    EXPECT_EQ(decided("not (step < 1 s or stages = 3)"), "the step is 40.0 ms; it has to be at least 1.00 s");
    EXPECT_EQ(decided("stages = 4 and (stages > 5 or verified)"), "yes");
    EXPECT_EQ(decided("stages = 3 and fits"),
        "the number of stages is 4; it has to be 3; the plan does not fit into the devices' memory");
    EXPECT_EQ(decided("stages = 3 or fits"),
        "the number of stages is 4; it has to be 3; or: the plan does not fit into the devices' memory");
    EXPECT_EQ(decided("step < 39.999 ms"), "the step is 40.000 ms; it has to be below 39.999 ms");
}

TEST(Condition, OfAFigureThatIsNotThereDoesNotHold)
{
    EXPECT_EQ(decided("in flight of stage 7 <= 2"), "there is no stage 7");
    EXPECT_EQ(decided("not in flight of stage 7 <= 2"), "there is no stage 7");
    EXPECT_EQ(decided("verified or in flight of stage 7 <= 2"), "yes");
    const auto condition = conditionFromText("in flight of stage 7 <= 2 and fits");
    ASSERT_TRUE(condition);
    EXPECT_FALSE(*condition->holds(knownFigure)) << "decided by the other side";
}

TEST(Condition, IsEqualUpToRounding)
{
    EXPECT_EQ(decided("0.1 + 0.2 = 0.3"), "yes");
    EXPECT_EQ(decided("0.1 + 0.2 <= 0.3 and not 0.1 + 0.2 < 0.3 and not 0.1 + 0.2 > 0.3"), "yes");
    EXPECT_EQ(decided("step = 40000001 ns"), "yes");
    EXPECT_EQ(decided("step != 40.1 ms"), "yes");
}

/// A random formula of plain numbers, written with brackets, and what it comes to.
std::pair<std::string, double> randomFormula(Dice &dice, int depth)
{
    if (depth == 0 || dice.below(4) == 0) {
        const int number = 1 + static_cast<int>(dice.below(9));
        return {std::to_string(number), number};
    }
    const auto [a, x] = randomFormula(dice, depth - 1);
    const auto [b, y] = randomFormula(dice, depth - 1);
    switch (dice.below(6)) {
    case 0:
        return {"(" + a + " + " + b + ")", x + y};
    case 1:
        return {"(" + a + "-" + b + ")", x - y};
    case 2:
        return {a + " * " + b, x * y};
    case 3:
        return {"(" + a + ")/(" + b + " + 100)", x / (y + 100)};
    case 4:
        return {"min(" + a + ", " + b + ")", std::min(x, y)};
    default:
        return {"max(" + a + "," + b + ")", std::max(x, y)};
    }
}

TEST(Expression, OfRandomFormulasIsWhatTheyComeTo)
{
    Dice dice(7);
    for (int i = 0; i < 500; ++i) {
        const auto [text, expected] = randomFormula(dice, 4);
        if (text.size() > kLongestExpression)
            continue;
        const auto expression = expressionFromText(text);
        ASSERT_TRUE(expression) << text << ": " << describe(expression.error());
        const auto value = expression->valueOf(knownFigure);
        ASSERT_TRUE(value) << text;
        EXPECT_NEAR(value->number, expected, 1e-9 * std::max(1.0, std::abs(expected))) << text;
    }
}

TEST(Expression, KeepsTheUsualPrecedence)
{
    EXPECT_EQ(shown("2 + 3 * 4 - 6 / 2"), "11");
    EXPECT_EQ(shown("2 - 3 - 4"), "-5");
    EXPECT_EQ(shown("24 / 4 / 2"), "3");
    EXPECT_EQ(decided("stages = 3 and stages = 4 or verified"), "yes");
    EXPECT_EQ(decided("not stages = 3 and verified"), "yes");
}

/// Cells of the rows of the table "figure" of the help page: names and unit.
std::vector<std::pair<std::string, std::string>> tableOfHelp(std::string &whole)
{
    std::ifstream file(PLANLOOM_SOURCE_DIR "/resources/lessons.md");
    std::vector<std::pair<std::string, std::string>> rows;
    bool isTable = false;
    for (std::string line; std::getline(file, line);) {
        isTable = line.starts_with("| figure |") || (isTable && line.starts_with("|"));
        if (!isTable || line.starts_with("| figure") || line.starts_with("| ---"))
            continue;
        whole += line + "\n";
        const std::size_t first = line.find('|', 1);
        rows.emplace_back(
            line.substr(1, first - 1), line.substr(first + 2, line.find('|', first + 1) - first - 3));
    }
    return rows;
}

TEST(Figures, AreThoseOfTheHelpPage)
{
    const std::map<std::string, FigureUnit> units{{"time", FigureUnit::Time}, {"bytes", FigureUnit::Bytes},
        {"share", FigureUnit::Share}, {"count", FigureUnit::Count}, {"word", FigureUnit::Word},
        {"words", FigureUnit::Word}, {"yes or no", FigureUnit::Truth}};
    std::string whole;
    const auto rows = tableOfHelp(whole);
    ASSERT_GT(rows.size(), 20U);
    for (const FigureEntry &entry : figureTable())
        EXPECT_TRUE(whole.find("`" + std::string(entry.name) + "`") != std::string::npos
            || whole.find("`" + std::string(entry.name) + " ") != std::string::npos)
            << entry.name << " is not in resources/lessons.md";
    for (const auto &[names, unit] : rows) {
        for (std::size_t at = names.find('`'); at != std::string::npos;) {
            const std::size_t end = names.find('`', at + 1);
            const std::string name = names.substr(at + 1, end - at - 1);
            at = names.find('`', end + 1);
            if (name.starts_with("of "))
                continue; // what may stand behind the others
            const FigureEntry *found = nullptr;
            for (const FigureEntry &entry : figureTable())
                if (name == entry.name || name.starts_with(std::string(entry.name) + " "))
                    found = !found || entry.name.size() > found->name.size() ? &entry : found;
            ASSERT_TRUE(found) << name << " of resources/lessons.md is no figure";
            const auto known = units.find(unit);
            if (known != units.end()) {
                EXPECT_EQ(found->unit, known->second) << name;
            }
        }
    }
}

TEST(Figures, StandInTheOrderOfTheirNumbers)
{
    for (const FigureEntry &entry : figureTable()) {
        EXPECT_EQ(&entryOf(entry.figure), &entry) << entry.name;
        EXPECT_FALSE(entry.words.empty()) << entry.name;
        EXPECT_EQ(entry.unit == FigureUnit::Truth, !entry.otherwise.empty()) << entry.name;
    }
}

} // namespace
} // namespace planloom
