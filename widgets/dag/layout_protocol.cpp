#include "widgets/dag/layout_protocol.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

namespace planloom {

namespace {

void addNumber(std::string &text, double value)
{
    std::array<char, 64> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    text += ' ';
    text.append(buffer.data(), end);
}

void addNumber(std::string &text, std::int64_t value)
{
    text += ' ' + std::to_string(value);
}

/// Splits a line at single blanks, at most `most` fields; the last takes the rest.
std::vector<std::string_view> fieldsOf(std::string_view line, std::size_t most)
{
    std::vector<std::string_view> fields;
    while (fields.size() + 1 < most) {
        const auto blank = line.find(' ');
        if (blank == std::string_view::npos)
            break;
        fields.push_back(line.substr(0, blank));
        line.remove_prefix(blank + 1);
    }
    fields.push_back(line);
    return fields;
}

template<typename Number> std::optional<Number> numberIn(std::string_view text)
{
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

/// A length that a layout can be made of.
std::optional<double> lengthIn(std::string_view text)
{
    const auto value = numberIn<double>(text);
    if (!value || !std::isfinite(*value) || std::abs(*value) > 1e9)
        return std::nullopt;
    return value;
}

Error notUnderstood(std::string_view line, const char *expected)
{
    return {.code = ErrorCode::InvalidInput,
        .message = "Layout protocol: expected " + std::string(expected) + ", found \""
            + std::string(line.substr(0, 80)) + "\".",
        .advice = {},
        .where = {}};
}

} // namespace

std::string encode(const LayoutRequest &request)
{
    const auto &graph = request.graph;
    std::string text = "layout";
    addNumber(text, request.id);
    addNumber(text, static_cast<std::int64_t>(graph.nodes.size()));
    addNumber(text, static_cast<std::int64_t>(graph.edges.size()));
    addNumber(text, graph.nodeGap);
    addNumber(text, graph.rankGap);
    text += '\n';
    for (const auto &node : graph.nodes) {
        text += 'n';
        addNumber(text, node.width);
        addNumber(text, node.height);
        addNumber(text, static_cast<std::int64_t>(node.pin));
        text += '\n';
    }
    for (const auto &edge : graph.edges) {
        text += 'e';
        addNumber(text, static_cast<std::int64_t>(edge.from));
        addNumber(text, static_cast<std::int64_t>(edge.to));
        text += '\n';
    }
    return text;
}

std::string encode(const LayoutAnswer &answer)
{
    std::string text = answer.failure.empty() ? "done" : "failed";
    addNumber(text, answer.id);
    if (!answer.failure.empty()) {
        text += ' ';
        for (const char c : answer.failure)
            text += c == '\n' || c == '\r' ? ' ' : c;
        return text + '\n';
    }
    addNumber(text, static_cast<std::int64_t>(answer.centres.size()));
    text += '\n';
    for (const auto &centre : answer.centres) {
        text += 'p';
        addNumber(text, centre.x);
        addNumber(text, centre.y);
        text += '\n';
    }
    return text;
}

bool LayoutReader::hasLines(std::size_t count) const
{
    std::size_t position = 0;
    for (; count > 0; --count) {
        position = m_buffer.find('\n', position);
        if (position == std::string::npos)
            return false;
        ++position;
    }
    return true;
}

std::vector<std::string_view> LayoutReader::lines(std::size_t count, std::size_t &length) const
{
    std::vector<std::string_view> result;
    length = 0;
    for (; count > 0; --count) {
        const auto end = m_buffer.find('\n', length);
        result.push_back(std::string_view(m_buffer).substr(length, end - length));
        length = end + 1;
    }
    return result;
}

Result<LayoutRequest> LayoutReader::nextRequest(bool &found)
{
    found = false;
    if (!hasLines(1)) {
        if (m_buffer.size() > 4096)
            return notUnderstood(m_buffer, "a line");
        return LayoutRequest{};
    }
    std::size_t length = 0;
    const auto head = fieldsOf(lines(1, length).front(), 7);
    const auto id = head.size() == 6 ? numberIn<std::int64_t>(head[1]) : std::nullopt;
    const auto nodes = id ? numberIn<std::size_t>(head[2]) : std::nullopt;
    const auto edges = nodes ? numberIn<std::size_t>(head[3]) : std::nullopt;
    const auto nodeGap = edges ? lengthIn(head[4]) : std::nullopt;
    const auto rankGap = nodeGap ? lengthIn(head[5]) : std::nullopt;
    if (!rankGap || head[0] != "layout" || *nodes > kMostNodes || *edges > kMostEdges || *nodeGap < 0
        || *rankGap < 0)
        return notUnderstood(m_buffer, "\"layout <id> <nodes> <edges> <node gap> <rank gap>\"");
    if (!hasLines(1 + *nodes + *edges))
        return LayoutRequest{};
    const auto all = lines(1 + *nodes + *edges, length);
    LayoutRequest request;
    request.id = *id;
    request.graph.nodeGap = *nodeGap;
    request.graph.rankGap = *rankGap;
    for (std::size_t i = 1; i <= *nodes; ++i) {
        const auto fields = fieldsOf(all[i], 5);
        const auto width = fields.size() == 4 ? lengthIn(fields[1]) : std::nullopt;
        const auto height = width ? lengthIn(fields[2]) : std::nullopt;
        const auto pin = height ? numberIn<int>(fields[3]) : std::nullopt;
        if (!pin || fields[0] != "n" || *pin < 0 || *pin > 2 || *width < 0 || *height < 0)
            return notUnderstood(all[i], "\"n <width> <height> <pin>\"");
        request.graph.nodes.push_back({*width, *height, static_cast<LayeredNode::Pin>(*pin)});
    }
    for (std::size_t i = *nodes + 1; i < all.size(); ++i) {
        const auto fields = fieldsOf(all[i], 4);
        const auto from = fields.size() == 3 ? numberIn<std::size_t>(fields[1]) : std::nullopt;
        const auto to = from ? numberIn<std::size_t>(fields[2]) : std::nullopt;
        if (!to || fields[0] != "e" || *from >= *nodes || *to >= *nodes)
            return notUnderstood(all[i], "\"e <from> <to>\" with nodes in range");
        request.graph.edges.push_back({static_cast<std::int32_t>(*from), static_cast<std::int32_t>(*to)});
    }
    m_buffer.erase(0, length);
    found = true;
    return request;
}

Result<LayoutAnswer> LayoutReader::nextAnswer(bool &found)
{
    found = false;
    if (!hasLines(1)) {
        if (m_buffer.size() > 65536)
            return notUnderstood(m_buffer, "a line");
        return LayoutAnswer{};
    }
    std::size_t length = 0;
    const auto head = fieldsOf(lines(1, length).front(), 3);
    LayoutAnswer answer;
    const auto id = head.size() == 3 ? numberIn<std::int64_t>(head[1]) : std::nullopt;
    if (!id || (head[0] != "done" && head[0] != "failed"))
        return notUnderstood(m_buffer, "\"done <id> <nodes>\" or \"failed <id> <reason>\"");
    answer.id = *id;
    if (head[0] == "failed") {
        answer.failure = head[2].empty() ? "no reason given" : std::string(head[2]);
    } else {
        const auto nodes = numberIn<std::size_t>(head[2]);
        if (!nodes || *nodes > kMostNodes)
            return notUnderstood(m_buffer, "a number of nodes");
        if (!hasLines(1 + *nodes))
            return LayoutAnswer{};
        const auto all = lines(1 + *nodes, length);
        for (std::size_t i = 1; i < all.size(); ++i) {
            const auto fields = fieldsOf(all[i], 4);
            const auto x = fields.size() == 3 ? lengthIn(fields[1]) : std::nullopt;
            const auto y = x ? lengthIn(fields[2]) : std::nullopt;
            if (!y || fields[0] != "p")
                return notUnderstood(all[i], "\"p <x> <y>\"");
            answer.centres.push_back({*x, *y});
        }
    }
    m_buffer.erase(0, length);
    found = true;
    return answer;
}

} // namespace planloom
