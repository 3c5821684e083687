#pragma once

#include "engine/base/result.h"
#include "engine/base/units.h"
#include "engine/base/vendor_library.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace planloom {

/// The processor of this machine, whose cores the CPU devices of a run share.
struct ProbedCpu {
    std::string name{};
    std::int32_t cores = 1; ///< That this process may use.
    std::string vectorUnits{}; ///< Those that kernels use: "AVX-512, AVX2", widest first; empty for none.
    Bytes memory{}; ///< Of the machine; 0 if unknown.
    std::optional<Bytes> freeMemory{}; ///< As `freeMemory` of free_memory.h.
    friend bool operator==(const ProbedCpu &, const ProbedCpu &) = default;
};

/// NVLinks from one GPU to another end, taken together.
struct ProbedLinks {
    std::string to{}; ///< Bus id: of a GPU, or of a switch.
    std::int32_t count = 0;
    std::int32_t version = 0; ///< Of NVLink; 0 if unknown.
    friend bool operator==(const ProbedLinks &, const ProbedLinks &) = default;
};

struct ProbedGpu {
    std::int32_t index = 0;
    std::string name{};
    Bytes memory{};
    Bytes freeMemory{};
    std::int32_t computeCapability = 0; ///< 90 for 9.0; 0 if unknown.
    std::string busId{};
    std::int32_t pcieGeneration = 0; ///< At most; 0 if unknown, as the next.
    std::int32_t pcieWidth = 0; ///< Lanes.
    std::vector<ProbedLinks> links{};
    std::optional<std::int32_t> temperature{}; ///< Degrees Celsius.
    std::string problem{}; ///< Why it cannot be used; empty if it can.
    friend bool operator==(const ProbedGpu &, const ProbedGpu &) = default;
};

/// A library that runs on GPUs need.
struct ProbedLibrary {
    std::string name{}; ///< "NCCL"
    std::string version{}; ///< "2.28.9"; empty if it was not found.
    std::string problem{}; ///< Why it cannot be used; empty if it can.
    friend bool operator==(const ProbedLibrary &, const ProbedLibrary &) = default;
};

/// What a GPU of this name and compute capability (90 for 9.0) is called where something was measured on it.
std::string gpuMachineName(const std::string &gpu, std::int32_t computeCapability);

/// What this machine has to run plans on, and why what it has cannot be used.
struct Probe {
    ProbedCpu cpu{};
    std::string driver{}; ///< Version of NVIDIA's driver; empty without one.
    std::string cuda{}; ///< The newest CUDA that the driver knows: "13.0".
    std::vector<ProbedGpu> gpus{};
    std::string gpuProblem{}; ///< Why there are no GPUs to be seen; empty if there are.
    std::vector<ProbedLibrary> libraries{};
    friend bool operator==(const Probe &, const Probe &) = default;
};

/// Where `probeMachine` looks, and for how long.
struct ProbeOptions {
    std::string nvml = "libnvidia-ml.so.1";
    // The first one of each that is found counts, where runs would look for it, too.
    std::vector<std::string> nccl = kNcclNames;
    std::vector<std::string> products = kProductNames;
    std::vector<std::string> compilers = kCompilerNames;
    std::string root{}; ///< In front of /proc and /sys.
    /// A driver that does not answer for so long is a reason, too.
    std::chrono::milliseconds patience{1500};
};

/// Looks. Within `patience` and some milliseconds; opens libraries, which run their own code, but never the
/// CUDA driver, so that no memory of a GPU is taken.
Probe probeMachine(const ProbeOptions &options = {});

/// {"v":1, "cpu": {...}, "driver", "cuda", "gpus": [...], "gpu_problem", "libraries": [...]}; sizes in bytes.
nlohmann::json toJson(const Probe &probe);
/// Inverse of `toJson`. @return InvalidInput for what is no probe
Result<Probe> probeFromJson(std::string_view text);

/// What a plan for so many devices runs on here, in a sentence: how many GPUs can be used or why none can,
/// and that devices are emulated on the processor.
std::string whatItRunsOn(const Probe &probe, std::int32_t devices);

} // namespace planloom
