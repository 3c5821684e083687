#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/config_formats.h"
#include "engine/interop/configs/framework_config.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A key that no row follows from, and why.
struct KeyRemark {
    std::string key{};
    std::int32_t line = 0;
    std::string why{}; ///< Empty for keys that no plan depends on.
    friend bool operator==(const KeyRemark &, const KeyRemark &) = default;
};

/// A framework's config as it was read. Every key of the file stands in one of the lists, or in the config.
struct ImportedConfig {
    const ConfigFormat *format = nullptr; ///< Not null.
    FrameworkConfig config{};
    std::vector<KeyRemark> understood{};
    std::vector<KeyRemark> irrelevant{};
    std::vector<KeyRemark> unknown{};
    std::vector<Error>
        errors{}; ///< What contradicts itself; `where` "line:N", or the field where no line said it.
    std::vector<std::string> notes{}; ///< What was assumed, and what was passed by.
};

struct ConfigOptions {
    std::string format{}; ///< Empty: the one with most keys that are known.
    std::string fileName{}; ///< Whose ending says the syntax, if it has one; never opened.
    std::string function{}; ///< Of a Python file that makes several configs.
    std::map<std::string, std::string> variables{}; ///< Of a script, that it leaves to its caller.
    std::string cluster = "dgx-h100"; ///< The profile of its devices.
    std::int64_t devices = 0; ///< Where the file does not say; 0: as few as its degrees need.
};

/// Reads a training config or launch script of any format there is. What it says is never run, and no file
/// that it names is opened.
/// @return InvalidInput for what is no config of any format, and as the readers; ResourceLimit
Result<ImportedConfig> readConfig(std::string_view text, const ConfigOptions &options = {});

/// What follows from what a file says, in `config`: devices, layout, micro-batches, sharding, sizes;
/// contradictions as errors in the framework's own words, assumptions as notes.
void completeConfig(ImportedConfig &imported, const ConfigOptions &options);

} // namespace planloom
