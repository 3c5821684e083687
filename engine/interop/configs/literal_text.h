#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/setting.h"

#include <string>
#include <string_view>

namespace planloom {

/// The settings of a Python file, read as literals and never run: keywords of calls, in one another
/// ("parallelism.tensor_parallel_degree" of
/// `Trainer.Config(parallelism=ParallelismConfig(tensor_parallel_degree=8))`), what is assigned to attributes
/// ("model.x" of `config.model.x = 4`), and of a function that begins with what another one of the file
/// returns, that one's before its own. A call that is nobody's value is called as its class.
/// @param function  whose settings are read; empty where the file has one
/// @return NotFound where there is no such function, InvalidInput where it must be said which (both with the
/// names);
///   ResourceLimit
Result<SettingList> readPython(std::string_view text, const std::string &function = {});

/// The settings of a TOML file: "training.local_batch_size". @return InvalidInput with "line:N" for a line
/// that is none of TOML's
Result<SettingList> readToml(std::string_view text);

} // namespace planloom
