#include "engine/plan/table_text.h"

#include "engine/plan/table_quantity.h"
#include "engine/plan/text_cursor.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace planloom {

namespace {

constexpr std::int64_t kMostCount = 1 << 24; ///< Parts, devices, micro-batches, stages.
constexpr std::int64_t kMostExtent = std::int64_t {1} << 50;

/// "in0.1" or "out0.-1"; nothing if `word` is another word.
std::optional<DimensionRef> positionOf(std::string_view word)
{
    DimensionRef ref;
    if (word.substr(0, 2) == "in") {
        ref.kind = DimensionRef::Kind::Input;
        word.remove_prefix(2);
    } else if (word.substr(0, 3) == "out") {
        ref.kind = DimensionRef::Kind::Output;
        word.remove_prefix(3);
    } else {
        return std::nullopt;
    }
    const char *end = word.data() + word.size();
    const auto [dot, slotFailure] = std::from_chars(word.data(), end, ref.slot);
    if (slotFailure != std::errc {} || ref.slot < 0 || dot == end || *dot != '.')
        return std::nullopt;
    const auto [last, failure] = std::from_chars(dot + 1, end, ref.dimension);
    if (failure != std::errc {} || last != end)
        return std::nullopt;
    return ref;
}

bool isReserved(std::string_view word)
{
    return dimensionMeaningNamed(word) || word == "value" || word == "replicate" || positionOf(word);
}

Result<DimensionRef> parseDimension(TextCursor &cursor)
{
    bool wasQuoted = false;
    TRY(std::string word,
        cursor.word(
            "a dimension: an identifier, a meaning as batch or heads, or a position as in0.1 or out0.-1", wasQuoted));
    if (!wasQuoted) {
        if (const auto meaning = dimensionMeaningNamed(word))
            return DimensionRef {.kind = DimensionRef::Kind::Meaning, .meaning = *meaning, .name = {}};
        if (const auto position = positionOf(word))
            return *position;
    }
    return DimensionRef {.kind = DimensionRef::Kind::Identifier, .name = std::move(word)};
}

/// "[by N | into N,N,..] [over AXIS]"
Result<void> parseAmount(TextCursor &cursor, SplitStep &step)
{
    if (cursor.takeWord("by")) {
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        step.parts = static_cast<std::int32_t>(parts);
    } else if (step.kind == SplitKind::Dimension && cursor.takeWord("into")) {
        do {
            TRY(const auto size, cursor.integer("the size of a part", 1, kMostExtent));
            step.sizes.push_back(size);
        } while (cursor.take(','));
    }
    if (cursor.takeWord("over")) {
        TRY(step.axis, cursor.word("the name of a mesh axis"));
    }
    if (step.parts == 0 && step.sizes.empty() && step.axis.empty())
        return cursor.expected(step.kind == SplitKind::Dimension
                ? "'by' and a number of parts, 'into' and sizes, or 'over' and a mesh axis"
                : "'by' and a number of parts, or 'over' and a mesh axis");
    return {};
}

Result<Rule> parseMesh(TextCursor &cursor)
{
    MeshRule rule;
    do {
        MeshAxis axis;
        TRY(axis.name, cursor.word("a mesh axis as dp=2"));
        TRY_VOID(cursor.require('=', "and the size of the axis"));
        TRY(const auto size, cursor.integer("the size of the axis", 1, kMostCount));
        axis.size = static_cast<std::int32_t>(size);
        rule.axes.push_back(std::move(axis));
    } while (!cursor.atEnd() && cursor.peek() != '@');
    return Rule {std::move(rule)};
}

Result<Rule> parseSplit(TextCursor &cursor)
{
    OpTransRule rule;
    do {
        SplitStep step;
        if (cursor.takeWord("value")) {
            step.kind = SplitKind::Value;
        } else if (cursor.takeWord("replicate")) {
            step.kind = SplitKind::Replicate;
        } else {
            TRY(step.dimension, parseDimension(cursor));
        }
        TRY_VOID(parseAmount(cursor, step));
        rule.steps.push_back(std::move(step));
    } while (cursor.takeWord("then"));
    return Rule {std::move(rule)};
}

Result<Rule> parsePlace(TextCursor &cursor)
{
    OpAssignRule rule;
    cursor.skipSpaces();
    bool wasQuoted = false;
    TRY(std::string word, cursor.word("'devices' and a list, 'mesh', or coordinates as pp=0", wasQuoted));
    if (cursor.peek() != '=' && !wasQuoted) {
        if (word == "mesh")
            return Rule {std::move(rule)};
        if (word == "devices") {
            do {
                TRY(const auto device, cursor.integer("a device number", 0, kMostCount));
                rule.devices.push_back({static_cast<std::int32_t>(device)});
            } while (cursor.take(','));
            return Rule {std::move(rule)};
        }
    }
    while (true) {
        TRY_VOID(cursor.require('=', "and the place along the axis"));
        TRY(const auto index, cursor.integer("the place along the axis", 0, kMostCount));
        rule.coordinates.push_back({std::move(word), static_cast<std::int32_t>(index)});
        if (!cursor.take(','))
            return Rule {std::move(rule)};
        TRY(word, cursor.word("another coordinate as tp=0"));
    }
}

Result<Rule> parseSchedule(TextCursor &cursor)
{
    for (const ScheduleKind kind : {ScheduleKind::Sequential, ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
        if (cursor.takeWord(nameOf(kind)))
            return Rule {ScheduleRule {kind}};
    }
    return cursor.expected("gpipe, 1f1b or sequential");
}

Result<Rule> parseOrder(TextCursor &cursor)
{
    OpOrderRule rule;
    if (!cursor.takeWord("before"))
        return cursor.expected("'before' and the second selector");
    TRY(rule.second, parseSelector(cursor));
    if (cursor.takeWord("at")) {
        TRY(const auto offset, cursor.integer("a micro-batch offset as +1", -kMostCount, kMostCount));
        rule.microBatchOffset = static_cast<std::int32_t>(offset);
    }
    if (cursor.takeWord("of")) {
        TRY(const auto microBatch, cursor.integer("the number of a micro-batch", 0, kMostCount));
        rule.microBatch = static_cast<std::int32_t>(microBatch);
    }
    return Rule {std::move(rule)};
}

Result<Rule> parseRecompute(TextCursor &cursor)
{
    if (!cursor.takeWord("per"))
        return Rule {RecomputeRule {}};
    if (cursor.takeWord("selection"))
        return Rule {RecomputeRule {}};
    if (cursor.takeWord("layer"))
        return Rule {RecomputeRule {RecomputePer::Layer}};
    if (cursor.takeWord("operator"))
        return Rule {RecomputeRule {RecomputePer::Operator}};
    return cursor.expected("selection, layer or operator");
}

Result<Rule> parseSharding(TextCursor &cursor)
{
    OptimizerShardingRule rule;
    if (cursor.takeWord("over")) {
        TRY(rule.axis, cursor.word("the name of a mesh axis"));
    }
    if (cursor.takeWord("by")) {
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        rule.parts = static_cast<std::int32_t>(parts);
    }
    return Rule {std::move(rule)};
}

Result<Rule> parseInFlight(TextCursor &cursor)
{
    InFlightRule rule;
    TRY(const auto count, cursor.integer("a number of micro-batches in flight, as in-flight 3", 1, kMostCount));
    rule.count = static_cast<std::int32_t>(count);
    if (cursor.takeWord("stage")) {
        TRY(const auto stage, cursor.integer("the number of a stage", 0, kMostCount));
        rule.stage = static_cast<std::int32_t>(stage);
    }
    return Rule {rule};
}

Result<Rule> parseLimit(TextCursor &cursor)
{
    LimitRule rule;
    if (cursor.takeWord("time"))
        rule.kind = LimitRule::Kind::Time;
    else if (!cursor.takeWord("memory"))
        return cursor.expected("'memory' or 'time', as in limit memory 40GiB or limit time 50ms");
    cursor.skipSpaces();
    const auto quantity = readQuantity(rule.kind, cursor.rest());
    if (!quantity)
        return cursor.at(cursor.position(), quantity.error().message, quantity.error().advice);
    rule.value = quantity->value;
    cursor.rewind(cursor.position() + quantity->length);
    return Rule {rule};
}

/// "SELECTOR : ..." of the row that `word` begins.
Result<Rule> parseSelected(TextCursor &cursor, std::string_view word, Selector &selector)
{
    TRY(selector, parseSelector(cursor));
    if (word == "order")
        return parseOrder(cursor);
    if (word == "recompute")
        return parseRecompute(cursor);
    if (word == "zero1")
        return parseSharding(cursor);
    TRY_VOID(cursor.require(':', "behind the selector"));
    if (word == "split")
        return parseSplit(cursor);
    if (word == "place")
        return parsePlace(cursor);
    if (word == "stage") {
        TRY(const auto index, cursor.integer("the number of a stage", 0, kMostCount));
        return Rule {StageRule {static_cast<std::int32_t>(index)}};
    }
    if (word == "coshard") {
        CoshardRule rule;
        TRY(rule.dimension, parseDimension(cursor));
        if (!cursor.takeWord("by"))
            return cursor.expected("'by' and a number of parts");
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        rule.parts = static_cast<std::int32_t>(parts);
        return Rule {std::move(rule)};
    }
    SplitStep step {.kind = SplitKind::Replicate};
    TRY_VOID(parseAmount(cursor, step));
    return Rule {OpTransRule {{std::move(step)}}};
}

Result<Row> parseRowAt(std::string_view line, std::int32_t number)
{
    TextCursor cursor(line, number);
    Row row;
    row.enabled = !cursor.takeWord("off");
    if (cursor.takeWord("prefer")) {
        row.preference = 1;
        if (const std::string_view next = cursor.peekWord(); !next.empty() && next.find_first_not_of("+-0123456789") == std::string_view::npos) {
            TRY(const auto weight, cursor.integer("the weight of a preference, as in prefer 2", 1, kMostWeight));
            row.preference = static_cast<std::int32_t>(weight);
        }
    }
    static constexpr std::string_view kWords[] = {
        "split", "replicate", "coshard", "place", "order", "stage", "recompute", "zero1"};
    const std::string word(cursor.peekWord());
    if (cursor.takeWord("mesh")) {
        TRY(row.rule, parseMesh(cursor));
    } else if (cursor.takeWord("micro-batches")) {
        TRY(const auto count, cursor.integer("a number of micro-batches", 1, kMostCount));
        row.rule = MicroBatchesRule {static_cast<std::int32_t>(count), cursor.takeWord("whole")};
    } else if (cursor.takeWord("schedule")) {
        TRY(row.rule, parseSchedule(cursor));
    } else if (cursor.takeWord("in-flight")) {
        TRY(row.rule, parseInFlight(cursor));
    } else if (cursor.takeWord("limit")) {
        TRY(row.rule, parseLimit(cursor));
    } else if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) {
        cursor.takeWord(word);
        TRY(row.rule, parseSelected(cursor, word, row.selector));
    } else {
        return cursor.expected("a row: mesh, micro-batches, split, replicate, coshard, place, order, "
                               "schedule, stage, recompute, zero1, in-flight or limit");
    }
    if (cursor.take('@')) {
        const std::string origin(cursor.peekWord());
        bool known = false;
        for (const RowOrigin candidate :
            {RowOrigin::Text, RowOrigin::Gesture, RowOrigin::Template, RowOrigin::Import}) {
            if (origin == nameOf(candidate)) {
                row.origin = candidate;
                known = true;
            }
        }
        if (!known)
            return cursor.expected("an origin: gesture, template, import or text");
        cursor.takeWord(origin);
    }
    if (!cursor.atEnd())
        return cursor.expected("the end of the row");
    return row;
}

/// Where the note of `line` begins: a '#' outside quotes; npos if there is none.
std::size_t noteStart(std::string_view line)
{
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (inside && line[i] == '\\')
            ++i;
        else if (line[i] == '"')
            inside = !inside;
        else if (line[i] == '#' && !inside)
            return i;
    }
    return std::string_view::npos;
}

