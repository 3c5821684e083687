#include "widgets/table/row_cells.h"

#include "engine/base/place.h"
#include "engine/base/text.h"
#include "engine/table/table_text.h"
#include "engine/table/text_cursor.h"
#include "widgets/table/kinds/rule_cells.h"

#include <algorithm>
#include <charconv>

namespace planloom {

namespace {

/// The first place outside quotes for which `test(place)` holds; npos if there is none.
template<typename Test> std::size_t findOutsideQuotes(std::string_view text, Test test)
{
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (inside && text[i] == '\\')
            ++i;
        else if (text[i] == '"')
            inside = !inside;
        else if (!inside && test(i))
            return i;
    }
    return std::string_view::npos;
}

std::size_t findColon(std::string_view text)
{
    const auto isGap = [&](std::size_t i) { return i >= text.size() || text[i] == ' ' || text[i] == '\t'; };
    return findOutsideQuotes(
        text, [&](std::size_t i) { return text[i] == ':' && (isGap(i + 1) || (i > 0 && isGap(i - 1))); });
}

/// Where an unquoted word of `words` ("by|over") begins; npos if none does.
std::size_t findWord(std::string_view text, std::string_view words)
{
    return findOutsideQuotes(text, [&](std::size_t i) {
        if (i > 0 && isWordCharacter(text[i - 1]))
            return false;
        std::size_t end = i;
        while (end < text.size() && isWordCharacter(text[end]))
            ++end;
        const std::string_view word = text.substr(i, end - i);
        if (word.empty())
            return false;
        for (std::string_view rest = words; !rest.empty();) {
            const std::size_t bar = std::min(rest.find('|'), rest.size());
            if (rest.substr(0, bar) == word)
                return true;
            rest.remove_prefix(std::min(bar + 1, rest.size()));
        }
        return false;
    });
}

/// The text behind a rule's word into selector and value.
void splitRest(const RuleWord &rule, std::string_view rest, RowCells &cells)
{
    if (rule.shape == RuleShape::Plain) {
        cells.value = rest;
        return;
    }
    TextCursor cursor(rest);
    if (const auto selector = parseSelector(cursor)) {
        const std::size_t end = cursor.position();
        const std::string_view behind = trimmed(rest.substr(end));
        if (rule.shape == RuleShape::Open ? behind.empty() || findWord(behind, rule.valueStart) == 0
                                          : !behind.empty() && behind.front() == ':') {
            cells.selector = trimmed(rest.substr(0, end));
            cells.value = rule.shape == RuleShape::Colon ? trimmed(behind.substr(1)) : behind;
            return;
        }
    }
    if (rule.shape == RuleShape::Colon) {
        const std::size_t colon = findColon(rest);
        cells.selector = trimmed(rest.substr(0, colon));
        if (colon != std::string_view::npos)
            cells.value = trimmed(rest.substr(colon + 1));
        return;
    }
    const std::size_t begin = findWord(rest, rule.valueStart);
    cells.selector = trimmed(rest.substr(0, begin));
    if (begin != std::string_view::npos)
        cells.value = trimmed(rest.substr(begin));
}

std::string_view wordAt(std::string_view text)
{
    return text.substr(0, std::min(text.find_first_of(" \t:"), text.size()));
}

/// Takes "prefer 2" off the front of `content`; with it whatever stands there in place of a weight, if a rule
/// follows.
std::string_view takeStrength(std::string_view content, RowCells &cells)
{
    constexpr std::string_view kPrefer = "prefer";
    if (wordAt(content) != kPrefer)
        return content;
    const std::string_view rest = trimmed(content.substr(kPrefer.size()));
    const std::string_view next = wordAt(rest);
    const std::string_view behind = trimmed(rest.substr(next.size()));
    const bool isWeight = !next.empty() && !findRuleWord(next)
        && (next.find_first_not_of("+-0123456789") == std::string_view::npos || findRuleWord(wordAt(behind)));
    cells.strength = kPrefer;
    if (!isWeight)
        return rest;
    cells.strength += ' ';
    cells.strength += next;
    return behind;
}

/// In the line that was read, from 0.
std::int32_t positionOf(const Error &error)
{
    const Place place = placeOf(error);
    const auto *text = std::get_if<TextPlace>(&place);
    return text ? std::max(text->column - 1, 0) : 0;
}

CellProblem problemOf(
    TableColumn column, std::string_view said, std::string_view example, std::int64_t position)
{
    std::string message = std::string(nameOf(column)) + ": ";
    message += said.find("expected") == std::string_view::npos
        ? "expected something else: " + std::string(said)
        : std::string(said);
    message += ". For example: ";
    message += example;
    return {column, std::move(message), static_cast<std::int32_t>(std::max<std::int64_t>(position, 0))};
}

std::string listOfRules()
{
    std::string text;
    for (const RuleWord &rule : ruleWords())
        text += (text.empty() ? "" : ", ") + std::string(rule.word);
    return text;
}

/// '#' and '@' begin other cells, wherever a person types them.
std::optional<CellProblem> checkMarks(TableColumn column, std::string_view text, std::string_view example)
{
    const std::size_t mark =
        findOutsideQuotes(text, [&](std::size_t i) { return text[i] == '#' || text[i] == '@'; });
    if (mark == std::string_view::npos)
        return {};
    const bool note = text[mark] == '#';
    return problemOf(column,
        std::string("expected no '") + text[mark]
            + "' outside quotes: " + (note ? "notes have their own column" : "the origin has its own column"),
        example, static_cast<std::int64_t>(mark));
}

} // namespace

