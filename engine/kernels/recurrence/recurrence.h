#pragma once

#include "engine/kernels/kernel_call.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// One of the activations that ONNX has for gates, with its parameters.
struct GateActivation {
    enum class Kind : std::uint8_t {
        Sigmoid,
        Tanh,
        Relu,
        Affine, ///< alpha x + beta
        LeakyRelu, ///< alpha x below 0
        ThresholdedRelu, ///< 0 up to alpha
        ScaledTanh, ///< alpha tanh(beta x)
        HardSigmoid, ///< alpha x + beta within [0, 1]
        Elu, ///< alpha (e^x - 1) below 0
        Softsign,
        Softplus,
    };
    Kind kind = Kind::Sigmoid;
    double alpha = 0;
    double beta = 0;

    double at(double x) const;
    /// The derivative at x, where y = at(x).
    double slope(double x, double y) const;
};

/// ONNX's slots of Lstm, Gru and Rnn: X, W, R, [B], [lengths], [first h], [first c], [peepholes].
struct RecurrentInputs {
    const Buffer *x = nullptr;
    const Buffer *w = nullptr;
    const Buffer *r = nullptr;
    const Buffer *bias = nullptr;
    const Buffer *lengths = nullptr;
    const Buffer *firstHidden = nullptr;
    const Buffer *firstCell = nullptr;
    const Buffer *peepholes = nullptr;
};

/// How one call walks through time: its extents, all of this part, and where elements lie.
struct Recurrence {
    OperatorKind kind = OperatorKind::Rnn;
    std::int64_t steps = 0;
    std::int64_t batch = 0;
    std::int64_t inputs = 0; ///< 0 where X is what W has made of it.
    std::int64_t hidden = 0;
    std::int64_t directions = 1;
    std::int64_t firstDirection = 0; ///< In the whole operator.
    std::int64_t gates = 1;
    bool batchFirst = false;
    bool isReversed = false; ///< One direction, from the end.
    bool linearBeforeReset = false;
    bool isCoupled = false; ///< Lstm: the forget gate is 1 - the input gate.
    double clip = 0; ///< 0: none.
    std::vector<GateActivation> activations{}; ///< Of each direction of this part, in ONNX's order.

    /// Where what direction `d` reads at a time begins in X.
    std::int64_t inputAt(std::int64_t t, std::int64_t d, std::int64_t b) const
    {
        const std::int64_t at = batchFirst ? b * steps + t : t * batch + b;
        return inputs > 0 ? at * inputs : (at * directions + d) * rows();
    }
    std::int64_t stateAt(std::int64_t d, std::int64_t b) const
    {
        return (batchFirst ? b * directions + d : d * batch + b) * hidden;
    }
    std::int64_t outputAt(std::int64_t t, std::int64_t d, std::int64_t b) const
    {
        return (batchFirst ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * hidden;
    }
    bool runsBackwards(std::int64_t d) const { return isReversed || firstDirection + d == 1; }
    std::int64_t rows() const { return gates * hidden; } ///< Of a direction's weights.
};

/// @return NotSupported naming an activation that is not known; Internal if an input that is needed has no
/// data
Result<Recurrence> recurrenceOf(const KernelCall &call, const RecurrentInputs &inputs);

/// The number of steps of sequence `b`. @return InvalidInput if it is not from 0 to the number of steps
Result<std::int64_t> sequenceLength(
    const KernelCall &call, const Recurrence &recurrence, const Buffer *lengths, std::int64_t b);

/// What one step leaves for the backward pass; [gates hidden] and [hidden].
struct RecurrentStep {
    std::vector<double> before{}; ///< What gates are activated from, not yet clipped.
    std::vector<double> gate{};
    std::vector<double> inner{}; ///< Gru: what the reset gate multiplies (linearBeforeReset), or has made.
    std::vector<double> cell{}; ///< Lstm.
    std::vector<double> hidden{};
};

/// Gradients of one step: of what the input's and the state's products with the weights add to each gate,
/// [gates hidden] each.
struct RecurrentSlopes {
    std::vector<double> ofInput{};
    std::vector<double> ofState{};
};

/// The equations of one direction (ONNX's operators LSTM, GRU, RNN).
template<typename T> class RecurrentCell
{
public:
    RecurrentCell(const RecurrentInputs &inputs, const Recurrence &recurrence, std::int64_t direction);

    /// One step from the states before it, which have `hidden` elements each.
    void step(const T *x, const std::vector<double> &hidden, const std::vector<double> &cell,
        RecurrentStep &made) const;

    /// The step's derivative. `dHidden` and `dCell` are the gradients of its states, and become those of the
    /// states before it as far as these do not pass the recurrent weights; `dPeepholes` is added to.
    void slopes(const RecurrentStep &made, const std::vector<double> &hidden, const std::vector<double> &cell,
        std::vector<double> &dHidden, std::vector<double> &dCell, RecurrentSlopes &slopes,
        double *dPeepholes) const;

    /// What the recurrent weights of gate `gate` are multiplied with.
    double stateOf(const RecurrentStep &made, const std::vector<double> &hidden, std::int64_t gate,
        std::int64_t i) const;

    /// False where `slopes` has passed on already what the recurrent weights of gate `gate` give the state.
    bool passesState(std::int64_t gate) const
    {
        return m_r.kind != OperatorKind::Gru || gate != 2 || m_r.linearBeforeReset;
    }

    const T *inputWeights() const { return m_w; }
    const T *stateWeights() const { return m_recurrent; }

private:
    double fromInput(std::int64_t gate, std::int64_t j, const T *x) const;
    double fromState(std::int64_t gate, std::int64_t j, const std::vector<double> &state) const;
    double peephole(std::int64_t gate, std::int64_t j) const;
    double activated(std::int64_t function, double x) const;
    /// The gradient of what a gate is activated from.
    double slopeOf(std::int64_t function, std::size_t at, const RecurrentStep &made, double gradient) const;
    void stepLstm(const T *x, const std::vector<double> &hidden, const std::vector<double> &cell,
        RecurrentStep &made) const;
    void stepGru(const T *x, const std::vector<double> &hidden, RecurrentStep &made) const;
    void slopesLstm(const RecurrentStep &made, const std::vector<double> &cell, std::vector<double> &dHidden,
        std::vector<double> &dCell, RecurrentSlopes &slopes, double *dPeepholes) const;
    void slopesGru(const RecurrentStep &made, const std::vector<double> &hidden, std::vector<double> &dHidden,
        RecurrentSlopes &slopes) const;

    const Recurrence &m_r;
    const T *m_w = nullptr;
    const T *m_recurrent;
    const T *m_bias = nullptr;
    const T *m_peepholes = nullptr;
    const GateActivation *m_activations;
};

extern template class RecurrentCell<float>;
extern template class RecurrentCell<double>;

} // namespace planloom
