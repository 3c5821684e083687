#include "engine/frontend/passes/batch/unroll_recurrence.h"

#include "engine/frontend/passes/batch/replacement_writer.h"
#include "engine/frontend/unique_names.h"
#include "engine/frontend/writer/graph_writer.h"
#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// ONNX's slots.
constexpr std::size_t kX = 0;
constexpr std::size_t kW = 1;
constexpr std::size_t kR = 2;
constexpr std::size_t kBias = 3;
constexpr std::size_t kLengths = 4;
constexpr std::size_t kFirstHidden = 5;
constexpr std::size_t kFirstCell = 6;
constexpr std::size_t kPeepholes = 7;

bool isRecurrence(const Operator &op)
{
    return op.direction == Direction::Forward && categoryOf(op.kind) == OperatorCategory::Recurrent;
}

Error cannotUnroll(const Operator &op, const std::string &why)
{
    return Error{ErrorCode::NotSupported, "'" + op.name + "' cannot be unrolled: " + why,
        "leave it out: as one operator it trains, and splits along the batch and the directions", "--unroll"};
}

/// The activations of all directions, in ONNX's order.
Result<std::vector<OperatorKind>> activationsOf(const Operator &op, std::int64_t directions)
{
    using enum OperatorKind;
    static const std::map<std::string, OperatorKind, std::less<>> kKnown = {
        {"Sigmoid", Sigmoid}, {"Tanh", Tanh}, {"Relu", Relu}, {"Softplus", Softplus}, {"Softsign", Softsign}};
    std::vector<OperatorKind> usual{Tanh};
    if (op.kind == Lstm)
        usual = {Sigmoid, Tanh, Tanh};
    else if (op.kind == Gru)
        usual = {Sigmoid, Tanh};
    const std::size_t needed = usual.size() * static_cast<std::size_t>(directions);
    std::vector<OperatorKind> made;
    const auto found = op.attributes.all().find("activations");
    const auto *names =
        found == op.attributes.all().end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
    for (std::size_t i = 0; i < needed; ++i) {
        if (names == nullptr || names->size() < needed) {
            made.push_back(usual[i % usual.size()]);
            continue;
        }
        const auto known = kKnown.find((*names)[i]);
        if (known == kKnown.end())
            return cannotUnroll(op, "activation '" + (*names)[i] + "' has parameters, or is not known");
        made.push_back(known->second);
    }
    return made;
}

/// Writes one recurrence anew.
class RecurrenceUnroller
{
public:
    RecurrenceUnroller(Graph &graph, const Operator &op, const std::set<TensorId> &ownWeights,
        UniqueNames &tensorNames, UniqueNames &operatorNames)
        : m_graph(graph)
        , m_op(op)
        , m_ownWeights(ownWeights)
        , m_new(graph, op, tensorNames, operatorNames)
    {
    }

    /// @return what it cannot do, before anything is changed
    Result<void> check();
    Result<void> write();
    std::vector<Operator> &operators() { return m_new.operators(); }

private:
    /// What one direction reads in each step.
    struct Side {
        TensorId weights{}; ///< R [g h h]
        TensorId bias{}; ///< Of R, [g h]; invalid without biases.
        std::array<TensorId, 3> peepholes{}; ///< [1 h] each: input, output, forget.
        std::vector<TensorId> x{}; ///< By time, [1 b g h], with the bias of W.
        const OperatorKind *activations = nullptr;
    };
    /// A state: as products read it, [1 b h], and as gates do, [1 b 1 h].
    struct State {
        TensorId flat{};
        TensorId wide{};
    };

    bool has(std::size_t slot) const { return slot < m_op.inputs.size() && m_op.inputs[slot]; }
    const Shape &shapeOf(TensorId id) const { return m_graph.at(id).type.shape; }
    bool wants(std::size_t slot) const { return slot < m_op.outputs.size() && m_op.outputs[slot]; }

    TensorId regrouped(const std::string &suffix, TensorId weight, Shape shape);

