#include "engine/kernels/recurrence/recurrence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <variant>

namespace planloom {

namespace {

using ActivationKind = GateActivation::Kind;

/// An activation by name, with its defaults, and whether it has each of the two parameters.
struct NamedActivation {
    const char *name;
    GateActivation activation;
    bool hasAlpha;
    bool hasBeta;
};

constexpr std::array<NamedActivation, 11> kActivations{{
    {"Sigmoid", {ActivationKind::Sigmoid, 0, 0}, false, false},
    {"Tanh", {ActivationKind::Tanh, 0, 0}, false, false},
    {"Relu", {ActivationKind::Relu, 0, 0}, false, false},
    {"Affine", {ActivationKind::Affine, 1, 0}, true, true},
    {"LeakyRelu", {ActivationKind::LeakyRelu, 0.01, 0}, true, false},
    {"ThresholdedRelu", {ActivationKind::ThresholdedRelu, 1, 0}, true, false},
    {"ScaledTanh", {ActivationKind::ScaledTanh, 1, 1}, true, true},
    {"HardSigmoid", {ActivationKind::HardSigmoid, 0.2, 0.5}, true, true},
    {"Elu", {ActivationKind::Elu, 1, 0}, true, false},
    {"Softsign", {ActivationKind::Softsign, 0, 0}, false, false},
    {"Softplus", {ActivationKind::Softplus, 0, 0}, false, false},
}};

template<typename List> List listOf(const Attributes &attributes, const char *name)
{
    const auto found = attributes.all().find(name);
    const List *list = found == attributes.all().end() ? nullptr : std::get_if<List>(&found->second);
    return list == nullptr ? List{} : *list;
}

/// The activations of all directions, in ONNX's order. Parameters are taken from their lists by those that
/// have them, one after another.
Result<std::vector<GateActivation>> activationsOf(
    const KernelCall &call, OperatorKind kind, std::int64_t directions)
{
    const Attributes &attributes = call.op->attributes;
    const auto names = listOf<std::vector<std::string>>(attributes, "activations");
    const auto alphas = listOf<std::vector<double>>(attributes, "activation_alpha");
    const auto betas = listOf<std::vector<double>>(attributes, "activation_beta");
    const std::vector<std::string> usual = kind == OperatorKind::Lstm
        ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
        : kind == OperatorKind::Gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                    : std::vector<std::string>{"Tanh"};
    const std::size_t needed = usual.size() * static_cast<std::size_t>(directions);
    std::vector<GateActivation> made;
    std::size_t alpha = 0;
    std::size_t beta = 0;
    for (std::size_t i = 0; i < needed; ++i) {
        const std::string &name = names.size() >= needed ? names[i] : usual[i % usual.size()];
        const auto *const found = std::find_if(
            kActivations.begin(), kActivations.end(), [&](const auto &known) { return name == known.name; });
        if (found == kActivations.end())
            return notSupported(call,
                "operator " + call.op->name + " uses activation '" + name + "', which has no implementation");
        made.push_back(found->activation);
        if (found->hasAlpha && alpha < alphas.size())
            made.back().alpha = alphas[alpha++];
        if (found->hasBeta && beta < betas.size())
            made.back().beta = betas[beta++];
    }
    return made;
}

} // namespace

double GateActivation::at(double x) const
{
    switch (kind) {
    case Kind::Sigmoid:
        return 1 / (1 + std::exp(-x));
    case Kind::Tanh:
        return std::tanh(x);
    case Kind::Relu:
        return x > 0 ? x : 0.0;
    case Kind::Affine:
        return alpha * x + beta;
    case Kind::LeakyRelu:
        return x >= 0 ? x : alpha * x;
    case Kind::ThresholdedRelu:
        return x > alpha ? x : 0.0;
    case Kind::ScaledTanh:
        return alpha * std::tanh(beta * x);
    case Kind::HardSigmoid:
        return std::clamp(alpha * x + beta, 0.0, 1.0);
    case Kind::Elu:
        return x >= 0 ? x : alpha * std::expm1(x);
    case Kind::Softsign:
        return x / (1 + std::fabs(x));
    case Kind::Softplus:
        return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    }
    return 0;
}

double GateActivation::slope(double x, double y) const
{
    switch (kind) {
    case Kind::Sigmoid:
        return y * (1 - y);
    case Kind::Tanh:
        return 1 - y * y;
    case Kind::Relu:
        return x > 0 ? 1 : 0;
    case Kind::Affine:
        return alpha;
    case Kind::LeakyRelu:
        return x >= 0 ? 1 : alpha;
    case Kind::ThresholdedRelu:
        return x > alpha ? 1 : 0;
    case Kind::ScaledTanh: {
        const double bent = std::tanh(beta * x);
        return alpha * beta * (1 - bent * bent);
    }
    case Kind::HardSigmoid:
        return y > 0 && y < 1 ? alpha : 0;
    case Kind::Elu:
        return x >= 0 ? 1 : y + alpha;
    case Kind::Softsign:
        return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    case Kind::Softplus:
        return 1 / (1 + std::exp(-x));
    }
    return 0;
}

Result<Recurrence> recurrenceOf(const KernelCall &call, const RecurrentInputs &inputs)
{
    if (inputs.x == nullptr || inputs.r == nullptr)
        return missingSlot(call, "its input or its weights");
    const Attributes &attributes = call.op->attributes;
    Recurrence r;
    r.kind = call.op->kind;
    r.batchFirst = attributes.integer("layout") == 1;
    r.steps = inputs.x->shape[r.batchFirst ? 1 : 0];
    r.batch = inputs.x->shape[r.batchFirst ? 0 : 1];
    r.inputs = inputs.w == nullptr ? 0 : inputs.x->shape[2];
    r.hidden = inputs.r->shape[2];
    r.directions = inputs.r->shape[0];
    r.firstDirection = firstOf(*inputs.r, 0);
    r.gates = r.kind == OperatorKind::Lstm ? 4 : r.kind == OperatorKind::Gru ? 3 : 1;
    r.isReversed = attributes.text("direction", "forward") == "reverse";
    r.linearBeforeReset = attributes.integer("linear_before_reset") != 0;
    r.isCoupled = attributes.integer("input_forget") != 0;
    r.clip = attributes.real("clip", 0);
    const std::int64_t whole = wholeExtent(*inputs.r, 0);
    TRY(const auto all, activationsOf(call, r.kind, whole));
    const auto each = static_cast<std::ptrdiff_t>(all.size()) / std::max<std::int64_t>(1, whole);
    r.activations.assign(
        all.begin() + r.firstDirection * each, all.begin() + (r.firstDirection + r.directions) * each);
    return r;
}

Result<std::int64_t> sequenceLength(
    const KernelCall &call, const Recurrence &recurrence, const Buffer *lengths, std::int64_t b)
{
    const std::int64_t length = lengths == nullptr ? recurrence.steps : integerAt(*lengths, b);
    if (length < 0 || length > recurrence.steps)
        return invalidInput(call,
            "operator " + call.op->name + " got a sequence of length " + std::to_string(length)
                + ", expected at most " + std::to_string(recurrence.steps));
    return length;
}

template<typename T>
RecurrentCell<T>::RecurrentCell(
    const RecurrentInputs &inputs, const Recurrence &recurrence, std::int64_t direction)
    : m_r(recurrence)
    , m_recurrent(elements<const T>(*inputs.r) + direction * recurrence.rows() * recurrence.hidden)
    , m_activations(recurrence.activations.data()
          + static_cast<std::size_t>(direction)
              * (recurrence.activations.size() / static_cast<std::size_t>(recurrence.directions)))
{
    if (inputs.w != nullptr)
        m_w = elements<const T>(*inputs.w) + direction * recurrence.rows() * recurrence.inputs;
    if (inputs.bias != nullptr)
        m_bias = elements<const T>(*inputs.bias) + direction * 2 * recurrence.rows();
    if (recurrence.kind == OperatorKind::Lstm && inputs.peepholes != nullptr)
        m_peepholes = elements<const T>(*inputs.peepholes) + direction * 3 * recurrence.hidden;
}

template<typename T> double RecurrentCell<T>::fromInput(std::int64_t gate, std::int64_t j, const T *x) const
{
    double sum = m_bias == nullptr ? 0.0 : static_cast<double>(m_bias[gate * m_r.hidden + j]);
    if (m_w == nullptr)
        return sum + static_cast<double>(x[gate * m_r.hidden + j]);
    const T *row = m_w + (gate * m_r.hidden + j) * m_r.inputs;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < m_r.inputs; ++i)
        sum += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    return sum;
}

