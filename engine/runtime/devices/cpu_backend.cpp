#include "engine/runtime/devices/cpu_backend.h"

#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/devices/memory_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace planloom {

namespace {

constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kCopyStretch = std::int64_t{1} << 20; ///< Bytes of a copy that are worth a thread.

/// Does at once what it is asked.
class CpuQueue final : public DeviceQueue
{
public:
    Result<void> kernel(const KernelCall &call, const KernelRounding *rounding) override
    {
        return rounding == nullptr ? runKernel(call) : runRounded(call, *rounding);
    }
    void fill(std::byte *to, std::uint8_t value, std::size_t bytes) override
    {
        forEachStretch(static_cast<std::int64_t>(bytes), kCopyStretch, [&](auto begin, auto end) {
            std::memset(to + begin, value, static_cast<std::size_t>(end - begin));
        });
    }
    void copy(std::byte *to, const std::byte *from, std::size_t bytes) override
    {
        forEachStretch(static_cast<std::int64_t>(bytes), kCopyStretch, [&](auto begin, auto end) {
            std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
        });
    }
    void copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
        const IndexMask &region, std::int64_t elementSize) override
    {
        planloom::copyBox(from, fromBox, to, toBox, region, elementSize);
    }
    bool combine(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
        Combination combination) override
    {
        if (!canCombine(type, combination))
            return false;
        const std::int64_t size = sizeOf(type);
        forEachStretch(static_cast<std::int64_t>(count), kCopyStretch / size, [&](auto begin, auto end) {
            std::vector<const std::byte *> shifted;
            for (const std::byte *const each : from)
                shifted.push_back(each + begin * size);
            (void)combineInto(
                to + begin * size, shifted, static_cast<std::size_t>(end - begin), type, combination);
        });
        return true;
    }
    bool add(
        std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count) override
    {
        std::atomic<bool> ok{true};
        const std::int64_t size = sizeOf(toType);
        const std::int64_t fromSize = sizeOf(fromType);
        forEachStretch(static_cast<std::int64_t>(count), kCopyStretch / size, [&](auto begin, auto end) {
            const auto length = static_cast<std::size_t>(end - begin);
            std::byte *const target = to + begin * size;
            const std::byte *const source = from + begin * fromSize;
            if (!(toType == fromType ? addInto(target, source, length, toType)
                                     : addConverted(target, toType, source, fromType, length)))
                ok = false;
        });
        return ok;
    }
    bool weigh(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
        const std::byte *all, DataType weightType, std::size_t rows, std::size_t width) override
    {
        return weighInto(to, from, type, own, all, weightType, rows, width);
    }
    bool merge(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
        const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
        std::size_t width) override
    {
        return mergeInto(to, logarithms, from, own, type, weightType, rows, width);
    }
    bool convert(
        const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count) override
    {
        return convertFloats(from, fromType, to, toType, count);
    }
    Result<void> upload(
        std::byte *to, std::size_t /*bytes*/, const std::function<Result<void>(std::byte *)> &make) override
    {
        return make(to);
    }
    Result<void> download(const std::byte *from, std::size_t /*bytes*/,
        const std::function<Result<void>(const std::byte *)> &read) override
    {
        return read(from);
    }
};

class CpuBackend final : public DeviceBackend
{
public:
    CpuBackend(WorkPool &pool, std::unique_ptr<Communicator> communicator, MemoryPool::Source memory,
        CpuBoard *board)
        : m_pool(pool)
        , m_communicator(std::move(communicator))
        , m_memory(std::move(memory))
        , m_board(board)
    {
    }

    Result<std::byte *> reserve(MemoryPlace place, std::size_t bytes) override
    {
        if (bytes == 0)
            return static_cast<std::byte *>(nullptr);
        MemoryBlock block = m_memory.allocate(bytes);
        if (!block)
            return Error{ErrorCode::ResourceLimit,
                std::string{place == MemoryPlace::Host ? "the host of " : ""} + "device "
                    + std::to_string(m_communicator->device().index) + " found no memory for "
                    + std::to_string(bytes) + " bytes",
                "use a smaller batch, more micro-batches or recomputation", {}};
        m_arenas.push_back(std::move(block));
        return m_arenas.back().data();
    }
    std::int64_t alignment() const override { return kCacheLine; }
    bool addsInPlace() const override { return true; }

    void begin(std::int32_t events, TaskListener &listener) override
    {
        const std::lock_guard lock{m_mutex};
        assert(m_left == 0);
        m_done.assign(static_cast<std::size_t>(events), false);
        m_listener = &listener;
        m_left = events;
        for (Queue &queue : m_queues)
            queue.tasks.clear();
        for (Queue &queue : m_queues) {
            queue.next = 0;
            queue.found = 0;
        }
    }

    void issue(DeviceTask task) override
    {
        const auto queue = static_cast<std::size_t>(task.queue);
        const std::lock_guard lock{m_mutex};
        m_queues[queue].tasks.push_back(std::make_unique<DeviceTask>(std::move(task)));
        if (readyTask(queue) != nullptr)
            submit(queue);
    }

