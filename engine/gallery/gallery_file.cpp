#include "engine/gallery/gallery_file.h"

#include "engine/base/nearest_name.h"
#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/gallery/gallery_find.h"
#include "engine/table/kinds/order/schedule.h"
#include "engine/table/table_text.h"
#include "engine/table/text_cursor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostParameters = 64;
constexpr std::size_t kMostLines = 512;
constexpr std::array kKinds{
    "count", "switch", "word", "layers", "micro-batches", "updates", "layout", "modules"};

struct Line {
    std::string_view text{}; ///< Without its note and the spaces behind.
    std::string_view note{};
    std::size_t indent = 0;
    std::int32_t number = 0;
};

/// Where a note begins: at a `#` outside of quotes.
std::size_t noteIn(std::string_view text)
{
    bool inQuotes = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (inQuotes && text[i] == '\\')
            ++i;
        else if (text[i] == '"')
            inQuotes = !inQuotes;
        else if (text[i] == '#' && !inQuotes)
            return i;
    }
    return text.size();
}

std::string_view withoutEnd(std::string_view text)
{
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

bool isName(std::string_view name)
{
    return !name.empty() && name.size() <= 60 && std::all_of(name.begin(), name.end(), [](char c) {
        return isDigit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    });
}

std::string shortened(std::string_view text)
{
    return text.size() > 60 ? std::string(text.substr(0, 60)) + "..." : std::string(text);
}

/// Reads a file line by line.
class FileReader
{
public:
    FileReader(std::string_view text, const std::string &file)
        : m_text(text)
        , m_file(file)
    {
    }
    Result<GalleryEntry> read();

private:
    bool next();
    Error wrong(std::size_t column, std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            m_file + ":" + std::to_string(m_line.number) + ":" + std::to_string(column + 1)};
    }
    /// An error of a TextCursor over a piece of the line that begins at `column`.
    Error placed(Error error, std::size_t column) const;
    Result<void> readHead(std::string_view word, std::string_view rest, std::size_t column);
    Result<void> readNeed(std::string_view rest, std::size_t column);
    Result<void> readParameter(std::string_view rest, std::size_t column);
    Result<void> checkFallback(const GalleryParameter &parameter, std::size_t column) const;
    Result<void> readRow();
    Result<GalleryCondition> readCondition(std::string_view text, std::size_t column) const;
    Result<void> checkRow(const GalleryLine &line) const;
    void takePicture();

    std::string_view m_text{};
    const std::string &m_file;
    std::size_t m_begin = 0; ///< Of the next line.
    std::int32_t m_count = 0;
    Line m_line{};
    bool m_isRead = false; ///< The line is still to be looked at.
    GalleryEntry m_entry{};
};

bool FileReader::next()
{
    if (std::exchange(m_isRead, false))
        return true;
    if (m_begin >= m_text.size())
        return false;
    const std::size_t end = std::min(m_text.find('\n', m_begin), m_text.size());
    std::string_view line = withoutEnd(m_text.substr(m_begin, end - m_begin));
    m_begin = end + 1;
    m_line = {};
    m_line.number = ++m_count;
    const std::size_t note = noteIn(line);
    if (note < line.size())
        m_line.note = trimmed(line.substr(note + 1));
    m_line.text = withoutEnd(line.substr(0, note));
    m_line.indent = std::min(m_line.text.find_first_not_of(" \t"), m_line.text.size());
    return true;
}

Error FileReader::placed(Error error, std::size_t column) const
{
    // "line:1:COLUMN" of the piece.
    std::size_t within = 1;
    if (const std::size_t colon = error.where.rfind(':'); colon != std::string::npos)
        std::from_chars(error.where.data() + colon + 1, error.where.data() + error.where.size(), within);
    return wrong(column + (within > 0 ? within - 1 : 0), std::move(error.message), std::move(error.advice));
}

