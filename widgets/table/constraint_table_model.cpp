#include "widgets/table/constraint_table_model.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

/// More runs than this are told as one: each costs the views O(rows).
constexpr std::size_t kMostSplices = 48;
constexpr int kPreparedAtOnce = 400;

/// Length of the longest rising subsequence of `values` (-1 are passed by), as marks on its members.
std::vector<bool> risingMembers(const std::vector<int> &values)
{
    std::vector<int> tails; // index into values of the smallest end of each length
    std::vector<int> before(values.size(), -1);
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
        const int value = values[static_cast<std::size_t>(i)];
        if (value < 0)
            continue;
        const auto place = std::lower_bound(tails.begin(), tails.end(), value,
            [&](int index, int wanted) { return values[static_cast<std::size_t>(index)] < wanted; });
        if (place != tails.begin())
            before[static_cast<std::size_t>(i)] = *(place - 1);
        if (place == tails.end())
            tails.push_back(i);
        else
            *place = i;
    }
    std::vector<bool> member(values.size(), false);
    for (int i = tails.empty() ? -1 : tails.back(); i >= 0; i = before[static_cast<std::size_t>(i)])
        member[static_cast<std::size_t>(i)] = true;
    return member;
}

} // namespace

ConstraintTableModel::ConstraintTableModel(QObject *parent)
    : QAbstractTableModel(parent)
{
    m_idle.setInterval(0);
    connect(&m_idle, &QTimer::timeout, this, &ConstraintTableModel::prepareSome);
}

