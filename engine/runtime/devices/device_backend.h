#pragma once

#include "engine/base/result.h"
#include "engine/kernels/elements/rounded_kernel.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/communication/communicator.h"

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <variant>

namespace planloom {

/// What can be put into a queue of a device; addresses are the device's. Each call is done, or at least in
/// the queue, when it returns: what is put in later comes after it.
class DeviceQueue
{
public:
    virtual ~DeviceQueue() = default;

    /// @param rounding  of values that are not plain floats; may be null
    virtual Result<void> kernel(const KernelCall &call, const KernelRounding *rounding) = 0;

    virtual void fill(std::byte *to, std::uint8_t value, std::size_t bytes) = 0;
    /// Also between a device and its host. The two do not overlap.
    virtual void copy(std::byte *to, const std::byte *from, std::size_t bytes) = 0;
    /// As `copyBox` of box_copy.h; as are the next four.
    virtual void copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to,
        const IndexMask &toBox, const IndexMask &region, std::int64_t elementSize) = 0;
    virtual bool combine(std::byte *to, std::span<const std::byte *const> from, std::size_t count,
        DataType type, Combination combination) = 0;
    virtual bool add(
        std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count) = 0;
    virtual bool weigh(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
        const std::byte *all, DataType weightType, std::size_t rows, std::size_t width) = 0;
    virtual bool merge(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
        const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
        std::size_t width) = 0;
    /// As `convertFloats` of narrow_float.h.
    virtual bool convert(
        const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count) = 0;

    /// Values that `make` writes into memory of the host, on the device. It is called when the queue gets
    /// there, on any thread; its error is that of the task. What it refers to must live until the task has
    /// finished.
    virtual Result<void> upload(
        std::byte *to, std::size_t bytes, const std::function<Result<void>(std::byte *)> &make) = 0;
    /// Shows what lies on the device to `read`, in memory of the host, before anything that comes later; else
    /// as `upload`.
    virtual Result<void> download(const std::byte *from, std::size_t bytes,
        const std::function<Result<void>(const std::byte *)> &read) = 0;
};

struct SendCall {
    MessageCall message{};
};
struct ReceiveCall {
    MessageCall message{};
};

/// A number that a task has among those of its device and step: the event that it is done.
using EventId = std::int32_t;

/// A task among those of all devices of a process.
struct DeviceEvent {
    std::int32_t device = 0;
    EventId event = 0;
    friend auto operator<=>(const DeviceEvent &, const DeviceEvent &) = default;
};

/// What one instruction asks of its device.
struct DeviceTask {
    EventId event = 0;
    QueueKind queue = QueueKind::Compute;
    std::vector<EventId> waits{}; ///< Of other queues of this device: must be done before this starts.
    /// The same of other devices, of backends that use each other's memory (`cpuBackend`).
    std::vector<DeviceEvent> waitsElsewhere{};
    /// What is done first; may be empty.
    std::function<Result<void>(DeviceQueue &)> work{};
    /// What is done then.
    std::variant<std::monostate, CollectiveCall, SendCall, ReceiveCall> communication{};
    bool varies = false; ///< `work` depends on more than the kind of its step.
    /// Memory whose content nothing reads any more once this is done, and that tasks of no other queue have
    /// used for it. May leave some out.
    std::vector<std::span<const std::byte>> ends{};
};

/// What the step that begins has in common with others.
struct StepKind {
    /// Steps of the same number issue the same tasks, and the work of those that do not vary is the same; -1:
    /// like no other.
    std::int32_t number = -1;
    bool timed = true; ///< It matters when each task ran, and not only when all did.
};

/// Hears of tasks as they run, one call at a time for each queue, on any thread.
class TaskListener
{
public:
    using Clock = std::chrono::steady_clock;

    virtual ~TaskListener() = default;
    /// @param start, end  when it ran; a collective starts when this member has joined it
    virtual void finished(
        EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end) = 0;
};

/// One device: its memory, its queues, and its end of the communication. Everything is issued and nothing
/// waits, but `finish`. Each queue runs its tasks in the order they were issued in, all queues side by side.
///
/// On CUDA a queue is a stream and an event an event: `work` runs when it is issued and launches on the
/// stream, waits are waits of the stream. On the CPU it runs once it may, on threads that devices share.
class DeviceBackend
{
public:
    virtual ~DeviceBackend() = default;

    /// Memory for a whole run, aligned to `alignment()`, which lives as long as the backend. Null for no
    /// bytes. @return ResourceLimit
    virtual Result<std::byte *> reserve(MemoryPlace place, std::size_t bytes) = 0;
    virtual std::int64_t alignment() const = 0;
    /// Its kernels heed `KernelCall::addsTo`.
    virtual bool addsInPlace() const { return false; }
    /// It looks at `DeviceTask::ends`.
    virtual bool asksWhatEnds() const { return false; }

    /// Forgets the events of the step before, of which all is done.
    /// @param events  how many tasks will be issued, with events 0 to events - 1
    virtual void begin(std::int32_t events, TaskListener &listener) = 0;
    /// Before `begin`: a backend may keep what it made of a step for the next one of its kind. Steps of which
    /// nothing was said are like no other.
    virtual void announce(const StepKind &) { }
    virtual void issue(DeviceTask task) = 0;
    /// Waits for all that was issued. After a task failed, later ones are still run: `work` says at once that
    /// the run has stopped.
    virtual void finish() = 0;
};

} // namespace planloom