template<typename T>
double RecurrentCell<T>::fromState(std::int64_t gate, std::int64_t j, const std::vector<double> &state) const
{
    const T *row = m_recurrent + (gate * m_r.hidden + j) * m_r.hidden;
    const double *values = state.data();
    double sum = m_bias == nullptr ? 0.0 : static_cast<double>(m_bias[(m_r.gates + gate) * m_r.hidden + j]);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < m_r.hidden; ++i)
        sum += static_cast<double>(row[i]) * values[i];
    return sum;
}

template<typename T> double RecurrentCell<T>::peephole(std::int64_t gate, std::int64_t j) const
{
    return m_peepholes == nullptr ? 0.0 : static_cast<double>(m_peepholes[gate * m_r.hidden + j]);
}

template<typename T> double RecurrentCell<T>::activated(std::int64_t function, double x) const
{
    return m_activations[function].at(m_r.clip > 0 ? std::clamp(x, -m_r.clip, m_r.clip) : x);
}

template<typename T>
double RecurrentCell<T>::slopeOf(
    std::int64_t function, std::size_t at, const RecurrentStep &made, double gradient) const
{
    const double x = made.before[at];
    const bool clipped = m_r.clip > 0 && std::fabs(x) > m_r.clip;
    return clipped ? 0.0 : gradient * m_activations[function].slope(x, made.gate[at]);
}

