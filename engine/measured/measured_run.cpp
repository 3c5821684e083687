#include "engine/measured/measured_run.h"

#include "engine/hardware/cluster.h"
#include "engine/interop/configs/config_request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kGibi = 1024.0 * 1024 * 1024;

bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

/// Of all formats that products have, the one that `precision` names: "FP8-CS" and "fp8_cs" are "fp8".
std::string formatOf(const std::string &precision)
{
    const std::string said = lettersOf(precision);
    for (const auto &[word, format] :
        {std::pair{"nvfp4", "nvfp4"}, {"mxfp8", "mxfp8"}, {"fp8mx", "mxfp8"}, {"fp8", "fp8"},
            {"float8", "fp8"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"tf32", "tf32"}, {"fp32", "fp32"}})
        if (has(said, word))
            return format;
    return said;
}

} // namespace

std::string inSmallLetters(std::string_view text)
{
    std::string small(text);
    for (char &c : small)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return small;
}

MeasuredRun::MeasuredRun(RunValues columns, RunValues model, RunSurroundings around, bool failed)
    : m_columns(std::move(columns))
    , m_model(std::move(model))
    , m_around(std::move(around))
    , m_failed(failed)
{
    if (const auto batch = m_columns.find("batch"); batch != m_columns.end())
        m_columns.emplace("global_batch", batch->second);
}

const RunValue *MeasuredRun::find(std::string_view name) const
{
    for (const RunValues *values : {&m_columns, &m_model, &std::as_const(m_around).fixed, &m_settings})
        if (const auto found = values->find(name); found != values->end())
            return &found->second;
    return nullptr;
}

RunValues MeasuredRun::everything() const
{
    RunValues all;
    for (const RunValues *values : {&m_columns, &m_model, &std::as_const(m_around).fixed, &m_settings})
        all.insert(values->begin(), values->end()); // the first one stays
    return all;
}

std::string MeasuredRun::text(std::string_view name) const
{
    return textOf(find(name));
}

std::optional<double> MeasuredRun::number(std::string_view name) const
{
    return numberOf(find(name));
}

std::int64_t MeasuredRun::count(std::string_view name, std::int64_t missing) const
{
    return countOf(find(name), missing);
}

std::optional<bool> MeasuredRun::flag(std::string_view name) const
{
    return flagOf(find(name));
}

bool MeasuredRun::says(std::string_view name) const
{
    return flag(name).value_or(false);
}

std::vector<double> MeasuredRun::numbers(std::string_view name) const
{
    return numbersOf(find(name));
}

std::vector<std::string> MeasuredRun::words(std::string_view name) const
{
    return wordsOf(find(name));
}

bool MeasuredRun::contains(std::string_view text) const
{
    return std::any_of(m_columns.begin(), m_columns.end(), [&](const auto &column) {
        const auto *const words = std::get_if<std::string>(&column.second);
        return has(column.first, text) || (words != nullptr && has(*words, text));
    });
}

std::string MeasuredRun::device() const
{
    for (const char *name : {"device", "system"})
        if (m_columns.contains(name))
            if (std::string own = text(name); !own.empty())
                return own;
    return m_around.cluster;
}

std::string MeasuredRun::framework() const
{
    const std::string graph = text("cuda_graph");
    const std::vector<std::string> scope = words("cuda_graph_scope");
    const bool isWhole = graph == "full_iteration"
        || (graph != "none" && std::count(scope.begin(), scope.end(), "full_iteration") > 0);
    if (says("cuda_graph") || isWhole)
        return {};
    if (has(m_around.about, "nanotron"))
        return "nanotron";
    if (has(m_around.about, "megatron") || has(m_around.about, "nemo")
        || has(inSmallLetters(text("system")), "nemo") || says("distributed_optimizer"))
        return "megatron"; // NeMo trains with Megatron-LM, whose word for ZeRO-1 the other is
    if (has(m_around.about, "deepspeed"))
        return "deepspeed";
    if (has(m_around.about, "fsdp"))
        return says("compile") ? "fsdp-compiled" : "fsdp";
    return {};
}

bool MeasuredRun::isOfNemo() const
{
    return has(m_around.about, "nemo") || has(m_around.about, "megatron bridge")
        || has(inSmallLetters(text("system")), "nemo");
}

bool MeasuredRun::reducesInBf16() const
{
    if (const auto inFull = flag("ddp.grad_reduce_in_fp32"))
        return !*inFull;
    return isOfNemo();
}

bool MeasuredRun::isOfOtherFormat() const
{
    const std::string format = formatOf(text("precision"));
    return format == "nvfp4" || format == "mxfp8";
}

std::optional<double> MeasuredRun::seconds() const
{
    if (m_failed)
        return std::nullopt;
    if (const auto seconds = number("step_seconds"))
        return seconds;
    const auto speed = number("tokens_per_second_per_device");
    if (!speed || *speed <= 0)
        return std::nullopt;
    return number("global_batch").value_or(1) * number("sequence").value_or(1)
        / (*speed * std::max(1.0, number("devices").value_or(1)));
}

std::optional<std::int64_t> MeasuredRun::peakBytes() const
{
    for (const char *name : {"peak_allocated_gib", "memory_gib", "memory_gb"})
        if (const auto peak = number(name))
            return std::llround(*peak * kGibi);
    return std::nullopt;
}

std::vector<std::int64_t> MeasuredRun::peakBytesOfRanks() const
{
    std::vector<std::int64_t> peaks;
    for (const double each : numbers("peak_allocated_gib_of_ranks"))
        peaks.push_back(std::llround(each * kGibi));
    return peaks;
}

bool MeasuredRun::isRunOf(const MeasuredRun &settings) const
{
    const std::string model = lettersOf(text("model"));
    if (model.empty() || !lettersOf(settings.text("recipe")).starts_with(model))
        return false;
    const auto own = profileOfDevice(device());
    if (!own || own != profileOfDevice(settings.device())
        || formatOf(text("precision")) != formatOf(settings.text("precision")))
        return false;
    constexpr std::array kSame{"devices", "tensor_parallel", "pipeline_parallel", "context_parallel",
        "virtual_pipeline", "expert_parallel", "micro_batch"};
    return std::all_of(kSame.begin(), kSame.end(), [&](const char *name) {
        const auto there = settings.number(name);
        const auto here = number(name);
        return there.value_or(1) == here.value_or(1) || (!there && std::string_view(name) != "devices");
    });
}

} // namespace planloom