void ConstraintTableModel::setDocument(const TableDocument &document)
{
    Q_EMIT documentAboutToBeSet();
    // What both documents begin and end with stays as it is: lines are shared, so that is quickly seen.
    const auto &before = m_document.lines();
    const auto &lines = document.lines();
    const auto sameLine = [](const TableLineSnapshot &a, const TableLineSnapshot &b) {
        return a == b || a->text == b->text;
    };
    std::size_t headLines = 0;
    while (headLines < before.size() && headLines < lines.size()
        && sameLine(before[headLines], lines[headLines]))
        ++headLines;
    std::size_t tailLines = 0;
    while (tailLines < before.size() - headLines && tailLines < lines.size() - headLines
        && sameLine(before[before.size() - 1 - tailLines], lines[lines.size() - 1 - tailLines]))
        ++tailLines;
    // The first row of the tail owns remarks of the middle.
    while (tailLines > 0 && lines[lines.size() - tailLines]->isRemark())
        --tailLines;
    if (tailLines > 0)
        --tailLines;
    const int oldCount = static_cast<int>(m_entries.size());
    const auto byLine = [](const std::unique_ptr<Entry> &entry, std::int32_t line) {
        return entry->line < line;
    };
    const int head = static_cast<int>(
        std::lower_bound(m_entries.begin(), m_entries.end(), static_cast<std::int32_t>(headLines), byLine)
        - m_entries.begin());
    const int oldEnd = static_cast<int>(std::lower_bound(m_entries.begin(), m_entries.end(),
                                            static_cast<std::int32_t>(before.size() - tailLines), byLine)
        - m_entries.begin());
    const auto lineShift = static_cast<std::int32_t>(lines.size()) - static_cast<std::int32_t>(before.size());

    std::vector<std::unique_ptr<Entry>> middle; // new rows from `head` on
    if (headLines == 0 && tailLines == 0)
        middle.reserve(lines.size());
    std::vector<TableLineSnapshot> remarks;
    const auto beginLine = static_cast<std::size_t>(head > 0 ? at(head - 1).line + 1 : 0);
    for (std::size_t i = beginLine; i < lines.size() - tailLines; ++i) {
        if (lines[i]->isRemark()) {
            remarks.push_back(lines[i]);
            continue;
        }
        auto entry = std::make_unique<Entry>();
        entry->line = static_cast<std::int32_t>(i);
        entry->text = lines[i];
        entry->remarks = std::move(remarks);
        remarks.clear();
        middle.push_back(std::move(entry));
    }
    m_document = document;
    const int newEnd = head + static_cast<int>(middle.size());
    const auto madeAt = [&](int row) -> Entry & { return *middle[static_cast<std::size_t>(row - head)]; };

    // Which old row a new one of the middle is; rows that moved are taken out and put in, but stay
    // themselves.
    std::unordered_map<std::string_view, std::vector<int>> oldRows; // the first one last
    for (int row = oldEnd; row-- > head && !middle.empty();)
        oldRows[at(row).text->text].push_back(row);
    std::vector<int> origin(static_cast<std::size_t>(newEnd - head), -1);
    std::vector<bool> livesOn(static_cast<std::size_t>(oldEnd - head), false);
    for (int row = head; row < newEnd && !oldRows.empty(); ++row) {
        const auto found = oldRows.find(madeAt(row).text->text);
        if (found == oldRows.end() || found->second.empty())
            continue;
        origin[static_cast<std::size_t>(row - head)] = found->second.back();
        livesOn[static_cast<std::size_t>(found->second.back() - head)] = true;
        found->second.pop_back();
    }
    const auto adopt = [&](Entry &entry, const Entry &old, bool sameText) {
        entry.key = old.key;
        entry.reach = old.reach;
        entry.price = old.price;
        if (sameText) {
            entry.complaint = old.complaint;
            entry.prepared = old.prepared;
        } else {
            entry.price.state = RowPrice::State::Unknown;
        }
    };
    const auto staying = risingMembers(origin);
    std::vector<Splice> splices;
    std::vector<int> rewritten; // new rows whose old ones stand in the same place
    int oldRow = head; // the next old row that has no fate yet
    int shift = 0; // of places by earlier splices
    int firstNew = head; // the next new row that has no fate yet
    const auto settleGap = [&](int oldStop, int newStop) {
        const int paired = std::min(oldStop - oldRow, newStop - firstNew);
        for (int i = 0; i < paired; ++i) {
            Entry &entry = madeAt(firstNew + i);
            // A row that comes from elsewhere stays itself; a new text in an old place is that row, changed.
            const int from = origin[static_cast<std::size_t>(firstNew + i - head)];
            const int old = oldRow + i;
            if (from >= 0 && from != old)
                adopt(entry, at(from), true);
            else if (!livesOn[static_cast<std::size_t>(old - head)] || from == old)
                adopt(entry, at(old), from == old);
            else
                entry.key = m_nextKey++; // the old row of this place lives on elsewhere
            rewritten.push_back(firstNew + i);
        }
        const int removed = oldStop - oldRow - paired;
        const int inserted = newStop - firstNew - paired;
        for (int i = paired; i < paired + inserted; ++i) {
            Entry &entry = madeAt(firstNew + i);
            const int from = origin[static_cast<std::size_t>(firstNew + i - head)];
            if (from >= 0)
                adopt(entry, at(from), true);
            else
                entry.key = m_nextKey++;
        }
        if (removed > 0 || inserted > 0) {
            splices.push_back({oldRow + paired + shift, removed, firstNew + paired, inserted});
            shift += inserted - removed;
        }
        oldRow = oldStop;
        firstNew = newStop;
    };
    for (int row = head; row < newEnd; ++row) {
        if (!staying[static_cast<std::size_t>(row - head)])
            continue;
        const int old = origin[static_cast<std::size_t>(row - head)];
        settleGap(old, row);
        Entry &entry = madeAt(row);
        adopt(entry, at(old), true);
        if (entry.remarks != at(old).remarks)
            rewritten.push_back(row);
        oldRow = old + 1;
        firstNew = row + 1;
    }
    settleGap(oldEnd, newEnd);
    if (splices.size() > kMostSplices)
        splices = {{head, oldEnd - head, head, newEnd - head}};
    carryOut(splices, middle, head);
    // Contents and line numbers last: every place has its row now.
    int first = newEnd;
    int last = -1;
    bool sameKeys = splices.empty();
    for (int row = head; row < newEnd; ++row) {
        std::unique_ptr<Entry> &made = middle[static_cast<std::size_t>(row - head)];
        if (!made)
            continue; // it has been put in
        if (at(row).line != made->line) {
            first = std::min(first, row);
            last = row;
        }
        sameKeys = sameKeys && at(row).key == made->key;
        m_entries[static_cast<std::size_t>(row)] = std::move(made);
    }
    const int newCount = newEnd + oldCount - oldEnd;
    if (lineShift != 0) {
        for (int row = newEnd; row < newCount; ++row)
            m_entries[static_cast<std::size_t>(row)]->line += lineShift;
        if (newEnd < newCount)
            last = newCount - 1;
    }
    m_keysValid = m_keysValid && sameKeys;
    m_prepared = std::min(m_prepared, head);
    if (last >= 0)
        Q_EMIT dataChanged(index(std::min(first, last), static_cast<int>(TableColumn::Number)),
            index(last, static_cast<int>(TableColumn::Number)));
    std::size_t runs = 0;
    for (std::size_t i = 0; i < rewritten.size(); ++i)
        runs += i == 0 || rewritten[i] != rewritten[i - 1] + 1 ? 1 : 0;
    if (runs > kMostSplices) { // each costs the views something
        changed(*std::min_element(rewritten.begin(), rewritten.end()),
            *std::max_element(rewritten.begin(), rewritten.end()));
        rewritten.clear();
    }
    for (std::size_t i = 0; i < rewritten.size();) {
        std::size_t end = i + 1;
        while (end < rewritten.size() && rewritten[end] == rewritten[end - 1] + 1)
            ++end;
        changed(rewritten[i], rewritten[end - 1]);
        i = end;
    }
    m_old = m_update != nullptr;
    m_conflicts.clear(); // by line, of other rows
    m_idle.start();
    Q_EMIT documentSet();
}

