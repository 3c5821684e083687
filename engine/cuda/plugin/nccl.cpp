// The real functions of NCCL, opened when they are needed.

#include "engine/base/vendor_library.h"
#include "engine/cuda/nccl/nccl_functions.h"

#include <climits>
#include <cstddef>
#include <cstring>
#include <string>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace planloom {

namespace {

// What of nccl.h is called, as it is since NCCL 2.18: the header is no part of the toolkit.
using Comm = struct NcclCommOpaque *;
struct UniqueId {
    char internal[128];
};
/// ncclConfig_t of 2.18: later libraries take it as it is, by its size and version.
struct Config {
    std::size_t size = sizeof(Config);
    unsigned int magic = 0xcafebeef;
    unsigned int version = kOldestNccl;
    int blocking = 0;
    int cgaClusterSize = INT_MIN;
    int minCTAs = INT_MIN;
    int maxCTAs = INT_MIN;
    const char *netName = nullptr;
    int splitShare = INT_MIN;
};

#if __has_include(<nccl.h>)
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking)
    && offsetof(Config, splitShare) == offsetof(ncclConfig_t, splitShare));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && sizeof(NcclId::bytes) == sizeof(ncclUniqueId));
static_assert(static_cast<int>(NcclType::Int8) == ncclInt8 && static_cast<int>(NcclType::UInt8) == ncclUint8
    && static_cast<int>(NcclType::Int32) == ncclInt32 && static_cast<int>(NcclType::Int64) == ncclInt64
    && static_cast<int>(NcclType::Float16) == ncclFloat16
    && static_cast<int>(NcclType::Float32) == ncclFloat32
    && static_cast<int>(NcclType::Float64) == ncclFloat64
    && static_cast<int>(NcclType::BFloat16) == ncclBfloat16);
static_assert(static_cast<int>(NcclReduction::Sum) == ncclSum
    && static_cast<int>(NcclReduction::Max) == ncclMax && kNcclNoColor == NCCL_SPLIT_NOCOLOR
    && kNcclInProgress == ncclInProgress);
#endif

