#include "engine/traces/reading/kineto_event.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace planloom {

namespace {

KinetoCategory categoryNamed(std::string_view name)
{
    if (sameLetters(name, "kernel"))
        return KinetoCategory::Kernel;
    if (sameLetters(name, "cpu_op") || sameLetters(name, "operator"))
        return KinetoCategory::HostOperator;
    if (name == "gpu_memcpy" || name == "gpu_memset" || name == "Memcpy" || name == "Memset")
        return KinetoCategory::Copy;
    if (name.ends_with("_runtime") || name.ends_with("_driver") || name == "Runtime")
        return KinetoCategory::Runtime;
    return name == "user_annotation" ? KinetoCategory::Annotation : KinetoCategory::Other;
}

/// What follows a key as a text: of strings and numbers their letters, of anything else nothing.
/// @return false where it does not end
bool readText(JsonScanner &scanner, std::string &text)
{
    text.clear();
    switch (scanner.next()) {
    case JsonToken::String:
        if (scanner.text().find_first_of("\\") == std::string_view::npos
            && std::all_of(scanner.text().begin(), scanner.text().end(),
                [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
            text = scanner.text();
        else
            text = scanner.plainText();
        return true;
    case JsonToken::Number:
    case JsonToken::Word:
        text = scanner.text();
        return true;
    case JsonToken::BeginObject:
    case JsonToken::BeginArray:
        return scanner.skipRest();
    default:
        return false;
    }
}

bool readNumber(JsonScanner &scanner, std::int64_t &number, std::string &text)
{
    if (!readText(scanner, text))
        return false;
    number = numberOrMinusOne(text);
    return true;
}

/// Reads the value of `key` among the arguments of an event.
bool readArgument(JsonScanner &scanner, std::string_view key, KinetoEvent &event, std::string &text)
{
    struct Number {
        std::string_view key;
        std::int64_t KinetoEvent::*field;
    };
    static constexpr std::array<Number, 9> kNumbers{{{"stream", &KinetoEvent::stream},
        {"correlation", &KinetoEvent::correlation}, {"External id", &KinetoEvent::external},
        {"device", &KinetoEvent::device}, {"In msg nelems", &KinetoEvent::inElements},
        {"Out msg nelems", &KinetoEvent::outElements}, {"Seq", &KinetoEvent::sequence},
        {"Src Rank", &KinetoEvent::source}, {"Dst Rank", &KinetoEvent::target}}};
    for (const Number &each : kNumbers)
        if (key == each.key)
            return readNumber(scanner, event.*each.field, text);
    if (key == "Collective name")
        return readText(scanner, event.collective);
    if (key == "dtype")
        return readText(scanner, event.dataType);
    if (key == "Process Group Name")
        return readText(scanner, event.group.name);
    if (key == "Process Group Description")
        return readText(scanner, event.group.description);
    if (key == "Process Group Ranks")
        return readGroupRanks(scanner, event.group.ranks);
    if (key == "Group size") {
        std::int64_t size = 0;
        if (!readNumber(scanner, size, text))
            return false;
        event.group.size = size > 0 && size <= (1 << 24) ? static_cast<std::int32_t>(size) : 0;
        return true;
    }
    return scanner.skipValue();
}

bool readArguments(JsonScanner &scanner, KinetoEvent &event)
{
    const JsonToken first = scanner.next();
    if (first != JsonToken::BeginObject)
        return first == JsonToken::BeginArray ? scanner.skipRest() : first != JsonToken::End;
    std::string text;
    for (;;) {
        const JsonToken token = scanner.next();
        if (token == JsonToken::EndObject)
            return true;
        if (token != JsonToken::Key)
            return token != JsonToken::End && scanner.skipRest();
        const std::string_view key = scanner.text();
        std::array<char, 32> kept{}; // the scanner's letters go when it goes on
        const std::size_t length = std::min(key.size(), kept.size());
        key.copy(kept.data(), length);
        if (!readArgument(scanner, {kept.data(), length}, event, text))
            return false;
    }
}

/// Reads the value of `key` of an event itself.
bool readField(JsonScanner &scanner, std::string_view key, KinetoEvent &event, std::string &text)
{
    if (key == "name")
        return readText(scanner, event.name);
    if (key == "args")
        return readArguments(scanner, event);
    if (key == "tid")
        return readText(scanner, event.thread);
    const bool isStart = key == "ts";
    if (!isStart && key != "dur" && key != "cat" && key != "ph")
        return scanner.skipValue();
    if (!readText(scanner, text))
        return false;
    if (key == "cat")
        event.category = categoryNamed(text);
    else if (key == "ph")
        event.isComplete = text == "X";
    else
        (isStart ? event.start : event.duration) = nanosecondsOf(text, event.isOutOfRange);
    return true;
}

} // namespace

bool readGroupRanks(JsonScanner &scanner, std::vector<std::int32_t> &ranks)
{
    const JsonToken first = scanner.next();
    if (first == JsonToken::String) {
        ranks = ranksIn(scanner.text());
        return true;
    }
    if (first != JsonToken::BeginArray)
        return first == JsonToken::BeginObject ? scanner.skipRest() : first != JsonToken::End;
    std::string list = "[";
    for (;;) {
        const JsonToken token = scanner.next();
        if (token == JsonToken::EndArray)
            break;
        if (token == JsonToken::End)
            return false;
        if (token == JsonToken::BeginObject || token == JsonToken::BeginArray) {
            if (!scanner.skipRest())
                return false;
        } else if (list.size() < (1U << 20)) {
            list += std::string(scanner.text().substr(0, 16)) + ",";
        }
    }
    list += "]";
    ranks = ranksIn(list);
    return true;
}

void KinetoEvent::clear()
{
    category = KinetoCategory::Other;
    isComplete = isOutOfRange = false;
    for (std::string *text : {&name, &thread, &collective, &dataType, &group.name, &group.description})
        text->clear();
    start = duration = kNoTime;
    device = stream = correlation = external = inElements = outElements = sequence = source = target = -1;
    group.ranks.clear();
    group.size = 0;
}

bool readKinetoEvent(JsonScanner &scanner, KinetoEvent &event)
{
    event.clear();
    std::string text;
    bool hasPhase = false;
    bool hasCategory = false;
    for (;;) {
        const JsonToken token = scanner.next();
        if (token == JsonToken::EndObject)
            return true;
        if (token != JsonToken::Key)
            return token != JsonToken::End && scanner.skipRest();
        const std::string_view key = scanner.text();
        std::array<char, 8> kept{}; // the scanner's letters go when it goes on
        const std::size_t length = std::min(key.size(), kept.size());
        key.copy(kept.data(), length);
        const std::string_view shortKey(kept.data(), length);
        if (!readField(scanner, shortKey, event, text))
            return false;
        hasPhase = hasPhase || shortKey == "ph";
        hasCategory = hasCategory || shortKey == "cat";
        // Most of a file are arrows and Python's functions, which are passed by as soon as that is known.
        if (hasPhase && hasCategory && (!event.isComplete || event.category == KinetoCategory::Other))
            return scanner.skipRest();
    }
}

std::int64_t nanosecondsOf(std::string_view microseconds, bool &isOutOfRange)
{
    constexpr std::int64_t kMost = 9'000'000'000'000'000; // microseconds
    const char *const end = microseconds.data() + microseconds.size();
    std::int64_t whole = 0;
    auto [at, failure] = std::from_chars(microseconds.data(), end, whole);
    if (failure == std::errc{} && (at == end || (*at == '.' && microseconds[0] != '-'))) {
        if (whole > kMost || whole < -kMost) {
            isOutOfRange = true;
            return kNoTime;
        }
        std::int64_t nanoseconds = whole * 1000;
        std::int64_t unit = 100;
        bool isPlain = true;
        for (const char *digit = at == end ? end : at + 1; digit != end; ++digit) {
            isPlain = isPlain && isDigit(*digit);
            if (isPlain) {
                nanoseconds += unit * (*digit - '0');
                unit /= 10;
            }
        }
        if (isPlain)
            return nanoseconds;
    }
    double value = 0;
    const auto [rest, wrong] = std::from_chars(microseconds.data(), end, value);
    if (wrong == std::errc::result_out_of_range || std::abs(value) > static_cast<double>(kMost)) {
        isOutOfRange = true;
        return kNoTime;
    }
    if (wrong != std::errc{} || rest != end || !std::isfinite(value))
        return kNoTime;
    return static_cast<std::int64_t>(std::llround(value * 1e3));
}

std::int64_t numberOrMinusOne(std::string_view text)
{
    std::int64_t number = -1;
    const char *const end = text.data() + text.size();
    const auto [at, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc{} && at == end ? number : -1;
}

std::vector<std::int32_t> ranksIn(std::string_view text)
{
    constexpr std::size_t kMostRanks = 65'536;
    std::vector<std::int32_t> ranks;
    text = trimmed(text);
    if (!text.starts_with('[') || !text.ends_with(']'))
        return {};
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (part.empty() && text.empty())
            break;
        const std::int64_t rank = numberOrMinusOne(part);
        if (rank < 0 || rank > (1 << 24) || ranks.size() >= kMostRanks)
            return {};
        ranks.push_back(static_cast<std::int32_t>(rank));
    }
    return ranks;
}

std::int64_t elementBytesOf(std::string_view dataType)
{
    struct Type {
        std::string_view name;
        std::int64_t bytes;
    };
    static constexpr std::array<Type, 17> kTypes{{{"Float", 4}, {"float", 4}, {"float32", 4}, {"Int", 4},
        {"int", 4}, {"Double", 8}, {"double", 8}, {"Long", 8}, {"long int", 8}, {"long", 8}, {"BFloat16", 2},
        {"c10::BFloat16", 2}, {"Half", 2}, {"c10::Half", 2}, {"Short", 2}, {"Byte", 1}, {"Bool", 1}}};
    for (const Type &type : kTypes)
        if (dataType == type.name)
            return type.bytes;
    if (dataType.starts_with("Float8") || sameLetters(dataType, "char")
        || sameLetters(dataType, "unsigned char") || sameLetters(dataType, "signed char")
        || dataType == "bool")
        return 1;
    return 0;
}

} // namespace planloom
