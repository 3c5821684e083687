#include "engine/graph/operator_files/torch_expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

namespace planloom {

namespace {

constexpr std::size_t kMostTorchText = 4096;
constexpr int kMostTorchDepth = 64;

bool isTorchNameCharacter(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Names of torch's that reach for files, code or memory, or are none.
bool isBadTorchName(const std::string &name)
{
    static const std::set<std::string> kBad{"load", "save", "hub", "compile", "from_file", "import_ir_module",
        "numpy", "tofile", "storage", "untyped_storage", "data_ptr", "set_default_device"};
    return name.empty() || name[0] == '_' || kBad.contains(name);
}

/// Reads an expression, and writes it again as it goes.
class TorchExpressionReader
{
public:
    TorchExpressionReader(std::string_view text, const std::function<std::string(const std::string &)> &name)
        : m_text(text)
        , m_name(name)
    {
    }

    Result<std::string> read()
    {
        TRY_VOID(readList(""));
        if (!atEnd() || m_made.empty())
            return expected(m_made.empty() ? "an expression" : "the end");
        return m_made;
    }

private:
    bool atEnd()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
        return m_at == m_text.size();
    }
    char peek() { return atEnd() ? '\0' : m_text[m_at]; }
    bool sees(std::string_view what) { return !atEnd() && m_text.substr(m_at).starts_with(what); }
    bool take(std::string_view what)
    {
        if (!sees(what))
            return false;
        m_at += what.size();
        m_made += what;
        return true;
    }
    Error expected(const std::string &what)
    {
        const std::string found = atEnd() ? "nothing more" : "'" + std::string(1, m_text[m_at]) + "'";
        return Error{ErrorCode::InvalidInput, "expected " + what + ", found " + found, {},
            "position:" + std::to_string(m_at + 1)};
    }
    Error refused(const std::string &what) const
    {
        return Error{ErrorCode::InvalidInput, what + " cannot stand in a torch expression",
            "resources/operators.md says what can", "position:" + std::to_string(m_word + 1)};
    }
    std::string takeName()
    {
        m_word = m_at;
        while (m_at < m_text.size() && isTorchNameCharacter(m_text[m_at]))
            ++m_at;
        return std::string(m_text.substr(m_word, m_at - m_word));
    }

    /// Expressions with commas between them, up to `end`; `isSubscript`: slices, too.
    Result<void> readList(std::string_view end, bool isSubscript = false)
    {
        const auto ends = [&] { return atEnd() || (!end.empty() && sees(end)); };
        while (!ends()) {
            const std::size_t begin = m_at;
            while (isSubscript && take(":")) { }
            if (!(isSubscript && (take("...") || (m_at > begin && (sees(",") || ends())))))
                TRY_VOID(readExpression());
            if (isSubscript && sees(":"))
                continue;
            if (!take(","))
                break;
            m_made += ' ';
        }
        return {};
    }

    Result<void> readExpression()
    {
        if (++m_depth > kMostTorchDepth)
            return refused("so much within one another");
        while (true) {
            while (take("-") || take("~") || take("+")) { }
            TRY_VOID(readOperand());
            static constexpr std::array<std::string_view, 17> kOperators{
                "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "@", "<", ">", "&", "|", "^"};
            const auto found = std::find_if(
                kOperators.begin(), kOperators.end(), [&](std::string_view each) { return sees(each); });
            if (found == kOperators.end())
                break;
            m_at += found->size();
            m_made += " " + std::string(*found) + " ";
        }
        --m_depth;
        return {};
    }

    Result<void> readOperand()
    {
        const char c = peek();
        if (take("(")) {
            TRY_VOID(readList(")"));
            if (!take(")"))
                return expected("')'");
        } else if (take("[")) {
            TRY_VOID(readList("]"));
            if (!take("]"))
                return expected("']'");
        } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            readNumber();
        } else if (isTorchNameCharacter(c)) {
            TRY_VOID(readNamed());
        } else {
            return expected("a value");
        }
        while (peek() == '[' || peek() == '.')
            TRY_VOID(readBehind());
        return {};
    }

    void readNumber()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size()
            && (isTorchNameCharacter(m_text[m_at]) || m_text[m_at] == '.'
                || ((m_text[m_at] == '-' || m_text[m_at] == '+')
                    && (m_text[m_at - 1] == 'e' || m_text[m_at - 1] == 'E'))))
            ++m_at;
        m_made += m_text.substr(begin, m_at - begin);
    }

