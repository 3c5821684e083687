#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

constexpr std::size_t kMostConfigBytes = 1 << 20; ///< Of a file.
constexpr std::size_t kMostSettings = 100'000; ///< That a file makes, with what it repeats.
constexpr std::int32_t kMostConfigDepth = 64; ///< Of values in values.

/// One setting as a file has it: "--tensor-model-parallel-size 4", "policy.megatron_cfg.enabled: true".
struct Setting {
    std::string key{}; ///< With the keys around it, joined by dots.
    std::vector<std::string> values{}; ///< Of a list several; of an option without a value none.
    std::int32_t line = 0; ///< From 1.
    friend bool operator==(const Setting &, const Setting &) = default;
};

/// The settings of a file, or of one command in it, in their order.
struct SettingList {
    std::vector<Setting> settings{};
    std::vector<std::string> notes{}; ///< What was passed by, with its line: "line 3: ...".
};

} // namespace planloom
