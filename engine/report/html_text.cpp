#include "engine/report/html_text.h"

#include <cstdint>

namespace planloom {

namespace {

/// Bytes of the UTF-8 character that begins at `at`; 0 if none does.
std::size_t characterAt(std::string_view text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f ? 1 : first == '\n' || first == '\t' || first == '\r' ? 1 : 0;
    const std::size_t length = first >= 0xc2 && first <= 0xdf ? 2
        : first >= 0xe0 && first <= 0xef                      ? 3
        : first >= 0xf0 && first <= 0xf4                      ? 4
                                                              : 0;
    if (length == 0 || at + length > text.size())
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xc0U) != 0x80)
            return 0;
    const unsigned char second = byte(at + 1);
    const bool isLonger = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool isBeyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
    return isLonger || isBeyond ? 0 : length;
}

} // namespace

std::string htmlText(std::string_view text)
{
    std::string html;
    html.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = characterAt(text, at);
        if (length == 0) {
            html += "\xEF\xBF\xBD";
            ++at;
            continue;
        }
        switch (text[at]) {
        case '&':
            html += "&amp;";
            break;
        case '<':
            html += "&lt;";
            break;
        case '>':
            html += "&gt;";
            break;
        case '"':
            html += "&quot;";
            break;
        case '\'':
            html += "&#39;";
            break;
        default:
            html += text.substr(at, length);
        }
        at += length;
    }
    return html;
}

std::string scriptText(std::string_view json)
{
    std::string text;
    text.reserve(json.size());
    for (const char c : json) // in JSON these stand in strings alone
        switch (c) {
        case '<':
            text += "\\u003c";
            break;
        case '>':
            text += "\\u003e";
            break;
        case '&':
            text += "\\u0026";
            break;
        default:
            text += c;
        }
    return text;
}

std::string htmlTable(
    const std::vector<HtmlColumn> &columns, const std::vector<std::vector<std::string>> &rows)
{
    const auto classOf = [&](std::size_t column) {
        return column < columns.size() && columns[column].isNumber ? " class=\"n\"" : "";
    };
    std::string html = "<div class=\"scroll\"><table><thead><tr>";
    for (std::size_t c = 0; c < columns.size(); ++c)
        html += "<th" + std::string(classOf(c)) + ">" + htmlText(columns[c].heading) + "</th>";
    html += "</tr></thead><tbody>\n";
    for (const auto &row : rows) {
        html += "<tr>";
        for (std::size_t c = 0; c < row.size(); ++c)
            html += "<td" + std::string(classOf(c)) + ">" + row[c] + "</td>";
        html += "</tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

} // namespace planloom
