#pragma once

#include "engine/cuda/nccl/nccl_functions.h"
#include "engine/runtime/communication/communicator.h"

#include "tests/engine/cuda/fake_cuda.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

class FakeNccl;

/// What the ranks of one run have in common, where NCCL has a network. Thread-safe.
class FakeNcclNet
{
public:
    // What tests set, before ranks begin.
    std::int32_t version = 22809;
    std::int64_t failAfter = -1; ///< Calls, of all ranks, until every one fails with `failure`; -1: never.
    std::int64_t asyncAfter = -1; ///< Operations until communicators fail by themselves; -1: never.
    std::int64_t stuckAfter = -1; ///< Operations until none ends any more; -1: never.
    bool initFails = false;
    bool hasOwnMemory = true;
    NcclStatus failure = 6; ///< ncclRemoteError

    /// By the number of the split that made the communicator (-1: of all ranks) and rank of the world: what
    /// was called, as "all-reduce 12": elements, or bytes.
    std::map<std::pair<int, int>, std::vector<std::string>> calls{};
    /// Likewise: the streams of what was sent and received.
    std::map<std::pair<int, int>, std::set<void *>> exchangeStreams{};
    /// What was used wrongly: members that call different things, sizes that differ. Empty if nothing was.
    std::string misuse() const;
    std::size_t live() const; ///< Communicators that there are.
    int aborted() const; ///< Communicators that were aborted.
    int registered() const; ///< Pairs of a communicator and memory that was ever registered with it.

private:
    friend class FakeNccl;

    /// A communicator, as one rank has it.
    struct Comm {
        int id = 0; ///< The same at all its ranks.
        int split = -1;
        int rank = 0;
        int ranks = 1;
        int worldRank = 0;
        std::int64_t operations = 0;
        std::int64_t splits = 0;
        int busy = 0; ///< So often it is still in progress,
        std::pair<int, std::int64_t> awaited{-1, 0}; ///< and until all have come to this split, if any.
        NcclComm *made = nullptr; ///< By it.
    };
    struct Part {
        std::string what{}; ///< Has to be the same at all ranks.
        InstructionKind kind{};
        const void *from = nullptr;
        void *to = nullptr;
        std::size_t count = 0;
        DataType type{};
        Combination combination{};
    };
    /// All ranks of a communicator at one of its operations.
    struct Meeting {
        std::vector<Part> parts{};
        std::size_t arrived = 0;
        bool done = false;
    };
    struct Split {
        std::vector<std::pair<int, int>> keys{}; ///< Color and key, by rank.
        std::size_t arrived = 0;
        std::map<int, int> ids{}; ///< By color.
    };
    struct Message {
        const void *from = nullptr;
        std::size_t bytes = 0;
        bool done = false;
    };

    void blame(const std::string &what);
    static void carryOut(const std::vector<Part> &parts);

    mutable std::mutex m_mutex{};
    std::int64_t m_called = 0;
    std::int64_t m_operations = 0; ///< That have ended, of all ranks.
    int m_ids = 1; ///< 0 is of all ranks.
    int m_aborted = 0;
    int m_registered = 0;
    std::set<std::pair<Comm *, void *>> m_registrations{}; ///< With what is registered.
    std::size_t m_came = 0; ///< Ranks, to the first communicator.
    std::set<Comm *> m_comms{};
    std::set<int> m_broken{}; ///< Communicators that a rank has aborted.
    std::map<std::pair<int, std::int64_t>, Meeting> m_meetings{};
    std::map<std::pair<int, std::int64_t>, Split> m_splits{};
    std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<Message>>>
        m_messages{}; ///< By communicator, sender, receiver.
    std::string m_misuse{};
};

/// NCCL of one rank, whose device is `cuda`. Operations take place in its streams, strictly one after another
/// in the order in which they were issued, and each waits for its peers: the least that NCCL promises.
class FakeNccl final : public NcclFunctions
{
public:
    FakeNccl(FakeNcclNet &net, FakeCuda &cuda)
        : m_net(net)
        , m_cuda(cuda)
    {
    }

    NcclStatus version(std::int32_t &version) override;
    std::string errorText(NcclStatus status) override { return "NCCL error " + std::to_string(status); }
    std::string lastError(NcclComm) override { return "of the fake"; }
    NcclStatus uniqueId(NcclId &id) override;
    NcclStatus initRank(NcclComm *comm, std::int32_t ranks, const NcclId &id, std::int32_t rank) override;
    NcclStatus split(NcclComm comm, std::int32_t color, std::int32_t key, NcclComm *made) override;
    NcclStatus asyncError(NcclComm comm, NcclStatus &state) override;
    NcclStatus finalize(NcclComm comm) override;
    NcclStatus destroy(NcclComm comm) override;
    NcclStatus abort(NcclComm comm) override;
    bool hasOwnMemory() override { return m_net.hasOwnMemory; }
    NcclStatus allocate(void **memory, std::size_t bytes) override;
    NcclStatus release(void *memory) override;
    NcclStatus registerMemory(NcclComm comm, void *memory, std::size_t bytes, void **handle) override;
    NcclStatus deregister(NcclComm comm, void *handle) override;
    NcclStatus groupStart() override;
    NcclStatus groupEnd() override;
    NcclStatus allReduce(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) override;
    NcclStatus allGather(
        const void *from, void *to, std::size_t count, NcclType type, NcclComm comm, void *stream) override;
    NcclStatus reduceScatter(const void *from, void *to, std::size_t count, NcclType type,
        NcclReduction reduction, NcclComm comm, void *stream) override;
    NcclStatus broadcast(const void *from, void *to, std::size_t count, NcclType type, std::int32_t root,
        NcclComm comm, void *stream) override;
    NcclStatus send(const void *from, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm,
        void *stream) override;
    NcclStatus receive(
        void *to, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm, void *stream) override;

private:
    struct Exchange {
        bool sends = false;
        int peer = 0;
        void *data = nullptr;
        std::size_t bytes = 0;
        NcclComm comm = nullptr;
        void *stream = nullptr;
        std::shared_ptr<FakeNcclNet::Message> message{};
        bool done = false;
    };

    NcclStatus called();
    NcclStatus collective(FakeNcclNet::Part part, NcclComm comm, void *stream);
    NcclStatus exchange(Exchange exchange);
    NcclStatus launch(std::vector<Exchange> exchanges);
    /// Puts an operation into a stream: `tryIt` is asked, in its turn, until it says that it is done.
    NcclStatus put(FakeNcclNet::Comm &comm, void *stream, std::function<bool()> tryIt);

    FakeNcclNet &m_net;
    FakeCuda &m_cuda;
    int m_depth = 0; ///< Of groups.
    std::vector<Exchange> m_group{};
    /// Operations of a graph.
    struct Captured {
        int number = 0; ///< Of the capture.
        std::int64_t operations = 0;
        std::int64_t first = -1; ///< What the first one's number is in the run of the graph that goes on.
    };
    std::shared_ptr<Captured> m_captured{};
    std::int64_t m_issued = 0;
    std::int64_t m_ended = 0;
};

} // namespace planloom