template<typename T>
void RecurrentCell<T>::step(
    const T *x, const std::vector<double> &hidden, const std::vector<double> &cell, RecurrentStep &made) const
{
    const auto rows = static_cast<std::size_t>(m_r.rows());
    const auto width = static_cast<std::size_t>(m_r.hidden);
    made.before.resize(rows);
    made.gate.resize(rows);
    made.hidden.resize(width);
    if (m_r.kind == OperatorKind::Lstm) {
        stepLstm(x, hidden, cell, made);
    } else if (m_r.kind == OperatorKind::Gru) {
        stepGru(x, hidden, made);
    } else {
        for (std::size_t j = 0; j < width; ++j) {
            const auto row = static_cast<std::int64_t>(j);
            made.before[j] = fromInput(0, row, x) + fromState(0, row, hidden);
            made.gate[j] = made.hidden[j] = activated(0, made.before[j]);
        }
    }
}

/// Gates in ONNX's order: input, output, forget, cell.
template<typename T>
void RecurrentCell<T>::stepLstm(
    const T *x, const std::vector<double> &hidden, const std::vector<double> &cell, RecurrentStep &made) const
{
    made.cell.resize(static_cast<std::size_t>(m_r.hidden));
    const auto gate = [&](std::int64_t which, std::int64_t function, std::int64_t j, double seen) {
        const auto at = static_cast<std::size_t>(which * m_r.hidden + j);
        made.before[at] = fromInput(which, j, x) + fromState(which, j, hidden) + seen;
        made.gate[at] = activated(function, made.before[at]);
        return made.gate[at];
    };
    for (std::int64_t j = 0; j < m_r.hidden; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const double in = gate(0, 0, j, peephole(0, j) * cell[at]);
        const double forget = m_r.isCoupled ? 1 - in : gate(2, 0, j, peephole(2, j) * cell[at]);
        const double fresh = gate(3, 1, j, 0);
        made.cell[at] = forget * cell[at] + in * fresh;
        const double out = gate(1, 0, j, peephole(1, j) * made.cell[at]);
        made.hidden[at] = out * m_activations[2].at(made.cell[at]);
    }
}

/// Gates in ONNX's order: update, reset, hidden.
template<typename T>
void RecurrentCell<T>::stepGru(const T *x, const std::vector<double> &hidden, RecurrentStep &made) const
{
    const auto width = static_cast<std::size_t>(m_r.hidden);
    made.inner.resize(width);
    for (const std::int64_t which : {0, 1}) {
        for (std::int64_t j = 0; j < m_r.hidden; ++j) {
            const auto at = static_cast<std::size_t>(which * m_r.hidden + j);
            made.before[at] = fromInput(which, j, x) + fromState(which, j, hidden);
            made.gate[at] = activated(0, made.before[at]);
        }
    }
    for (std::size_t j = 0; j < width; ++j) {
        const auto row = static_cast<std::int64_t>(j);
        made.inner[j] = m_r.linearBeforeReset ? fromState(2, row, hidden) : made.gate[width + j] * hidden[j];
    }
    for (std::size_t j = 0; j < width; ++j) {
        const auto row = static_cast<std::int64_t>(j);
        const double recurrent =
            m_r.linearBeforeReset ? made.gate[width + j] * made.inner[j] : fromState(2, row, made.inner);
        made.before[2 * width + j] = fromInput(2, row, x) + recurrent;
        const double fresh = made.gate[2 * width + j] = activated(1, made.before[2 * width + j]);
        made.hidden[j] = (1 - made.gate[j]) * fresh + made.gate[j] * hidden[j];
    }
}

template<typename T>
double RecurrentCell<T>::stateOf(
    const RecurrentStep &made, const std::vector<double> &hidden, std::int64_t gate, std::int64_t i) const
{
    const bool reset = m_r.kind == OperatorKind::Gru && gate == 2 && !m_r.linearBeforeReset;
    return (reset ? made.inner : hidden)[static_cast<std::size_t>(i)];
}

