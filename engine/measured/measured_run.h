#pragma once

#include "engine/interop/configs/framework_config.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What a file of runs says in one place. Numbers and words of lists stand as they are there.
using RunValue = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;
using RunValues = std::map<std::string, RunValue, std::less<>>;

/// What stands before and around all runs of a file.
struct RunSurroundings {
    std::string about{}; ///< Its source and what was fixed, in lower case.
    std::string cluster{}; ///< As described; empty where the runs name their devices.
    RunValues fixed{}; ///< What was the same in all runs.
};

/// A training run that somebody measured, as its file has it: its own columns go before its model's sizes,
/// what was fixed in all runs, and what is known of the settings that it ran with.
class MeasuredRun
{
public:
    MeasuredRun(RunValues columns, RunValues model, RunSurroundings around, bool failed = false);

    std::string text(std::string_view name) const; ///< Empty where nothing, or no text, is known.
    std::optional<double> number(std::string_view name) const;
    std::int64_t count(std::string_view name, std::int64_t missing = 1) const;
    bool says(std::string_view name) const; ///< It is true there.
    std::optional<bool> flag(std::string_view name) const;
    std::vector<double> numbers(std::string_view name) const;
    std::vector<std::string> words(std::string_view name) const;

    bool hasModel() const { return number("layers") && number("hidden"); } ///< Its sizes are known.
    bool hasFailed() const { return m_failed; } ///< It did not run: out of memory, most often.
    std::string device() const; ///< As the run names it; else as the file's cluster is described.
    /// The name of the framework profile that trained it, by what the file says of its source; empty where
    /// nothing is said, and where a graph of the whole step leaves nothing to the host.
    std::string framework() const;
    /// NeMo's recipes for performance reduce gradients in the format that they are made in
    /// (grad_reduce_in_fp32=False in its scripts/performance; grad_sync_dtype of its distributed Adam
    /// before).
    bool reducesInBf16() const;
    /// NVFP4 or MXFP8, of which there are no kernel timings beyond products.
    bool isOfOtherFormat() const;

    std::optional<double> seconds() const; ///< Of a step; nothing where it failed.
    std::optional<std::int64_t> peakBytes() const; ///< Of the rank that needs most.
    std::vector<std::int64_t> peakBytesOfRanks() const;

    bool contains(std::string_view text) const; ///< A column of it has this name, or these words.
    const RunValues &columns() const { return m_columns; }
    /// All that is known of it, as columns of one run: with `about` and the cluster, it is the same run
    /// again.
    RunValues everything() const;
    const RunSurroundings &surroundings() const { return m_around; }
    /// Adds what `settings` say and the file does not.
    void complete(RunValues settings) { m_settings = std::move(settings); }
    /// `settings` are of this model, device, count, format and degrees: where both say something, the same.
    bool isRunOf(const MeasuredRun &settings) const;

private:
    bool isOfNemo() const; ///< Megatron Bridge is its trainer now.
    const RunValue *find(std::string_view name) const;

    RunValues m_columns;
    RunValues m_model;
    RunSurroundings m_around;
    RunValues m_settings{};
    bool m_failed;
};

/// Small letters in place of capitals, all else as it is.
std::string inSmallLetters(std::string_view text);

} // namespace planloom