    void readSides();
    void readInput(std::vector<Side> &sides, TensorId biases);
    std::vector<State> firstStates(std::size_t slot);
    bool isZero(TensorId id) const;
    void step(const Side &side, std::int64_t t, const std::string &at, State &hidden, State &cell);
    void stepLstm(const Side &side, std::int64_t t, const std::string &at, State &hidden, State &cell);
    void stepGru(const Side &side, std::int64_t t, const std::string &at, State &hidden);
    State stateOf(const std::string &suffix, TensorId wide);
    void bind(std::size_t slot, TensorId value);
    void finish(const std::vector<std::vector<TensorId>> &byTime, const std::vector<State> &hidden,
        const std::vector<State> &cell);
    TensorId lastStates(const std::string &suffix, const std::vector<State> &states);

    Graph &m_graph;
    Operator m_op; ///< A copy: the graph's moves away.
    const std::set<TensorId> &m_ownWeights; ///< Read by what is unrolled alone: they may have another shape.
    ReplacementWriter m_new;
    std::vector<OperatorKind> m_activations{};
    std::vector<Side> m_sides{};
    bool m_isBatchFirst = false;
    std::size_t m_timeAxis = 0;
    std::int64_t m_steps = 0;
    std::int64_t m_batch = 0;
    std::int64_t m_directions = 1;
    std::int64_t m_gates = 1;
    std::int64_t m_hidden = 0;
};

Result<void> RecurrenceUnroller::check()
{
    if (!has(kX) || !has(kR) || has(kW) || shapeOf(m_op.inputs[kX]).size() != 4)
        return cannotUnroll(m_op, "what its weights make of the input is no product of its own");
    if (has(kLengths))
        return cannotUnroll(m_op, "its sequences have lengths of their own");
    if (m_op.attributes.real("clip") != 0)
        return cannotUnroll(m_op, "its gates are clipped");
    const Shape &x = shapeOf(m_op.inputs[kX]);
    m_isBatchFirst = m_op.attributes.integer("layout") == 1;
    m_timeAxis = m_isBatchFirst ? 1 : 0;
    m_steps = x[m_timeAxis];
    m_batch = x[1 - m_timeAxis];
    m_directions = x[2];
    m_hidden = shapeOf(m_op.inputs[kR]).back();
    m_gates = m_op.kind == OperatorKind::Lstm ? 4 : m_op.kind == OperatorKind::Gru ? 3 : 1;
    if (m_steps < 1 || m_hidden < 1 || x[3] != m_gates * m_hidden)
        return cannotUnroll(m_op, "its input has the shape " + toString(x));
    TRY(m_activations, activationsOf(m_op, m_directions));
    return {};
}

/// The weight by another shape: itself where nobody else reads it.
TensorId RecurrenceUnroller::regrouped(const std::string &suffix, TensorId weight, Shape shape)
{
    Tensor &tensor = m_graph.at(weight);
    if (tensor.type.shape == shape)
        return weight;
    if (!m_ownWeights.contains(weight))
        return m_new.reshape(suffix, weight, std::move(shape));
    tensor.fileShape = std::exchange(tensor.type.shape, std::move(shape));
    if (tensor.data) {
        auto data = std::make_shared<TensorData>(*tensor.data);
        data->type.shape = tensor.type.shape;
        tensor.data = std::move(data);
    }
    return weight;
}

/// Weights by direction.
void RecurrenceUnroller::readSides()
{
    m_sides.resize(static_cast<std::size_t>(m_directions));
    const Integers gates(m_sides.size(), m_gates);
    const auto weights = m_new.split("weights",
        regrouped("weights_by_gate", m_op.inputs[kR], {m_directions * m_gates, m_hidden, m_hidden}), 0,
        gates);
    TensorId biases;
    std::vector<TensorId> ofState(m_sides.size());
    if (has(kBias)) {
        const TensorId all =
            regrouped("bias_by_gate", m_op.inputs[kBias], {2 * m_directions * m_gates, m_hidden});
        const auto parts = m_new.split("bias", all, 0, Integers(2 * m_sides.size(), m_gates));
        std::vector<TensorId> ofInput;
        for (std::size_t d = 0; d < m_sides.size(); ++d) {
            ofInput.push_back(parts[2 * d]);
            ofState[d] = parts[2 * d + 1];
        }
        biases = m_new.concat("input_bias", std::move(ofInput), 0);
    }
    std::vector<TensorId> peepholes;
    if (has(kPeepholes))
        peepholes = m_new.split("peepholes",
            regrouped("peepholes_by_gate", m_op.inputs[kPeepholes], {3 * m_directions, m_hidden}), 0,
            Integers(3 * m_sides.size(), 1));
    for (std::size_t d = 0; d < m_sides.size(); ++d) {
        Side &side = m_sides[d];
        side.weights = weights[d];
        side.bias = ofState[d];
        side.activations = m_activations.data() + d * m_activations.size() / m_sides.size();
        for (std::size_t i = 0; i < peepholes.size() / m_sides.size(); ++i)
            side.peepholes[i] = peepholes[3 * d + i];
    }
    readInput(m_sides, biases);
}