Result<GalleryEntry> FileReader::read()
{
    if (m_text.size() > kMostGalleryFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "a gallery file may have " + std::to_string(kMostGalleryFileBytes) + " bytes, this one has "
                + std::to_string(m_text.size()),
            "make an entry of fewer rows", m_file};
    while (next()) {
        if (m_line.text.empty())
            continue;
        if (m_line.indent > 0)
            return wrong(m_line.indent, "expected a line that begins without spaces",
                "only lines below 'picture' and 'rows' are indented");
        const std::size_t end = std::min(m_line.text.find(' '), m_line.text.size());
        const std::string_view word = m_line.text.substr(0, end);
        const std::size_t column = std::min(m_line.text.find_first_not_of(' ', end), m_line.text.size());
        TRY_VOID(readHead(word, m_line.text.substr(column), column));
    }
    m_line.number = std::max(m_count, 1);
    if (m_entry.name.empty())
        return wrong(0, "the file names no entry", "begin it with: entry NAME");
    if (m_entry.meaning.empty())
        return wrong(0, "the entry has no meaning", "write one sentence: meaning SENTENCE");
    if (m_entry.lines.empty())
        return wrong(0, "the entry makes no rows", "write them indented below a line 'rows'");
    m_entry.file = m_file;
    return std::move(m_entry);
}

Result<void> FileReader::readHead(std::string_view word, std::string_view rest, std::size_t column)
{
    const auto once = [&](std::string &what) -> Result<void> {
        if (!what.empty())
            return wrong(
                0, "'" + std::string(word) + "' stands here for the second time", "keep one of them");
        if (rest.empty())
            return wrong(column, "expected text behind '" + std::string(word) + "'");
        if (rest.size() > 400)
            return wrong(column, "expected at most 400 characters");
        what = rest;
        return {};
    };
    if (word == "entry") {
        TRY_VOID(once(m_entry.name));
        if (!isName(rest))
            return wrong(
                column, "expected a name of small letters, digits and -, found '" + shortened(rest) + "'");
        return {};
    }
    if (word == "meaning")
        return once(m_entry.meaning);
    if (word == "paper")
        return once(m_entry.paper);
    if (word == "needs")
        return readNeed(rest, column);
    if (word == "parameter")
        return readParameter(rest, column);
    if (word != "picture" && word != "rows")
        return wrong(0,
            "expected entry, meaning, paper, picture, needs, parameter or rows, found '" + shortened(word)
                + "'",
            "rows of the table stand indented below 'rows'");
    if (!rest.empty())
        return wrong(column, "expected nothing behind '" + std::string(word) + "'");
    if (word == "picture") {
        takePicture();
        return {};
    }
    while (next()) {
        if (m_line.text.empty())
            continue;
        if (m_line.indent == 0) {
            m_isRead = true;
            return {};
        }
        TRY_VOID(readRow());
    }
    return {};
}

/// Lines of a picture are taken with their `#`.
void FileReader::takePicture()
{
    std::vector<std::string_view> lines;
    while (m_begin < m_text.size()) {
        const std::size_t end = std::min(m_text.find('\n', m_begin), m_text.size());
        const std::string_view line = withoutEnd(m_text.substr(m_begin, end - m_begin));
        if (!line.empty() && line[0] != ' ')
            break;
        lines.push_back(line);
        m_begin = end + 1;
        ++m_count;
    }
    while (!lines.empty() && lines.back().empty())
        lines.pop_back();
    std::size_t common = std::string_view::npos;
    for (const std::string_view line : lines)
        if (!line.empty())
            common = std::min(common, std::min(line.find_first_not_of(' '), line.size()));
    for (const std::string_view line : lines)
        m_entry.picture.emplace_back(line.empty() ? line : line.substr(common));
}

Result<void> FileReader::readNeed(std::string_view rest, std::size_t column)
{
    using Kind = GalleryNeed::Kind;
    for (const auto &[name, kind] :
        {std::pair{"axial-attention", Kind::AxialAttention}, {"experts", Kind::Experts},
            {"weights", Kind::Weights}, {"passes", Kind::Passes}, {"no-backward", Kind::NoBackward}})
        if (rest == name) {
            m_entry.needs.push_back({kind, {}});
            return {};
        }
    const auto meaning = dimensionMeaningNamed(rest);
    if (!meaning)
        return wrong(column,
            "expected axial-attention, experts, passes, weights, no-backward or the meaning of a dimension "
            "(heads, sequence, height, ...), found '"
                + shortened(rest) + "'");
    m_entry.needs.push_back({Kind::Dimension, *meaning});
    return {};
}

