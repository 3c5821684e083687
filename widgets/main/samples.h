#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A bundled session as data: what to open, on what, with which rows, and what it teaches.
struct Sample {
    std::string name{}; ///< "gpt2", for `--sample`.
    std::string title{}; ///< "GPT-2 on four GPUs"
    std::string about{}; ///< One sentence: what there is to see.
    std::string model{}; ///< Zoo name.
    std::string cluster{};
    std::int32_t devices = 1;
    std::string gallery{}; ///< Gallery plan whose rows it starts with.
};

/// The samples of resources/samples, in their order. They are compiled in.
const std::vector<Sample> &samples();

/// @return NotFound listing the known names
Result<Sample> sampleNamed(const std::string &name);

/// Reads one sample. @return InvalidInput with the JSON pointer of what is wrong in `where`
Result<Sample> sampleFromJson(const std::string &name, const std::string &text);

} // namespace planloom
