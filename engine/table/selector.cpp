#include "engine/table/selector.h"

#include "engine/table/text_cursor.h"

#include <cassert>
#include <charconv>

namespace planloom {

namespace {

constexpr int kMostNesting = 100;
constexpr std::int32_t kMostLayers = 1'000'000;

const char *wordOf(Direction direction)
{
    switch (direction) {
    case Direction::Forward:
        return "forward";
    case Direction::Backward:
        return "backward";
    case Direction::Optimizer:
        return "optimizer";
    }
    return "";
}

Result<Selector> parseEither(TextCursor &cursor, int depth);

/// "0-11", "3", "2-*" or "*".
Result<Selector> parseLayers(TextCursor &cursor)
{
    cursor.skipSpaces();
    const std::size_t start = cursor.position();
    const std::string text(cursor.peekWord());
    Selector selector{.kind = SelectorKind::Layer, .text = {}};
    const auto number = [](std::string_view digits, std::int32_t &value) {
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return !digits.empty() && failure == std::errc{} && end == digits.data() + digits.size() && value >= 0
            && value <= kMostLayers;
    };
    bool good = false;
    if (text == "*") {
        good = true;
    } else if (const std::size_t dash = text.find('-'); dash == std::string::npos) {
        good = number(text, selector.firstLayer);
        selector.lastLayer = selector.firstLayer;
    } else {
        const std::string_view last = std::string_view(text).substr(dash + 1);
        good = number(std::string_view(text).substr(0, dash), selector.firstLayer)
            && (last == "*"
                || (number(last, selector.lastLayer) && selector.lastLayer >= selector.firstLayer));
    }
    if (!good) {
        return cursor.at(start, "expected layers as 3, 0-11, 4-* or *, found '" + text.substr(0, 40) + "'",
            "layers are numbered from 0, the first not behind the last");
    }
    cursor.rewind(start + text.size());
    return selector;
}

Result<Selector> parseAtom(TextCursor &cursor, int depth)
{
    if (depth > kMostNesting)
        return cursor.at(cursor.position(), "expected at most 100 nested brackets and negations");
    if (cursor.take('!')) {
        TRY(Selector child, parseAtom(cursor, depth + 1));
        Selector selector{.kind = SelectorKind::Not};
        selector.children.push_back(std::move(child));
        return selector;
    }
    if (cursor.take('(')) {
        TRY(Selector inner, parseEither(cursor, depth + 1));
        TRY_VOID(cursor.require(')', "or an operator & or |"));
        return inner;
    }
    cursor.skipSpaces();
    const std::size_t start = cursor.position();
    const std::string word(cursor.peekWord());
    const auto skip = [&] { cursor.rewind(start + word.size()); };
    if (word == "all") {
        skip();
        return Selector{};
    }
    for (const Direction direction : {Direction::Forward, Direction::Backward, Direction::Optimizer}) {
        if (word == wordOf(direction)) {
            skip();
            return selectDirection(direction);
        }
    }
    if (word == "set") {
        skip();
        TRY_VOID(cursor.require('{', "and the operators' names"));
        Selector selector{.kind = SelectorKind::Set};
        do {
            TRY(std::string name, cursor.word("an operator's name"));
            selector.names.push_back(std::move(name));
        } while (cursor.take(','));
        TRY_VOID(cursor.require('}', "or ',' and another name"));
        return selector;
    }
    struct Prefix {
        const char *word;
        SelectorKind kind;
    };
    static constexpr Prefix kPrefixes[] = {{"name", SelectorKind::Name}, {"kind", SelectorKind::Kind},
        {"in", SelectorKind::In}, {"layer", SelectorKind::Layer}, {"weight", SelectorKind::Weight}};
    for (const Prefix &prefix : kPrefixes) {
        if (word != prefix.word)
            continue;
        skip();
        TRY_VOID(cursor.require(':', "behind '" + word + "'"));
        if (prefix.kind == SelectorKind::Layer)
            return parseLayers(cursor);
        Selector selector{.kind = prefix.kind};
        TRY(selector.text, cursor.word("a name or pattern behind '" + word + ":'"));
        return selector;
    }
    return cursor.expected("a selector (all, name:, kind:, in:, layer:, weight:, set{}, forward, backward, "
                           "optimizer, ! or a bracket)");
}

/// A list of what `parse` reads, joined by `symbol`; a single one stands for itself.
template<typename Parse>
Result<Selector> parseJoined(TextCursor &cursor, char symbol, SelectorKind kind, Parse parse)
{
    TRY(Selector first, parse());
    if (cursor.peek() != symbol)
        return first;
    Selector joined{.kind = kind};
    joined.children.push_back(std::move(first));
    while (cursor.take(symbol)) {
        TRY(Selector next, parse());
        joined.children.push_back(std::move(next));
    }
    return joined;
}

Result<Selector> parseEither(TextCursor &cursor, int depth)
{
    return parseJoined(cursor, '|', SelectorKind::Or, [&] {
        return parseJoined(cursor, '&', SelectorKind::And, [&] { return parseAtom(cursor, depth); });
    });
}

void print(const Selector &selector, std::string &text);

void printChild(const Selector &child, bool bracket, std::string &text)
{
    if (bracket)
        text += '(';
    print(child, text);
    if (bracket)
        text += ')';
}

void print(const Selector &selector, std::string &text)
{
    const auto isJoined = [](const Selector &s) {
        return s.kind == SelectorKind::And || s.kind == SelectorKind::Or;
    };
    switch (selector.kind) {
    case SelectorKind::All:
        text += "all";
        break;
    case SelectorKind::Name:
        text += "name:" + asWord(selector.text);
        break;
    case SelectorKind::Kind:
        text += "kind:" + asWord(selector.text);
        break;
    case SelectorKind::In:
        text += "in:" + asWord(selector.text);
        break;
    case SelectorKind::Weight:
        text += "weight:" + asWord(selector.text);
        break;
    case SelectorKind::Layer:
        text += "layer:";
        if (selector.firstLayer == 0 && selector.lastLayer < 0) {
            text += '*';
        } else {
            text += std::to_string(selector.firstLayer);
            if (selector.lastLayer < 0)
                text += "-*";
            else if (selector.lastLayer != selector.firstLayer)
                text += '-' + std::to_string(selector.lastLayer);
        }
        break;
    case SelectorKind::Direction:
        text += wordOf(selector.direction);
        break;
    case SelectorKind::Set: {
        text += "set{";
        bool first = true;
        for (const std::string &name : selector.names) {
            text += first ? "" : ", ";
            first = false;
            text += asWord(name);
        }
        text += '}';
        break;
    }
    case SelectorKind::And:
    case SelectorKind::Or: {
        bool first = true;
        for (const Selector &child : selector.children) {
            if (!first)
                text += selector.kind == SelectorKind::And ? " & " : " | ";
            first = false;
            printChild(child,
                isJoined(child) && !(selector.kind == SelectorKind::Or && child.kind == SelectorKind::And),
                text);
        }
        break;
    }
    case SelectorKind::Not:
        text += '!';
        printChild(selector.children.front(), isJoined(selector.children.front()), text);
        break;
    }
}

} // namespace

Result<Selector> parseSelector(TextCursor &cursor)
{
    return parseEither(cursor, 0);
}

Result<Selector> parseSelector(std::string_view text)
{
    TextCursor cursor(text);
    TRY(Selector selector, parseSelector(cursor));
    if (!cursor.atEnd())
        return cursor.expected("&, | or the end of the selector");
    return selector;
}

std::string toString(const Selector &selector)
{
    std::string text;
    print(selector, text);
    return text;
}

bool isGlob(std::string_view glob)
{
    return glob.find_first_of("*?\\") != std::string_view::npos;
}

std::string globOf(std::string_view name)
{
    std::string glob;
    for (const char c : name) {
        if (c == '*' || c == '?' || c == '\\')
            glob += '\\';
        glob += c;
    }
    return glob;
}

bool globMatches(std::string_view glob, std::string_view text)
{
    std::size_t g = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos; // behind the last * met, to return to
    std::size_t starText = 0;
    while (t < text.size()) {
        if (g < glob.size() && glob[g] == '*') {
            star = ++g;
            starText = t;
            continue;
        }
        bool fits = false;
        std::size_t width = 1;
        if (g < glob.size()) {
            if (glob[g] == '\\' && g + 1 < glob.size()) {
                fits = glob[g + 1] == text[t];
                width = 2;
            } else {
                fits = glob[g] == '?' || glob[g] == text[t];
            }
        }
        if (fits) {
            g += width;
            ++t;
        } else if (star != std::string_view::npos) {
            g = star;
            t = ++starText;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*')
        ++g;
    return g == glob.size();
}

Selector selectAll()
{
    return {};
}

Selector selectName(std::string glob)
{
    return {.kind = SelectorKind::Name, .text = std::move(glob)};
}

Selector selectSet(std::vector<std::string> names)
{
    assert(!names.empty());
    return {.kind = SelectorKind::Set, .names = std::move(names)};
}

Selector selectLayers(std::int32_t first, std::int32_t last)
{
    return {.kind = SelectorKind::Layer, .firstLayer = first, .lastLayer = last};
}

Selector selectIn(std::string path)
{
    return {.kind = SelectorKind::In, .text = globOf(path)};
}

Selector selectAny(std::vector<Selector> alternatives)
{
    assert(!alternatives.empty());
    if (alternatives.size() == 1)
        return std::move(alternatives.front());
    return {.kind = SelectorKind::Or, .children = std::move(alternatives)};
}

Selector selectDirection(Direction direction)
{
    return {.kind = SelectorKind::Direction, .direction = direction};
}

} // namespace planloom