/// Regroups what W makes of the input by gates, [t b d*g h], and takes directions and steps apart.
void RecurrenceUnroller::readInput(std::vector<Side> &sides, TensorId biases)
{
    TensorId x = m_op.inputs[kX];
    Shape shape = shapeOf(x);
    shape[2] *= m_gates;
    shape[3] = m_hidden;
    const auto maker = std::find_if(m_graph.operators.begin(), m_graph.operators.end(),
        [x](const Operator &op) { return !op.outputs.empty() && op.outputs.front() == x; });
    // The product itself makes the gates apart, where nobody else reads what it makes.
    const bool isProduct = m_ownWeights.contains(x) && maker != m_graph.operators.end()
        && maker->kind == OperatorKind::Linear && m_ownWeights.contains(maker->inputs[1]);
    if (isProduct) {
        regrouped("", maker->inputs[1], {m_directions * m_gates, m_hidden, shapeOf(maker->inputs[1]).back()});
        m_graph.at(x).type.shape = shape;
    } else {
        x = m_new.reshape("input_by_gate", x, shape);
    }
    const auto bySide =
        m_new.split("sides", m_new.sum("input_biased", x, biases), 2, Integers(sides.size(), m_gates));
    const Integers steps(static_cast<std::size_t>(m_steps), 1);
    for (std::size_t d = 0; d < sides.size(); ++d)
        sides[d].x = m_new.split(
            sides.size() > 1 ? "steps_" + std::to_string(d) : "steps", bySide[d], m_timeAxis, steps);
}

/// True for what is known to hold zeros alone.
bool RecurrenceUnroller::isZero(TensorId id) const
{
    const auto &data = m_graph.at(id).data;
    return m_graph.at(id).role == TensorRole::Buffer && data
        && std::all_of(
            data->bytes.begin(), data->bytes.end(), [](std::byte each) { return each == std::byte{0}; });
}

/// First states by direction; without ids where they are zeros.
std::vector<RecurrenceUnroller::State> RecurrenceUnroller::firstStates(std::size_t slot)
{
    std::vector<State> states(m_sides.size());
    if (!has(slot) || isZero(m_op.inputs[slot]))
        return states;
    const std::string name = slot == kFirstHidden ? "first_hidden" : "first_cell";
    const auto parts = m_new.split(
        name, m_op.inputs[slot], m_isBatchFirst ? 1 : 0, Integers(m_sides.size(), 1)); // [1 b h] or [b 1 h]
    for (std::size_t d = 0; d < m_sides.size(); ++d) {
        states[d].flat = parts[d];
        Shape wide = shapeOf(parts[d]);
        wide.insert(wide.begin() + 2, 1);
        states[d].wide = m_new.reshape(name + "_" + std::to_string(d), parts[d], std::move(wide));
    }
    return states;
}

RecurrenceUnroller::State RecurrenceUnroller::stateOf(const std::string &suffix, TensorId wide)
{
    Shape flat = shapeOf(wide);
    flat.erase(flat.begin() + 2);
    return {m_new.reshape(suffix, wide, std::move(flat)), wide};
}

