#include "engine/lesson/expression.h"

#include "engine/base/nearest_name.h"
#include "engine/base/text.h"
#include "engine/lesson/expression_node.h"
#include "engine/table/selector.h"
#include "engine/table/text_cursor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace planloom {

namespace {

using Kind = ExpressionKind;
using Node = std::shared_ptr<const ExpressionNode>;

constexpr int kDeepest = 64;

struct LiteralUnit {
    std::string_view name{};
    double size = 1;
    FigureUnit unit = FigureUnit::Number;
};
constexpr std::array kLiteralUnits{LiteralUnit{"ns", 1, FigureUnit::Time},
    LiteralUnit{"us", 1e3, FigureUnit::Time}, LiteralUnit{"ms", 1e6, FigureUnit::Time},
    LiteralUnit{"s", 1e9, FigureUnit::Time}, LiteralUnit{"B", 1, FigureUnit::Bytes},
    LiteralUnit{"KiB", 1024, FigureUnit::Bytes}, LiteralUnit{"MiB", 1048576, FigureUnit::Bytes},
    LiteralUnit{"GiB", 1073741824, FigureUnit::Bytes}, LiteralUnit{"KB", 1e3, FigureUnit::Bytes},
    LiteralUnit{"MB", 1e6, FigureUnit::Bytes}, LiteralUnit{"GB", 1e9, FigureUnit::Bytes},
    LiteralUnit{"%", 0.01, FigureUnit::Share}};

bool isPlain(FigureUnit unit)
{
    return unit == FigureUnit::Share || unit == FigureUnit::Count || unit == FigureUnit::Number;
}

bool isQuantity(FigureUnit unit)
{
    return isPlain(unit) || unit == FigureUnit::Time || unit == FigureUnit::Bytes;
}

const char *unitWords(FigureUnit unit)
{
    constexpr std::array kWords{
        "a time", "a size", "a share", "a count", "a plain number", "a word", "yes or no"};
    return kWords[static_cast<std::size_t>(unit)];
}

/// The unit of a sum, least or most of two; nothing where they have none.
std::optional<FigureUnit> sumUnit(FigureUnit a, FigureUnit b)
{
    if (!isQuantity(a) || !isQuantity(b))
        return std::nullopt;
    if (a == b || (isPlain(a) && b == FigureUnit::Number))
        return a;
    if (!isPlain(a) || !isPlain(b))
        return std::nullopt;
    return a == FigureUnit::Number ? b : FigureUnit::Number;
}

std::optional<FigureUnit> productUnit(FigureUnit a, FigureUnit b)
{
    if (!isQuantity(a) || !isQuantity(b) || (!isPlain(a) && !isPlain(b)))
        return std::nullopt;
    if (!isPlain(a) || !isPlain(b))
        return isPlain(a) ? b : a;
    return sumUnit(a, b);
}

std::optional<FigureUnit> quotientUnit(FigureUnit a, FigureUnit b)
{
    if (!isQuantity(a) || !isQuantity(b))
        return std::nullopt;
    if (isPlain(a) && isPlain(b))
        return b == FigureUnit::Number ? a : FigureUnit::Number;
    if (a == b)
        return FigureUnit::Number;
    return isPlain(b) ? std::optional(a) : std::nullopt;
}

bool isWordLetter(char c)
{
    return isDigit(c) || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z') || c == '_';
}

class ExpressionReader
{
public:
    explicit ExpressionReader(std::string_view text)
        : m_text(text)
    {
    }