    void finish() override
    {
        std::unique_lock lock{m_mutex};
        m_changed.wait(lock, [this] { return m_left == 0; });
    }

private:
    struct Queue {
        std::vector<std::unique_ptr<DeviceTask>> tasks{};
        std::size_t next = 0; ///< That is first in it.
        bool running = false;
        std::size_t found = 0; ///< How many of what it waits for elsewhere are known to be done.
        bool asked = false; ///< Is woken when the next of them is.
    };

    /// The first task of a queue, if it may start. Needs the lock.
    DeviceTask *readyTask(std::size_t at)
    {
        Queue &queue = m_queues[at];
        if (queue.running || queue.next >= queue.tasks.size())
            return nullptr;
        DeviceTask *const task = queue.tasks[queue.next].get();
        const bool ready = std::all_of(task->waits.begin(), task->waits.end(),
            [this](EventId event) { return m_done[static_cast<std::size_t>(event)]; });
        return ready && isReadyElsewhere(at, *task) ? task : nullptr;
    }

    /// Needs the lock.
    bool isReadyElsewhere(std::size_t at, const DeviceTask &task)
    {
        Queue &queue = m_queues[at];
        assert(m_board != nullptr || task.waitsElsewhere.empty());
        while (!queue.asked && queue.found < task.waitsElsewhere.size()) {
            if (m_board->isDone(task.waitsElsewhere[queue.found], [this, at] { wake(at); }))
                ++queue.found;
            else
                queue.asked = true;
        }
        return !queue.asked;
    }

    void wake(std::size_t at)
    {
        const std::lock_guard lock{m_mutex};
        m_queues[at].asked = false;
        if (readyTask(at) != nullptr)
            submit(at);
    }

    /// Needs the lock, and that the queue's first task may start.
    void submit(std::size_t at)
    {
        m_queues[at].running = true;
        DeviceTask *const task = m_queues[at].tasks[m_queues[at].next].get();
        m_pool.submit([this, at, task] { run(at, *task); });
    }

    void run(std::size_t at, DeviceTask &task)
    {
        for (DeviceTask *next = &task; next != nullptr;)
            next = start(at, *next);
    }

    /// Starts a task. @return the queue's next one, if that may start and this one is done
    DeviceTask *start(std::size_t at, DeviceTask &task)
    {
        const auto begun = TaskListener::Clock::now();
        Result<void> outcome;
        if (task.work) {
            try {
                outcome = task.work(m_queue);
            } catch (const std::bad_alloc &) {
                outcome = Error{ErrorCode::ResourceLimit, "memory is exhausted",
                    "use a smaller batch or recomputation", {}};
            } catch (const std::exception &failure) { // of libraries behind the kernels
                outcome = Error{ErrorCode::Internal, failure.what(), {}, {}};
            }
        }
        if (!outcome || std::holds_alternative<std::monostate>(task.communication))
            return complete(at, task, outcome, begun, true);
        auto done = [this, at, &task, begun](const Result<void> &communicated) {
            (void)complete(at, task, communicated, begun, false);
        };
        if (const auto *const call = std::get_if<CollectiveCall>(&task.communication))
            m_communicator->join(*call, std::move(done));
        else if (const auto *const message = std::get_if<SendCall>(&task.communication))
            m_communicator->send(message->message, std::move(done));
        else
            m_communicator->receive(std::get<ReceiveCall>(task.communication).message, std::move(done));
        return nullptr;
    }

    /// @param goOn  the caller runs the queue's next task if it may start; else the pool does
    DeviceTask *complete(std::size_t at, const DeviceTask &task, const Result<void> &outcome,
        TaskListener::Clock::time_point begun, bool goOn)
    {
        m_listener->finished(task.event, outcome, begun, TaskListener::Clock::now());
        if (m_board != nullptr)
            m_board->done({m_communicator->device().index, task.event});
        DeviceTask *next = nullptr;
        const std::lock_guard lock{m_mutex};
        m_done[static_cast<std::size_t>(task.event)] = true;
        m_queues[at].running = false;
        m_queues[at].tasks[m_queues[at].next++].reset(); // `task` is gone
        m_queues[at].found = 0;
        for (std::size_t queue = 0; queue < m_queues.size(); ++queue) {
            DeviceTask *const ready = readyTask(queue);
            if (ready == nullptr)
                continue;
            if (queue == at && goOn) {
                m_queues[queue].running = true;
                next = ready;
            } else {
                submit(queue);
            }
        }
        if (--m_left == 0)
            m_changed.notify_all();
        return next;
    }

    WorkPool &m_pool;
    std::unique_ptr<Communicator> m_communicator;
    MemoryPool m_memory; ///< Before its blocks.
    CpuBoard *m_board;
    std::vector<MemoryBlock> m_arenas{};
    CpuQueue m_queue{};
    TaskListener *m_listener = nullptr;
    std::mutex m_mutex{}; ///< Of all below.
    std::condition_variable m_changed{};
    std::array<Queue, kQueueCount> m_queues{};
    std::vector<bool> m_done{}; ///< By event.
    std::int32_t m_left = 0;
};

} // namespace

std::unique_ptr<DeviceBackend> cpuBackend(
    WorkPool &pool, std::unique_ptr<Communicator> communicator, MemoryPool::Source memory, CpuBoard *board)
{
    return std::make_unique<CpuBackend>(pool, std::move(communicator), std::move(memory), board);
}

} // namespace planloom
