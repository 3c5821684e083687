#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

// Every function of NCCL that is called, and nothing else: the plugin has the real ones, tests a fake whose
// ranks are threads. What they do is what NVIDIA's documents say of the function named. Numbers are NCCL's.

/// Of what stands between the program and the plugin, as kCudaPluginVersion.
constexpr std::uint32_t kNcclPluginVersion = 2;
/// The plugin's entry point: `NcclFunctions *planloomNcclFunctions(std::uint32_t version, const char **why)`;
/// null, and why, where there is no NCCL that can be used.
constexpr const char *kNcclPluginEntry = "planloomNcclFunctions";

using NcclStatus = std::int32_t;
constexpr NcclStatus kNcclSuccess = 0;
constexpr NcclStatus kNcclInProgress = 7; ///< Not done yet: `asyncError` of the communicator says when.

/// 2.18: communicators are split without blocking. 21800, as NCCL counts.
constexpr std::int32_t kOldestNccl = 21800;

using NcclComm = void *;
/// The color of ranks that stay out of what is split.
constexpr std::int32_t kNcclNoColor = -1;

/// What ranks find each other by.
struct NcclId {
    char bytes[128] = {};
};

enum class NcclType : std::int32_t {
    Int8 = 0,
    UInt8 = 1,
    Int32 = 2,
    Int64 = 4,
    Float16 = 6,
    Float32 = 7,
    Float64 = 8,
    BFloat16 = 9,
};

enum class NcclReduction : std::int32_t { Sum = 0, Max = 2 };

/// Communicators are made without blocking: every call may return kNcclInProgress. Streams are the device's
/// (CudaStream).
class NcclFunctions
{
public:
    virtual ~NcclFunctions() = default;

    virtual NcclStatus version(std::int32_t &version) = 0;
    virtual std::string errorText(NcclStatus status) = 0;
    /// What the library says of the last thing that went wrong; may be empty.
    virtual std::string lastError(NcclComm comm) = 0;

    virtual NcclStatus uniqueId(NcclId &id) = 0;
    /// On the device of this thread.
    virtual NcclStatus initRank(NcclComm *comm, std::int32_t ranks, const NcclId &id, std::int32_t rank) = 0;
    /// `made` is written once `comm` is no longer in progress; null for those without color.
    virtual NcclStatus split(NcclComm comm, std::int32_t color, std::int32_t key, NcclComm *made) = 0;
    virtual NcclStatus asyncError(NcclComm comm, NcclStatus &state) = 0;
    virtual NcclStatus finalize(NcclComm comm) = 0;
    virtual NcclStatus destroy(NcclComm comm) = 0;
    /// Ends what runs, at this rank, and destroys it.
    virtual NcclStatus abort(NcclComm comm) = 0;

    /// Whether the library has the next four: since 2.19.
    virtual bool hasOwnMemory() = 0;
    /// Of the device of this thread; collectives between registered buffers need no copies.
    virtual NcclStatus allocate(void **memory, std::size_t bytes) = 0;
    virtual NcclStatus release(void *memory) = 0;
    virtual NcclStatus registerMemory(NcclComm comm, void *memory, std::size_t bytes, void **handle) = 0;
    virtual NcclStatus deregister(NcclComm comm, void *handle) = 0;

    virtual NcclStatus groupStart() = 0;
    virtual NcclStatus groupEnd() = 0;
    virtual NcclStatus allReduce(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) = 0;
    /// @param count  of one rank's
    virtual NcclStatus allGather(
        const void *from, void *to, std::size_t count, NcclType type, NcclComm comm, void *stream) = 0;
    /// @param count  of one rank's result
    virtual NcclStatus reduceScatter(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) = 0;
    virtual NcclStatus broadcast(const void *from, void *to, std::size_t count, NcclType type,
        std::int32_t root, NcclComm comm, void *stream) = 0;
    virtual NcclStatus send(const void *from, std::size_t count, NcclType type, std::int32_t peer,
        NcclComm comm, void *stream) = 0;
    virtual NcclStatus receive(
        void *to, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm, void *stream) = 0;
};

/// NCCL, by the plugin of these paths (cuda_plugin.h). @return as openCudaPlugin; NotFound with where it was
/// looked for
Result<std::shared_ptr<NcclFunctions>> openNcclPlugin(const std::vector<std::string> &paths);

/// @return NotSupported for a library that is too old
Result<void> checkNccl(NcclFunctions &nccl);

} // namespace planloom