    /// A value, a constant, or a function of torch's with its call.
    Result<void> readNamed()
    {
        std::string word = takeName();
        if (word != "torch" && word != "F") {
            if (word == "True" || word == "False" || word == "None") {
                m_made += word;
                return {};
            }
            const std::string value = m_name(word);
            if (value.empty())
                return refused("'" + word + "', which is no value or attribute of the operator,");
            m_made += value;
            return {};
        }
        std::vector<std::string> path{word};
        while (m_at < m_text.size() && m_text[m_at] == '.') {
            ++m_at;
            path.push_back(takeName());
            word += "." + path.back();
        }
        static const std::set<std::string> kRooms{"special", "linalg", "fft"};
        const bool isRoom = path.size() == 3 && kRooms.contains(path[1]);
        const bool isLibrary = path.size() == 4 && path[1] == "ops";
        const bool isFunction = path.size() == 2 || (path[0] == "torch" && (isRoom || isLibrary));
        for (std::size_t i = 1; i < path.size(); ++i)
            if (isBadTorchName(path[i]))
                return refused("'" + word + "'");
        if (!isFunction)
            return refused("'" + word + "'");
        m_made += word;
        static const std::set<std::string> kConstants{"torch.float32", "torch.float64", "torch.float16",
            "torch.bfloat16", "torch.int64", "torch.int32", "torch.int8", "torch.uint8", "torch.bool",
            "torch.inf", "torch.pi", "torch.e"};
        return kConstants.contains(word) ? Result<void>{} : readCall();
    }

    /// A subscript, or a method and its call.
    Result<void> readBehind()
    {
        if (take("[")) {
            TRY_VOID(readList("]", true));
            return take("]") ? Result<void>{} : expected("']'");
        }
        ++m_at;
        const std::string method = takeName();
        if (isBadTorchName(method) || method.ends_with('_')) // in place
            return refused("'." + method + "'");
        m_made += "." + method;
        static const std::set<std::string> kValues{"T", "mT", "shape", "dtype", "device", "ndim"};
        return kValues.contains(method) ? Result<void>{} : readCall();
    }

    Result<void> readCall()
    {
        if (!take("("))
            return expected("'(': what torch has is called");
        while (!atEnd() && !sees(")")) {
            const std::size_t begin = m_at;
            const std::string word = takeName();
            if (!word.empty() && sees("=") && !sees("==")) {
                if (word == "out" || word == "inplace")
                    return refused("'" + word + "'");
                m_made += word;
                take("=");
                TRY_VOID(readArgument(word));
            } else {
                m_at = begin;
                TRY_VOID(readExpression());
            }
            if (!take(","))
                break;
            m_made += ' ';
        }
        return take(")") ? Result<void>{} : expected("')'");
    }

    Result<void> readArgument(const std::string &word)
    {
        if (peek() != '\'')
            return readExpression();
        static const std::set<std::string> kTexts{"approximate", "reduction", "mode", "rounding_mode",
            "padding_mode", "norm", "indexing", "reduce"};
        const std::size_t begin = m_at++;
        const std::string text = takeName();
        if (!kTexts.contains(word) || !take("'")) {
            m_at = begin;
            return refused("a text as '" + word + "'");
        }
        m_made.pop_back();
        m_made += "\"" + text + "\"";
        return {};
    }

    std::string_view m_text;
    const std::function<std::string(const std::string &)> &m_name;
    std::size_t m_at = 0;
    std::size_t m_word = 0; ///< Where the last name began.
    int m_depth = 0;
    std::string m_made{};
};

} // namespace

Result<std::string> torchExpression(
    std::string_view text, const std::function<std::string(const std::string &)> &name)
{
    if (text.size() > kMostTorchText)
        return Error{ErrorCode::ResourceLimit,
            "the torch expression has " + std::to_string(text.size()) + " characters, more than the "
                + std::to_string(kMostTorchText) + " that are read",
            {}, {}};
    return TorchExpressionReader(text, name).read();
}

} // namespace planloom