void ConstraintTableModel::carryOut(
    const std::vector<Splice> &splices, std::vector<std::unique_ptr<Entry>> &made, int firstMade)
{
    for (const Splice &splice : splices) {
        if (splice.removed > 0) {
            beginRemoveRows({}, splice.row, splice.row + splice.removed - 1);
            m_entries.erase(m_entries.begin() + splice.row, m_entries.begin() + splice.row + splice.removed);
            m_keysValid = false;
            endRemoveRows();
        }
        if (splice.inserted > 0) {
            beginInsertRows({}, splice.row, splice.row + splice.inserted - 1);
            const auto begin = made.begin() + (splice.firstNew - firstMade);
            m_entries.insert(m_entries.begin() + splice.row, std::make_move_iterator(begin),
                std::make_move_iterator(begin + splice.inserted));
            m_keysValid = false;
            endInsertRows();
        }
    }
}

void ConstraintTableModel::changed(int first, int last)
{
    if (first <= last)
        Q_EMIT dataChanged(index(first, 0), index(last, kTableColumns - 1));
}

void ConstraintTableModel::prepareSome()
{
    const int end = std::min(m_prepared + kPreparedAtOnce, static_cast<int>(m_entries.size()));
    for (; m_prepared < end; ++m_prepared)
        prepare(at(m_prepared));
    if (m_prepared >= static_cast<int>(m_entries.size()))
        m_idle.stop();
}

void ConstraintTableModel::prepare(const Entry &entry) const
{
    if (entry.prepared)
        return;
    auto made = std::make_shared<Prepared>();
    made->cells = cellsOf(entry.text->text);
    if (entry.text->error) {
        made->problem = checkCells(made->cells);
        if (!made->problem) // the cells are right one by one: what the line as a whole lacks
            made->problem = CellProblem{TableColumn::Value, "Value: " + entry.text->error->message, 0};
    }
    entry.prepared = std::move(made);
}

void ConstraintTableModel::setUpdate(const PlanUpdateSnapshot &update)
{
    m_update = update;
    m_old = false;
    adoptReports();
}

void ConstraintTableModel::adoptReports()
{
    std::unordered_map<std::int32_t, const RowLine *> reports;
    if (m_update) {
        reports.reserve(m_update->rows.size());
        for (const RowLine &row : m_update->rows)
            reports.emplace(row.line, &row);
    }
    int first = -1;
    int last = -1;
    for (int row = 0; row < static_cast<int>(m_entries.size()); ++row) {
        Entry &entry = *m_entries[static_cast<std::size_t>(row)];
        const auto found = reports.find(entry.line);
        const RowLine *report = found == reports.end() || !entry.text->row ? nullptr : found->second;
        Complaint complaint;
        if (report)
            complaint = {
                report->report.error, report->report.warning, report->report.leftOut, report->remark};
        RowReach reach = entry.reach;
        reach.operators = report ? report->report.bound : -1;
        if (reach.operators != entry.reach.operators || !report || !entry.text->row->enabled)
            reach.devices = -1;
        const bool complains = complaint.error || !complaint.warning.empty() || !complaint.measured.empty();
        if ((complains ? entry.complaint && *entry.complaint == complaint : !entry.complaint)
            && reach == entry.reach)
            continue;
        entry.complaint = complains ? std::make_shared<const Complaint>(std::move(complaint)) : nullptr;
        entry.reach = reach;
        first = first < 0 ? row : first;
        last = row;
    }
    if (first >= 0)
        changed(first, last);
}

