#include "engine/report/html_text.h"

#include "engine/base/utf8.h"

namespace planloom {

std::string htmlText(std::string_view text)
{
    std::string html;
    html.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = characterAt(text, at);
        if (length == 0) {
            html += kNoCharacter;
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
