#include "engine/frontend/torch/pt2_symbols.h"

#include "engine/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace planloom {

namespace {

constexpr int kDeepestSize = 64; ///< Of an expression's brackets.
constexpr double kLargestSize = 9007199254740992.0; ///< 2^53: doubles below it are exact.

bool beginsWord(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Reads and computes at once: sums of products of powers of numbers, symbols, brackets and functions.
class SizeParser
{
public:
    SizeParser(std::string_view text, const Pt2SymbolLookup &sizeOf)
        : m_text(text)
        , m_sizeOf(sizeOf)
    {
    }

    /// Nothing if the text is not understood, to its end.
    std::optional<double> run()
    {
        const auto value = sum();
        skipSpace();
        return m_at == m_text.size() ? value : std::nullopt;
    }
    const std::set<std::string> &symbols() const { return m_symbols; }
    bool isComplete() const { return m_complete; }

private:
    void skipSpace()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }
    bool take(std::string_view token)
    {
        skipSpace();
        if (m_text.substr(m_at, token.size()) != token)
            return false;
        m_at += token.size();
        return true;
    }
    std::string word()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (beginsWord(m_text[m_at]) || isDigit(m_text[m_at])))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    std::optional<double> sum()
    {
        if (++m_depth > kDeepestSize)
            return std::nullopt;
        auto value = product();
        for (;;) {
            const bool plus = value && take("+");
            if (!plus && !(value && take("-")))
                break;
            const auto next = product();
            value = next ? std::optional(plus ? *value + *next : *value - *next) : std::nullopt;
        }
        --m_depth;
        return value;
    }
    std::optional<double> product()
    {
        auto value = factor();
        while (value) {
            const bool whole = take("//");
            const bool over = !whole && take("/");
            const bool rest = !whole && !over && take("%");
            if (!whole && !over && !rest && !take("*"))
                break;
            const auto next = factor();
            if (!next)
                return std::nullopt;
            value = whole ? std::floor(*value / *next)
                : over    ? *value / *next
                : rest    ? modulo(*value, *next)
                          : *value * *next;
        }
        return value;
    }
    std::optional<double> factor()
    {
        if (take("-")) {
            if (++m_depth > kDeepestSize)
                return std::nullopt;
            const auto value = factor();
            --m_depth;
            return value ? std::optional(-*value) : std::nullopt;
        }
        const auto base = atom();
        if (!base || !take("**"))
            return base;
        const auto exponent = factor();
        return exponent ? std::optional(std::pow(*base, *exponent)) : std::nullopt;
    }
    std::optional<double> atom()
    {
        skipSpace();
        if (m_at == m_text.size())
            return std::nullopt;
        if (take("(")) {
            const auto value = sum();
            return value && take(")") ? value : std::nullopt;
        }
        if (isDigit(m_text[m_at])) {
            double value = 0;
            const auto [end, error] =
                std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), value);
            m_at = static_cast<std::size_t>(end - m_text.data());
            return error == std::errc{} ? std::optional(value) : std::nullopt;
        }
        if (!beginsWord(m_text[m_at]))
            return std::nullopt;
        const std::string name = word();
        if (!take("("))
            return symbol(name);
        return name == "Symbol" ? quotedSymbol() : call(name);
    }
    std::optional<double> symbol(const std::string &name)
    {
        m_symbols.insert(name);
        const auto size = m_sizeOf(name);
        m_complete = m_complete && size.has_value();
        return static_cast<double>(size.value_or(1));
    }
    /// What follows "Symbol(": 's0', positive=True, integer=True)
    std::optional<double> quotedSymbol()
    {
        skipSpace();
        if (m_at == m_text.size() || (m_text[m_at] != '\'' && m_text[m_at] != '"'))
            return std::nullopt;
        const char quote = m_text[m_at++];
        const std::string name = word();
        if (name.empty() || m_at == m_text.size() || m_text[m_at++] != quote)
            return std::nullopt;
        while (take(",")) {
            skipSpace();
            if (word().empty() || !take("="))
                return std::nullopt;
            skipSpace();
            if (word().empty())
                return std::nullopt;
        }
        return take(")") ? symbol(name) : std::nullopt;
    }
    std::optional<double> call(const std::string &name)
    {
        std::vector<double> values;
        do {
            const auto value = sum();
            if (!value)
                return std::nullopt;
            values.push_back(*value);
        } while (take(","));
        return take(")") ? computed(name, values) : std::nullopt;
    }

    static double modulo(double a, double b) { return a - b * std::floor(a / b); }

    static std::optional<double> computed(const std::string &name, const std::vector<double> &values)
    {
        if (name == "Add" || name == "Mul" || name == "Max" || name == "Min") {
            double result = values.front();
            for (std::size_t i = 1; i < values.size(); ++i)
                result = name == "Add" ? result + values[i]
                    : name == "Mul"    ? result * values[i]
                    : name == "Max"    ? std::max(result, values[i])
                                       : std::min(result, values[i]);
            return result;
        }
        if (values.size() == 1) {
            if (name == "Integer" || name == "Float" || name == "Identity" || name == "ToFloat")
                return values[0];
            if (name == "floor" || name == "FloorToInt")
                return std::floor(values[0]);
            if (name == "ceiling" || name == "CeilToInt")
                return std::ceil(values[0]);
            if (name == "TruncToInt")
                return std::trunc(values[0]);
            if (name == "Abs")
                return std::abs(values[0]);
        }
        if (values.size() == 2) {
            if (name == "Rational" || name == "CleanDiv" || name == "IntTrueDiv" || name == "FloatTrueDiv")
                return values[0] / values[1];
            if (name == "FloorDiv")
                return std::floor(values[0] / values[1]);
            if (name == "CeilDiv")
                return std::ceil(values[0] / values[1]);
            if (name == "Mod" || name == "PythonMod")
                return modulo(values[0], values[1]);
            if (name == "Pow" || name == "PowByNatural")
                return std::pow(values[0], values[1]);
        }
        return std::nullopt;
    }

    std::string_view m_text;
    const Pt2SymbolLookup &m_sizeOf;
    std::size_t m_at = 0;
    int m_depth = 0;
    bool m_complete = true;
    std::set<std::string> m_symbols{};
};

} // namespace

std::optional<std::int64_t> evaluatePt2Size(std::string_view expression, const Pt2SymbolLookup &sizeOf)
{
    SizeParser parser(expression, sizeOf);
    const auto value = parser.run();
    if (!value || !parser.isComplete() || !(std::abs(*value) < kLargestSize) || *value != std::trunc(*value))
        return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

std::set<std::string> symbolsOfPt2Size(std::string_view expression)
{
    const Pt2SymbolLookup unknown = [](const std::string &) { return std::optional<std::int64_t>{}; };
    SizeParser parser(expression, unknown);
    return parser.run() ? parser.symbols() : std::set<std::string>{};
}

} // namespace planloom
