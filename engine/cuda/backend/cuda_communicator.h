#pragma once

#include "engine/cuda/backend/cuda_queue.h"
#include "engine/runtime/communication/communicator.h"

#include <functional>
#include <string>

namespace planloom {

/// One device's end of the communication of a run on GPUs. Nothing here waits. All calls come from the one
/// thread that issues the devices' work, but `abort`.
class CudaCommunicator
{
public:
    /// Told once the communication is in its stream, or will never be; on the calling thread, perhaps before
    /// the call returns, perhaps in a call of another device of this process.
    using Launched = std::function<void(Result<void>)>;

    virtual ~CudaCommunicator() = default;

    virtual DeviceId device() const = 0;
    /// Memory of the device that it communicates from best, which it keeps until the run's end; null where
    /// any will do, or there is none left. On the device of this thread.
    virtual std::byte *allocate(std::size_t) { return nullptr; }
    /// As those of Communicator, in the stream of `queue`, which lives until it has been told.
    virtual void join(const CollectiveCall &call, CudaQueue &queue, Launched launched) = 0;
    virtual void send(const MessageCall &message, CudaQueue &queue, Launched launched) = 0;
    virtual void receive(const MessageCall &message, CudaQueue &queue, Launched launched) = 0;

    /// Why a step's communication cannot be part of a CUDA graph now; empty where it can.
    virtual std::string whyNotCaptured() const { return "its communication is not captured with it"; }
    /// What was joined, sent and received since the step began is to be so again.
    virtual void captureFailed() { cancelWaiting(); }

    /// What it has put into streams waits there for other processes.
    virtual bool waitsInStreams() const { return false; }
    /// Puts the sum of all processes' floats in place of the one at `number`, in memory of the device. All
    /// processes must come to it between the same steps. Without others: nothing.
    virtual Result<void> sumOverAll(float *, CudaStream) { return {}; }
    /// How many that are.
    virtual std::int32_t processes() const { return 1; }

    /// What has gone wrong by itself since.
    virtual Result<void> poll() = 0;
    /// What the library that communicates has written, to be put behind an error's message; may be empty.
    virtual std::string log() const { return {}; }
    /// Tells all that waits to be launched that it will not be: Cancelled. After an abort.
    virtual void cancelWaiting() = 0;
    /// All that was issued in this step is done.
    virtual void stepDone() = 0;
    /// Ends what waits, in a stream too. Thread-safe.
    virtual void abort() = 0;
    virtual bool isAborted() const = 0;
};

} // namespace planloom
