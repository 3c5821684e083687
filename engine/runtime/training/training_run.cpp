#include "engine/runtime/training/training_run.h"

#include "engine/base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

namespace planloom {

namespace {

constexpr std::int64_t kMostScheduledSteps = 1'000'000'000;
constexpr const char *kDrawnWord = "synthetic";
constexpr const char *kScheduleAdvice =
    "write constant, constant:warmup=10 or cosine:warmup=10,total=100,floor=0.1";

Error wrongSchedule(std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), kScheduleAdvice, "learning-rate schedule"};
}

Result<std::int64_t> stepsOf(const std::string &key, const std::string &text)
{
    char *end = nullptr;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < 0 || value > kMostScheduledSteps)
        return wrongSchedule(key + " is a number of steps, found \"" + text + "\"");
    return static_cast<std::int64_t>(value);
}

Result<double> floorOf(const std::string &text)
{
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0 && value <= 1))
        return wrongSchedule("floor is a share of the rate from 0 to 1, found \"" + text + "\"");
    return value;
}

} // namespace

std::string print(const RateSchedule &schedule)
{
    std::string text = schedule.shape == RateShape::Cosine ? "cosine" : "constant";
    char before = ':';
    const auto add = [&](const std::string &word) {
        text += before + word;
        before = ',';
    };
    if (schedule.warmup > 0)
        add("warmup=" + std::to_string(schedule.warmup));
    if (schedule.total > 0)
        add("total=" + std::to_string(schedule.total));
    if (schedule.floor > 0) {
        std::array<char, 32> number{};
        std::snprintf(number.data(), number.size(), "%.17g", schedule.floor);
        add(std::string{"floor="} + number.data());
    }
    return text;
}

Result<RateSchedule> parseRateSchedule(std::string_view text)
{
    RateSchedule schedule;
    const std::size_t colon = text.find(':');
    const std::string shape{text.substr(0, colon)};
    if (shape == "cosine")
        schedule.shape = RateShape::Cosine;
    else if (shape != "constant")
        return wrongSchedule("expected constant or cosine, found \"" + shape + "\"");
    std::string rest{colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1)};
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string word = rest.substr(0, comma);
        rest.erase(0, comma + 1);
        const std::size_t equals = std::min(word.find('='), word.size());
        const std::string key = word.substr(0, equals);
        const std::string value = word.substr(std::min(equals + 1, word.size()));
        const bool cosine = schedule.shape == RateShape::Cosine;
        if (key == "warmup") {
            TRY(schedule.warmup, stepsOf(key, value));
        } else if (key == "total" && cosine) {
            TRY(schedule.total, stepsOf(key, value));
        } else if (key == "floor" && cosine) {
            TRY(schedule.floor, floorOf(value));
        } else {
            return wrongSchedule("\"" + key + "\" is nothing that a " + shape + " schedule has");
        }
    }
    if (schedule.total > 0 && schedule.warmup >= schedule.total)
        return wrongSchedule("a warm-up of " + std::to_string(schedule.warmup) + " steps leaves none of the "
            + std::to_string(schedule.total));
    return schedule;
}

Result<RateSchedule> resolved(RateSchedule schedule, std::int64_t lastStep)
{
    if (schedule.shape != RateShape::Cosine || schedule.total > 0)
        return schedule;
    schedule.total = lastStep;
    if (schedule.warmup >= schedule.total)
        return wrongSchedule("a warm-up of " + std::to_string(schedule.warmup)
            + " steps leaves none of the run's " + std::to_string(lastStep));
    return schedule;
}

double rateShare(const RateSchedule &schedule, std::int64_t step)
{
    if (step < schedule.warmup)
        return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
    if (schedule.shape == RateShape::Constant)
        return 1;
    const double way = std::min(1.0,
        static_cast<double>(step - schedule.warmup) / static_cast<double>(schedule.total - schedule.warmup));
    return schedule.floor + (1 - schedule.floor) * 0.5 * (1 + std::cos(std::numbers::pi * way));
}

void setData(TrainingRun &training, const std::string &data)
{
    training.batches = data.empty() ? BatchSource::Same
        : data == kDrawnWord        ? BatchSource::Drawn
                                    : BatchSource::Files;
    training.data = training.batches == BatchSource::Files ? data : std::string{};
}

Result<void> validate(const TrainingRun &training)
{
    if (training.learningRate && !(*training.learningRate >= 0 && std::isfinite(*training.learningRate)))
        return Error{
            ErrorCode::InvalidInput, "the learning rate must be a number of at least 0", {}, "learning rate"};
    if (training.every < 0)
        return Error{ErrorCode::InvalidInput,
            "checkpoints come every so many steps, not " + std::to_string(training.every), {},
            "checkpoint-every"};
    if (training.every > 0 && training.checkpoints.empty())
        return Error{ErrorCode::InvalidInput, "checkpoints need a folder to be written to",
            "name one with --checkpoint", "checkpoint-every"};
    return {};
}

nlohmann::json toJson(const TrainingRun &training)
{
    nlohmann::json json{{"data", training.batches == BatchSource::Drawn ? kDrawnWord : training.data},
        {"checkpoints", training.checkpoints}, {"every", training.every}, {"resume", training.resume}};
    if (training.learningRate)
        json["learning_rate"] = *training.learningRate;
    if (training.schedule)
        json["schedule"] = print(*training.schedule);
    return json;
}

Result<TrainingRun> trainingRunFromJson(const nlohmann::json &json)
{
    TrainingRun training;
    setData(training, json.value("data", std::string{}));
    training.checkpoints = json.value("checkpoints", std::string{});
    training.every = json.value("every", 0);
    training.resume = json.value("resume", std::string{});
    if (const auto rate = json.find("learning_rate"); rate != json.end())
        training.learningRate = rate->get<double>();
    if (const auto schedule = json.find("schedule"); schedule != json.end()) {
        TRY(training.schedule, parseRateSchedule(schedule->get<std::string>()));
    }
    TRY_VOID(validate(training));
    return training;
}

} // namespace planloom
