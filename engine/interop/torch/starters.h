#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace planloom {

/// What starts the processes of an exported plan.
enum class TorchStarter : std::uint8_t { Torchrun, Sbatch, Srun, Mpirun };
inline constexpr std::array kTorchStarters{
    TorchStarter::Torchrun, TorchStarter::Sbatch, TorchStarter::Srun, TorchStarter::Mpirun};
const char *nameOf(TorchStarter starter); ///< "torchrun"

/// Where the weights of an exported plan come from.
enum class TorchWeights : std::uint8_t {
    OfModel, ///< weights.safetensors of the folder, as the model's file has them.
    Drawn,
    OfUser, ///< A file that the user names.
};

/// What it is trained with.
enum class TorchData : std::uint8_t {
    Dataset, ///< That of dataset.py.
    Drawn, ///< Batches drawn anew for each step.
    Same, ///< One drawn batch in all of them.
};

/// How an exported plan is started.
struct TorchStart {
    TorchStarter starter = TorchStarter::Torchrun;
    std::int32_t processes = 1;
    std::int32_t perNode = 8; ///< Processes that a machine has room for.
    TorchWeights weights = TorchWeights::Drawn;
    TorchData data = TorchData::Same;
    std::int64_t seed = 7; ///< Of drawn weights.
    std::int32_t steps = 3;
    /// Of scripts in PyTorch's own words, which make the user's module with it ("package.module:make_model";
    /// empty: to be filled in), and take weights and data from there.
    std::optional<std::string> module{};
};

/// The command that starts it in its folder, with HOST and FILE for what the user knows.
std::string commandOf(const TorchStart &start);

} // namespace planloom
