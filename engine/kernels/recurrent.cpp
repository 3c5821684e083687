#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace planloom {

namespace {

using Activation = double (*)(double);

/// One of ONNX's activations with its default parameters; null if unknown.
Activation activationNamed(const std::string &name)
{
    if (name == "Sigmoid")
        return [](double x) { return 1 / (1 + std::exp(-x)); };
    if (name == "Tanh")
        return [](double x) { return std::tanh(x); };
    if (name == "Relu")
        return [](double x) { return x > 0 ? x : 0.0; };
    if (name == "HardSigmoid")
        return [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); };
    if (name == "Softsign")
        return [](double x) { return x / (1 + std::fabs(x)); };
    if (name == "Softplus")
        return [](double x) { return std::log1p(std::exp(x)); };
    return nullptr;
}

/// ONNX's slots: X, W, R, B, sequence lengths, first h, first c, peepholes -> Y, last h, last c.
struct Recurrence {
    OperatorKind kind = OperatorKind::Rnn;
    std::int64_t steps = 0;
    std::int64_t batch = 0;
    std::int64_t inputs = 0;
    std::int64_t hidden = 0;
    std::int64_t directions = 1;
    std::int64_t gates = 1;
    bool batchFirst = false;
    bool linearBeforeReset = false;
    bool coupled = false; ///< LSTM: the forget gate is 1 - the input gate.
    double clip = 0; ///< 0: none.
    std::vector<Activation> activations{};

