#include "engine/interop/configs/shell_text.h"

#include "engine/interop/configs/shell_tokens.h"
#include "engine/interop/configs/shell_values.h"
#include "engine/table/selector.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace planloom {

namespace {

/// Takes a script's statements one after the other.
class ShellReader
{
public:
    ShellReader(std::vector<ShellToken> tokens, const std::map<std::string, std::string> &variables)
        : m_tokens(std::move(tokens))
    {
        for (const auto &[name, value] : variables)
            m_values.set(name, {{value, 0}});
    }

    Result<ShellText> read()
    {
        while (m_at < m_tokens.size()) {
            const ShellToken &token = m_tokens[m_at];
            if (m_values.isTooLarge() || m_frames.size() > static_cast<std::size_t>(kMostConfigDepth))
                return Error{ErrorCode::ResourceLimit,
                    "what the variables of this script come to is larger than Planloom reads",
                    "paste the launch command alone", "line:" + std::to_string(token.line)};
            if (isAtPattern())
                pattern();
            else if (token.kind == ShellTokenKind::Word || token.kind == ShellTokenKind::Array)
                statement();
            else
                mark(token);
        }
        return std::move(m_text);
    }

private:
    enum class FrameKind : std::uint8_t { If, Case, Loop };
    struct Frame {
        FrameKind kind = FrameKind::If;
        bool active = false; ///< The branch that is read is taken.
        bool done = false; ///< A branch was.
        bool wantsPattern = false; ///< Of a case.
        std::string value{}; ///< Of a case.
    };

    bool isActive() const
    {
        return std::all_of(m_frames.begin(), m_frames.end(), [](const Frame &frame) { return frame.active; });
    }
    bool isAtPattern() const { return !m_frames.empty() && m_frames.back().wantsPattern; }
    bool isAtWord() const { return m_at < m_tokens.size() && m_tokens[m_at].kind == ShellTokenKind::Word; }

    void mark(const ShellToken &token)
    {
        if (token.kind == ShellTokenKind::Directive)
            for (const ShellWord &word : m_values.wordsOf(token.text, token.line))
                for (const ShellWord &part : parted(word))
                    m_text.directives.push_back(part);
        if (token.kind == ShellTokenKind::Next && !m_frames.empty()
            && m_frames.back().kind == FrameKind::Case)
            m_frames.back().wantsPattern = true;
        ++m_at;
    }

    static std::vector<ShellWord> parted(const ShellWord &word)
    {
        std::vector<ShellWord> parts;
        for (std::size_t at = 0; at < word.text.size();) {
            const std::size_t begin = word.text.find_first_not_of(" \t", at);
            if (begin == std::string::npos)
                break;
            at = std::min(word.text.find_first_of(" \t", begin), word.text.size());
            parts.push_back({word.text.substr(begin, at - begin), word.line});
        }
        return parts;
    }

    /// "a|b)" of a case, or its end.
    void pattern()
    {
        Frame &frame = m_frames.back();
        bool matches = false;
        while (m_at < m_tokens.size() && m_tokens[m_at].kind != ShellTokenKind::Close) {
            const ShellToken &token = m_tokens[m_at++];
            if (token.kind != ShellTokenKind::Word)
                continue;
            if (token.text == "esac") {
                m_frames.pop_back();
                return;
            }
            matches = matches || globMatches(m_values.textOf(token.text, token.line), frame.value);
        }
        m_at += m_at < m_tokens.size() ? 1 : 0;
        frame.active = matches && !frame.done && frame.value.find('$') == std::string::npos;
        frame.done = frame.done || frame.active;
        frame.wantsPattern = false;
    }

