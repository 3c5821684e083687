#include "engine/table/table_document.h"

#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::string_view kFirstLine = "line:1:";

/// What stands between line ends: one more than there are line ends.
std::vector<std::string> piecesOf(std::string_view text)
{
    std::vector<std::string> pieces;
    while (true) {
        const std::size_t end = text.find('\n');
        pieces.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos)
            return pieces;
        text.remove_prefix(end + 1);
    }
}

/// The lines of `text`, a line end at its end left out.
std::vector<std::string> linesOf(std::string_view text)
{
    auto pieces = piecesOf(text);
    if (pieces.back().empty())
        pieces.pop_back();
    return pieces;
}

/// As rows are read: without the carriage returns of other systems' line ends.
std::string_view content(std::string_view text)
{
    while (!text.empty() && text.back() == '\r')
        text.remove_suffix(1);
    return text;
}

/// The note of a remark; nothing for an empty line.
std::optional<std::string_view> noteOfRemark(const TableLine &line)
{
    std::string_view text = content(line.text);
    const std::size_t start = text.find_first_not_of(" \t");
    if (!line.isRemark() || start == std::string_view::npos)
        return std::nullopt;
    text.remove_prefix(start + 1);
    if (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    return text;
}

/// True if a row's line ends in a '#' with nothing behind it.
bool hasEmptyNote(const TableLine &line)
{
    const std::string_view text = content(line.text);
    const auto endsIn = [&](std::string_view end) {
        return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
    };
    return line.row && line.row->note.empty() && (endsIn("#") || endsIn("# "));
}

/// Joins the notes of lines as the table's reader does.
class Notes
{
public:
    void add(std::string_view note)
    {
        if (m_note)
            *m_note += '\n';
        else
            m_note.emplace();
        m_note->append(note);
    }
    void addRow(const TableLine &line)
    {
        if (!line.row->note.empty() || hasEmptyNote(line))
            add(line.row->note);
    }
    std::string take()
    {
        std::string note = m_note.value_or("");
        m_note.reset();
        return note;
    }

private:
    std::optional<std::string> m_note{};
};

bool endsInReturn(const std::string &text)
{
    return !text.empty() && text.back() == '\r';
}

/// The lines of rows as they are printed, with the line ends that the document uses.
std::vector<std::string> printed(const TableDocument &document, const std::vector<Row> &rows)
{
    ConstraintTable table;
    table.rows = rows;
    auto lines = linesOf(print(table));
    if (!document.lines().empty() && endsInReturn(document.lines().front()->text)) {
        for (std::string &line : lines)
            line += '\r';
    }
    return lines;
}

/// First of the remarks whose notes belong to the row at `line`.
std::int32_t firstRemarkAbove(const TableDocument &document, std::int32_t line)
{
    const auto &lines = document.lines();
    std::int32_t first = line;
    for (std::int32_t i = line; i-- > 0 && lines[static_cast<std::size_t>(i)]->isRemark();) {
        if (noteOfRemark(*lines[static_cast<std::size_t>(i)]))
            first = i;
    }
    return first;
}

std::vector<std::int32_t> usable(const TableDocument &document, std::vector<std::int32_t> lines)
{
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    lines.erase(std::remove_if(lines.begin(), lines.end(),
                    [&](std::int32_t line) { return line < 0 || line >= document.lineCount(); }),
        lines.end());
    return lines;
}

const std::string &lineText(const TableDocument &document, std::int32_t line)
{
    return document.lines()[static_cast<std::size_t>(line)]->text;
}

TableEdit single(std::int32_t line, std::vector<std::string> removed, std::vector<std::string> inserted)
{
    TableEdit edit;
    if (removed != inserted)
        edit.splices.push_back({line, std::move(removed), std::move(inserted)});
    return edit;
}

/// Runs of neighbouring lines as splices; `shift` is how far earlier splices moved what follows.
void removeRuns(const TableDocument &document, const std::vector<std::int32_t> &lines, std::int32_t shift,
    TableEdit &edit)
{
    for (std::size_t i = 0; i < lines.size();) {
        TableSplice splice{lines[i] + shift, {}, {}};
        const std::int32_t first = lines[i];
        for (; i < lines.size() && lines[i] == first + static_cast<std::int32_t>(splice.removed.size()); ++i)
            splice.removed.push_back(lineText(document, lines[i]));
        shift -= static_cast<std::int32_t>(splice.removed.size());
        edit.splices.push_back(std::move(splice));
    }
}

std::int32_t sizeOf(const std::vector<std::string> &lines)
{
    return static_cast<std::int32_t>(lines.size());
}

/// True if each splice lies behind what the one before it inserted: then one pass carries all of them out.
bool ascending(const TableSplice &before, const TableSplice &splice)
{
    return splice.line >= before.line + sizeOf(before.inserted);
}

Error misfit(const TableSplice &splice)
{
    return {ErrorCode::InvalidInput,
        "the table has changed: line " + std::to_string(splice.line + 1)
            + " is not what this change replaces",
        "make the change again", "line:" + std::to_string(splice.line + 1) + ":1"};
}

const TableLineSnapshot &emptyLine()
{
    static const TableLineSnapshot line = readLine("");
    return line;
}

/// Carries out ascending splices in one pass over `pieces`.
Result<std::vector<TableLineSnapshot>> spliced(
    std::vector<TableLineSnapshot> pieces, const TableSplice *begin, const TableSplice *end)
{
    std::vector<TableLineSnapshot> made;
    made.reserve(pieces.size() + 8);
    std::size_t next = 0; // of the pieces not yet passed on
    for (const TableSplice *splice = begin; splice != end; ++splice) {
        if (splice->line < 0)
            return misfit(*splice);
        const auto ahead = static_cast<std::size_t>(splice->line) - made.size();
        if (ahead > pieces.size() - next || splice->removed.size() > pieces.size() - next - ahead)
            return misfit(*splice);
        std::move(pieces.begin() + static_cast<std::ptrdiff_t>(next),
            pieces.begin() + static_cast<std::ptrdiff_t>(next + ahead), std::back_inserter(made));
        next += ahead;
        for (const std::string &text : splice->removed) {
            if (pieces[next++]->text != text)
                return misfit(*splice);
        }
        for (const std::string &text : splice->inserted) {
            if (text.find('\n') != std::string::npos) {
                return Error{ErrorCode::InvalidInput, "a line of the table cannot hold a line end",
                    "insert several lines", "line:" + std::to_string(splice->line + 1) + ":1"};
            }
            made.push_back(readLine(text));
        }
    }
    std::move(pieces.begin() + static_cast<std::ptrdiff_t>(next), pieces.end(), std::back_inserter(made));
    return made;
}

} // namespace