Result<void> FileReader::readParameter(std::string_view rest, std::size_t column)
{
    TextCursor cursor(rest, 1, 0);
    const auto at = [&](Error error) { return placed(std::move(error), column); };
    GalleryParameter parameter;
    auto name = cursor.word("the parameter's name");
    if (!name)
        return at(name.error());
    parameter.name = *std::move(name);
    if (!isName(parameter.name))
        return wrong(column,
            "expected a name of small letters, digits and -, found '" + shortened(parameter.name) + "'");
    if (m_entry.find(parameter.name) != nullptr || parameter.name == kDevicesWord)
        return wrong(column, "there is a parameter '" + parameter.name + "' already", "give it another name");
    if (m_entry.parameters.size() >= kMostParameters)
        return wrong(column, "expected at most " + std::to_string(kMostParameters) + " parameters");
    if (auto colon = cursor.require(':', "between a parameter's name and its kind"); !colon)
        return at(colon.error());
    cursor.skipSpaces();
    const std::size_t kindAt = cursor.position();
    auto kind = cursor.word("a kind: count, switch, word, layers, micro-batches, updates, layout or modules");
    if (!kind)
        return at(kind.error());
    const auto known =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const char *each) { return *kind == each; });
    if (known == kKinds.end())
        return wrong(column + kindAt,
            "expected a kind: count, switch, word, layers, micro-batches, updates, layout or modules, found '"
                + shortened(*kind) + "'");
    parameter.kind = static_cast<GalleryParameterKind>(known - kKinds.begin());
    if (auto equals = cursor.require('=', "between a parameter's kind and what it is if nothing is said");
        !equals)
        return at(equals.error());
    cursor.skipSpaces();
    const std::size_t fallbackAt = cursor.position();
    auto fallback = cursor.word("what it is if nothing is said");
    if (!fallback)
        return at(fallback.error());
    parameter.fallback = *std::move(fallback);
    if (parameter.kind == GalleryParameterKind::Switch
        && (parameter.fallback == "on" || parameter.fallback == "off"))
        parameter.fallback = parameter.fallback == "on" ? "1" : "0";
    while (!cursor.atEnd()) {
        if (cursor.takeWord("from")) {
            auto least = cursor.integer("the least value", 0, parameter.most);
            if (!least)
                return at(least.error());
            parameter.least = *least;
        } else if (cursor.takeWord("to")) {
            auto most = cursor.integer("the greatest value", parameter.least, 65536);
            if (!most)
                return at(most.error());
            parameter.most = *most;
        } else if (cursor.takeWord("among")) {
            do {
                auto word = cursor.word("a word to choose");
                if (!word)
                    return at(word.error());
                if (*word == "schedules")
                    for (const ScheduleKind schedule : kAllSchedules)
                        parameter.words.emplace_back(nameOf(schedule));
                else
                    parameter.words.push_back(*std::move(word));
            } while (cursor.take(',') && parameter.words.size() < 64);
        } else {
            return at(cursor.expected("from, to, among, or a note behind #"));
        }
    }
    parameter.meaning = m_line.note;
    TRY_VOID(checkFallback(parameter, column + fallbackAt));
    m_entry.parameters.push_back(std::move(parameter));
    return {};
}

Result<void> FileReader::checkFallback(const GalleryParameter &parameter, std::size_t column) const
{
    const auto isAny = [&](std::initializer_list<const char *> words) {
        return std::any_of(
            words.begin(), words.end(), [&](const char *word) { return parameter.fallback == word; });
    };
    using Kind = GalleryParameterKind;
    const Kind kind = parameter.kind;
    if ((kind == Kind::Word) != !parameter.words.empty())
        return wrong(column,
            kind == Kind::Word ? "a parameter that is a word needs words to choose among"
                               : "only a parameter that is a word chooses among words",
            "write: parameter schedule : word = 1f1b among 1f1b, gpipe");
    if (isAny({"solver"}) && kind != Kind::Switch)
        return {};
    if (kind == Kind::Count && isAny({"devices", "rest", "outermost"}))
        return {};
    if ((kind == Kind::MicroBatches || kind == Kind::Updates) && isAny({"chosen"}))
        return {};
    if (auto value = valueOf(parameter, parameter.fallback); !value)
        return wrong(column, value.error().message,
            kind == Kind::Count ? "a number, devices, rest, outermost or solver" : value.error().advice);
    return {};
}

