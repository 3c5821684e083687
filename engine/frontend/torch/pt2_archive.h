#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"
#include "engine/frontend/torch/pt2_program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace planloom {

/// Where in the archive a tensor's storage lies.
struct Pt2Storage {
    std::uint64_t offset = 0; ///< In bytes, from the archive's beginning.
    std::uint64_t length = 0; ///< In bytes.
    bool isBeside = false; ///< It lies in the archive beside, at that offset.
    Pt2Meta meta{}; ///< How the tensor lies in it.
};

/// What an archive of `torch.export.save` holds: the program, and where the values of its parameters, buffers
/// and constants lie. Two layouts are known:
///
///     PyTorch 2.8 and newer                            PyTorch 2.6 and 2.7
///     NAME/models/MODEL.json        the program        serialized_exported_program.json
///     NAME/data/weights/MODEL_weights_config.json      serialized_state_dict.pt    pickled
///     NAME/data/weights/weight_0    raw values         serialized_constants.pt     pickled
///     NAME/data/constants/...       the same
///
/// Pickles are programs and never run: what lies in one has no storage here.
struct Pt2Archive {
    Pt2Program program{};
    std::map<std::string, Pt2Storage> storages{}; ///< By name in the module.
    std::int64_t pickled = 0; ///< Tensors whose values lie in a pickle, of the newer layout.
    /// Tensors that have no values: of modules on the device "meta", or of fake tensors. What shares memory
    /// is not known of them.
    std::set<std::string> withoutValues{};
    std::int64_t missing = 0; ///< Tensors whose values were left out, and are not in the archive beside.
    bool isOldLayout = false; ///< All values lie in pickles.
};

/// Reads the directory and the JSON of an archive, and looks values up without reading them.
///
/// Safe for any bytes: names, places and checksums are checked, entries that share bytes, are encrypted or
/// unpack to more than 4 MiB or 100 times the archive's size, whichever is more, are refused.
/// @param where   named in errors: the file's name
/// @param beside  the archive that `withoutWeights` made this one of, if it is there; others are passed by
/// @return InvalidInput, NotSupported and ResourceLimit, saying what was expected; NotSupported for archives
///   of PyTorch that hold no exported program (checkpoints, TorchScript), with the way out
Result<Pt2Archive> readPt2Archive(std::unique_ptr<const ByteSource> source, const std::string &where,
    std::unique_ptr<const ByteSource> beside = nullptr);

/// The same archive without the values of its weights: what is kept of a large model whose file stays where
/// it is. @return as `readPt2Archive` for what is no archive; ResourceLimit if still longer than `most`
Result<std::string> withoutWeights(
    std::unique_ptr<const ByteSource> source, const std::string &where, std::uint64_t most);

} // namespace planloom