/// i, o, f, c: c' = f c + i g(..), h' = o k(c').
void RecurrenceUnroller::stepLstm(
    const Side &side, std::int64_t t, const std::string &at, State &hidden, State &cell)
{
    using enum OperatorKind;
    const TensorId state = !hidden.flat
        ? side.bias
        : m_new.one(at + "state", Linear, {hidden.flat, side.weights, side.bias},
            attributesFrom({{"transposed", std::int64_t{1}}}));
    const auto gates = m_new.split(
        at + "gates", m_new.sum(at + "before", side.x[static_cast<std::size_t>(t)], state), 2, {1, 1, 1, 1});
    const auto seen = [&](std::size_t gate, TensorId by, const std::string &name) {
        const TensorId weight = side.peepholes[gate];
        if (!weight || !by)
            return gates[gate];
        return m_new.sum(
            at + name + "_seen", gates[gate], m_new.one(at + name + "_peephole", Mul, {by, weight}));
    };
    const TensorId input = m_new.one(at + "input", side.activations[0], {seen(0, cell.wide, "input")});
    const TensorId fresh = m_new.one(at + "fresh", side.activations[1], {gates[3]});
    TensorId next;
    if (m_op.attributes.integer("input_forget") != 0 && cell.wide) { // f = 1 - i
        const TensorId change = m_new.one(at + "change", Sub, {fresh, cell.wide});
        next = m_new.sum(at + "cell", cell.wide, m_new.one(at + "taken", Mul, {input, change}));
    } else {
        next = m_new.one(cell.wide ? at + "taken" : at + "cell", Mul, {input, fresh});
        if (cell.wide) {
            const TensorId forget =
                m_new.one(at + "forget", side.activations[0], {seen(2, cell.wide, "forget")});
            next = m_new.sum(at + "cell", m_new.one(at + "kept", Mul, {forget, cell.wide}), next);
        }
    }
    const TensorId output = m_new.one(at + "output", side.activations[0], {seen(1, next, "output")});
    const TensorId shown = m_new.one(at + "shown", side.activations[2], {next});
    hidden = stateOf(at + "flat", m_new.one(at + "hidden", Mul, {output, shown}));
    cell.wide = next;
}

/// z, r, h: h' = n + z (h - n), n = g(x + R (r h)), or g(x + r (R h)).
void RecurrenceUnroller::stepGru(const Side &side, std::int64_t t, const std::string &at, State &hidden)
{
    using enum OperatorKind;
    const Attributes transposed = attributesFrom({{"transposed", std::int64_t{1}}});
    const auto x = m_new.split(at + "inputs", side.x[static_cast<std::size_t>(t)], 2, {2, 1});
    const bool isLinear = m_op.attributes.integer("linear_before_reset") != 0;
    std::vector<TensorId> bias(2);
    if (side.bias && (!isLinear || !hidden.flat))
        bias = m_new.split(at + "biases", side.bias, 0, {2, 1});
    std::vector<TensorId> weights(2);
    std::vector<TensorId> state = bias; // what R makes of the state, with its bias
    if (hidden.flat && isLinear) {
        state = m_new.split(at + "states",
            m_new.one(at + "state", Linear, {hidden.flat, side.weights, side.bias}, transposed), 2, {2, 1});
    } else if (hidden.flat) {
        weights = m_new.split(at + "weights", side.weights, 0, {2, 1});
        state[0] = m_new.one(at + "state", Linear, {hidden.flat, weights[0], bias[0]}, transposed);
    }
    const auto gates = m_new.split(at + "gates",
        m_new.one(at + "activated", side.activations[0], {m_new.sum(at + "before", x[0], state[0])}), 2,
        {1, 1});
    if (hidden.flat && !isLinear) {
        const State kept = stateOf(at + "kept_flat", m_new.one(at + "kept", Mul, {gates[1], hidden.wide}));
        state[1] = m_new.one(at + "fresh_state", Linear, {kept.flat, weights[1], bias[1]}, transposed);
    } else if (isLinear && state[1]) {
        state[1] = m_new.one(at + "kept", Mul, {gates[1], state[1]});
    }
    const TensorId fresh =
        m_new.one(at + "fresh", side.activations[1], {m_new.sum(at + "fresh_before", x[1], state[1])});
    TensorId next;
    if (hidden.wide) {
        const TensorId change = m_new.one(at + "change", Sub, {hidden.wide, fresh});
        next = m_new.sum(at + "hidden", fresh, m_new.one(at + "held", Mul, {gates[0], change}));
    } else {
        next = m_new.one(at + "hidden", Sub, {fresh, m_new.one(at + "held", Mul, {gates[0], fresh})});
    }
    hidden = stateOf(at + "flat", next);
}

