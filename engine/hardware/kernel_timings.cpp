#include "engine/hardware/kernel_timings.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr double kSecondsPerMicro = 1e-6;
/// Times of one shape differ by clocks and neighbours, but not by this.
constexpr double kMostApart = 2;
constexpr double kMostExtent = 1e9;

Error wrongTiming(std::string pointer, std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(pointer)};
}

std::string shortJson(const Json &value)
{
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
}

std::optional<DataType> formatNamed(std::string_view name)
{
    static constexpr std::array<std::pair<std::string_view, DataType>, 10> kNames{{
        {"float32", DataType::Float32},
        {"fp32", DataType::Float32},
        {"tf32", DataType::TensorFloat32},
        {"bfloat16", DataType::BFloat16},
        {"bf16", DataType::BFloat16},
        {"float16", DataType::Float16},
        {"fp16", DataType::Float16},
        {"half", DataType::Float16},
        {"fp8", DataType::Float8E4M3},
        {"float8", DataType::Float8E4M3},
    }};
    for (const auto &[known, format] : kNames)
        if (name == known)
            return format;
    return std::nullopt;
}

/// Rows of one kind of kernel, whose columns are named once.
class Section
{
public:
    /// Without rows where the document has none of this name.
    static Result<Section> open(const Json &document, const std::string &name)
    {
        Section section;
        section.m_name = name;
        const auto rows = document.find(name);
        if (rows == document.end())
            return section;
        if (!rows->is_array())
            return wrongTiming(
                "/" + name, std::string("expected an array of rows, found ") + rows->type_name());
        const std::string columns = name + "_columns";
        const auto names = document.find(columns);
        if (names == document.end() || !names->is_array())
            return wrongTiming("/" + columns, "the names of the columns of \"" + name + "\" are missing",
                "write them as an array of texts, as [\"device\", \"precision\", ...]");
        for (const Json &column : *names)
            section.m_columns.push_back(column.is_string() ? column.get<std::string>() : std::string());
        section.m_rows = &*rows;
        for (std::size_t r = 0; r < rows->size(); ++r)
            if (!(*rows)[r].is_array() || (*rows)[r].size() != section.m_columns.size())
                return wrongTiming(section.at(r),
                    "expected an array of " + std::to_string(section.m_columns.size()) + " values, found "
                        + shortJson((*rows)[r]));
        return section;
    }

    std::size_t size() const { return m_rows ? m_rows->size() : 0; }
    std::string at(std::size_t row) const { return "/" + m_name + "/" + std::to_string(row); }

    const Json *find(std::size_t row, std::string_view column) const
    {
        for (std::size_t c = 0; c < m_columns.size(); ++c)
            if (m_columns[c] == column)
                return &(*m_rows)[row][c];
        return nullptr;
    }

    Result<std::string> text(std::size_t row, const std::string &column) const
    {
        const Json *value = find(row, column);
        if (!value)
            return noColumn(column);
        if (!value->is_string())
            return wrongTiming(at(row) + "/" + column, "expected a text, found " + shortJson(*value));
        return value->get<std::string>();
    }

    Result<double> number(std::size_t row, const std::string &column, double least, double most) const
    {
        const Json *value = find(row, column);
        if (!value)
            return noColumn(column);
        const bool fits = value->is_number() && std::isfinite(value->get<double>())
            && value->get<double>() >= least && value->get<double>() <= most;
        if (!fits)
            return wrongTiming(at(row) + "/" + column,
                "expected a number of at least " + shortJson(Json(least)) + ", found " + shortJson(*value),
                "correct the row or leave it out");
        return value->get<double>();
    }

    Result<double> extent(std::size_t row, const std::string &column, double least = 1) const
    {
        TRY(const double value, number(row, column, least, kMostExtent));
        if (value != std::floor(value))
            return wrongTiming(at(row) + "/" + column,
                "expected a whole number, found " + shortJson(*find(row, column)),
                "correct the row or leave it out");
        return value;
    }

    Result<double> seconds(std::size_t row) const
    {
        TRY(const double microseconds, number(row, "microseconds", 1e-3, 1e12));
        return microseconds * kSecondsPerMicro;
    }

    /// Whether the row is of `device`.
    bool isOf(std::size_t row, std::string_view device) const
    {
        const Json *own = find(row, "device");
        return device.empty() || (own && own->is_string() && own->get_ref<const std::string &>() == device);
    }

private:
    Section() = default;

    Error noColumn(const std::string &column) const
    {
        return wrongTiming("/" + m_name + "_columns", "the column \"" + column + "\" is missing",
            "every row of \"" + m_name + "\" needs it");
    }

    std::string m_name{};
    std::vector<std::string> m_columns{};
    const Json *m_rows = nullptr;
};