const char *nameOf(TableColumn column)
{
    static constexpr std::array<const char *, kTableColumns> kNames{
        "On", "#", "Selector", "Rule", "Value", "Must/Prefer", "Binds", "Price", "Origin", "Note"};
    return kNames[static_cast<std::size_t>(column)];
}

const std::vector<RuleWord> &ruleWords()
{
    static const std::vector<RuleWord> kWords = [] {
        std::vector<RuleWord> words;
        for (const RuleCells *cells : kAllRuleCells)
            words.push_back(cells->word);
        return words;
    }();
    return kWords;
}

const RuleWord *findRuleWord(std::string_view word)
{
    const auto &words = ruleWords();
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const RuleWord &rule) { return rule.word == word; });
    return found == words.end() ? nullptr : &*found;
}

std::size_t noteBegin(std::string_view line)
{
    return findOutsideQuotes(line, [&](std::size_t i) { return line[i] == '#'; });
}

std::string oneLine(std::string_view text)
{
    std::string result(trimmed(text));
    std::replace_if(
        result.begin(), result.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return result;
}

RowCells cellsOf(std::string_view line)
{
    RowCells cells;
    const std::size_t hash = noteBegin(line);
    if (hash != std::string_view::npos) {
        std::string_view note = line.substr(hash + 1);
        if (!note.empty() && note.back() == '\r')
            note.remove_suffix(1);
        if (!note.empty() && note.front() == ' ')
            note.remove_prefix(1);
        cells.note = note;
    }
    std::string_view content = trimmed(line.substr(0, hash));
    const std::size_t at = findOutsideQuotes(content, [&](std::size_t i) { return content[i] == '@'; });
    if (at != std::string_view::npos) {
        cells.origin = trimmed(content.substr(at + 1));
        content = trimmed(content.substr(0, at));
    }
    TextCursor cursor(content);
    if (cursor.takeWord("off")) {
        cells.enabled = false;
        content = trimmed(cursor.rest());
    }
    content = takeStrength(content, cells);
    const std::size_t end = std::min(content.find_first_of(" \t:"), content.size());
    const std::string_view word = content.substr(0, end);
    const std::string_view rest = trimmed(content.substr(end));
    if (const RuleWord *rule = findRuleWord(word)) {
        cells.rule = word;
        splitRest(*rule, rest, cells);
        return cells;
    }
    // No known rule: what stands before a colon looks like rule and selector, the rest like a value.
    const std::size_t colon = findColon(content);
    if (colon == std::string_view::npos) {
        cells.rule = word;
        cells.value = rest;
        return cells;
    }
    const std::string_view before = trimmed(content.substr(0, colon));
    const std::size_t gap = std::min(before.find_first_of(" \t"), before.size());
    cells.rule = before.substr(0, gap);
    cells.selector = trimmed(before.substr(gap));
    cells.value = trimmed(content.substr(colon + 1));
    return cells;
}

std::string lineOf(const RowCells &cells)
{
    const RuleWord *rule = findRuleWord(cells.rule);
    const RuleShape shape = rule ? rule->shape : cells.selector.empty() ? RuleShape::Plain : RuleShape::Colon;
    std::string line = cells.enabled ? "" : "off ";
    if (const std::string strength = oneLine(cells.strength); !strength.empty() && strength != "must") {
        const auto weight = weightOf(strength);
        line += (weight == 1                               ? std::string("prefer")
                        : strength.rfind("prefer", 0) == 0 ? strength
                                                           : "prefer " + strength)
            + ' ';
    }
    line += oneLine(cells.rule);
    const std::string selector = oneLine(cells.selector);
    if (!selector.empty() && shape != RuleShape::Plain)
        line += " " + selector;
    if (shape == RuleShape::Colon)
        line += " :";
    if (const std::string value = oneLine(cells.value); !value.empty())
        line += " " + value;
    if (const std::string origin = oneLine(cells.origin);
        !origin.empty() && origin != nameOf(RowOrigin::Text))
        line += "  @" + origin;
    if (!cells.note.empty())
        line += "  # " + cells.note;
    return line;
}

std::optional<CellProblem> checkSelector(std::string_view text)
{
    constexpr std::string_view kExample = "layer:0-5, name:*.attn.c_attn, or all";
    if (auto problem = checkMarks(TableColumn::Selector, text, kExample))
        return problem;
    const auto selector = parseSelector(text);
    if (selector)
        return {};
    std::string said = selector.error().message;
    // The end of a cell is not that of a row.
    if (const std::size_t at = said.find("the end of the row"); at != std::string::npos)
        said.replace(at, std::string_view("the end of the row").size(),
            trimmed(text).empty() ? "an empty cell" : "the end");
    return problemOf(TableColumn::Selector, said, kExample, positionOf(selector.error()));
}

std::optional<CellProblem> checkRule(std::string_view text)
{
    if (findRuleWord(trimmed(text)))
        return {};
    return problemOf(TableColumn::Rule,
        "expected " + listOfRules() + ", found "
            + (trimmed(text).empty() ? "an empty cell" : "'" + std::string(trimmed(text)) + "'"),
        "split", 0);
}

std::optional<CellProblem> checkValue(std::string_view rule, std::string_view text)
{
    const RuleWord *word = findRuleWord(trimmed(rule));
    if (!word)
        return {}; // the rule's cell is the wrong one
    if (auto problem = checkMarks(TableColumn::Value, text, word->value))
        return problem;
    RowCells cells;
    cells.rule = word->word;
    cells.selector = "all";
    std::string line = lineOf(cells) + " ";
    const std::size_t begin = line.size();
    line += oneLine(text);
    const auto row = parseRow(line);
    if (row)
        return {};
    std::string said = row.error().message;
    if (const std::size_t at = said.find("the end of the row, found");
        at == 9) // "expected the end of the row, found 'x'"
        said.replace(at, std::string_view("the end of the row").size(), "the end of the value");
    else if (const std::size_t end = said.find("the end of the row"); end != std::string::npos)
        said.replace(end, std::string_view("the end of the row").size(),
            trimmed(text).empty() ? "an empty cell" : "the end of the value");
    return problemOf(TableColumn::Value, said, word->value,
        std::int64_t{positionOf(row.error())} - static_cast<std::int64_t>(begin));
}

std::optional<std::int32_t> weightOf(std::string_view strength)
{
    const std::string_view text = trimmed(strength);
    if (text.empty() || text == "must")
        return 0;
    const bool named = wordAt(text) == "prefer";
    const std::string_view digits = named ? trimmed(text.substr(6)) : text;
    if (digits.empty())
        return 1;
    std::int32_t weight = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
    if (failure != std::errc{} || end != digits.data() + digits.size() || weight < 1 || weight > kMostWeight)
        return {};
    return weight;
}

std::optional<CellProblem> checkStrength(std::string_view text)
{
    if (weightOf(text))
        return {};
    return problemOf(TableColumn::Strength,
        "expected must, or prefer with a weight from 1 to " + std::to_string(kMostWeight) + ", found '"
            + std::string(trimmed(text)) + "'",
        "prefer 2", 0);
}

std::optional<CellProblem> checkOrigin(std::string_view text)
{
    const std::string_view origin = trimmed(text);
    if (origin.empty())
        return {};
    for (const RowOrigin known :
        {RowOrigin::Text, RowOrigin::Gesture, RowOrigin::Template, RowOrigin::Import, RowOrigin::Solver}) {
        if (origin == nameOf(known))
            return {};
    }
    return problemOf(TableColumn::Origin,
        "expected text, gesture, template, import or solver, found '" + std::string(origin) + "'", "gesture",
        0);
}

std::optional<CellProblem> checkCells(const RowCells &cells)
{
    if (auto problem = checkRule(cells.rule))
        return problem;
    const RuleWord &rule = *findRuleWord(trimmed(cells.rule));
    if (rule.shape != RuleShape::Plain) {
        if (auto problem = checkSelector(cells.selector))
            return problem;
    } else if (!trimmed(cells.selector).empty()) {
        return problemOf(TableColumn::Selector,
            "expected nothing: " + std::string(rule.word) + " is about the whole plan", "an empty cell", 0);
    }
    if (auto problem = checkValue(cells.rule, cells.value))
        return problem;
    if (auto problem = checkStrength(cells.strength))
        return problem;
    if (auto problem = checkOrigin(cells.origin))
        return problem;
    if (cells.note.find('\n') != std::string::npos)
        return problemOf(TableColumn::Note, "expected one line", "halves the all-reduce", 0);
    if (const auto row = parseRow(lineOf(cells)); !row)
        return problemOf(TableColumn::Value, row.error().message, rule.value, 0);
    return {};
}

} // namespace planloom
