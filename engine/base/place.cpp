#include "engine/base/place.h"

#include "engine/base/words.h"

#include <charconv>
#include <optional>

namespace planloom {

namespace {

constexpr std::string_view kLine = "line:";
constexpr std::string_view kRow = "row:";
constexpr std::string_view kOperator = "operator:";

/// A number of digits alone, as `toString` writes it; moves `text` behind it.
std::optional<std::int32_t> takeNumber(std::string_view &text)
{
    std::int32_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (failure != std::errc{} || number < 0 || std::to_string(number).size() != length)
        return std::nullopt;
    text.remove_prefix(length);
    return number;
}

std::optional<TextPlace> textPlace(std::string_view text)
{
    const auto line = takeNumber(text);
    if (!line || text.empty())
        return line ? std::optional(TextPlace{*line, 0}) : std::nullopt;
    if (text.front() != ':')
        return std::nullopt;
    text.remove_prefix(1);
    const auto column = takeNumber(text);
    if (!column || *column == 0 || !text.empty())
        return std::nullopt;
    return TextPlace{*line, *column};
}

std::optional<RowPlace> rowPlace(std::string_view text)
{
    const auto row = takeNumber(text);
    if (!row)
        return std::nullopt;
    if (text.empty())
        return RowPlace{{*row}, {}};
    if (text.front() != '/' || text.size() == 1)
        return std::nullopt;
    return RowPlace{{*row}, std::string(text.substr(1))};
}

} // namespace

Place placeOf(const Error &error)
{
    const std::string_view where = error.where;
    if (where.empty())
        return {};
    if (where.starts_with(kLine)) {
        if (const auto place = textPlace(where.substr(kLine.size())))
            return *place;
    } else if (where.starts_with(kRow)) {
        if (auto place = rowPlace(where.substr(kRow.size())))
            return *std::move(place);
    } else if (where.starts_with(kOperator)) {
        const std::string_view rest = where.substr(kOperator.size());
        const std::size_t slash = rest.rfind('/');
        if (slash != std::string_view::npos && slash > 0 && slash + 1 < rest.size())
            return OperatorPlace{std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
        if (!rest.empty())
            return OperatorPlace{std::string(rest), {}};
    }
    return NamedPlace{error.where};
}

std::string toString(const Place &place)
{
    struct Writer {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(const TextPlace &text) const
        {
            return std::string(kLine) + std::to_string(text.line)
                + (text.column > 0 ? ":" + std::to_string(text.column) : "");
        }
        std::string operator()(const RowPlace &row) const
        {
            return std::string(kRow) + std::to_string(row.row.index)
                + (row.field.empty() ? "" : "/" + row.field);
        }
        std::string operator()(const OperatorPlace &op) const
        {
            return std::string(kOperator) + op.name + (op.part.empty() ? "" : "/" + op.part);
        }
        std::string operator()(const NamedPlace &named) const { return named.name; }
    };
    return std::visit(Writer{}, place);
}

std::string placeWords(const Place &place)
{
    const auto *row = std::get_if<RowPlace>(&place);
    return row ? rowWords(row->row.index) : toString(place);
}

} // namespace planloom