Result<GalleryCondition> FileReader::readCondition(std::string_view text, std::size_t column) const
{
    const auto part = trimmed(text);
    const std::size_t end = std::min(part.find_first_of(" >=!"), part.size());
    const std::size_t at = column + (part.empty() ? 0 : static_cast<std::size_t>(part.data() - text.data()));
    GalleryCondition condition{.parameter = std::string(part.substr(0, end))};
    static const GalleryParameter kDevices{.name = kDevicesWord, .kind = GalleryParameterKind::Count};
    const GalleryParameter *parameter =
        condition.parameter == kDevicesWord ? &kDevices : m_entry.find(condition.parameter);
    if (parameter == nullptr)
        return wrong(at, "there is no parameter '" + shortened(condition.parameter) + "'",
            "parameters stand before the rows: parameter NAME : KIND = VALUE");
    const std::string_view rest = trimmed(part.substr(end));
    if (rest.empty()) {
        if (parameter->kind == GalleryParameterKind::Word || parameter->kind == GalleryParameterKind::Layers
            || parameter->kind == GalleryParameterKind::Layout
            || parameter->kind == GalleryParameterKind::Modules)
            return wrong(at, "'" + parameter->name + "' is neither a switch nor a number",
                "compare it: " + parameter->name + " = VALUE");
        return condition;
    }
    using Kind = GalleryCondition::Kind;
    const bool negated = rest.starts_with("!=");
    condition.kind = negated ? Kind::IsNot : rest[0] == '=' ? Kind::Is : Kind::More;
    if (!negated && rest[0] != '=' && rest[0] != '>')
        return wrong(at + end, "expected =, != or > behind '" + condition.parameter + "'");
    condition.value = trimmed(rest.substr(negated ? 2 : 1));
    std::int64_t number = 0;
    const char *const last = condition.value.data() + condition.value.size();
    const bool isNumber =
        !condition.value.empty() && std::from_chars(condition.value.data(), last, number).ptr == last;
    if (condition.kind == Kind::More && !isNumber)
        return wrong(at + end, "expected a number behind >, found '" + shortened(condition.value) + "'");
    if (condition.kind != Kind::More && !(isNumber && parameter->kind != GalleryParameterKind::Word))
        if (auto value = valueOf(*parameter, condition.value); !value)
            return wrong(at + end, value.error().message, value.error().advice);
    return condition;
}

Result<void> FileReader::readRow()
{
    if (m_entry.lines.size() >= kMostLines)
        return wrong(m_line.indent, "expected at most " + std::to_string(kMostLines) + " rows");
    GalleryLine line{.line = m_line.number};
    std::size_t column = m_line.indent;
    const auto rest = [&] { return m_line.text.substr(column); };
    const auto skip = [&](std::size_t count) {
        column += count;
        column = std::min(m_line.text.find_first_not_of(' ', column), m_line.text.size());
    };
    if (rest().starts_with("otherwise ")) {
        if (m_entry.lines.empty() || m_entry.lines.back().conditions.empty())
            return wrong(column, "'otherwise' stands behind a row without a condition",
                "put it behind a row that begins with 'when'");
        line.otherwise = true;
        skip(std::string_view("otherwise").size());
        if (!rest().starts_with(":") && !rest().starts_with("when "))
            return wrong(column, "expected : or when behind 'otherwise'");
        if (rest().starts_with(":"))
            skip(1);
    }
    if (rest().starts_with("when ")) {
        skip(std::string_view("when").size());
        const std::size_t colon = rest().find(':');
        if (colon == std::string_view::npos)
            return wrong(m_line.text.size(), "expected : and a row behind the condition");
        std::string_view conditions = rest().substr(0, colon);
        std::size_t at = column;
        while (true) {
            const std::size_t end = conditions.find(" and ");
            TRY(auto condition, readCondition(conditions.substr(0, end), at));
            line.conditions.push_back(std::move(condition));
            if (end == std::string_view::npos)
                break;
            conditions.remove_prefix(end + 5);
            at += end + 5;
        }
        skip(colon + 1);
    }
    constexpr std::string_view kWhere = "where it divides";
    if (rest().starts_with(kWhere)) {
        line.kind = GalleryLine::Kind::WhereItDivides;
        skip(kWhere.size());
        if (!rest().starts_with(":"))
            return wrong(column, "expected : behind 'where it divides'");
        skip(1);
    } else if (rest().starts_with("find ")) {
        line.kind = GalleryLine::Kind::Find;
        skip(std::string_view("find").size());
    }
    if (rest().empty())
        return wrong(column, "expected a row", "split all : batch over dp");
    line.text = rest();
    line.column = static_cast<std::int32_t>(column) + 1;
    TRY_VOID(checkRow(line));
    m_entry.lines.push_back(std::move(line));
    return {};
}

