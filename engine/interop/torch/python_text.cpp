#include "engine/interop/torch/python_text.h"

#include "engine/interop/torch/rank_numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace planloom {

namespace {

constexpr std::size_t kWidth = 110;

bool isKeyword(std::string_view word)
{
    static constexpr std::array<std::string_view, 35> kWords{"False", "None", "True", "and", "as", "assert",
        "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally",
        "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
        "raise", "return", "try", "while", "with", "yield"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

/// How many characters `text` takes, a mark as many as "64 * rank.part".
std::size_t widthOf(std::string_view text)
{
    std::size_t width = 0;
    bool marked = false;
    for (const char c : text) {
        if (c == '\1') {
            marked = true;
            width += 14;
        } else if (c == '\3') {
            marked = false;
        } else if (!marked) {
            ++width;
        }
    }
    return width;
}

/// Where a line of at most `width` characters may end: behind the last comma of the outermost brackets that
/// fits.
std::size_t breakOf(std::string_view text, std::size_t width, int least)
{
    int depth = least;
    bool quoted = false;
    std::size_t used = 0;
    std::size_t best = std::string_view::npos;
    int bestDepth = 99;
    for (std::size_t i = 0; i < text.size() && used < width; ++i) {
        const char c = text[i];
        if (c == '\1') { // a mark is one word
            i = text.find('\3', i);
            used += 14;
            continue;
        }
        ++used;
        quoted = quoted != (c == '"');
        if (quoted)
            continue;
        if (c == '(' || c == '[')
            if (++depth == least + 1 && bestDepth == 99) { // better than nothing
                best = i + 1;
                bestDepth = 98;
            }
        if (c == ')' || c == ']')
            --depth;
        if (c == ',' && depth > 0 && depth <= bestDepth && i + 1 < text.size()) {
            best = i + 1;
            bestDepth = depth;
        }
    }
    return best;
}

} // namespace

std::string pythonName(std::string_view name)
{
    std::string made;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter)
            made += c;
        else if (!made.empty() && made.back() != '_')
            made += '_';
    }
    while (!made.empty() && made.back() == '_')
        made.pop_back();
    if (made.empty() || (made[0] >= '0' && made[0] <= '9'))
        made.insert(0, "x");
    return isKeyword(made) ? made + "_" : made;
}

std::string pythonText(std::string_view text)
{
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string made = "\"";
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            made += '\\';
            made += c;
        } else if (code < 32) {
            (((made += "\\x") += kDigits[code >> 4]) += kDigits[code & 15]);
        } else {
            made += c;
        }
    }
    return made + "\"";
}

std::string pythonNumber(double value)
{
    if (!std::isfinite(value))
        return std::isnan(value) ? "float(\"nan\")" : value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    std::string made(text.data(), end);
    if (made.find_first_of(".e") == std::string::npos)
        made += ".0";
    return made;
}

std::string pythonTuple(const std::vector<std::int64_t> &values)
{
    std::vector<std::string> items;
    for (const std::int64_t value : values)
        items.push_back(std::to_string(value));
    return "(" + joinedBy(items) + (items.size() == 1 ? ",)" : ")");
}

std::string pythonType(DataType type)
{
    switch (type) {
    case DataType::Float8E4M3:
        return "torch.float8_e4m3fn";
    case DataType::Float8E5M2:
        return "torch.float8_e5m2";
    default:
        return std::string("torch.") + nameOf(type);
    }
}

std::string joinedBy(const std::vector<std::string> &items, std::string_view between)
{
    std::string text;
    for (const std::string &item : items) {
        if (!text.empty())
            text += between;
        text += item;
    }
    return text;
}

std::string pythonBox(const IndexMask &box, const IndexMask &outer)
{
    std::vector<std::string> ranges;
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        const Range &own = box.ranges[d];
        const Range &all = outer.ranges[d];
        if (own.size() == all.size()) // which it lies in
            ranges.emplace_back(":");
        else
            ranges.push_back(
                rankNumber("part", own.begin - all.begin) + ":" + rankNumber("part", own.end - all.begin));
    }
    while (!ranges.empty() && ranges.back() == ":")
        ranges.pop_back();
    return ranges.empty() ? std::string{} : "[" + joinedBy(ranges) + "]";
}

std::string pythonLines(std::string_view statement, std::string_view comment)
{
    const std::string indent = "    ";
    if (widthOf(statement) + indent.size() <= kWidth) {
        std::string line = indent + std::string(statement);
        if (comment.empty())
            return line + "\n";
        const std::size_t column = std::max<std::size_t>(widthOf(line) + 2, 60);
        if (column + comment.size() + 2 <= kWidth)
            return line + std::string(column - widthOf(line), ' ') + "# " + std::string(comment) + "\n";
        return indent + "# " + std::string(comment) + "\n" + line + "\n";
    }
    std::string lines = comment.empty() ? std::string{} : indent + "# " + std::string(comment) + "\n";
    std::string_view left = statement;
    int depth = 0;
    for (bool first = true; !left.empty(); first = false) {
        const std::string margin = first ? indent : indent + "    ";
        std::size_t end = left.size();
        if (widthOf(left) + margin.size() > kWidth) {
            const std::size_t at = breakOf(left, kWidth - margin.size(), depth);
            end = at == std::string_view::npos ? left.size() : at;
        }
        const std::string_view line = left.substr(0, end);
        for (const char c : line)
            depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
        lines += margin + std::string(line) + "\n";
        left.remove_prefix(end);
        while (!left.empty() && left[0] == ' ')
            left.remove_prefix(1);
    }
    return lines;
}

bool usesName(std::string_view code, std::string_view name)
{
    const auto isName = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
            || c == '.';
    };
    for (std::size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
        const bool begins = at == 0 || !isName(code[at - 1]);
        const char after = at + name.size() < code.size() ? code[at + name.size()] : ' ';
        if (begins && (after == '.' || !isName(after)))
            return true;
    }
    return false;
}

} // namespace planloom