void RecurrenceUnroller::step(
    const Side &side, std::int64_t t, const std::string &at, State &hidden, State &cell)
{
    if (m_op.kind == OperatorKind::Lstm)
        return stepLstm(side, t, at, hidden, cell);
    if (m_op.kind == OperatorKind::Gru)
        return stepGru(side, t, at, hidden);
    const TensorId state = !hidden.flat
        ? side.bias
        : m_new.one(at + "state", OperatorKind::Linear, {hidden.flat, side.weights, side.bias},
            attributesFrom({{"transposed", std::int64_t{1}}}));
    const TensorId before = m_new.sum(at + "before", side.x[static_cast<std::size_t>(t)], state);
    hidden = stateOf(at + "flat", m_new.one(at + "hidden", side.activations[0], {before}));
}

/// The operator that makes `value`, or a reshape of it, makes from now on what others read.
void RecurrenceUnroller::bind(std::size_t slot, TensorId value)
{
    const TensorId wanted = m_op.outputs[slot];
    const Shape shape = shapeOf(wanted);
    if (elementCount(shape) != elementCount(shapeOf(value)))
        m_new.fail(cannotUnroll(m_op, "its result has the shape " + toString(shape)));
    if (shapeOf(value) != shape || m_new.operators().back().outputs != std::vector{value})
        value = m_new.one("shaped", OperatorKind::Reshape, {value}, {}, {m_graph.at(wanted).type});
    m_new.operators().back().outputs = {wanted};
    if (slot == 0)
        m_new.operators().back().name = m_op.name; // free: what had it goes away
}

/// [d b h], or batch first.
TensorId RecurrenceUnroller::lastStates(const std::string &suffix, const std::vector<State> &states)
{
    std::vector<TensorId> parts;
    for (const State &state : states)
        parts.push_back(state.wide);
    const TensorId all = m_new.concat(suffix, std::move(parts), 2); // [1 b d h] or [b 1 d h]
    if (m_isBatchFirst || states.size() == 1)
        return all;
    return m_new.one(suffix + "_turned", OperatorKind::Transpose, {all},
        attributesFrom({{"permutation", Integers{0, 2, 1, 3}}}));
}

void RecurrenceUnroller::finish(const std::vector<std::vector<TensorId>> &byTime,
    const std::vector<State> &hidden, const std::vector<State> &cell)
{
    if (wants(0)) {
        std::vector<TensorId> sides;
        for (std::size_t d = 0; d < byTime.size(); ++d)
            sides.push_back(m_new.concat(
                byTime.size() > 1 ? "joined_" + std::to_string(d) : "joined", byTime[d], m_timeAxis));
        TensorId y = m_new.concat("both", std::move(sides), 2); // [t b d h]
        if (!m_isBatchFirst && m_directions > 1)
            y = m_new.one("turned", OperatorKind::Transpose, {y},
                attributesFrom({{"permutation", Integers{0, 2, 1, 3}}}));
        bind(0, y);
    }
    if (wants(1))
        bind(1, lastStates("last", hidden));
    if (wants(2))
        bind(2, lastStates("last_cells", cell));
}

Result<void> RecurrenceUnroller::write()
{
    readSides();
    std::vector<State> hidden = firstStates(kFirstHidden);
    std::vector<State> cell = firstStates(kFirstCell);
    std::vector<std::vector<TensorId>> byTime(m_sides.size());
    for (std::size_t d = 0; d < m_sides.size(); ++d) {
        byTime[d].resize(static_cast<std::size_t>(m_steps));
        const bool isBackwards = d == 1 || m_op.attributes.text("direction") == "reverse";
        for (std::int64_t i = 0; i < m_steps; ++i) {
            const std::int64_t t = isBackwards ? m_steps - 1 - i : i;
            const std::string at =
                (m_sides.size() > 1 ? "d" + std::to_string(d) + "_t" : "t") + std::to_string(t) + "_";
            step(m_sides[d], t, at, hidden[d], cell[d]);
            byTime[d][static_cast<std::size_t>(t)] = hidden[d].wide;
        }
    }
    finish(byTime, hidden, cell);
    if (m_new.failure())
        return *m_new.failure();
    return {};
}

