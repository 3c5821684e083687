#pragma once

#include "engine/base/result.h"
#include "engine/graph/capacity.h"
#include "engine/graph/operator_files/operator_definition.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

namespace planloom {

/// How a model file is read. The defaults suit files a user opens; fuzzing sets tighter limits.
struct ImportOptions {
    /// Sizes of open dimensions by name (`--dim batch=8`), or by place: `<input>.<axis>`, as in "image.0",
    /// which is also the name of those that the file gives neither size nor name.
    std::map<std::string, std::int64_t> dimensions{};
    std::string
        lossOutput{}; ///< The output to train on (`--loss`); empty takes the scalar output "loss", if any.
    /// What stored tensors are, where a person knows better than the rules below (`--parameter`,
    /// `--constant`); by the names of tensors, here or in the file.
    std::map<std::string, StoredAs> storedAs{};
    /// Of an ONNX file or program: what is an input of the plan, whatever the file or the rules below say
    /// (`--as-input`); by name.
    std::set<std::string> asInputs{};
    /// What operator files say: before what Planloom knows of operators of these names, and before functions
    /// of the model. May be null.
    std::shared_ptr<const OperatorDefinitions> operators{};
    /// Room for what data choose (`--capacity`), by the name of the operator that finds it; "*" is that of
    /// all others.
    Capacities capacities{};
    /// Recurrences that become the operators of their steps (`--unroll`, unroll_recurrence.h), by name; "*"
    /// is all.
    std::set<std::string> unroll{};
    bool fuse = true; ///< Join exported patterns into operators an expert knows.
    /// Reads on behind what cannot be imported, for people to look at: see `Graph::obstacles`.
    bool look = false;
    std::optional<double> dropoutRatio{}; ///< Replaces the ratio of every Dropout that trains, in [0, 1).
    std::size_t mostFileBytes = std::size_t{1}
        << 31; ///< A longer model file is refused (weights beside it count not).
    std::size_t mostFoldedBytes = std::size_t{64}
        << 20; ///< Constants computed at import; beyond, they stay operators.
    std::size_t mostOperators = 1'000'000; ///< After unrolling constant loops.
    std::stop_token stop{};
};

/// @return InvalidInput for values that are outside of their range
Result<void> checkOptions(const ImportOptions &options, const std::string &place);

} // namespace planloom
