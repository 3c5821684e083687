#include "widgets/design/row_sentences.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace planloom {

namespace {

constexpr std::string_view kRow = "row ";

bool isLetter(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// A word of the language, and not the name of an axis, a dimension or an operator: at least two letters,
/// then a space, as only names stand before other signs. A hyphen may join two.
bool beginsWithWord(const std::string &clause)
{
    const std::size_t end = clause.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
    return clause.starts_with("a ") || (end != std::string::npos && end > 1 && clause[end] == ' ');
}

/// Where an edit acts in the text that it leaves: first and last line it writes, or removes if it writes
/// none.
struct Touched {
    std::int32_t first = 0;
    std::int32_t last = 0;
};

Touched touchedBy(const TableEdit &edit)
{
    Touched touched{edit.splices.front().line, edit.splices.front().line};
    for (const TableSplice &splice : edit.splices) {
        const auto lines = static_cast<std::int32_t>(std::max(
            splice.inserted.empty() ? splice.removed.size() : splice.inserted.size(), std::size_t{1}));
        touched.first = std::min(touched.first, splice.line);
        touched.last = std::max(touched.last, splice.line + lines - 1);
    }
    return touched;
}

} // namespace

std::string withLineNumbers(const std::string &message, const PlanUpdate &update)
{
    std::string result;
    std::size_t at = 0;
    for (std::size_t found = message.find(kRow); found != std::string::npos; found = message.find(kRow, at)) {
        const std::size_t begin = found + kRow.size();
        result.append(message, at, begin - at);
        at = begin;
        std::size_t row = 0;
        const auto [end, failure] =
            std::from_chars(message.data() + begin, message.data() + message.size(), row);
        if ((found > 0 && isLetter(message[found - 1])) || failure != std::errc{} || row < 1
            || row > update.rows.size())
            continue;
        result += std::to_string(update.rows[row - 1].line + 1);
        at = static_cast<std::size_t>(end - message.data());
    }
    return result.append(message, at);
}

QString sentences(std::initializer_list<std::string> clauses)
{
    QString text;
    for (std::string clause : clauses) {
        if (clause.empty())
            continue;
        if (beginsWithWord(clause))
            clause.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(clause.front())));
        if (!text.isEmpty())
            text += QLatin1Char(' ');
        text += QString::fromStdString(clause);
        if (!text.endsWith(QLatin1Char('.')) && !text.endsWith(QLatin1Char('?')))
            text += QLatin1Char('.');
    }
    return text;
}

QString wordsOfTextEdit(const TableEdit &edit)
{
    const auto tr = [](const char *text) { return QCoreApplication::translate("planloom::Workspace", text); };
    if (edit.splices.empty())
        return tr("edit rows");
    const auto none = [&edit](auto lines) {
        return std::all_of(edit.splices.begin(), edit.splices.end(),
            [lines](const TableSplice &splice) { return (splice.*lines).empty(); });
    };
    const Touched touched = touchedBy(edit);
    const QString rows = touched.first == touched.last
        ? tr("row %1").arg(touched.first + 1)
        : tr("rows %1-%2").arg(touched.first + 1).arg(touched.last + 1);
    return none(&TableSplice::inserted) ? tr("remove %1").arg(rows)
        : none(&TableSplice::removed)   ? tr("write %1").arg(rows)
                                        : tr("edit %1").arg(rows);
}

} // namespace planloom
