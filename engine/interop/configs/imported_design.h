#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/read_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A row that follows from a config, and the keys that it follows from.
struct ImportedRow {
    Row row{}; ///< Its note says the keys: "--tensor-model-parallel-size 2".
    std::string
        key{}; ///< The first of them, as the file calls it; empty where the framework's default decides.
    std::int32_t line = 0; ///< Of that key, from 1.
};

/// A config as a design: what `solve` plans as it is.
struct ImportedDesign {
    PlanRequest request{}; ///< Its table has the rows, its gallery is empty.
    std::vector<ImportedRow> rows{};
};

/// @param model  in place of the one that the config names; may be null
/// @return as `requestOfConfig`, and where the gallery's plan does not fit the model
Result<ImportedDesign> designOf(const ImportedConfig &imported, const ModelSnapshot &model = {});

} // namespace planloom
