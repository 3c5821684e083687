#include "engine/interop/configs/literal_text.h"

#include "engine/base/text.h"
#include "engine/interop/configs/shell_text.h"
#include "engine/interop/configs/shell_values.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// A statement with its brackets closed, without comments; `offset` in the file.
struct LiteralStatement {
    std::string text{};
    std::int32_t line = 0;
    bool isIndented = false;
};

/// Where the string that begins at `at` ends: behind its quotes.
std::size_t endOfString(std::string_view text, std::size_t at)
{
    const char quote = text[at];
    const std::string triple(3, quote);
    if (text.substr(at).starts_with(triple)) {
        const std::size_t end = text.find(triple, at + 3);
        return end == std::string_view::npos ? text.size() : end + 3;
    }
    for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
        at += text[at] == '\\' ? 1 : 0;
    return std::min(at + 1, text.size());
}

bool isOpening(char c)
{
    return c == '(' || c == '[' || c == '{';
}

bool isClosing(char c)
{
    return c == ')' || c == ']' || c == '}';
}

/// Lines that belong together: brackets join them. Comments become spaces, so that lines can be counted.
std::vector<LiteralStatement> statementsOf(std::string_view text)
{
    std::vector<LiteralStatement> statements;
    LiteralStatement statement{{}, 1, false};
    std::int32_t line = 1;
    std::int32_t depth = 0;
    const auto close = [&] {
        if (!trimmed(statement.text).empty()) {
            statement.isIndented = statement.text.front() == ' ' || statement.text.front() == '\t';
            statements.push_back(statement);
        }
        statement = {{}, line, false};
    };
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        std::size_t end = at + 1;
        if (c == '#')
            end = std::min(text.find('\n', at), text.size());
        else if (c == '"' || c == '\'')
            end = endOfString(text, at);
        if (c != '#' && c != '\r')
            statement.text += text.substr(at, end - at);
        line += static_cast<std::int32_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
            text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        depth = std::max(0, depth + (isOpening(c) ? 1 : isClosing(c) ? -1 : 0));
        if (c == '\n' && depth == 0)
            close();
        at = end;
    }
    close();
    return statements;
}

/// Parts between commas that stand in no bracket, with where each begins.
std::vector<std::pair<std::size_t, std::string_view>> partsOf(std::string_view text)
{
    std::vector<std::pair<std::size_t, std::string_view>> parts;
    std::int32_t depth = 0;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        const std::size_t end = c == '"' || c == '\'' ? endOfString(text, at) : at + 1;
        depth += isOpening(c) ? 1 : isClosing(c) ? -1 : 0;
        if (c == ',' && depth == 0) {
            parts.emplace_back(begin, text.substr(begin, at - begin));
            begin = end;
        }
        at = end;
    }
    parts.emplace_back(begin, text.substr(begin));
    return parts;
}

/// Where `mark` stands outside of brackets and strings; npos if nowhere. "==" and the like are no "=".
std::size_t findOutside(std::string_view text, char mark)
{
    std::int32_t depth = 0;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == mark && depth == 0) {
            const bool isTwice = (at + 1 < text.size() && text[at + 1] == '=')
                || (at > 0 && std::string_view("=<>!+-*/").find(text[at - 1]) != std::string_view::npos);
            if (mark != '=' || !isTwice)
                return at;
        }
        depth += isOpening(c) ? 1 : isClosing(c) ? -1 : 0;
        at = c == '"' || c == '\'' ? endOfString(text, at) : at + 1;
    }
    return std::string_view::npos;
}

std::size_t endOfDotted(std::string_view text)
{
    std::size_t end = 0;
    while (end < text.size() && (isNameLetter(text[end]) || text[end] == '.'))
        ++end;
    return end;
}

/// Lists the settings of Python's statements.
class LiteralLister
{
public:
    /// `name = value`, an attribute that is set, or what is returned. @return false beyond what is read
    bool add(std::string_view text, std::int32_t line)
    {
        const std::size_t equals = findOutside(text, '=');
        std::string_view left =
            equals == std::string_view::npos ? std::string_view{} : text.substr(0, equals);
        std::string_view right = equals == std::string_view::npos ? text : text.substr(equals + 1);
        line += lines(text.substr(0, text.size() - right.size()));
        left = trimmed(left.substr(0, std::min(left.find(':'), left.size()))); // without a type
        if (trimmed(text).starts_with("return "))
            right = trimmed(text).substr(7);
        if (!left.empty() && endOfDotted(left) != left.size())
            return true;
        const std::size_t dot = left.find('.');
        const std::string_view plain = trimmed(right);
        if (!left.empty() && dot == std::string_view::npos && !isCall(plain) && !isMap(plain)) {
            if (!plain.empty())
                m_variables[std::string(left)] = {{std::string(plain), line}};
            return true; // it is a setting where it is used
        }
        const bool isVariable = !left.empty() && dot == std::string_view::npos;
        const std::string_view made = plain.substr(0, endOfDotted(plain));
        const bool isNamed = isVariable && !isWhole(plain)
            && (made.ends_with("Config") || made.ends_with("Args") || isMap(plain));
        const std::string key(left.empty() || (isVariable && !isNamed) ? std::string_view{}
                : isVariable                                           ? left
                                                                       : left.substr(dot + 1));
        const std::size_t before = m_settings.size();
        const bool isRead = value(key, right, line, 0);
        if (isVariable && m_settings.size() > before && m_settings.back().key == key)
            m_settings.pop_back(); // what a variable is made by is no setting
        return isRead;
    }