    Result<Node> read(bool isCondition)
    {
        if (m_text.size() > kLongestExpression)
            return fail("this is longer than " + std::to_string(kLongestExpression) + " letters",
                "say it in several");
        TRY(Node node, readOr());
        if (!isCondition && takeWord("as")) {
            if (!takeWord("percent"))
                return fail("expected \"percent\" behind \"as\"");
            if (!isPlain(node->unit))
                return fail(std::string(unitWords(node->unit)) + " cannot be written as percent",
                    "divide it by another");
            node = make(Kind::Percent, FigureUnit::Share, node, nullptr, 0);
        }
        skipSpaces();
        if (m_at < m_text.size())
            return fail("expected an operator or the end, found " + found());
        if (isCondition && node->unit != FigureUnit::Truth)
            return fail(std::string("expected a condition, found ") + unitWords(node->unit),
                "compare it with another by < <= > >= = or !=");
        return node;
    }

private:
    Error fail(std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice), std::to_string(m_at + 1)};
    }

    std::string found() const
    {
        if (m_at >= m_text.size())
            return "the end";
        std::size_t end = m_at;
        while (end < m_text.size() && (isWordLetter(m_text[end]) || m_text[end] == '-'))
            ++end;
        return "\"" + std::string(m_text.substr(m_at, std::max(end - m_at, std::size_t{1}))) + "\"";
    }

    void skipSpaces()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t'))
            ++m_at;
    }

    bool take(std::string_view symbol)
    {
        skipSpaces();
        if (!m_text.substr(m_at).starts_with(symbol))
            return false;
        m_at += symbol.size();
        return true;
    }

    /// Where a name that begins at `at` ends; nothing if another stands there. Its words may have any spaces
    /// between them.
    std::optional<std::size_t> endOf(std::string_view name, std::size_t at) const
    {
        for (const char c : name) {
            if (at >= m_text.size() || m_text[at] != c)
                return std::nullopt;
            ++at;
            while (c == ' ' && at < m_text.size() && m_text[at] == ' ')
                ++at;
        }
        const auto letterAt = [this](std::size_t i) { return i < m_text.size() && isWordLetter(m_text[i]); };
        const bool goesOn = letterAt(at)
            || (at < m_text.size() && m_text[at] == '-' && letterAt(at + 1) && !isDigit(m_text[at + 1]));
        return goesOn ? std::nullopt : std::optional(at);
    }

    bool takeWord(std::string_view word)
    {
        skipSpaces();
        const auto end = endOf(word, m_at);
        m_at = end.value_or(m_at);
        return end.has_value();
    }

    Node make(Kind kind, FigureUnit unit, Node left, Node right, std::size_t begin) const
    {
        return std::make_shared<const ExpressionNode>(ExpressionNode{.kind = kind,
            .unit = unit,
            .left = std::move(left),
            .right = std::move(right),
            .text = std::string(trimmed(m_text.substr(begin, m_at - begin)))});
    }

    Result<Node> needTruth(Node node) const
    {
        if (node->unit != FigureUnit::Truth)
            return fail(std::string("expected a condition, found ") + unitWords(node->unit));
        return node;
    }

    Result<Node> readJoined(Kind kind, std::string_view word, Result<Node> (ExpressionReader::*next)())
    {
        const std::size_t begin = m_at;
        TRY(Node left, (this->*next)());
        while (takeWord(word)) {
            TRY(left, needTruth(left));
            TRY(Node right, (this->*next)());
            TRY(right, needTruth(right));
            left = make(kind, FigureUnit::Truth, left, right, begin);
        }
        return left;
    }

    Result<Node> readOr() { return readJoined(Kind::Or, "or", &ExpressionReader::readAnd); }
    Result<Node> readAnd() { return readJoined(Kind::And, "and", &ExpressionReader::readNot); }

    Result<Node> readNot()
    {
        skipSpaces();
        const std::size_t begin = m_at;
        if (!takeWord("not"))
            return readComparison();
        if (++m_depth > kDeepest)
            return tooDeep();
        TRY(Node node, readNot());
        --m_depth;
        TRY(node, needTruth(node));
        return make(Kind::Not, FigureUnit::Truth, node, nullptr, begin);
    }

    std::optional<Kind> takeComparison()
    {
        constexpr std::array<std::pair<std::string_view, Kind>, 6> kSymbols{
            {{"<=", Kind::AtMost}, {">=", Kind::AtLeast}, {"!=", Kind::Unequal}, {"<", Kind::Less},
                {">", Kind::Greater}, {"=", Kind::Equal}}};
        for (const auto &[symbol, kind] : kSymbols)
            if (take(symbol))
                return kind;
        return std::nullopt;
    }

    Result<Node> readComparison()
    {
        skipSpaces();
        const std::size_t begin = m_at;
        TRY(const Node left, readSum());
        const auto kind = takeComparison();
        if (!kind)
            return left;
        if (left->unit == FigureUnit::Word) {
            if (*kind != Kind::Equal && *kind != Kind::Unequal)
                return fail("words are compared by = and != alone");
            TRY(const Node word, readWord(left->figure.figure));
            return make(*kind, FigureUnit::Truth, left, word, begin);
        }
        TRY(const Node right, readSum());
        if (!sumUnit(left->unit, right->unit))
            return mismatch(left->unit, "cannot be compared with", right->unit);
        return make(*kind, FigureUnit::Truth, left, right, begin);
    }

    Error mismatch(FigureUnit a, const char *what, FigureUnit b) const
    {
        const bool lacksUnit = (isPlain(a) != isPlain(b)) && isQuantity(a) && isQuantity(b);
        return fail(std::string(unitWords(a)) + " " + what + " " + unitWords(b),
            lacksUnit ? "numbers may have a unit: 5 ms, 2 GiB" : "");
    }

    /// What a word is compared with: another figure that is a word, or one of its words.
    Result<Node> readWord(Figure figure)
    {
        skipSpaces();
        if (const FigureEntry *entry = entryHere(); entry && entry->unit == FigureUnit::Word)
            return readFigure(*entry);
        const std::size_t begin = m_at;
        std::string word;
        if (take("\"")) {
            TRY(word, readQuoted());
        } else {
            while (m_at < m_text.size() && m_text[m_at] != ')' && !endOf("and", m_at) && !endOf("or", m_at)) {
                while (m_at < m_text.size() && m_text[m_at] != ')' && m_text[m_at] != ' ')
                    ++m_at;
                skipSpaces();
            }
            word = trimmed(m_text.substr(begin, m_at - begin));
        }
        const auto known = wordsOf(figure);
        if (!known.empty() && std::find(known.begin(), known.end(), word) == known.end()) {
            std::string list;
            for (const std::string_view each : known)
                list += (list.empty() ? "" : ", ") + std::string(each);
            m_at = begin;
            return fail("\"" + word + "\" is no " + std::string(entryOf(figure).name), "there are " + list);
        }
        return std::make_shared<const ExpressionNode>(ExpressionNode{
            .unit = FigureUnit::Word, .value = {.unit = FigureUnit::Word, .word = word}, .text = word});
    }

    Result<std::string> readQuoted() // behind the first quote
    {
        const std::size_t end = m_text.find('"', m_at);
        if (end == std::string_view::npos)
            return fail("expected a closing quote");
        const std::string text(m_text.substr(m_at, end - m_at));
        m_at = end + 1;
        return text;
    }

    Result<Node> readSum()
    {
        skipSpaces();
        const std::size_t begin = m_at;
        TRY(Node left, readProduct());
        for (;;) {
            const bool isSum = take("+");
            if (!isSum && !take("-"))
                return left;
            TRY(Node right, readProduct());
            const auto unit = sumUnit(left->unit, right->unit);
            if (!unit)
                return mismatch(
                    left->unit, isSum ? "cannot be added to" : "cannot be reduced by", right->unit);
            left = make(isSum ? Kind::Add : Kind::Subtract, *unit, left, right, begin);
        }
    }

    Result<Node> readProduct()
    {
        skipSpaces();
        const std::size_t begin = m_at;
        TRY(Node left, readOperand());
        for (;;) {
            const bool isProduct = take("*");
            if (!isProduct && !take("/"))
                return left;
            TRY(Node right, readOperand());
            const auto unit =
                isProduct ? productUnit(left->unit, right->unit) : quotientUnit(left->unit, right->unit);
            if (!unit)
                return mismatch(
                    left->unit, isProduct ? "cannot be multiplied by" : "cannot be divided by", right->unit);
            left = make(isProduct ? Kind::Multiply : Kind::Divide, *unit, left, right, begin);
        }
    }

    Error tooDeep() const { return fail("this is nested too deep", "say it with fewer brackets"); }

    Result<Node> readOperand()
    {
        skipSpaces();
        if (++m_depth > kDeepest)
            return tooDeep();
        auto node = readInner();
        --m_depth;
        return node;
    }

    Result<Node> readInner()
    {
        const std::size_t begin = m_at;
        if (take("(")) {
            TRY(const Node node, readOr());
            if (!take(")"))
                return fail("expected a closing bracket, found " + found());
            return node;
        }
        if (take("-")) {
            TRY(const Node node, readOperand());
            if (!isQuantity(node->unit))
                return fail(std::string(unitWords(node->unit)) + " has no sign");
            return make(Kind::Negate, node->unit, node, nullptr, begin);
        }
        if (m_at < m_text.size() && (isDigit(m_text[m_at]) || m_text[m_at] == '.'))
            return readNumber();
        if (const FigureEntry *entry = entryHere())
            return readFigure(*entry);
        const bool isLeast = takeWord("min");
        if (isLeast || takeWord("max"))
            return readLeastOrMost(isLeast, begin);
        return unknownFigure();
    }

    Error unknownFigure() const
    {
        if (m_at >= m_text.size())
            return fail("expected a figure or a number, found the end");
        std::vector<std::string_view> names;
        for (const FigureEntry &entry : figureTable())
            names.push_back(entry.name);
        std::size_t end = m_at;
        while (end < m_text.size() && (isWordLetter(m_text[end]) || m_text[end] == '-'))
            ++end;
        return fail("expected a figure or a number, found " + found(),
            didYouMean(m_text.substr(m_at, end - m_at), names));
    }

    Result<Node> readLeastOrMost(bool isLeast, std::size_t begin)
    {
        if (!take("("))
            return fail("expected \"(\", found " + found());
        TRY(const Node a, readSum());
        if (!take(","))
            return fail("expected a comma, found " + found(), "min and max take two");
        TRY(const Node b, readSum());
        if (!take(")"))
            return fail("expected a closing bracket, found " + found());
        const auto unit = sumUnit(a->unit, b->unit);
        if (!unit)
            return mismatch(a->unit, "cannot be compared with", b->unit);
        return make(isLeast ? Kind::Least : Kind::Most, *unit, a, b, begin);
    }

    Result<Node> readNumber()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isDigit(m_text[m_at]) || m_text[m_at] == '.'))
            ++m_at;
        double number = 0;
        const auto [end, failure] = std::from_chars(m_text.data() + begin, m_text.data() + m_at, number);
        if (failure != std::errc{} || end != m_text.data() + m_at || !std::isfinite(number)) {
            m_at = begin;
            return fail("this is no number");
        }
        FigureValue value{.number = number};
        for (const LiteralUnit &unit : kLiteralUnits)
            if (unit.name == "%" ? take("%") : takeWord(unit.name)) {
                value = {.unit = unit.unit, .number = number * unit.size};
                break;
            }
        return std::make_shared<const ExpressionNode>(ExpressionNode{.unit = value.unit,
            .value = value,
            .text = std::string(trimmed(m_text.substr(begin, m_at - begin)))});
    }

    /// The figure with the longest name that stands here; null if none does.
    const FigureEntry *entryHere() const
    {
        const FigureEntry *best = nullptr;
        for (const FigureEntry &entry : figureTable())
            if ((!best || entry.name.size() > best->name.size()) && endOf(entry.name, m_at))
                best = &entry;
        return best;
    }

    Result<Node> readFigure(const FigureEntry &entry)
    {
        const std::size_t begin = m_at;
        m_at = *endOf(entry.name, m_at);
        FigureName name{.figure = entry.figure};
        TRY_VOID(readOperandOf(entry, name));
        if (takeWord("in")) {
            skipSpaces();
            const std::size_t from = m_at;
            while (m_at < m_text.size() && (isWordLetter(m_text[m_at]) || m_text[m_at] == '-'))
                ++m_at;
            if (m_at == from)
                return fail("expected the name of a plan behind \"in\", found " + found());
            name.plan = m_text.substr(from, m_at - from);
        }
        return std::make_shared<const ExpressionNode>(ExpressionNode{.kind = Kind::Figure,
            .unit = entry.unit,
            .figure = std::move(name),
            .text = std::string(trimmed(m_text.substr(begin, m_at - begin)))});
    }

    Result<void> readOperandOf(const FigureEntry &entry, FigureName &name)
    {
        using Operand = FigureOperand;
        const std::string figure = "\"" + std::string(entry.name) + "\"";
        switch (entry.operand) {
        case Operand::None:
            return {};
        case Operand::Kind:
            return takeWord("by") ? readKind(name) : Result<void>{};
        case Operand::Text:
            return takeWord("with") ? readText(name) : Result<void>{};
        case Operand::Selector:
            return takeWord("of") ? readSelector(name) : fail(figure + " needs \"of\" and a selector");
        case Operand::SelectorOrNone:
            return takeWord("of") ? readSelector(name) : Result<void>{};
        case Operand::Device:
            return takeWord("of") ? readIndex("device", name) : fail(figure + " needs \"of device N\"");
        case Operand::Stage:
            return takeWord("of") ? readIndex("stage", name) : fail(figure + " needs \"of stage N\"");
        case Operand::DeviceOrStage:
            break;
        }
        if (!takeWord("of"))
            return {};
        skipSpaces();
        return readIndex(endOf("stage", m_at) ? "stage" : "device", name);
    }

    Result<void> readText(FigureName &name)
    {
        if (!take("\""))
            return fail("expected a text in quotes, found " + found());
        TRY(name.text, readQuoted());
        return {};
    }

    Result<void> readIndex(const char *what, FigureName &name)
    {
        if (!takeWord(what))
            return fail(std::string("expected \"") + what + "\" and its number, found " + found());
        name.ofStage = std::string_view(what) == "stage";
        skipSpaces();
        const std::size_t from = m_at;
        while (m_at < m_text.size() && isDigit(m_text[m_at]))
            ++m_at;
        const auto [end, failure] = std::from_chars(m_text.data() + from, m_text.data() + m_at, name.index);
        if (failure != std::errc{}) {
            m_at = from;
            return fail(std::string("expected the number of a ") + what + ", found " + found());
        }
        return {};
    }

    Result<void> readKind(FigureName &name)
    {
        skipSpaces();
        std::size_t end = m_at;
        while (end < m_text.size() && (isWordLetter(m_text[end]) || m_text[end] == '-'))
            ++end;
        const std::string_view word = m_text.substr(m_at, end - m_at);
        const auto kinds = communicationKinds();
        if (std::find(kinds.begin(), kinds.end(), word) == kinds.end())
            return fail("expected a kind of communication, found " + found(), didYouMean(word, kinds));
        name.text = word;
        m_at = end;
        return {};
    }

    Result<void> readSelector(FigureName &name)
    {
        skipSpaces();
        TextCursor cursor(m_text.substr(m_at));
        auto selector = parseSelector(cursor);
        if (!selector)
            return fail("the selector cannot be read: " + selector.error().message, selector.error().advice);
        name.text = toString(*selector);
        m_at += cursor.position();
        return {};
    }

    std::string_view m_text{};
    std::size_t m_at = 0;
    int m_depth = 0;
};

} // namespace

Result<Expression> expressionFromText(std::string_view text)
{
    TRY(Node root, ExpressionReader(text).read(false));
    return Expression(std::move(root), std::string(trimmed(text)));
}

Result<Condition> conditionFromText(std::string_view text)
{
    TRY(Node root, ExpressionReader(text).read(true));
    return Condition(std::move(root), std::string(trimmed(text)));
}

} // namespace planloom
