#pragma once

#include "engine/base/result.h"
#include "engine/runtime/run.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace planloom {

/// Puts boxes that devices hold together to whole arrays on the host: graph outputs, gradients, new weights,
/// and with `keepAll` every tensor. Every box that is stored is an output's; of what operators make, equal
/// boxes of several parts (replicas) are taken from the first part, in whatever instructions it runs.
///
/// Claims are made by one thread before the run; `put` may then be called by all threads.
class Collector
{
public:
    /// A buffer of an instruction whose content goes to an array.
    struct Claim {
        std::size_t array = 0;
        std::int32_t buffer = 0; ///< Of the device.
        bool lastStepOnly = false;
        DataType dataType = DataType::Float32; ///< Of the buffer.
        float factor = 1; ///< Of its values: undoes the loss scale of gradients.
    };

    /// When a summand is added: device, and instruction of its step.
    using Turn = std::pair<std::int32_t, std::int32_t>;
    /// Takes what is put in another collector's place.
    using Forward = std::function<void(const Claim &, const IndexMask &, const std::byte *, const Turn &)>;

    /// @param forward  where arrays are put together by another process: takes all that is put, and this one
    ///   keeps none
    Collector(const ExecutionPlan &plan, const RunOptions &options, Forward forward = {});

    /// What to put once `instruction` of `device` has run. To be called once for each instruction, device by
    /// device in ascending order.
    std::vector<Claim> claimsOf(std::int32_t device, const Instruction &instruction);

    /// What all claimed arrays take, and taking it: before the first step, once there is room.
    Bytes bytes() const;
    void reserve();

    /// Clears the arrays that are sums. Called by one thread between steps.
    void beginStep();

    /// Copies `box` to the claimed array, or keeps it to be added. Thread-safe.
    void put(const Claim &claim, const IndexMask &box, const std::byte *data, const Turn &turn);

    /// Adds what is to be added, in the order of turns whoever came first, so that sums are the same bits in
    /// every run. Makes the loss the mean over micro-batches where those are whole batches. Once, when a step
    /// has ended.
    void endStep();

    /// Value of the loss after a step; NaN where the plan stores none.
    double loss() const;

    /// Moves the arrays into `outcome`. The collector is empty afterwards.
    void finish(RunOutcome &outcome);

private:
    enum class Kind : std::uint8_t { Output, Gradient, Weight, Trace };
    struct Summand {
        IndexMask box{};
        std::vector<std::byte> data{};
    };
    struct Array {
        Kind kind{};
        TensorId tensor{};
        TensorData data{};
        bool sum = false; ///< Boxes are summands, of devices or of micro-batches.
        std::map<std::pair<Turn, std::int32_t>, Summand> summands{}; ///< By turn, and buffer.
        std::mutex mutex{};
    };
    using Key = std::tuple<std::size_t, std::int32_t, IndexMask, SummandSet>;

    std::size_t arrayOf(Kind kind, TensorId tensor, bool sum);
    /// The part of an operator that an instruction runs.
    struct Maker {
        OperatorId op{};
        std::int32_t part = 0;
        friend bool operator==(const Maker &, const Maker &) = default;
    };
    void claim(std::vector<Claim> &claims, Kind kind, TensorId tensor, const Maker &maker,
        const DeviceProgram &program, std::int32_t buffer);

    const ExecutionPlan &m_plan;
    Forward m_forward;
    float m_gradientFactor;
    bool m_keepGradients;
    bool m_keepAll;
    std::deque<Array> m_arrays;
    std::map<std::pair<Kind, TensorId>, std::size_t> m_index;
    std::map<Key, Maker> m_claimed;
};

} // namespace planloom