/// The functions that are called.
struct Library {
    int (*getVersion)(int *) = nullptr;
    int (*getUniqueId)(UniqueId *) = nullptr;
    int (*commInitRankConfig)(Comm *, int, UniqueId, int, Config *) = nullptr;
    int (*commSplit)(Comm, int, int, Comm *, Config *) = nullptr;
    int (*commGetAsyncError)(Comm, int *) = nullptr;
    int (*commFinalize)(Comm) = nullptr;
    int (*commDestroy)(Comm) = nullptr;
    int (*commAbort)(Comm) = nullptr;
    // Since 2.19; null where the library is older.
    int (*memAlloc)(void **, std::size_t) = nullptr;
    int (*memFree)(void *) = nullptr;
    int (*commRegister)(Comm, void *, std::size_t, void **) = nullptr;
    int (*commDeregister)(Comm, void *) = nullptr;
    int (*groupStart)() = nullptr;
    int (*groupEnd)() = nullptr;
    int (*allReduce)(const void *, void *, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
    int (*allGather)(const void *, void *, std::size_t, int, Comm, cudaStream_t) = nullptr;
    int (*reduceScatter)(const void *, void *, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
    int (*broadcast)(const void *, void *, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
    int (*send)(const void *, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
    int (*recv)(void *, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
    const char *(*getErrorString)(int) = nullptr;
    const char *(*getLastError)(Comm) = nullptr;
    std::string why{}; ///< There is none of it; empty where there is.
};

template<typename Function> bool find(void *library, const char *name, Function &function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Library openNccl()
{
    Library nccl;
    void *const library = openVendorLibrary(kNcclNames, nccl.why);
    if (library == nullptr)
        return nccl;
    if (!find(library, "ncclGetVersion", nccl.getVersion)
        || !find(library, "ncclGetUniqueId", nccl.getUniqueId)
        || !find(library, "ncclCommInitRankConfig", nccl.commInitRankConfig)
        || !find(library, "ncclCommSplit", nccl.commSplit)
        || !find(library, "ncclCommGetAsyncError", nccl.commGetAsyncError)
        || !find(library, "ncclCommFinalize", nccl.commFinalize)
        || !find(library, "ncclCommDestroy", nccl.commDestroy)
        || !find(library, "ncclCommAbort", nccl.commAbort)
        || !find(library, "ncclGroupStart", nccl.groupStart) || !find(library, "ncclGroupEnd", nccl.groupEnd)
        || !find(library, "ncclAllReduce", nccl.allReduce) || !find(library, "ncclAllGather", nccl.allGather)
        || !find(library, "ncclReduceScatter", nccl.reduceScatter)
        || !find(library, "ncclBroadcast", nccl.broadcast) || !find(library, "ncclSend", nccl.send)
        || !find(library, "ncclRecv", nccl.recv) || !find(library, "ncclGetErrorString", nccl.getErrorString)
        || !find(library, "ncclGetLastError", nccl.getLastError))
        nccl.why = "the NCCL that was found is older than 2.18: it lacks functions that are needed";
    if (!find(library, "ncclMemAlloc", nccl.memAlloc) || !find(library, "ncclMemFree", nccl.memFree)
        || !find(library, "ncclCommRegister", nccl.commRegister)
        || !find(library, "ncclCommDeregister", nccl.commDeregister))
        nccl.memAlloc = nullptr;
    return nccl;
}

const Library &library()
{
    static const Library kLibrary = openNccl();
    return kLibrary;
}

Comm commOf(NcclComm comm)
{
    return static_cast<Comm>(comm);
}
cudaStream_t streamOf(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}
std::string textOf(const char *text)
{
    return text == nullptr ? std::string{} : text;
}

class RealNccl final : public NcclFunctions
{
public:
    NcclStatus version(std::int32_t &version) override { return library().getVersion(&version); }
    std::string errorText(NcclStatus status) override { return textOf(library().getErrorString(status)); }
    std::string lastError(NcclComm comm) override { return textOf(library().getLastError(commOf(comm))); }

    NcclStatus uniqueId(NcclId &id) override
    {
        UniqueId made{};
        const int status = library().getUniqueId(&made);
        std::memcpy(id.bytes, made.internal, sizeof made.internal);
        return status;
    }
    NcclStatus initRank(NcclComm *comm, std::int32_t ranks, const NcclId &id, std::int32_t rank) override
    {
        UniqueId given{};
        std::memcpy(given.internal, id.bytes, sizeof given.internal);
        Config config;
        return library().commInitRankConfig(reinterpret_cast<Comm *>(comm), ranks, given, rank, &config);
    }
    NcclStatus split(NcclComm comm, std::int32_t color, std::int32_t key, NcclComm *made) override
    {
        // Without a config of its own it does not block either.
        return library().commSplit(commOf(comm), color, key, reinterpret_cast<Comm *>(made), nullptr);
    }
    NcclStatus asyncError(NcclComm comm, NcclStatus &state) override
    {
        return library().commGetAsyncError(commOf(comm), &state);
    }
    NcclStatus finalize(NcclComm comm) override { return library().commFinalize(commOf(comm)); }
    NcclStatus destroy(NcclComm comm) override { return library().commDestroy(commOf(comm)); }
    NcclStatus abort(NcclComm comm) override { return library().commAbort(commOf(comm)); }

    bool hasOwnMemory() override { return library().memAlloc != nullptr; }
    NcclStatus allocate(void **memory, std::size_t bytes) override
    {
        return library().memAlloc(memory, bytes);
    }
    NcclStatus release(void *memory) override { return library().memFree(memory); }
    NcclStatus registerMemory(NcclComm comm, void *memory, std::size_t bytes, void **handle) override
    {
        return library().commRegister(commOf(comm), memory, bytes, handle);
    }
    NcclStatus deregister(NcclComm comm, void *handle) override
    {
        return library().commDeregister(commOf(comm), handle);
    }

    NcclStatus groupStart() override { return library().groupStart(); }
    NcclStatus groupEnd() override { return library().groupEnd(); }
    NcclStatus allReduce(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) override
    {
        return library().allReduce(from, to, count, static_cast<int>(type), static_cast<int>(reduction),
            commOf(comm), streamOf(stream));
    }
    NcclStatus allGather(
        const void *from, void *to, std::size_t count, NcclType type, NcclComm comm, void *stream) override
    {
        return library().allGather(from, to, count, static_cast<int>(type), commOf(comm), streamOf(stream));
    }
    NcclStatus reduceScatter(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) override
    {
        return library().reduceScatter(from, to, count, static_cast<int>(type), static_cast<int>(reduction),
            commOf(comm), streamOf(stream));
    }
    NcclStatus broadcast(const void *from, void *to, std::size_t count, NcclType type, std::int32_t root,
        NcclComm comm, void *stream) override
    {
        return library().broadcast(
            from, to, count, static_cast<int>(type), root, commOf(comm), streamOf(stream));
    }
    NcclStatus send(const void *from, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm,
        void *stream) override
    {
        return library().send(from, count, static_cast<int>(type), peer, commOf(comm), streamOf(stream));
    }
    NcclStatus receive(
        void *to, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm, void *stream) override
    {
        return library().recv(to, count, static_cast<int>(type), peer, commOf(comm), streamOf(stream));
    }
};

} // namespace

} // namespace planloom

extern "C" [[gnu::visibility("default")]] planloom::NcclFunctions *planloomNcclFunctions(
    std::uint32_t version, const char **why)
{
    static planloom::RealNccl functions;
    static const std::string kReason = version != planloom::kNcclPluginVersion
        ? std::string{"the plugin is of another version than this program"}
        : planloom::library().why;
    *why = kReason.c_str();
    return kReason.empty() ? &functions : nullptr;
}
