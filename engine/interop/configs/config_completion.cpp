#include "engine/interop/configs/config_completion.h"

#include "engine/interop/configs/shell_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace planloom {

namespace {

/// Words of a list as numbers; those that are none are 0.
std::vector<double> numbersOfWords(const std::vector<std::string> &words)
{
    std::vector<double> numbers;
    for (const std::string &list : words)
        for (const std::string &word : listOf(list)) {
            double number = 0;
            std::from_chars(word.data(), word.data() + word.size(), number);
            numbers.push_back(number);
        }
    return numbers;
}

} // namespace

void contradict(ImportedConfig &imported, std::string message, std::initializer_list<const char *> fields,
    std::string advice)
{
    std::int32_t line = 0;
    for (const char *field : fields)
        if (const ConfigEntry *const entry = imported.config.find(field); line == 0 && entry != nullptr)
            line = entry->line;
    imported.errors.push_back({ErrorCode::InvalidInput, std::move(message), std::move(advice),
        line > 0 ? "line:" + std::to_string(line) : std::string(fields.size() > 0 ? *fields.begin() : "")});
}

void completeSequences(ImportedConfig &imported)
{
    FrameworkConfig &config = imported.config;
    const auto derive = [&config](const char *field, std::int64_t value, const char *source) {
        config.derive(field, static_cast<double>(value), source);
    };
    if (!config.has("context_parallel") && (config.has("ring_parts") || config.has("ulysses")))
        derive("context_parallel", config.count("ring_parts") * config.count("ulysses"),
            config.has("ulysses") ? "ulysses" : "ring_parts");
    const std::vector<std::string> kinds = config.words("context_kinds");
    if (kinds.empty())
        return;
    const std::string &kind = kinds.front();
    const ConfigEntry *const entry = config.find("context_kinds");
    if (std::any_of(kinds.begin(), kinds.end(), [&kind](const std::string &each) { return each != kind; }))
        imported.unknown.push_back({entry->key, entry->line,
            "layers that communicate differently are not planned so: all as the first"});
    if (kind == "a2a")
        return derive("ulysses", config.count("context_parallel"), "context_kinds");
    if (kind != "a2a+p2p") // a ring, or gathered keys and values: the parts are the same
        return;
    const std::vector<double> levels = numbersOfWords(config.words("context_levels"));
    if (levels.size() != 2 || levels[0] < 1
        || levels[0] * levels[1] != static_cast<double>(config.count("context_parallel")))
        return contradict(imported,
            "hierarchical_context_parallel_sizes must be two sizes whose product is "
            "context_parallel_size "
                + std::to_string(config.count("context_parallel")) + " where cp_comm_type is a2a+p2p",
            {"context_levels", "context_kinds"});
    derive("ulysses", static_cast<std::int64_t>(levels[0]), "context_levels");
}

} // namespace planloom