template<typename T>
void RecurrentCell<T>::slopes(const RecurrentStep &made, const std::vector<double> &hidden,
    const std::vector<double> &cell, std::vector<double> &dHidden, std::vector<double> &dCell,
    RecurrentSlopes &slopes, double *dPeepholes) const
{
    const auto rows = static_cast<std::size_t>(m_r.rows());
    slopes.ofInput.assign(rows, 0.0);
    slopes.ofState.assign(rows, 0.0);
    if (m_r.kind == OperatorKind::Lstm) {
        slopesLstm(made, cell, dHidden, dCell, slopes, dPeepholes);
    } else if (m_r.kind == OperatorKind::Gru) {
        slopesGru(made, hidden, dHidden, slopes);
    } else {
        for (std::size_t j = 0; j < rows; ++j) {
            slopes.ofInput[j] = slopes.ofState[j] = slopeOf(0, j, made, dHidden[j]);
            dHidden[j] = 0;
        }
    }
}

template<typename T>
void RecurrentCell<T>::slopesLstm(const RecurrentStep &made, const std::vector<double> &cell,
    std::vector<double> &dHidden, std::vector<double> &dCell, RecurrentSlopes &slopes,
    double *dPeepholes) const
{
    const auto width = static_cast<std::size_t>(m_r.hidden);
    const GateActivation &shown = m_activations[2];
    for (std::size_t j = 0; j < width; ++j) {
        const auto row = static_cast<std::int64_t>(j);
        const double in = made.gate[j];
        const double out = made.gate[width + j];
        const double forget = m_r.isCoupled ? 1 - in : made.gate[2 * width + j];
        const double fresh = made.gate[3 * width + j];
        const double seen = shown.at(made.cell[j]);
        const double dOut = slopeOf(0, width + j, made, dHidden[j] * seen);
        const double dc =
            dCell[j] + dHidden[j] * out * shown.slope(made.cell[j], seen) + dOut * peephole(1, row);
        const double ofForget = dc * cell[j];
        const double dIn = slopeOf(0, j, made, dc * fresh - (m_r.isCoupled ? ofForget : 0.0));
        const double dForget = m_r.isCoupled ? 0.0 : slopeOf(0, 2 * width + j, made, ofForget);
        const double dFresh = slopeOf(1, 3 * width + j, made, dc * in);
        const std::array<double, 4> all{dIn, dOut, dForget, dFresh};
        for (std::size_t gate = 0; gate < all.size(); ++gate)
            slopes.ofInput[gate * width + j] = slopes.ofState[gate * width + j] = all[gate];
        if (dPeepholes != nullptr) {
            dPeepholes[j] += dIn * cell[j];
            dPeepholes[width + j] += dOut * made.cell[j];
            dPeepholes[2 * width + j] += dForget * cell[j];
        }
        dHidden[j] = 0;
        dCell[j] = dc * forget + dIn * peephole(0, row) + dForget * peephole(2, row);
    }
}

template<typename T>
void RecurrentCell<T>::slopesGru(const RecurrentStep &made, const std::vector<double> &hidden,
    std::vector<double> &dHidden, RecurrentSlopes &slopes) const
{
    const auto width = static_cast<std::size_t>(m_r.hidden);
    std::vector<double> ofInner(width, 0.0);
    for (std::size_t j = 0; j < width; ++j) {
        const double fresh = made.gate[2 * width + j];
        const double dFresh = slopeOf(1, 2 * width + j, made, dHidden[j] * (1 - made.gate[j]));
        slopes.ofInput[2 * width + j] = dFresh;
        slopes.ofState[2 * width + j] = m_r.linearBeforeReset ? dFresh * made.gate[width + j] : dFresh;
        slopes.ofInput[j] = slopes.ofState[j] = slopeOf(0, j, made, dHidden[j] * (hidden[j] - fresh));
        dHidden[j] *= made.gate[j];
    }
    if (m_r.linearBeforeReset) {
        for (std::size_t j = 0; j < width; ++j)
            ofInner[j] = slopes.ofInput[2 * width + j] * made.inner[j]; // of the reset gate
    } else {
        for (std::size_t j = 0; j < width; ++j) {
            const T *row = m_recurrent + (2 * m_r.hidden + static_cast<std::int64_t>(j)) * m_r.hidden;
            for (std::size_t i = 0; i < width; ++i)
                ofInner[i] += slopes.ofState[2 * width + j] * static_cast<double>(row[i]);
        }
        for (std::size_t j = 0; j < width; ++j) {
            dHidden[j] += ofInner[j] * made.gate[width + j];
            ofInner[j] *= hidden[j];
        }
    }
    for (std::size_t j = 0; j < width; ++j)
        slopes.ofInput[width + j] = slopes.ofState[width + j] = slopeOf(0, width + j, made, ofInner[j]);
}

template class RecurrentCell<float>;
template class RecurrentCell<double>;

} // namespace planloom
