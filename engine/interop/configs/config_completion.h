#pragma once

#include "engine/interop/configs/read_config.h"

#include <initializer_list>
#include <string>

namespace planloom {

// Steps of `completeConfig` that are about one matter.

/// Adds an error, at the line of the first of these fields that a line said.
void contradict(ImportedConfig &imported, std::string message, std::initializer_list<const char *> fields,
    std::string advice = {});

/// How many parts a sequence has, and among how many of them attentions exchange heads ("ulysses").
void completeSequences(ImportedConfig &imported);

} // namespace planloom
