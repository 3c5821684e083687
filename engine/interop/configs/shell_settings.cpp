#include "engine/base/text.h"
#include "engine/interop/configs/shell_text.h"
#include "engine/interop/configs/shell_values.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// "a.b=value" as its key's length; 0 for other words.
std::size_t overrideKey(std::string_view word)
{
    std::size_t end = 0;
    while (end < word.size()
        && (isNameLetter(word[end]) || word[end] == '.' || word[end] == '+' || word[end] == '~'))
        ++end;
    const bool isKey = end > 0 && end < word.size() && word[end] == '=';
    return isKey && (end + 1 >= word.size() || word[end + 1] != '=') ? end : 0;
}

bool isOption(std::string_view word)
{
    return word.size() > 2 && word.starts_with("--") && word[2] != '-';
}

void cleanInto(std::vector<ShellWord> &words, const ShellWord &word)
{
    const bool isSeveral = word.text.find_first_of(" \t\n\x01") != std::string::npos
        && (word.text.find(" --") != std::string::npos || word.text.find("\n--") != std::string::npos
            || word.text.starts_with("--"));
    if (!isSeveral) {
        words.push_back(word);
        std::erase(words.back().text, kLineGoesOn);
        return;
    }
    std::int32_t line = word.line;
    for (std::size_t at = 0; at < word.text.size();) {
        if (std::string_view(" \t\n\x01").find(word.text[at]) != std::string_view::npos) {
            line += word.text[at] == '\n' || word.text[at] == kLineGoesOn ? 1 : 0;
            ++at;
            continue;
        }
        const std::size_t end = std::min(word.text.find_first_of(" \t\n\x01", at), word.text.size());
        std::string part = word.text.substr(at, end - at);
        std::erase_if(part, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
        if (!part.empty())
            words.push_back({std::move(part), line});
        at = end;
    }
}

} // namespace

std::vector<std::string> listOf(std::string_view text)
{
    text = trimmed(text);
    if (text.starts_with('[') && text.ends_with(']') && text.size() > 1)
        text = text.substr(1, text.size() - 2);
    std::vector<std::string> items;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        std::string_view item = trimmed(text.substr(at, end - at));
        if (item.size() > 1 && (item.front() == '"' || item.front() == '\'') && item.back() == item.front())
            item = item.substr(1, item.size() - 2);
        if (!item.empty())
            items.emplace_back(item);
        at = end + 1;
    }
    return items;
}

std::vector<Setting> settingsOf(const std::vector<ShellWord> &given)
{
    std::vector<ShellWord> words;
    for (const ShellWord &word : given)
        cleanInto(words, word);
    std::vector<Setting> settings;
    bool takesValues = false;
    for (const ShellWord &word : words) {
        const std::string_view text = word.text;
        if (settings.size() >= kMostSettings)
            break;
        if (text == "$@" || text == "$*" || text == "${@}"
            || text == "${*}") { // what the script is called with
            takesValues = false;
            continue;
        }
        if (isOption(text)) {
            const std::size_t equals = std::min(text.find('='), text.size());
            settings.push_back({std::string(text.substr(0, equals)), {}, word.line});
            takesValues = equals == text.size();
            if (!takesValues)
                settings.back().values = {std::string(text.substr(equals + 1))};
        } else if (const std::size_t end = overrideKey(text); end > 0) {
            std::string_view key = text.substr(0, end);
            key.remove_prefix(std::min(key.find_first_not_of("+~"), key.size()));
            settings.push_back({std::string(key), listOf(text.substr(end + 1)), word.line});
            takesValues = false;
        } else if (takesValues && !(text.size() > 1 && text[0] == '-' && !isDigit(text[1]) && text[1] != '.'))
            settings.back().values.emplace_back(text);
        else
            takesValues = false;
    }
    return settings;
}

} // namespace planloom