    std::vector<Setting> take() { return std::move(m_settings); }

private:
    static std::int32_t lines(std::string_view text)
    {
        return static_cast<std::int32_t>(std::count(text.begin(), text.end(), '\n'));
    }

    static bool isCall(std::string_view text)
    {
        const std::size_t end = endOfDotted(text);
        return end > 0 && end < text.size() && text[end] == '(' && text.ends_with(')')
            && !isDigit(text.front());
    }

    static bool isMap(std::string_view text) { return text.starts_with('{') && text.ends_with('}'); }

    /// "Trainer.Config(...)": a whole config, whose keywords have nothing before them.
    static bool isWhole(std::string_view text)
    {
        const std::string_view name = text.substr(0, endOfDotted(text));
        return isCall(text) && (name == "Config" || name == "Trainer.Config" || name == "ConfigContainer");
    }

    bool value(const std::string &key, std::string_view text, std::int32_t line, std::int32_t depth)
    {
        const std::string_view inner = trimmed(text);
        if (depth > kMostConfigDepth || m_settings.size() >= kMostSettings)
            return false;
        if (inner.empty())
            return true;
        line += lines(text.substr(0, static_cast<std::size_t>(inner.data() - text.data())));
        if (isCall(inner))
            return call(key, inner, line, depth);
        if (isMap(inner)) {
            for (const auto &[begin, part] : partsOf(inner.substr(1, inner.size() - 2))) {
                const std::size_t colon = findOutside(part, ':');
                if (colon == std::string_view::npos)
                    continue;
                const std::string name = literal(part.substr(0, colon));
                if (!value(joined(key, name), part.substr(colon + 1),
                        line + lines(inner.substr(0, begin + 1)) + lines(part.substr(0, colon)), depth + 1))
                    return false;
            }
            return true;
        }
        if (key.empty())
            return true;
        std::vector<std::string> values{literal(inner)};
        if (inner.starts_with('[')
            || (inner.starts_with('(') && findOutside(inner.substr(1), ',') != std::string_view::npos)) {
            values.clear();
            for (const auto &[begin, part] : partsOf(inner.substr(1, inner.size() - 2)))
                if (!trimmed(part).empty())
                    values.push_back(literal(part));
        }
        m_settings.push_back({key, std::move(values), line});
        return true;
    }

    bool call(const std::string &key, std::string_view text, std::int32_t line, std::int32_t depth)
    {
        const std::size_t end = endOfDotted(text);
        const std::string_view name = text.substr(0, end);
        Setting setting{key, {std::string(name)}, line};
        const std::string own(
            name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1));
        const bool isOfMap = name == "dict";
        const bool isClass =
            own.ends_with("Config") || own.ends_with("Args"); // others make what they are called with
        const std::string prefix = !key.empty() || isWhole(text) || isOfMap || !isClass ? key : own;
        for (const auto &[begin, part] : partsOf(text.substr(end + 1, text.size() - end - 2))) {
            const std::size_t equals = findOutside(part, '=');
            if (equals == std::string_view::npos) {
                if (!trimmed(part).empty() && !isCall(trimmed(part)))
                    setting.values.push_back(literal(part));
                continue;
            }
            const std::string word(trimmed(part.substr(0, equals)));
            if (!value(joined(prefix, word), part.substr(equals + 1),
                    line + lines(text.substr(0, end + 1 + begin)) + lines(part.substr(0, equals)), depth + 1))
                return false;
        }
        if (!key.empty() && !isOfMap)
            m_settings.push_back(std::move(setting));
        return true;
    }

    static std::string joined(const std::string &key, const std::string &name)
    {
        return key.empty() ? name : key + "." + name;
    }

    /// What a literal, a variable or a sum of numbers comes to; else the text.
    std::string literal(std::string_view text) const
    {
        text = trimmed(text);
        if (text.size() > 1 && (text.front() == '"' || text.front() == '\'')
            && endOfString(text, 0) == text.size())
            return std::string(text.substr(1, text.size() - 2));
        if (const auto known = m_variables.find(text); known != m_variables.end())
            return known->second.front().text.front() == '"' || known->second.front().text.front() == '\''
                ? literal(known->second.front().text)
                : known->second.front().text;
        std::string plain(text);
        std::erase(plain, '_');
        const bool isSum = plain.find_first_not_of("0123456789 +-*/%()\n") == std::string::npos;
        const auto number = isSum ? integerOf(plain) : std::nullopt;
        return number ? std::to_string(*number) : std::string(text);
    }

    std::map<std::string, std::vector<ShellWord>, std::less<>> m_variables{};
    std::vector<Setting> m_settings{};
};

} // namespace