TableLineSnapshot readLine(std::string_view text)
{
    TableLine line;
    line.text = text;
    const std::string_view read = content(text);
    const std::size_t start = read.find_first_not_of(" \t");
    if (start != std::string_view::npos && read[start] != '#') {
        if (auto row = parseRow(read))
            line.row = *std::move(row);
        else
            line.error = std::move(row).error();
    }
    return std::make_shared<const TableLine>(std::move(line));
}

TableEdit inverse(const TableEdit &edit)
{
    TableEdit back;
    back.splices.reserve(edit.splices.size());
    bool inOrder = true;
    for (std::size_t i = 1; i < edit.splices.size(); ++i)
        inOrder = inOrder && ascending(edit.splices[i - 1], edit.splices[i]);
    std::int32_t shift = 0; // of ascending splices, which go back in ascending order as well
    for (std::size_t i = 0; i < edit.splices.size(); ++i) {
        const TableSplice &splice = inOrder ? edit.splices[i] : edit.splices[edit.splices.size() - 1 - i];
        back.splices.push_back({splice.line - (inOrder ? shift : 0), splice.inserted, splice.removed});
        shift += sizeOf(splice.inserted) - sizeOf(splice.removed);
    }
    return back;
}

TableDocument::TableDocument(std::string_view text)
{
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        m_lines.push_back(readLine(text.substr(0, end)));
        m_endsInLineEnd = end != std::string_view::npos;
        text.remove_prefix(m_endsInLineEnd ? end + 1 : text.size());
    }
}

std::string TableDocument::text() const
{
    std::string text;
    std::size_t size = m_lines.size();
    for (const auto &line : m_lines)
        size += line->text.size();
    text.reserve(size);
    for (const auto &line : m_lines) {
        text += line->text;
        text += '\n';
    }
    if (!m_endsInLineEnd && !text.empty())
        text.pop_back();
    return text;
}