/// Refuses a shape that took much longer once than another time.
class Repetitions
{
public:
    Result<void> add(std::string shape, const Timing &timing)
    {
        const auto [first, isNew] =
            m_first.emplace(std::move(shape), std::pair(timing.seconds, timing.where));
        const double ratio = timing.seconds / first->second.first;
        if (!isNew && (ratio > kMostApart || ratio < 1 / kMostApart))
            return wrongTiming(timing.where,
                "expected about the time of the same kernel at " + first->second.second + ", "
                    + shortJson(Json(first->second.first / kSecondsPerMicro)) + " us, found "
                    + shortJson(Json(timing.seconds / kSecondsPerMicro)) + " us",
                "leave out the one that is wrong");
        return {};
    }

private:
    std::map<std::string, std::pair<double, std::string>> m_first{};
};

template<typename... Numbers> std::string keyOf(DataType format, Numbers... numbers)
{
    std::string key = std::to_string(static_cast<int>(format));
    ((key += " " + std::to_string(static_cast<std::int64_t>(numbers))), ...);
    return key;
}

/// The format of a row, its time and its place; nothing where Planloom does not have the format.
Result<std::optional<Timing>> readTiming(const Section &section, std::size_t row, KernelTimings &timings)
{
    TRY(const std::string precision, section.text(row, "precision"));
    Timing timing{.where = section.at(row)};
    TRY(timing.seconds, section.seconds(row));
    const auto format = formatNamed(precision);
    if (!format) {
        ++timings.unknown[precision.substr(0, 60)];
        return std::optional<Timing>();
    }
    timing.format = *format;
    return std::optional(timing);
}

Result<void> readProducts(const Section &section, std::string_view device, KernelTimings &timings)
{
    Repetitions repetitions;
    for (std::size_t row = 0; row < section.size(); ++row) {
        if (!section.isOf(row, device))
            continue;
        TRY(const auto timing, readTiming(section, row, timings));
        ProductTiming own;
        TRY(own.product.m, section.extent(row, "m"));
        TRY(own.product.n, section.extent(row, "n"));
        TRY(own.product.k, section.extent(row, "k"));
        if (!timing)
            continue;
        static_cast<Timing &>(own) = *timing;
        TRY_VOID(repetitions.add(keyOf(own.format, own.product.m, own.product.n, own.product.k), own));
        timings.products.push_back(own);
    }
    return {};
}

Result<void> readAttentions(const Section &section, std::string_view device, KernelTimings &timings)
{
    Repetitions repetitions;
    for (std::size_t row = 0; row < section.size(); ++row) {
        if (!section.isOf(row, device))
            continue;
        TRY(const auto timing, readTiming(section, row, timings));
        AttentionTiming own;
        TRY(own.batch, section.extent(row, "batch"));
        TRY(own.sequence, section.extent(row, "sequence"));
        TRY(own.heads, section.extent(row, "heads"));
        TRY(own.width, section.extent(row, "head_dim"));
        TRY(own.keyHeads, section.extent(row, "kv_heads", 0));
        if (own.keyHeads == 0)
            own.keyHeads = own.heads;
        if (std::fmod(own.heads, own.keyHeads) != 0)
            return wrongTiming(section.at(row) + "/kv_heads",
                "expected a divisor of " + shortJson(Json(own.heads)) + " heads, found "
                    + shortJson(Json(own.keyHeads)));
        if (!timing)
            continue;
        static_cast<Timing &>(own) = *timing;
        TRY_VOID(repetitions.add(
            keyOf(own.format, own.batch, own.sequence, own.heads, own.keyHeads, own.width), own));
        timings.attentions.push_back(own);
    }
    return {};
}

Result<void> readExperts(const Section &section, std::string_view device, KernelTimings &timings)
{
    Repetitions repetitions;
    for (std::size_t row = 0; row < section.size(); ++row) {
        if (!section.isOf(row, device))
            continue;
        TRY(const auto timing, readTiming(section, row, timings));
        GroupedTiming own;
        TRY(own.tokens, section.extent(row, "tokens"));
        TRY(own.hidden, section.extent(row, "hidden"));
        TRY(own.width, section.extent(row, "expert_ffn"));
        TRY(own.chosen, section.extent(row, "experts_per_token"));
        TRY(own.experts, section.extent(row, "experts"));
        TRY(own.parts, section.extent(row, "expert_parallel"));
        TRY(const double split, section.extent(row, "tensor_parallel"));
        own.width /= split;
        if (own.chosen > own.experts || std::fmod(own.experts, own.parts) != 0)
            return wrongTiming(section.at(row),
                "expected experts that " + shortJson(Json(own.parts))
                    + " ranks share and of which each token has " + shortJson(Json(own.chosen)) + ", found "
                    + shortJson(Json(own.experts)));
        if (!timing)
            continue;
        static_cast<Timing &>(own) = *timing;
        TRY_VOID(repetitions.add(
            keyOf(own.format, own.tokens, own.hidden, own.width, own.chosen, own.experts, own.parts), own));
        timings.experts.push_back(own);
    }
    return {};
}