    void statement()
    {
        const std::string &first = m_tokens[m_at].text;
        const bool isCommand = m_tokens[m_at].kind == ShellTokenKind::Array;
        if (isCommand)
            command();
        else if (first == "if" || first == "elif")
            branch(first == "if");
        else if (first == "while" || first == "until" || first == "for")
            loop(first == "for");
        else if (first == "case")
            choice();
        else if (first == "else") {
            if (!m_frames.empty())
                m_frames.back().active = !std::exchange(m_frames.back().done, true);
            ++m_at;
        } else if (first == "fi" || first == "done" || first == "esac") {
            if (!m_frames.empty())
                m_frames.pop_back();
            ++m_at;
        } else if (first == "then" || first == "do" || first == "{" || first == "}" || first == "!")
            ++m_at;
        else
            command();
    }

    void branch(bool isNew)
    {
        ++m_at;
        std::vector<ShellToken> condition;
        while (m_at < m_tokens.size() && m_tokens[m_at].text != "then")
            condition.push_back(m_tokens[m_at++]);
        if (isNew)
            m_frames.push_back({.active = true});
        if (m_frames.empty())
            return;
        m_frames.back().active = true; // so that the condition is asked for where it counts
        const bool holds = isActive() && !m_frames.back().done && this->holds(condition);
        m_frames.back().active = holds;
        m_frames.back().done = m_frames.back().done || holds;
    }

    void loop(bool isOverWords)
    {
        ++m_at;
        if (isOverWords && isAtWord()) {
            const std::string name = m_tokens[m_at].text;
            m_at += 1;
            if (isAtWord() && m_tokens[m_at].text == "in" && m_at + 1 < m_tokens.size()
                && m_tokens[m_at + 1].kind == ShellTokenKind::Word && isActive())
                m_values.set(name, m_values.wordsOf(m_tokens[m_at + 1].text, m_tokens[m_at + 1].line));
        }
        while (m_at < m_tokens.size() && m_tokens[m_at].text != "do")
            ++m_at;
        m_frames.push_back({.kind = FrameKind::Loop, .active = true});
    }

    void choice()
    {
        ++m_at;
        std::string value;
        for (; m_at < m_tokens.size() && m_tokens[m_at].text != "in"; ++m_at)
            if (isAtWord())
                value = m_values.textOf(m_tokens[m_at].text, m_tokens[m_at].line);
        m_at += m_at < m_tokens.size() ? 1 : 0;
        m_frames.push_back({.kind = FrameKind::Case, .active = false, .wantsPattern = true, .value = value});
    }

    /// Tests joined by && and ||, from left to right; what only a run knows does not hold.
    bool holds(const std::vector<ShellToken> &condition)
    {
        bool all = true;
        std::string join = "&&";
        std::vector<std::string> words;
        const auto close = [&] {
            if (words.empty())
                return;
            const bool one = test(words);
            all = join == "||" ? all || one : all && one;
            words.clear();
        };
        for (const ShellToken &token : condition) {
            if (token.kind == ShellTokenKind::Word && token.text.starts_with("[[")) {
                const std::string_view inner = std::string_view(token.text).substr(2);
                std::vector<ShellToken> tokens = shellTokens(inner.substr(0, inner.rfind("]]"))).tokens;
                for (const ShellToken &each : tokens)
                    if (each.kind == ShellTokenKind::Word)
                        words.push_back(m_values.textOf(each.text, token.line));
                    else {
                        close();
                        join = each.text;
                    }
            } else if (token.kind == ShellTokenKind::Word) {
                if (token.text != "[" && token.text != "]")
                    words.push_back(m_values.textOf(token.text, token.line));
            } else {
                close();
                join = token.text;
            }
        }
        close();
        return all;
    }