std::vector<std::int32_t> TableDocument::rowLines() const
{
    std::vector<std::int32_t> lines;
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        if (m_lines[i]->row)
            lines.push_back(static_cast<std::int32_t>(i));
    }
    return lines;
}

ConstraintTable TableDocument::table() const
{
    ConstraintTable table;
    Notes notes;
    for (const auto &line : m_lines) {
        if (line->row) {
            notes.addRow(*line);
            table.rows.push_back(*line->row);
            table.rows.back().note = notes.take();
        } else if (line->error) {
            notes.take();
        } else if (const auto note = noteOfRemark(*line)) {
            notes.add(*note);
        }
    }
    table.note = notes.take();
    return table;
}

std::vector<Error> TableDocument::errors() const
{
    std::vector<Error> errors;
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        if (!m_lines[i]->error)
            continue;
        errors.push_back(*m_lines[i]->error);
        std::string &where = errors.back().where;
        if (where.compare(0, kFirstLine.size(), kFirstLine) == 0)
            where = "line:" + std::to_string(i + 1) + ":" + where.substr(kFirstLine.size());
    }
    return errors;
}

std::vector<TableLineSnapshot> TableDocument::pieces() const
{
    auto pieces = m_lines;
    if (m_endsInLineEnd)
        pieces.push_back(emptyLine());
    return pieces;
}

Result<void> TableDocument::apply(const TableEdit &edit)
{
    if (edit.empty())
        return {};
    auto pieces = this->pieces();
    const auto &splices = edit.splices;
    for (std::size_t i = 0; i < splices.size();) {
        std::size_t end = i + 1;
        while (end < splices.size() && ascending(splices[end - 1], splices[end]))
            ++end;
        TRY(pieces, spliced(std::move(pieces), splices.data() + i, splices.data() + end));
        i = end;
    }
    m_endsInLineEnd = !pieces.empty() && pieces.back()->text.empty();
    if (m_endsInLineEnd)
        pieces.pop_back();
    m_lines = std::move(pieces);
    return {};
}

bool operator==(const TableDocument &a, const TableDocument &b)
{
    const auto same = [](const TableLineSnapshot &x, const TableLineSnapshot &y) {
        return x == y || x->text == y->text;
    };
    return std::equal(a.m_lines.begin(), a.m_lines.end(), b.m_lines.begin(), b.m_lines.end(), same)
        && a.m_endsInLineEnd == b.m_endsInLineEnd;
}

TableEdit difference(const TableDocument &before, const TableDocument &after)
{
    if (before == after)
        return {};
    const auto from = before.pieces();
    const auto to = after.pieces();
    const auto same = [](const TableLineSnapshot &x, const TableLineSnapshot &y) {
        return x == y || x->text == y->text;
    };
    const std::size_t shorter = std::min(from.size(), to.size());
    std::size_t head = 0;
    while (head < shorter && same(from[head], to[head]))
        ++head;
    std::size_t tail = 0;
    while (tail < shorter - head && same(from[from.size() - 1 - tail], to[to.size() - 1 - tail]))
        ++tail;
    TableSplice splice{static_cast<std::int32_t>(head), {}, {}};
    for (std::size_t i = head; i < from.size() - tail; ++i)
        splice.removed.push_back(from[i]->text);
    for (std::size_t i = head; i < to.size() - tail; ++i)
        splice.inserted.push_back(to[i]->text);
    return {{std::move(splice)}};
}

TableEdit appendRows(const TableDocument &document, const std::vector<Row> &rows)
{
    std::int32_t line = document.lineCount();
    while (line > 0 && document.lines()[static_cast<std::size_t>(line - 1)]->isRemark())
        --line;
    return single(line, {}, printed(document, rows));
}