/// Reads the row with values that every parameter may have: whatever is wrong with its text shows here.
Result<void> FileReader::checkRow(const GalleryLine &line) const
{
    const auto column = static_cast<std::size_t>(line.column - 1);
    auto pieces = piecesOf(line.text);
    if (!pieces)
        return placed(pieces.error(), column);
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> from; // where a piece begins: in `text`, in the line
    for (const GalleryPiece &piece : *pieces) {
        from.emplace_back(text.size(), piece.at);
        if (!piece.inBraces) {
            text += piece.text;
            continue;
        }
        if (const GalleryParameter *parameter = m_entry.find(piece.text)) {
            text += exampleOf(*parameter);
            continue;
        }
        if (piece.text == kDevicesWord) {
            text += "2";
            continue;
        }
        auto found = readFoundSet(piece.text);
        if (!found) {
            std::string names;
            for (const GalleryParameter &parameter : m_entry.parameters)
                names += (names.empty() ? "" : ", ") + parameter.name;
            return wrong(column + piece.at, found.error().message,
                "parameters: " + (names.empty() ? "none" : names) + "; sets: " + foundSetForms());
        }
        text += "all";
    }
    if (line.kind == GalleryLine::Kind::Find) {
        auto search = readFindLine(text);
        return search ? Result<void>{}
                      : Result<void>(wrong(column, search.error().message, search.error().advice));
    }
    auto row = parseRow(text);
    if (row)
        return {};
    std::size_t at = 1;
    if (const std::size_t colon = row.error().where.rfind(':'); colon != std::string::npos)
        std::from_chars(
            row.error().where.data() + colon + 1, row.error().where.data() + row.error().where.size(), at);
    at = at > 0 ? at - 1 : 0;
    std::size_t inLine = at;
    for (const auto &[inText, original] : from)
        if (inText <= at)
            inLine = original + std::min(at - inText, line.text.size() - original);
    return wrong(column + inLine, row.error().message, row.error().advice);
}

} // namespace

const char *nameOf(GalleryParameterKind kind)
{
    return kKinds[static_cast<std::size_t>(kind)];
}

std::string formOf(const GalleryParameter &parameter)
{
    using Kind = GalleryParameterKind;
    std::string form = parameter.name + "=";
    if (parameter.kind == Kind::Switch)
        return form + "0|1";
    if (parameter.kind == Kind::Layers)
        return form + "FIRST-LAST";
    if (parameter.kind == Kind::Layout)
        return form + "Et*N|...L";
    if (parameter.kind == Kind::Modules)
        return form + "full|MODULE+...";
    if (parameter.kind != Kind::Word)
        return form + "N";
    for (const std::string &word : parameter.words)
        form += (form.back() == '=' ? "" : "|") + word;
    return form;
}

const GalleryParameter *GalleryEntry::find(std::string_view parameter) const
{
    for (const GalleryParameter &each : parameters)
        if (each.name == parameter)
            return &each;
    return nullptr;
}

Result<std::vector<GalleryPiece>> piecesOf(std::string_view text)
{
    std::vector<GalleryPiece> pieces;
    std::size_t begin = 0;
    bool inQuotes = false;
    const auto wrong = [](std::size_t at, std::string message) {
        return Error{ErrorCode::InvalidInput, std::move(message),
            "write {NAME}; set{a, b} of the table's language has its brace behind 'set'",
            "line:1:" + std::to_string(at + 1)};
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (inQuotes && text[i] == '\\') {
            ++i;
            continue;
        }
        if (text[i] == '"')
            inQuotes = !inQuotes;
        if (inQuotes || text[i] != '{')
            continue;
        const std::size_t end = text.find('}', i);
        if (end == std::string_view::npos)
            return wrong(i, "expected } behind what {" + shortened(text.substr(i + 1)) + " begins");
        if (i >= 3 && text.substr(i - 3, 3) == "set") { // set{a, b}
            i = end;
            continue;
        }
        if (i > begin)
            pieces.push_back({std::string(text.substr(begin, i - begin)), false, begin});
        pieces.push_back({std::string(trimmed(text.substr(i + 1, end - i - 1))), true, i});
        begin = end + 1;
        i = end;
    }
    if (begin < text.size())
        pieces.push_back({std::string(text.substr(begin)), false, begin});
    return pieces;
}

Result<GalleryEntry> readGalleryFile(std::string_view text, const std::string &file)
{
    return FileReader(text, file).read();
}

} // namespace planloom