Result<SettingList> readPython(std::string_view text, const std::string &function)
{
    std::vector<std::pair<std::string, LiteralLister>> functions{{"", {}}}; // the first: outside of all
    std::map<std::string, std::vector<Setting>> settings;
    std::vector<std::string> names;
    std::string name;
    const auto finish = [&] {
        std::vector<Setting> own = functions.back().second.take();
        std::vector<Setting> &all = settings[name];
        all.insert(all.end(), own.begin(), own.end());
        if (!all.empty() && std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
        functions.back().second = {};
    };
    std::size_t count = 0;
    for (const LiteralStatement &statement : statementsOf(text)) {
        const std::string_view plain = trimmed(statement.text);
        if (!statement.isIndented) {
            finish();
            name.clear();
        }
        if (plain.starts_with("def ")) {
            name = std::string(plain.substr(4, endOfName(plain, 4) - 4));
            continue;
        }
        if (plain.starts_with("from ") || plain.starts_with("import ") || plain.starts_with('@')
            || plain.starts_with('"') || plain.starts_with("class ") || plain.starts_with("assert "))
            continue;
        const std::size_t equals = findOutside(plain, '=');
        const std::string_view right =
            trimmed(equals == std::string_view::npos ? plain : plain.substr(equals + 1));
        if (const auto other = settings.find(std::string(right.substr(0, endOfName(right, 0))));
            other != settings.end() && !other->first.empty()
            && right.substr(endOfName(right, 0)).starts_with("(")) {
            std::vector<Setting> begun = other->second;
            count += begun.size();
            settings[name].insert(settings[name].end(), begun.begin(), begun.end());
        }
        if (count > kMostSettings || !functions.back().second.add(statement.text, statement.line))
            return Error{ErrorCode::ResourceLimit,
                "this file has more settings, or deeper ones, than Planloom reads", {},
                "line:" + std::to_string(statement.line)};
    }
    finish();
    std::string all;
    std::vector<std::string> called;
    for (const std::string &each : names)
        if (!each.empty()) {
            called.push_back(each);
            all += (all.empty() ? "" : ", ") + each;
        }
    std::string chosen = function;
    if (chosen.empty() && called.size() == 1)
        chosen = called.front();
    if (!chosen.empty() && settings.find(chosen) == settings.end())
        return Error{ErrorCode::NotFound, "there is no function " + chosen + " that makes a config",
            all.empty() ? std::string{} : "there are " + all, chosen};
    if (chosen.empty() && called.size() > 1)
        return Error{
            ErrorCode::InvalidInput, "this file makes several configs", "name one of " + all, "line:1"};
    SettingList list{settings[""], {}};
    if (!chosen.empty())
        list.settings.insert(list.settings.end(), settings[chosen].begin(), settings[chosen].end());
    return list;
}

Result<SettingList> readToml(std::string_view text)
{
    SettingList list;
    std::string section;
    for (const LiteralStatement &statement : statementsOf(text)) {
        const std::string_view line = trimmed(statement.text);
        if (line.starts_with('[') && line.ends_with(']')
            && findOutside(line, '=') == std::string_view::npos) {
            std::string_view name = trimmed(line.substr(1, line.size() - 2));
            if (name.starts_with('['))
                name = name.substr(1, name.size() - 2);
            section = std::string(name.substr(0, 500));
            continue;
        }
        const std::size_t equals = findOutside(line, '=');
        if (equals == std::string_view::npos || equals == 0)
            return Error{ErrorCode::InvalidInput,
                "expected \"key = value\" or \"[section]\", found \"" + std::string(line.substr(0, 40))
                    + "\"",
                {}, "line:" + std::to_string(statement.line)};
        if (list.settings.size() >= kMostSettings)
            return Error{ErrorCode::ResourceLimit, "this file has more settings than Planloom reads", {},
                "line:" + std::to_string(statement.line)};
        const std::string key(trimmed(line.substr(0, equals)));
        const std::string_view value = trimmed(line.substr(equals + 1));
        std::vector<std::string> values = listOf(value);
        if (!value.starts_with('['))
            values = {value.size() > 1 && (value.front() == '"' || value.front() == '\'')
                    ? std::string(value.substr(1, value.size() - 2))
                    : std::string(value)};
        list.settings.push_back(
            {section.empty() ? key : section + "." + key, std::move(values), statement.line});
    }
    return list;
}

} // namespace planloom
