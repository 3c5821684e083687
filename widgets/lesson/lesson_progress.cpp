#include "widgets/lesson/lesson_progress.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostSteps = 10'000; ///< What is above is no step of a lesson.

std::int64_t numberIn(const Json &object, const char *key, std::int64_t fallback)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : fallback;
}

std::string wordsIn(const Json &object, const char *key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int32_t stepIn(const Json &object, const char *key, std::int32_t fallback)
{
    const std::int64_t number = numberIn(object, key, fallback);
    return number >= 0 && number < kMostSteps ? static_cast<std::int32_t>(number) : fallback;
}

/// Calls `take` with each number that is a key of the object `key`, and its value.
template<typename Take> void eachStep(const Json &document, const char *key, Take &&take)
{
    const auto found = document.find(key);
    if (found == document.end() || !found->is_object())
        return;
    for (const auto &[name, value] : found->items()) {
        std::int32_t step = -1;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
        if (read.ec == std::errc() && step >= 0 && step < kMostSteps && value.is_number_integer())
            take(step, value.template get<std::int64_t>());
    }
}

} // namespace

std::string toJson(const LessonProgress &progress)
{
    Json document{{"lesson", progress.lesson}, {"folder", progress.folder}, {"cluster", progress.cluster},
        {"step", progress.step}, {"reached", progress.reached}, {"open", progress.open},
        {"done", progress.done}, {"answers", progress.answers}};
    for (const auto &[step, begin] : progress.begins)
        document["begins"][std::to_string(step)] = begin;
    for (const auto &[step, count] : progress.hints)
        document["hints"][std::to_string(step)] = count;
    return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LessonProgress lessonProgressFromJson(const std::string &text)
{
    LessonProgress progress;
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object())
        return progress;
    progress.lesson = wordsIn(document, "lesson");
    progress.folder = wordsIn(document, "folder");
    progress.cluster = wordsIn(document, "cluster");
    progress.step = stepIn(document, "step", 0);
    progress.reached = stepIn(document, "reached", 0);
    progress.open = stepIn(document, "open", -1);
    eachStep(document, "begins", [&](std::int32_t step, std::int64_t begin) {
        progress.begins[step] = static_cast<StepId>(begin);
    });
    eachStep(document, "hints", [&](std::int32_t step, std::int64_t count) {
        progress.hints[step] = static_cast<std::int32_t>(std::min<std::int64_t>(count, kMostSteps));
    });
    if (const auto done = document.find("done"); done != document.end() && done->is_array()) {
        for (const Json &step : *done) {
            if (step.is_number_integer() && step.get<std::int64_t>() >= 0 && step.get<std::int64_t>() < kMostSteps)
                progress.done.insert(step.get<std::int32_t>());
        }
    }
    if (const auto answers = document.find("answers"); answers != document.end() && answers->is_object()) {
        for (const auto &[place, answer] : answers->items()) {
            if (answer.is_string())
                progress.answers[place] = answer.get<std::string>();
        }
    }
    return progress;
}

} // namespace planloom