Result<CollectiveKind> collectiveNamed(const std::string &name, const std::string &where)
{
    static constexpr std::array<std::pair<std::string_view, CollectiveKind>, 6> kNames{{
        {"all_reduce", CollectiveKind::AllReduce},
        {"all_gather", CollectiveKind::AllGather},
        {"reduce_scatter", CollectiveKind::ReduceScatter},
        {"alltoall", CollectiveKind::AllToAll},
        {"all_to_all", CollectiveKind::AllToAll},
        {"broadcast", CollectiveKind::Broadcast},
    }};
    for (const auto &[known, kind] : kNames)
        if (name == known)
            return kind;
    return wrongTiming(where,
        "expected all_reduce, all_gather, reduce_scatter, alltoall or broadcast, found \""
            + name.substr(0, 60) + "\"");
}

Result<void> readCollectives(const Section &section, std::string_view device, KernelTimings &timings)
{
    Repetitions repetitions;
    for (std::size_t row = 0; row < section.size(); ++row) {
        if (!section.isOf(row, device))
            continue;
        CollectiveTiming own;
        own.where = section.at(row);
        TRY(const std::string operation, section.text(row, "operation"));
        TRY(own.kind, collectiveNamed(operation, own.where + "/operation"));
        TRY(const double devices, section.extent(row, "devices", 2));
        TRY(const double bytes, section.number(row, "bytes", 1, 1e15));
        TRY(own.seconds, section.seconds(row));
        own.shape.ranks = static_cast<std::int32_t>(std::min(devices, 1e6));
        own.bytes = {static_cast<std::int64_t>(bytes)};
        TRY_VOID(repetitions.add(keyOf(own.format, static_cast<int>(own.kind), devices, bytes), own));
        timings.collectives.push_back(own);
    }
    return {};
}

Result<Json> parsed(std::string_view text)
{
    Json document;
    try {
        document = Json::parse(text.begin(), text.end());
    } catch (const Json::exception &failure) { // Also numbers out of range.
        return wrongTiming("/", std::string("the times are not JSON: ") + failure.what());
    }
    if (!document.is_object())
        return wrongTiming("/", std::string("expected an object, found ") + document.type_name());
    return document;
}

/// The rows of a document, which must outlive them.
struct Sections {
    Section products;
    Section attentions;
    Section experts;
    Section collectives;

    static Result<Sections> of(const Json &document)
    {
        TRY(Section products, Section::open(document, "matmul"));
        TRY(Section attentions, Section::open(document, "attention"));
        TRY(Section experts, Section::open(document, "moe"));
        TRY(Section collectives, Section::open(document, "collective"));
        return Sections{
            std::move(products), std::move(attentions), std::move(experts), std::move(collectives)};
    }
};

Result<std::set<std::string>> devicesThere(const Sections &sections)
{
    std::set<std::string> there;
    for (const Section *section :
        {&sections.products, &sections.attentions, &sections.experts, &sections.collectives})
        for (std::size_t row = 0; row < section->size(); ++row)
            if (const Json *own = section->find(row, "device")) {
                if (!own->is_string())
                    return wrongTiming(
                        section->at(row) + "/device", "expected a text, found " + shortJson(*own));
                there.insert(own->get<std::string>());
            }
    return there;
}

/// The device that is asked for, or else the only one there is.
Result<std::string> chosenDevice(const Sections &sections, std::string_view device)
{
    TRY(const std::set<std::string> there, devicesThere(sections));
    std::string list;
    for (const std::string &each : there)
        list += (list.empty() ? "" : ", ") + each.substr(0, 60);
    if (!device.empty()) {
        if (there.find(std::string(device)) == there.end())
            return Error{ErrorCode::NotFound,
                "there are no times of \"" + std::string(device.substr(0, 60)) + "\"",
                there.empty() ? "the file has no column \"device\"" : "there are those of " + list,
                "--device"};
        return std::string(device);
    }
    if (there.size() > 1)
        return wrongTiming(
            "--device", "the file has times of several devices: " + list, "choose one with --device");
    return there.empty() ? std::string() : *there.begin();
}

} // namespace

Result<std::vector<std::string>> timedDevices(std::string_view json)
{
    TRY(const Json document, parsed(json));
    TRY(const Sections sections, Sections::of(document));
    TRY(const std::set<std::string> there, devicesThere(sections));
    return std::vector<std::string>(there.begin(), there.end());
}

Result<KernelTimings> kernelTimings(std::string_view text, std::string_view device)
{
    TRY(const Json document, parsed(text));
    TRY(const Sections sections, Sections::of(document));
    KernelTimings timings;
    TRY(timings.device, chosenDevice(sections, device));
    if (const auto source = document.find("source"); source != document.end() && source->is_string())
        timings.source = source->get<std::string>();
    timings.collectiveSource = timings.source;
    TRY_VOID(readProducts(sections.products, timings.device, timings));
    TRY_VOID(readAttentions(sections.attentions, timings.device, timings));
    TRY_VOID(readExperts(sections.experts, timings.device, timings));
    TRY_VOID(readCollectives(sections.collectives, timings.device, timings));
    if (timings.products.empty() && timings.attentions.empty() && timings.experts.empty()
        && timings.collectives.empty())
        return wrongTiming(
            "/", "expected rows of \"matmul\", \"attention\", \"moe\" or \"collective\", found none");
    return timings;
}

} // namespace planloom