void ConstraintTableModel::setReach(
    std::uint64_t revision, const std::vector<std::pair<std::int32_t, RowReach>> &reach)
{
    if (!m_update || m_update->revision != revision || m_old)
        return;
    int first = -1;
    int last = -1;
    for (const auto &[line, found] : reach) {
        const int row = rowOfLine(line);
        if (row < 0 || at(row).reach == found)
            continue;
        m_entries[static_cast<std::size_t>(row)]->reach = found;
        first = first < 0 ? row : std::min(first, row);
        last = std::max(last, row);
    }
    if (first >= 0)
        Q_EMIT dataChanged(index(first, static_cast<int>(TableColumn::Binds)),
            index(last, static_cast<int>(TableColumn::Binds)));
}

void ConstraintTableModel::setPrice(RowKey key, const RowPrice &price)
{
    const int row = rowOfKey(key);
    if (row < 0 || at(row).price == price)
        return;
    m_entries[static_cast<std::size_t>(row)]->price = price;
    const QModelIndex cell = index(row, static_cast<int>(TableColumn::Price));
    Q_EMIT dataChanged(cell, cell);
}

void ConstraintTableModel::agePrices()
{
    bool any = false;
    for (const auto &entry : m_entries) {
        if (entry->price.isFound()) {
            ++entry->price.editsAgo;
            any = true;
        }
    }
    if (any)
        Q_EMIT dataChanged(index(0, static_cast<int>(TableColumn::Price)),
            index(rowCount() - 1, static_cast<int>(TableColumn::Price)));
}

void ConstraintTableModel::clearPrices()
{
    for (const auto &entry : m_entries)
        entry->price = {};
    if (!m_entries.empty())
        Q_EMIT dataChanged(index(0, static_cast<int>(TableColumn::Price)),
            index(rowCount() - 1, static_cast<int>(TableColumn::Price)));
}

void ConstraintTableModel::setConflicts(std::map<std::int32_t, QString> conflicts)
{
    if (conflicts == m_conflicts)
        return;
    m_conflicts = std::move(conflicts);
    if (!m_entries.empty())
        changed(0, rowCount() - 1);
}

int ConstraintTableModel::lineAt(int row) const
{
    return row < 0 || row >= static_cast<int>(m_entries.size()) ? -1 : at(row).line;
}

int ConstraintTableModel::firstLineAt(int row) const
{
    const Entry &entry = at(row);
    int first = entry.line;
    for (std::size_t i = entry.remarks.size(); i-- > 0;) {
        if (entry.remarks[i]->text.find_first_not_of(" \t\r") == std::string::npos)
            break;
        --first;
    }
    return first;
}

int ConstraintTableModel::rowOfLine(int line) const
{
    const auto found = std::lower_bound(m_entries.begin(), m_entries.end(), line,
        [](const std::unique_ptr<Entry> &entry, int wanted) { return entry->line < wanted; });
    return found == m_entries.end() || (*found)->line != line ? -1
                                                              : static_cast<int>(found - m_entries.begin());
}

ConstraintTableModel::RowKey ConstraintTableModel::keyAt(int row) const
{
    return row < 0 || row >= static_cast<int>(m_entries.size()) ? 0 : at(row).key;
}

int ConstraintTableModel::rowOfKey(RowKey key) const
{
    if (!m_keysValid) {
        std::vector<RowKey> keys;
        keys.reserve(m_entries.size());
        std::transform(m_entries.begin(), m_entries.end(), std::back_inserter(keys),
            [](const std::unique_ptr<Entry> &entry) { return entry->key; });
        m_rowOfKey = IdIndex(keys);
        m_keysValid = true;
    }
    return m_rowOfKey.find(key);
}

const TableLine &ConstraintTableModel::tableLineAt(int row) const
{
    return *at(row).text;
}

const RowCells &ConstraintTableModel::cellsAt(int row) const
{
    prepare(at(row));
    return at(row).cells();
}

const RowPrice &ConstraintTableModel::priceAt(int row) const
{
    return at(row).price;
}

bool ConstraintTableModel::isChosen(int row) const
{
    const auto &its = at(row).text->row;
    return its && its->origin == RowOrigin::Solver;
}

bool ConstraintTableModel::isError(int row) const
{
    return at(row).text->error || at(row).error() || m_conflicts.count(at(row).line) != 0;
}

int ConstraintTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int ConstraintTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : kTableColumns;
}

} // namespace planloom

#include "moc_constraint_table_model.cpp"
