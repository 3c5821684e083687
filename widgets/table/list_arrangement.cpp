#include "widgets/table/list_arrangement.h"

#include "engine/base/text.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

using Id = ListArrangement::Id;

constexpr std::array<const char *, 5> kOrigins{"text", "gesture", "template", "import", "solver"};

/// Translates what belongs to no object.
struct ListTexts {
    Q_DECLARE_TR_FUNCTIONS(planloom::ListArrangement)
};

bool shows(const ConstraintTableModel &rows, const ListArrangement &wanted, int row)
{
    if (wanted.chosenOnly && wanted.chosen.count(rows.keyAt(row)) == 0)
        return false;
    if (wanted.words.empty())
        return true;
    const std::string &text = rows.tableLineAt(row).text;
    std::string note; // with the remarks above the row; made when the row's own line lacks a word
    bool hasNote = false;
    return std::all_of(wanted.words.begin(), wanted.words.end(), [&](const std::string &word) {
        if (containsLetters(text, word))
            return true;
        if (!hasNote) {
            note = rows.noteKeyAt(row);
            hasNote = true;
        }
        return note.find(word) != std::string::npos;
    });
}

int groupOf(const ConstraintTableModel &rows, RowGrouping grouping, int row)
{
    const RowCells &cells = rows.cellsAt(row);
    if (grouping == RowGrouping::Rule) {
        const RuleWord *word = findRuleWord(cells.rule);
        return word ? static_cast<int>(word - ruleWords().data()) : static_cast<int>(ruleWords().size());
    }
    if (cells.origin.empty())
        return 0;
    const auto found = std::find(kOrigins.begin(), kOrigins.end(), cells.origin);
    return static_cast<int>(found - kOrigins.begin());
}

const std::string &textOf(const RowCells &cells, TableColumn column)
{
    static const std::string kText = kOrigins.front();
    if (column == TableColumn::Origin)
        return cells.origin.empty() ? kText : cells.origin;
    return column == TableColumn::Selector ? cells.selector
        : column == TableColumn::Rule      ? cells.rule
                                           : cells.value;
}

bool isNumber(TableColumn column)
{
    return column == TableColumn::On || column == TableColumn::Number || column == TableColumn::Binds
        || column == TableColumn::Price || column == TableColumn::Strength;
}

/// Sorts `shown` by a key for each, equal ones as they stand.
template<typename Key> void sortBy(std::vector<int> &shown, bool falling, const std::vector<Key> &keys)
{
    std::vector<std::pair<Key, int>> keyed;
    keyed.reserve(shown.size());
    for (std::size_t i = 0; i < shown.size(); ++i)
        keyed.emplace_back(keys[i], shown[i]);
    std::stable_sort(keyed.begin(), keyed.end(),
        [falling](const auto &a, const auto &b) { return falling ? b.first < a.first : a.first < b.first; });
    std::transform(keyed.begin(), keyed.end(), shown.begin(), [](const auto &pair) { return pair.second; });
}

/// The place of each text among all of them in lower case. Rows have few different texts: those are sorted,
/// not all.
template<typename TextOf> std::vector<int> ranks(const std::vector<int> &rows, const TextOf &textOfRow)
{
    std::unordered_map<std::string, int> known;
    std::vector<int> result;
    result.reserve(rows.size());
    for (const int row : rows)
        result.push_back(known.emplace(textOfRow(row), static_cast<int>(known.size())).first->second);
    std::vector<std::pair<std::string, int>> texts;
    texts.reserve(known.size());
    for (const auto &[text, number] : known)
        texts.emplace_back(lowerCase(text), number);
    std::sort(texts.begin(), texts.end());
    std::vector<int> places(texts.size());
    int place = -1;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        place += i == 0 || texts[i].first != texts[i - 1].first ? 1 : 0;
        places[static_cast<std::size_t>(texts[i].second)] = place;
    }
    for (int &rank : result)
        rank = places[static_cast<std::size_t>(rank)];
    return result;
}

void sortRows(std::vector<int> &shown, const ConstraintTableModel &rows, TableColumn column, bool falling)
{
    if (isNumber(column)) {
        std::vector<double> numbers;
        numbers.reserve(shown.size());
        for (const int row : shown)
            numbers.push_back(rows.sortNumberAt(row, column));
        sortBy(shown, falling, numbers);
    } else if (column == TableColumn::Note) {
        sortBy(shown, falling, ranks(shown, [&](int row) { return rows.noteKeyAt(row); }));
    } else {
        sortBy(shown, falling,
            ranks(shown, [&](int row) -> const std::string & { return textOf(rows.cellsAt(row), column); }));
    }
}

} // namespace

bool ListArrangement::isInTextOrder() const
{
    return sortColumn < 0 && grouping == RowGrouping::None && !(chosenFirst && !chosen.empty());
}

ArrangedRows arranged(const ConstraintTableModel &rows, const ListArrangement &arrangement)
{
    std::vector<int> shown;
    shown.reserve(static_cast<std::size_t>(rows.rowCount()));
    for (int row = 0; row < rows.rowCount(); ++row) {
        if (shows(rows, arrangement, row))
            shown.push_back(row);
    }
    if (arrangement.sortColumn >= 0)
        sortRows(shown, rows, static_cast<TableColumn>(arrangement.sortColumn),
            arrangement.sortOrder == Qt::DescendingOrder);
    if (arrangement.chosenFirst && !arrangement.chosen.empty())
        std::stable_partition(shown.begin(), shown.end(),
            [&](int row) { return arrangement.chosen.count(rows.keyAt(row)) != 0; });
    ArrangedRows result;
    result.ids.reserve(shown.size() + 16);
    if (arrangement.grouping == RowGrouping::None) {
        for (const int row : shown)
            result.ids.push_back(rows.keyAt(row));
    } else {
        std::vector<std::vector<int>> groups;
        for (const int row : shown) {
            const auto group = static_cast<std::size_t>(groupOf(rows, arrangement.grouping, row));
            groups.resize(std::max(groups.size(), group + 1));
            groups[group].push_back(row);
        }
        for (std::size_t group = 0; group < groups.size(); ++group) {
            result.groupSizes.push_back(static_cast<int>(groups[group].size()));
            if (groups[group].empty())
                continue;
            result.ids.push_back(ListArrangement::kHeading | group);
            if (arrangement.collapsed.count(static_cast<int>(group)) != 0)
                continue;
            for (const int row : groups[group])
                result.ids.push_back(rows.keyAt(row));
        }
    }
    result.ids.push_back(0);
    return result;
}

std::vector<std::string> filterWords(const QString &text)
{
    std::vector<std::string> words;
    const QStringList parts = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    for (const QString &word : parts)
        words.push_back(lowerCase(word.toStdString()));
    return words;
}

QString titleOfGroup(RowGrouping grouping, int group)
{
    if (grouping == RowGrouping::Rule) {
        return group < static_cast<int>(ruleWords().size())
            ? QString::fromUtf8(ruleWords()[static_cast<std::size_t>(group)].word.data())
            : ListTexts::tr("not yet rows");
    }
    return group < static_cast<int>(kOrigins.size())
        ? QString::fromLatin1(kOrigins[static_cast<std::size_t>(group)])
        : ListTexts::tr("other origin");
}

} // namespace planloom