TableEdit replaceRow(const TableDocument &document, std::int32_t line, const Row &row)
{
    if (line < 0 || line >= document.lineCount())
        return {};
    const TableLine &old = *document.lines()[static_cast<std::size_t>(line)];
    const std::int32_t first = firstRemarkAbove(document, line);
    Notes notes;
    for (std::int32_t i = first; i < line; ++i) {
        if (const auto note = noteOfRemark(*document.lines()[static_cast<std::size_t>(i)]))
            notes.add(*note);
    }
    if (old.row)
        notes.addRow(old);
    Row written = row;
    const std::string own = old.row ? old.row->note : std::string{};
    if (const std::string all = notes.take(); row.note == all || row.note == own) {
        // The remarks above stay as they are.
        written.note = own;
        auto lines = linesOf(print(ConstraintTable{{written}, {}}));
        if (hasEmptyNote(old))
            lines.back() += "  #";
        if (endsInReturn(old.text))
            lines.back() += '\r';
        return single(line, {old.text}, std::move(lines));
    }
    std::vector<std::string> removed;
    std::vector<std::string> inserted;
    for (std::int32_t i = first; i < line; ++i) {
        removed.push_back(lineText(document, i));
        if (!noteOfRemark(*document.lines()[static_cast<std::size_t>(i)]))
            inserted.push_back(removed.back());
    }
    removed.push_back(old.text);
    for (std::string &text : linesOf(print(ConstraintTable{{written}, {}})))
        inserted.push_back(endsInReturn(old.text) ? text + '\r' : std::move(text));
    return single(first, std::move(removed), std::move(inserted));
}

TableEdit replaceLine(const TableDocument &document, std::int32_t line, std::string_view text)
{
    if (line < 0 || line >= document.lineCount())
        return {};
    auto lines = piecesOf(text);
    if (lines.size() > 1 && lines.back().empty())
        lines.pop_back();
    return single(line, {lineText(document, line)}, std::move(lines));
}

TableEdit insertText(const TableDocument &document, std::int32_t line, std::string_view text)
{
    if (line < 0 || line > document.lineCount())
        return {};
    return single(line, {}, linesOf(text));
}

TableEdit removeLines(const TableDocument &document, std::vector<std::int32_t> lines)
{
    TableEdit edit;
    lines = usable(document, std::move(lines));
    removeRuns(document, lines, 0, edit);
    if (!edit.empty() && lines.size() == document.pieces().size())
        edit.splices.back().inserted.emplace_back(); // of an empty text, one empty piece is left
    return edit;
}

TableEdit setEnabled(const TableDocument &document, const std::vector<std::int32_t> &lines, bool enabled)
{
    TableEdit edit;
    for (const std::int32_t line : usable(document, lines)) {
        const TableLine &old = *document.lines()[static_cast<std::size_t>(line)];
        if (!old.row || old.row->enabled == enabled)
            continue;
        std::string text = old.text;
        const std::size_t start = text.find_first_not_of(" \t");
        if (enabled) {
            const std::size_t behind = start + 3;
            const bool space = behind < text.size() && (text[behind] == ' ' || text[behind] == '\t');
            text.erase(start, space ? 4 : 3);
        } else {
            text.insert(start, "off ");
        }
        if (!edit.splices.empty()
            && edit.splices.back().line + sizeOf(edit.splices.back().inserted) == line) {
            edit.splices.back().removed.push_back(old.text);
            edit.splices.back().inserted.push_back(std::move(text));
        } else {
            edit.splices.push_back({line, {old.text}, {std::move(text)}});
        }
    }
    return edit;
}

TableEdit moveLines(const TableDocument &document, std::vector<std::int32_t> lines, std::int32_t to)
{
    lines = usable(document, std::move(lines));
    to = std::clamp(to, 0, document.lineCount());
    const auto middle = std::lower_bound(lines.begin(), lines.end(), to);
    const auto above = static_cast<std::int32_t>(middle - lines.begin());
    const auto count = static_cast<std::int32_t>(lines.size());
    const bool stays = lines.empty()
        || (lines.back() - lines.front() == count - 1 && to >= lines.front() && to <= lines.back() + 1);
    if (stays)
        return {};
    TableEdit edit;
    removeRuns(document, {lines.begin(), middle}, 0, edit);
    TableSplice moved{to - above, {}, {}};
    for (const std::int32_t line : lines)
        moved.inserted.push_back(lineText(document, line));
    edit.splices.push_back(std::move(moved));
    removeRuns(document, {middle, lines.end()}, count - above, edit);
    return edit;
}

TableEdit joined(TableEdit first, const TableEdit &second)
{
    first.splices.insert(first.splices.end(), second.splices.begin(), second.splices.end());
    return first;
}

} // namespace planloom