    std::int64_t inputAt(std::int64_t t, std::int64_t b) const
    {
        return (batchFirst ? b * steps + t : t * batch + b) * inputs;
    }
    std::int64_t stateAt(std::int64_t d, std::int64_t b) const
    {
        return (batchFirst ? b * directions + d : d * batch + b) * hidden;
    }
    std::int64_t outputAt(std::int64_t t, std::int64_t d, std::int64_t b) const
    {
        return (batchFirst ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * hidden;
    }
};

Result<Recurrence> recurrenceOf(const KernelCall &call)
{
    const Attributes &a = call.op->attributes;
    const Buffer &x = call.inputs[0];
    Recurrence r;
    r.kind = call.op->kind;
    r.batchFirst = a.integer("layout") == 1;
    r.steps = x.shape[r.batchFirst ? 1 : 0];
    r.batch = x.shape[r.batchFirst ? 0 : 1];
    r.inputs = x.shape[2];
    r.hidden = call.inputs[2].shape[2];
    r.directions = call.inputs[1].shape[0];
    r.gates = r.kind == OperatorKind::Lstm ? 4 : r.kind == OperatorKind::Gru ? 3 : 1;
    r.linearBeforeReset = a.integer("linear_before_reset") != 0;
    r.coupled = a.integer("input_forget") != 0;
    r.clip = a.real("clip", 0);
    std::vector<std::string> names;
    const auto found = a.all().find("activations");
    if (found != a.all().end()) {
        if (const auto *given = std::get_if<std::vector<std::string>>(&found->second))
            names = *given;
    }
    const std::vector<std::string> usual = r.kind == OperatorKind::Lstm
        ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
        : r.kind == OperatorKind::Gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                      : std::vector<std::string>{"Tanh"};
    const std::size_t needed = usual.size() * static_cast<std::size_t>(r.directions);
    for (std::size_t i = 0; i < needed; ++i) {
        const std::string &name = names.size() >= needed ? names[i] : usual[i % usual.size()];
        const Activation activation = activationNamed(name);
        if (activation == nullptr)
            return notSupported(call,
                "operator " + call.op->name + " uses activation '" + name + "', which has no implementation");
        r.activations.push_back(activation);
    }
    return r;
}

/// Runs one batch entry in one direction.
template<typename T> class Cell
{
public:
    Cell(const KernelCall &call, const Recurrence &r, std::int64_t direction)
        : m_r(r)
        , m_w(elements<const T>(call.inputs[1]) + direction * r.gates * r.hidden * r.inputs)
        , m_recurrent(elements<const T>(call.inputs[2]) + direction * r.gates * r.hidden * r.hidden)
        , m_activations(r.activations.data()
              + static_cast<std::size_t>(direction)
                  * (r.activations.size() / static_cast<std::size_t>(r.directions)))
    {
        if (const Buffer *bias = findInput(call, 3))
            m_bias = elements<const T>(*bias) + direction * 2 * r.gates * r.hidden;
        if (const Buffer *peephole = r.kind == OperatorKind::Lstm ? findInput(call, 7) : nullptr)
            m_peephole = elements<const T>(*peephole) + direction * 3 * r.hidden;
        m_next.resize(static_cast<std::size_t>(r.hidden));
        m_reset.resize(static_cast<std::size_t>(r.hidden));
    }

    void step(const T *x, std::vector<double> &h, std::vector<double> &c)
    {
        if (m_r.kind == OperatorKind::Lstm)
            stepLstm(x, h, c);
        else if (m_r.kind == OperatorKind::Gru)
            stepGru(x, h);
        else
            stepRnn(x, h);
        h.swap(m_next);
    }

private:
    double bounded(double x) const { return m_r.clip > 0 ? std::clamp(x, -m_r.clip, m_r.clip) : x; }
    double fromInput(std::int64_t gate, std::int64_t j, const T *x) const
    {
        const T *row = m_w + (gate * m_r.hidden + j) * m_r.inputs;
        double sum = m_bias == nullptr ? 0.0 : static_cast<double>(m_bias[gate * m_r.hidden + j]);
        for (std::int64_t i = 0; i < m_r.inputs; ++i)
            sum += static_cast<double>(row[i]) * static_cast<double>(x[i]);
        return sum;
    }
    double fromState(std::int64_t gate, std::int64_t j, const std::vector<double> &h) const
    {
        const T *row = m_recurrent + (gate * m_r.hidden + j) * m_r.hidden;
        double sum =
            m_bias == nullptr ? 0.0 : static_cast<double>(m_bias[(m_r.gates + gate) * m_r.hidden + j]);
        for (std::int64_t i = 0; i < m_r.hidden; ++i)
            sum += static_cast<double>(row[i]) * h[static_cast<std::size_t>(i)];
        return sum;
    }
    double peephole(std::int64_t gate, std::int64_t j, double c) const
    {
        return m_peephole == nullptr ? 0.0 : static_cast<double>(m_peephole[gate * m_r.hidden + j]) * c;
    }

    /// Gates in ONNX's order: input, output, forget, cell.
    void stepLstm(const T *x, const std::vector<double> &h, std::vector<double> &c)
    {
        for (std::int64_t j = 0; j < m_r.hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            const double in =
                m_activations[0](bounded(fromInput(0, j, x) + fromState(0, j, h) + peephole(0, j, c[at])));
            const double forget = m_r.coupled
                ? 1 - in
                : m_activations[0](bounded(fromInput(2, j, x) + fromState(2, j, h) + peephole(2, j, c[at])));
            const double made = m_activations[1](bounded(fromInput(3, j, x) + fromState(3, j, h)));
            c[at] = forget * c[at] + in * made;
            const double out =
                m_activations[0](bounded(fromInput(1, j, x) + fromState(1, j, h) + peephole(1, j, c[at])));
            m_next[at] = out * m_activations[2](c[at]);
        }
    }

    /// Gates in ONNX's order: update, reset, hidden.
    void stepGru(const T *x, const std::vector<double> &h)
    {
        for (std::int64_t j = 0; j < m_r.hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            m_reset[at] = m_activations[0](bounded(fromInput(1, j, x) + fromState(1, j, h)));
        }
        std::vector<double> gated(h);
        for (std::size_t i = 0; i < gated.size(); ++i)
            gated[i] *= m_reset[i];
        for (std::int64_t j = 0; j < m_r.hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            const double update = m_activations[0](bounded(fromInput(0, j, x) + fromState(0, j, h)));
            const double recurrent =
                m_r.linearBeforeReset ? m_reset[at] * fromState(2, j, h) : fromState(2, j, gated);
            const double made = m_activations[1](bounded(fromInput(2, j, x) + recurrent));
            m_next[at] = (1 - update) * made + update * h[at];
        }
    }

    void stepRnn(const T *x, const std::vector<double> &h)
    {
        for (std::int64_t j = 0; j < m_r.hidden; ++j)
            m_next[static_cast<std::size_t>(j)] =
                m_activations[0](bounded(fromInput(0, j, x) + fromState(0, j, h)));
    }

    const Recurrence &m_r;
    const T *m_w;
    const T *m_recurrent;
    const T *m_bias = nullptr;
    const T *m_peephole = nullptr;
    const Activation *m_activations;
    std::vector<double> m_next;
    std::vector<double> m_reset;
};

template<typename T> void storeState(const Buffer *to, std::int64_t at, const std::vector<double> &state)
{
    for (std::size_t j = 0; to != nullptr && j < state.size(); ++j)
        elements<T>(*to)[at + static_cast<std::int64_t>(j)] = static_cast<T>(state[j]);
}

Result<void> recurrentForward(const KernelCall &call)
{
    for (std::size_t slot = 0; slot < 3; ++slot) {
        if (findInput(call, slot) == nullptr)
            return missingSlot(call, "its input or its weights");
    }
    TRY(const Recurrence r, recurrenceOf(call));
    const std::string direction = call.op->attributes.text("direction", "forward");
    const Buffer *lengths = findInput(call, 4);
    const Buffer *firstH = findInput(call, 5);
    const Buffer *firstC = r.kind == OperatorKind::Lstm ? findInput(call, 6) : nullptr;
    const Buffer *y = findOutput(call, 0);
    if (y != nullptr)
        fillZero(*y); // Steps behind the end of a sequence stay zero.
    return withFloat(call, call.inputs[0].dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        for (std::int64_t d = 0; d < r.directions; ++d) {
            const bool backwards = direction == "reverse" || d == 1;
            Cell<T> cell(call, r, d);
            for (std::int64_t b = 0; b < r.batch; ++b) {
                const std::int64_t length = lengths == nullptr ? r.steps : integerAt(*lengths, b);
                if (length < 0 || length > r.steps)
                    return invalidInput(call,
                        "operator " + call.op->name + " got a sequence of length " + std::to_string(length)
                            + ", expected at most " + std::to_string(r.steps));
                const std::int64_t state = r.stateAt(d, b);
                std::vector<double> h(static_cast<std::size_t>(r.hidden), 0.0);
                std::vector<double> c(h);
                for (std::size_t j = 0; j < h.size(); ++j) {
                    h[j] = firstH == nullptr ? 0.0
                                             : static_cast<double>(elements<const T>(
                                                 *firstH)[state + static_cast<std::int64_t>(j)]);
                    c[j] = firstC == nullptr ? 0.0
                                             : static_cast<double>(elements<const T>(
                                                 *firstC)[state + static_cast<std::int64_t>(j)]);
                }
                for (std::int64_t i = 0; i < length; ++i) {
                    const std::int64_t t = backwards ? length - 1 - i : i;
                    cell.step(elements<const T>(call.inputs[0]) + r.inputAt(t, b), h, c);
                    storeState<T>(y, r.outputAt(t, d, b), h);
                }
                storeState<T>(findOutput(call, 1), state, h);
                storeState<T>(r.kind == OperatorKind::Lstm ? findOutput(call, 2) : nullptr, state, c);
            }
        }
        return {};
    });
}

} // namespace

void addRecurrentKernels(KernelTable &table)
{
    for (const OperatorKind kind : {OperatorKind::Lstm, OperatorKind::Gru, OperatorKind::Rnn})
        table.add(kind, Direction::Forward, recurrentForward);
}

} // namespace planloom