    static bool test(std::vector<std::string> words)
    {
        const bool isNegated = words.front() == "!";
        if (isNegated)
            words.erase(words.begin());
        if (words.size() == 2 && (words[0] == "-n" || words[0] == "-z")) {
            const bool isEmpty = words[1].empty() || words[1].front() == '$';
            return (words[0] == "-z") == isEmpty ? !isNegated : isNegated;
        }
        if (words.size() != 3 || words[0].find('$') != std::string::npos
            || words[2].find('$') != std::string::npos)
            return false;
        if (words[1] == "=" || words[1] == "==")
            return globMatches(words[2], words[0]) != isNegated;
        if (words[1] == "!=")
            return globMatches(words[2], words[0]) == isNegated;
        std::int64_t left = 0;
        std::int64_t right = 0;
        if (std::from_chars(words[0].data(), words[0].data() + words[0].size(), left).ec != std::errc{}
            || std::from_chars(words[2].data(), words[2].data() + words[2].size(), right).ec != std::errc{})
            return false;
        const std::string &sign = words[1];
        const bool holds = sign == "-eq" ? left == right
            : sign == "-ne"              ? left != right
            : sign == "-gt"              ? left > right
            : sign == "-ge"              ? left >= right
            : sign == "-lt"              ? left < right
                                         : sign == "-le" && left <= right;
        return holds != isNegated;
    }

    /// Assignments, and the words behind them.
    void command()
    {
        const bool counts = isActive();
        std::vector<ShellWord> words;
        bool isDeclaration = false;
        for (; m_at < m_tokens.size(); ++m_at) {
            const ShellToken &token = m_tokens[m_at];
            if (token.kind == ShellTokenKind::Array) {
                array(counts);
                continue;
            }
            if (token.kind != ShellTokenKind::Word)
                break;
            const std::size_t end = endOfName(token.text, 0);
            const std::string_view rest = std::string_view(token.text).substr(end);
            const bool adds = rest.starts_with("+=");
            if ((words.empty() || isDeclaration) && end > 0 && (adds || rest.starts_with('='))) {
                if (counts)
                    assign(std::string_view(token.text).substr(0, end), rest.substr(adds ? 2 : 1), adds,
                        token.line);
                continue;
            }
            isDeclaration = isDeclaration
                || (words.empty()
                    && (token.text == "export" || token.text == "local" || token.text == "declare"
                        || token.text == "readonly"));
            if (counts)
                for (ShellWord &word : m_values.wordsOf(token.text, token.line))
                    words.push_back(std::move(word));
        }
        if (!words.empty() && !isDeclaration)
            m_text.commands.push_back(std::move(words));
    }

    void assign(std::string_view name, std::string_view raw, bool adds, std::int32_t line)
    {
        std::vector<ShellWord> words = m_values.wordsOf(raw, line, false);
        if (words.empty())
            words.push_back({{}, line});
        m_text.commands.push_back(words);
        if (adds)
            m_values.append(name, std::move(words), false);
        else
            m_values.set(name, std::move(words));
    }

    /// "NAME=(" to its ")".
    void array(bool counts)
    {
        std::string_view name = m_tokens[m_at].text;
        const bool adds = name.ends_with("+=");
        name.remove_suffix(adds ? 2 : 1);
        std::vector<ShellWord> words;
        for (++m_at; m_at < m_tokens.size() && m_tokens[m_at].kind != ShellTokenKind::Close; ++m_at)
            if (counts && m_tokens[m_at].kind == ShellTokenKind::Word)
                for (ShellWord &word : m_values.wordsOf(m_tokens[m_at].text, m_tokens[m_at].line))
                    words.push_back(std::move(word));
        m_at -= m_at == m_tokens.size() ? 1 : 0;
        if (!counts)
            return;
        m_text.commands.push_back(words);
        if (adds)
            m_values.append(name, std::move(words), true);
        else
            m_values.set(name, std::move(words));
    }

    std::vector<ShellToken> m_tokens;
    std::size_t m_at = 0;
    std::vector<Frame> m_frames{};
    ShellValues m_values{};
    ShellText m_text{};
};

} // namespace

Result<ShellText> readShell(std::string_view text, const std::map<std::string, std::string> &variables)
{
    ShellTokens tokens = shellTokens(text);
    TRY(ShellText read, ShellReader(std::move(tokens.tokens), variables).read());
    for (const std::int32_t line : tokens.neverClosed)
        read.notes.push_back(
            "line " + std::to_string(line) + ": a quote or bracket is opened here and never closed");
    return read;
}

} // namespace planloom