std::string_view noteText(std::string_view behindHash)
{
    if (!behindHash.empty() && behindHash.front() == ' ')
        behindHash.remove_prefix(1);
    return behindHash;
}

} // namespace

TableText readTable(std::string_view text)
{
    TableText result;
    std::optional<std::string> note; // of lines of notes alone, for the row below
    const auto addNote = [&](std::string_view line) {
        if (note)
            *note += '\n';
        else
            note.emplace();
        note->append(line);
    };
    std::int32_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        while (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        const std::size_t hash = noteStart(line);
        const std::string_view content = line.substr(0, hash);
        const bool blank = content.find_first_not_of(" \t") == std::string_view::npos;
        if (hash != std::string_view::npos)
            addNote(noteText(line.substr(hash + 1)));
        if (blank)
            continue;
        auto row = parseRowAt(content, number);
        if (row) {
            row->note = note.value_or("");
            result.table.rows.push_back(*std::move(row));
        } else {
            result.errors.push_back(std::move(row).error());
        }
        note.reset();
    }
    result.table.note = note.value_or("");
    return result;
}

Result<ConstraintTable> parseTable(std::string_view text)
{
    TableText result = readTable(text);
    if (!result.errors.empty())
        return std::move(result.errors.front());
    return std::move(result.table);
}

Result<Row> parseRow(std::string_view line)
{
    const std::size_t hash = noteStart(line);
    TRY(Row row, parseRowAt(line.substr(0, hash), 1));
    if (hash != std::string_view::npos)
        row.note = noteText(line.substr(hash + 1));
    return row;
}

std::string print(const DimensionRef &dimension)
{
    switch (dimension.kind) {
    case DimensionRef::Kind::Identifier:
        return isReserved(dimension.name) ? inQuotes(dimension.name) : quoted(dimension.name);
    case DimensionRef::Kind::Input:
        return "in" + std::to_string(dimension.slot) + "." + std::to_string(dimension.dimension);
    case DimensionRef::Kind::Output:
        return "out" + std::to_string(dimension.slot) + "." + std::to_string(dimension.dimension);
    case DimensionRef::Kind::Meaning:
        return nameOf(dimension.meaning);
    }
    return "";
}

} // namespace planloom