/// All recurrences. @return NotFound for a name that none has
Result<std::set<std::size_t>> recurrencesIn(const Graph &graph, const std::set<std::string> &names)
{
    std::set<std::size_t> chosen;
    std::set<std::string> missing = names;
    missing.erase("*");
    std::string known;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (!isRecurrence(op))
            continue;
        known += (known.empty() ? "'" : ", '") + op.name + "'";
        missing.erase(op.name);
        chosen.insert(i);
    }
    if (!missing.empty())
        return Error{ErrorCode::NotFound, "no recurrence is called '" + *missing.begin() + "'",
            known.empty() ? "this model has none" : "those of this model are " + known, "--unroll"};
    return chosen;
}

/// Stored tensors that the chosen recurrences, and the products of their inputs, alone read; and these
/// products' results.
std::set<TensorId> ownOf(const Graph &graph, const std::set<std::size_t> &chosen)
{
    std::map<TensorId, std::int32_t> readers;
    for (const Operator &op : graph.operators) {
        for (const TensorId input : op.inputs)
            readers[input] += input ? 1 : 0;
    }
    for (const TensorId output : graph.outputs)
        ++readers[output];
    std::set<TensorId> own;
    const auto take = [&](TensorId id) {
        if (id && readers[id] == 1 && graph.at(id).fileShape.empty() && !graph.at(id).filePart)
            own.insert(id);
    };
    for (const std::size_t i : chosen) {
        const Operator &op = graph.operators[i];
        for (const std::size_t slot : {kX, kR, kBias, kPeepholes}) {
            const bool isStored = slot < op.inputs.size() && op.inputs[slot]
                && graph.at(op.inputs[slot]).role != TensorRole::Input
                && (slot == kX || graph.at(op.inputs[slot]).role != TensorRole::Activation);
            if (isStored)
                take(op.inputs[slot]);
        }
        for (const Operator &maker : graph.operators) {
            if (maker.kind == OperatorKind::Linear && maker.outputs[0] == op.inputs[kX]
                && maker.inputs.size() == 2 && maker.attributes.integer("transposed") != 0
                && graph.at(maker.inputs[1]).role != TensorRole::Activation
                && graph.at(maker.inputs[1]).type.shape.size() == 3)
                take(maker.inputs[1]);
        }
    }
    return own;
}

} // namespace

Result<std::int32_t> unrollRecurrences(Graph &graph, const std::set<std::string> &names)
{
    TRY(auto chosen, recurrencesIn(graph, names));
    UniqueNames tensorNames = UniqueNames::ofTensors(graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(graph);
    std::set<TensorId> own;
    std::map<std::size_t, RecurrenceUnroller> unrollers;
    for (auto each = chosen.begin(); each != chosen.end();) {
        const Operator &op = graph.operators[*each];
        RecurrenceUnroller unroller(graph, op, own, tensorNames, operatorNames);
        const auto possible = unroller.check();
        const bool isNamed = names.contains(op.name);
        if (!possible && isNamed)
            return possible.error();
        if (!possible && names.contains("*"))
            graph.notes.push_back(possible.error().message);
        const bool isWanted = possible && (isNamed || names.contains("*"));
        graph.recurrences[op.name] = {isWanted, possible ? std::string() : possible.error().message};
        if (isWanted)
            unrollers.emplace(*each, std::move(unroller));
        each = isWanted ? std::next(each) : chosen.erase(each);
    }
    if (chosen.empty())
        return 0;
    own = ownOf(graph, chosen);
    for (auto &[i, unroller] : unrollers)
        TRY_VOID(unroller.write());
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const auto unroller = unrollers.find(i);
        if (unroller == unrollers.end())
            operators.push_back(std::move(graph.operators[i]));
        else
            std::move(unroller->second.operators().begin(), unroller->second.operators().end(),
                std::back_inserter(operators));
    }
    graph.operators = std::move(operators);
    return static_cast<std::int32_t>(chosen.size());
}

} // namespace planloom
