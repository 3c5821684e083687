#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/recurrence/recurrence.h"

#include <vector>

namespace planloom {

namespace {

template<typename T> void storeState(const Buffer *to, std::int64_t at, const std::vector<double> &state)
{
    for (std::size_t j = 0; to != nullptr && j < state.size(); ++j)
        elements<T>(*to)[at + static_cast<std::int64_t>(j)] = static_cast<T>(state[j]);
}

/// `hidden` elements from `at` on; zeros where there is no buffer.
template<typename T> std::vector<double> loadState(const Buffer *from, std::int64_t at, std::int64_t hidden)
{
    std::vector<double> state(static_cast<std::size_t>(hidden), 0.0);
    for (std::size_t j = 0; from != nullptr && j < state.size(); ++j)
        state[j] = static_cast<double>(elements<const T>(*from)[at + static_cast<std::int64_t>(j)]);
    return state;
}

/// Where step `i` of a sequence stands in time.
std::int64_t timeOf(const Recurrence &r, std::int64_t d, std::int64_t length, std::int64_t i)
{
    return r.runsBackwards(d) ? length - 1 - i : i;
}

Result<void> recurrentForward(const KernelCall &call)
{
    const RecurrentInputs inputs{findInput(call, 0), findInput(call, 1), findInput(call, 2),
        findInput(call, 3), findInput(call, 4), findInput(call, 5), findInput(call, 6), findInput(call, 7)};
    TRY(const Recurrence r, recurrenceOf(call, inputs));
    const Buffer *y = findOutput(call, 0);
    if (y != nullptr)
        fillZero(*y); // Steps behind the end of a sequence stay zero.
    return withFloat(call, inputs.x->dataType, [&]<typename T>(T) -> Result<void> {
        for (std::int64_t d = 0; d < r.directions; ++d) {
            const RecurrentCell<T> cell(inputs, r, d);
            for (std::int64_t b = 0; b < r.batch; ++b) {
                TRY(const std::int64_t length, sequenceLength(call, r, inputs.lengths, b));
                const std::int64_t state = r.stateAt(d, b);
                RecurrentStep made;
                std::vector<double> hidden = loadState<T>(inputs.firstHidden, state, r.hidden);
                std::vector<double> kept = loadState<T>(inputs.firstCell, state, r.hidden);
                for (std::int64_t i = 0; i < length; ++i) {
                    const std::int64_t t = timeOf(r, d, length, i);
                    cell.step(elements<const T>(*inputs.x) + r.inputAt(t, d, b), hidden, kept, made);
                    hidden.swap(made.hidden);
                    kept.swap(made.cell);
                    storeState<T>(y, r.outputAt(t, d, b), hidden);
                }
                storeState<T>(findOutput(call, 1), state, hidden);
                if (r.kind == OperatorKind::Lstm)
                    storeState<T>(findOutput(call, 2), state, kept);
            }
        }
        return {};
    });
}

/// Backpropagation through time: each sequence is run again, its steps are kept, and walked back.
template<typename T> class RecurrentBackward
{
public:
    RecurrentBackward(const BackwardCall &back, const RecurrentInputs &inputs, const Recurrence &recurrence)
        : m_back(back)
        , m_inputs(inputs)
        , m_r(recurrence)
        , m_x(sumsOf(0))
        , m_w(sumsOf(1))
        , m_recurrent(sumsOf(2))
        , m_bias(sumsOf(3))
        , m_peepholes(sumsOf(7))
    {
        for (const std::size_t slot : {5U, 6U}) { // first states of sequences of no step keep their gradient
            if (const Buffer *wanted = slot < back.forwardInputs() ? back.wanted(slot) : nullptr)
                fillZero(*wanted);
        }
    }

    Result<void> run(const KernelCall &call)
    {
        for (std::int64_t d = 0; d < m_r.directions; ++d) {
            const RecurrentCell<T> cell(m_inputs, m_r, d);
            for (std::int64_t b = 0; b < m_r.batch; ++b) {
                TRY(const std::int64_t length, sequenceLength(call, m_r, m_inputs.lengths, b));
                runForward(cell, d, b, length);
                runBack(cell, d, b, length);
            }
        }
        store(m_x, 0);
        store(m_w, 1);
        store(m_recurrent, 2);
        store(m_bias, 3);
        store(m_peepholes, 7);
        return {};
    }

private:
    std::vector<double> sumsOf(std::size_t slot) const
    {
        const Buffer *wanted = slot < m_back.forwardInputs() ? m_back.wanted(slot) : nullptr;
        return wanted == nullptr ? std::vector<double>{}
                                 : std::vector<double>(static_cast<std::size_t>(elementCount(*wanted)), 0.0);
    }
    void store(const std::vector<double> &sums, std::size_t slot) const
    {
        if (!sums.empty())
            storeSums<T>(sums, *m_back.wanted(slot));
    }
    const Buffer *gradient(std::size_t k) const
    {
        return k < m_back.forwardOutputs() ? m_back.gradient(k) : nullptr;
    }

    void runForward(const RecurrentCell<T> &cell, std::int64_t d, std::int64_t b, std::int64_t length)
    {
        m_steps.resize(static_cast<std::size_t>(length) + 1);
        const std::int64_t state = m_r.stateAt(d, b);
        m_steps[0].hidden = loadState<T>(m_inputs.firstHidden, state, m_r.hidden);
        m_steps[0].cell = loadState<T>(m_inputs.firstCell, state, m_r.hidden);
        for (std::int64_t i = 0; i < length; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const T *x = elements<const T>(*m_inputs.x) + m_r.inputAt(timeOf(m_r, d, length, i), d, b);
            cell.step(x, m_steps[at].hidden, m_steps[at].cell, m_steps[at + 1]);
        }
    }

    void runBack(const RecurrentCell<T> &cell, std::int64_t d, std::int64_t b, std::int64_t length)
    {
        const std::int64_t state = m_r.stateAt(d, b);
        std::vector<double> dHidden = loadState<T>(gradient(1), state, m_r.hidden);
        std::vector<double> dCell =
            loadState<T>(m_r.kind == OperatorKind::Lstm ? gradient(2) : nullptr, state, m_r.hidden);
        RecurrentSlopes slopes;
        double *peepholes = m_peepholes.empty() ? nullptr : m_peepholes.data() + d * 3 * m_r.hidden;
        for (std::int64_t i = length; i-- > 0;) {
            const auto at = static_cast<std::size_t>(i);
            const std::int64_t t = timeOf(m_r, d, length, i);
            const auto dy = loadState<T>(gradient(0), m_r.outputAt(t, d, b), m_r.hidden);
            for (std::size_t j = 0; j < dHidden.size(); ++j)
                dHidden[j] += dy[j];
            const RecurrentStep &before = m_steps[at];
            cell.slopes(m_steps[at + 1], before.hidden, before.cell, dHidden, dCell, slopes, peepholes);
            addStep(cell, d, m_r.inputAt(t, d, b), m_steps[at + 1], before.hidden, slopes, dHidden);
        }
        storeState<T>(firstWanted(5), state, dHidden);
        storeState<T>(firstWanted(6), state, dCell);
    }
    const Buffer *firstWanted(std::size_t slot) const
    {
        return slot < m_back.forwardInputs() ? m_back.wanted(slot) : nullptr;
    }

    /// Adds what a step's gates give to the weights, the input and the state before.
    void addStep(const RecurrentCell<T> &cell, std::int64_t d, std::int64_t inputAt,
        const RecurrentStep &made, const std::vector<double> &hidden, const RecurrentSlopes &slopes,
        std::vector<double> &dHidden)
    {
        const T *x = elements<const T>(*m_inputs.x) + inputAt;
        for (std::int64_t row = 0; row < m_r.rows(); ++row) {
            const double ofInput = slopes.ofInput[static_cast<std::size_t>(row)];
            const double ofState = slopes.ofState[static_cast<std::size_t>(row)];
            const std::int64_t wRow = (d * m_r.rows() + row) * m_r.inputs;
            const std::int64_t rRow = (d * m_r.rows() + row) * m_r.hidden;
            if (m_r.inputs == 0 && !m_x.empty())
                m_x[static_cast<std::size_t>(inputAt + row)] += ofInput;
            for (std::int64_t i = 0; !m_w.empty() && i < m_r.inputs; ++i)
                m_w[static_cast<std::size_t>(wRow + i)] += ofInput * static_cast<double>(x[i]);
            for (std::int64_t i = 0; !m_x.empty() && i < m_r.inputs; ++i)
                m_x[static_cast<std::size_t>(inputAt + i)] +=
                    ofInput * static_cast<double>(cell.inputWeights()[row * m_r.inputs + i]);
            for (std::int64_t i = 0; !m_recurrent.empty() && i < m_r.hidden; ++i)
                m_recurrent[static_cast<std::size_t>(rRow + i)] +=
                    ofState * cell.stateOf(made, hidden, row / m_r.hidden, i);
            if (!m_bias.empty()) {
                m_bias[static_cast<std::size_t>(d * 2 * m_r.rows() + row)] += ofInput;
                m_bias[static_cast<std::size_t>((d * 2 + 1) * m_r.rows() + row)] += ofState;
            }
            if (!cell.passesState(row / m_r.hidden))
                continue;
            for (std::int64_t i = 0; i < m_r.hidden; ++i)
                dHidden[static_cast<std::size_t>(i)] +=
                    ofState * static_cast<double>(cell.stateWeights()[row * m_r.hidden + i]);
        }
    }

    const BackwardCall &m_back;
    const RecurrentInputs &m_inputs;
    const Recurrence &m_r;
    std::vector<double> m_x; ///< Sums of gradients; empty where they are not wanted.
    std::vector<double> m_w;
    std::vector<double> m_recurrent;
    std::vector<double> m_bias;
    std::vector<double> m_peepholes;
    std::vector<RecurrentStep> m_steps{}; ///< Of one sequence; the first has its first states.
};

Result<void> recurrentBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const RecurrentInputs inputs{back.input(0), back.input(1), back.input(2), back.input(3), back.input(4),
        back.input(5), back.input(6), back.input(7)};
    TRY(const Recurrence r, recurrenceOf(call, inputs));
    return withFloat(call, inputs.x->dataType,
        [&]<typename T>(T) -> Result<void> { return RecurrentBackward<T>(back, inputs, r).run(call); });
}

} // namespace

void addRecurrentKernels(KernelTable &table)
{
    table.add(
        {OperatorKind::Lstm, OperatorKind::Gru, OperatorKind::Rnn}, recurrentForward, recurrentBackward);
}

} // namespace planloom
