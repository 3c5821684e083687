#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/setting.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// How a key's value becomes one of `FrameworkConfig`'s.
enum class KeyKind : std::uint8_t {
    Count, ///< A number; "null", "auto" and the like are none.
    Flag,
    Text,
    Words, ///< A list.
    Mapped, ///< `words`: "theirs=ours theirs=ours"; others are passed by.
    Beyond, ///< Matters, and no row says it: `words` is why. Without effect at `standard`.
};

/// One key of a framework, in the one place that names it.
struct ConfigKey {
    std::string_view key{}; ///< Behind the group's prefix, "_" for "-".
    std::string_view field{}; ///< Of `FrameworkConfig`.
    KeyKind kind = KeyKind::Count;
    /// What the framework takes where nothing is said, as it writes it; several for `Beyond`, divided by "|".
    /// Empty: nothing is taken.
    std::string_view standard{};
    std::string_view words{};
    bool isOnlyRead = false; ///< Of before, or of another program beside it: never written.
};

struct KeyGroup {
    std::string_view prefix{}; ///< "policy.megatron_cfg."
    std::span<const ConfigKey> keys{};
    std::string_view enabledBy{}; ///< A key that must be true; empty: none.
    bool isOnlyRead = false; ///< None of them is written.
};

/// How settings of a format are written in a file.
enum class ConfigSyntax : std::uint8_t { Options, Overrides, Yaml, Json, Python };

struct ConfigFormat {
    std::string_view name{}; ///< "megatron"
    std::string_view framework{}; ///< Its profile.
    std::string_view meaning{}; ///< For people.
    ConfigSyntax syntax = ConfigSyntax::Yaml;
    std::vector<KeyGroup> groups{};
    std::vector<std::string_view>
        irrelevant{}; ///< Globs of keys that no plan depends on, whatever they are called.
    /// The first line of a file of it.
    std::string_view mark{};
    /// By field, in our words: what this format takes where nothing is said, in place of the tables'
    /// standards.
    std::vector<std::pair<std::string_view, std::string_view>> standards{};
};

const std::vector<ConfigFormat> &configFormats();
/// @return NotFound with the names there are
Result<const ConfigFormat *> configFormatNamed(std::string_view name);
std::vector<std::string> configFormatNames();

/// A key as tables have it: "--tensor-model-parallel-size" is "tensor_model_parallel_size", whatever stands
/// before the dashes.
std::string plainKey(std::string_view key);

/// The table's line for a key, and its group; null where there is none.
std::pair<const ConfigKey *, const KeyGroup *> findKey(const ConfigFormat &format, std::string_view plainKey);
/// Of a key that `findKey` does not know: no plan depends on it, since none of the words that parallelism is
/// spoken of in stands in it, or the format says so.
bool isIrrelevant(const ConfigFormat &format, std::string_view plainKey);

/// What the framework takes where a key is not said, in our words; empty where it takes nothing.
std::string_view standardOf(const ConfigFormat &format, const ConfigKey &key);

/// What `words` of a mapped key makes of `theirs`, or of ours where `isBack`; empty where it says nothing.
std::string_view mapped(std::string_view words, std::string_view theirs, bool isBack = false);

} // namespace planloom
