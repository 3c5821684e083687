#include "engine/interop/torch/starters.h"

#include <algorithm>

namespace planloom {

namespace {

std::string optionsOf(const TorchStart &start)
{
    std::string options = " --steps " + std::to_string(start.steps);
    if (start.module)
        return " --module " + (start.module->empty() ? "MODULE:FUNCTION" : *start.module) + options;
    if (start.weights == TorchWeights::Drawn)
        options += " --random-weights " + std::to_string(start.seed);
    else if (start.weights == TorchWeights::OfUser)
        options += " --weights FILE.safetensors";
    switch (start.data) {
    case TorchData::Dataset:
        return options + " --data dataset";
    case TorchData::Drawn:
        return options + " --data synthetic";
    case TorchData::Same:
        break;
    }
    return options + " --data same";
}

} // namespace

const char *nameOf(TorchStarter starter)
{
    constexpr std::array<const char *, kTorchStarters.size()> kNames{"torchrun", "sbatch", "srun", "mpirun"};
    return kNames[static_cast<std::size_t>(starter)];
}

std::string commandOf(const TorchStart &start)
{
    const std::int32_t perNode = std::clamp(start.perNode, 1, std::max(start.processes, 1));
    const std::int32_t nodes = (start.processes + perNode - 1) / perNode;
    const std::string onNodes =
        " --nodes " + std::to_string(nodes) + " --ntasks-per-node " + std::to_string(perNode);
    switch (start.starter) {
    case TorchStarter::Torchrun:
        return "torchrun"
            + (nodes > 1
                    ? " --nnodes " + std::to_string(nodes) + " --rdzv-backend c10d --rdzv-endpoint HOST:29500"
                    : std::string{})
            + " --nproc-per-node " + std::to_string(perNode) + " train.py" + optionsOf(start);
    case TorchStarter::Sbatch: // the script itself says the options of a long training
        return "sbatch" + onNodes + " train.sbatch" + optionsOf(start);
    case TorchStarter::Srun:
        return "MASTER_ADDR=HOST MASTER_PORT=29500 srun" + onNodes + " --gpus-per-task 1 python train.py"
            + optionsOf(start);
    case TorchStarter::Mpirun:
        break;
    }
    return "mpirun -np " + std::to_string(start.processes)
        + " -x MASTER_ADDR=HOST -x MASTER_PORT=29500 python train.py" + optionsOf(start);
}

} // namespace planloom
