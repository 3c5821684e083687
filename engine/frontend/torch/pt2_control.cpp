// Graphs that nodes of a program call: in place, step by step, or both sides of a choice.
#include "engine/frontend/torch/pt2_nodes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostSteps = 1024; ///< Of a loop that is unrolled.
constexpr std::int64_t kNoSteps = -1;

using Values = std::vector<AtenValue>;

/// The extent of a value's first dimension; nothing of what has none.
std::optional<std::int64_t> lengthOf(GraphWriter &writer, const AtenValue &value)
{
    const auto *complex = std::get_if<AtenComplex>(&value);
    const auto *id = complex != nullptr ? &complex->real : std::get_if<TensorId>(&value);
    if (id == nullptr || writer.typeOf(*id).shape.empty())
        return std::nullopt;
    return writer.typeOf(*id).shape.front();
}

/// Tensors as the list that operators of lists take.
AtenValue tensorList(const Values &values)
{
    std::vector<TensorId> ids;
    std::vector<AtenComplex> pairs;
    for (const AtenValue &value : values) {
        if (const auto *complex = std::get_if<AtenComplex>(&value))
            pairs.push_back(*complex);
        else if (const auto *id = std::get_if<TensorId>(&value))
            ids.push_back(*id);
    }
    if (!pairs.empty())
        return pairs;
    return ids;
}

} // namespace

/// What a node that calls graphs is given, in order.
struct Pt2NodeImporter::GraphCall {
    std::vector<std::shared_ptr<const Pt2Graph>> graphs{};
    std::vector<Values> lists{}; ///< What stands behind the first graph; a single value is a list of one.
    std::vector<bool> flags{}; ///< What is said before it.
    Values before{}; ///< Tensors that stand before it.
    std::vector<std::string> names{}; ///< Of what `flat` has, in the graph that calls; empty for no tensors.

    /// All lists in one.
    Values flat() const
    {
        Values all;
        for (const Values &list : lists)
            all.insert(all.end(), list.begin(), list.end());
        return all;
    }
    Values list(std::size_t index) const { return index < lists.size() ? lists[index] : Values{}; }
};

Result<Pt2NodeImporter::GraphCall> Pt2NodeImporter::graphCall(const Pt2Node &node) const
{
    GraphCall call;
    for (const Pt2NamedArgument &input : node.inputs) {
        const auto *flag = std::get_if<bool>(&input.value);
        if (const auto *graph = std::get_if<std::shared_ptr<const Pt2Graph>>(&input.value)) {
            call.graphs.push_back(*graph);
        } else if (call.graphs.empty() && flag != nullptr) {
            call.flags.push_back(*flag);
        } else if (call.graphs.empty()) {
            TRY(AtenValue value, pt2Argument(*m_frame, input.value, node));
            call.before.push_back(std::move(value));
        } else if (!std::holds_alternative<std::string>(input.value)) {
            TRY(Values values, pt2List(*m_frame, input.value, node));
            const auto *tensor = std::get_if<Pt2Tensor>(&input.value);
            const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&input.value);
            for (std::size_t i = 0; i < values.size(); ++i)
                call.names.push_back(tensor != nullptr ? tensor->name
                        : tensors != nullptr           ? (*tensors)[i].name
                                                       : "");
            call.lists.push_back(std::move(values));
        }
    }
    if (call.graphs.empty())
        return pt2Error(node, ErrorCode::InvalidInput, "it calls no graph", "export the model anew");
    return call;
}

/// Imports a graph in place.
Result<Values> Pt2NodeImporter::runGraph(
    const Pt2Node &node, const Pt2Graph &graph, Values arguments, Values *written)
{
    if (graph.inputs.size() != arguments.size())
        return pt2Error(node, ErrorCode::InvalidInput,
            "it calls a graph of " + std::to_string(graph.inputs.size()) + " inputs with "
                + std::to_string(arguments.size()),
            "export the model anew");
    Pt2Frame frame(graph);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto *tensor = std::get_if<Pt2Tensor>(&graph.inputs[i]);
        const auto *symbol = std::get_if<Pt2Symbol>(&graph.inputs[i]);
        if (tensor != nullptr || symbol != nullptr)
            frame.set(tensor != nullptr ? tensor->name : symbol->name, std::move(arguments[i]));
    }
    const std::vector<std::string> modules = m_modules;
    if (!node.modules.empty())
        m_modules = node.modules;
    auto outputs = run(frame);
    for (std::size_t i = 0; written != nullptr && outputs && i < graph.inputs.size(); ++i) {
        const auto *tensor = std::get_if<Pt2Tensor>(&graph.inputs[i]);
        const AtenValue *value = tensor == nullptr ? nullptr : frame.find(tensor->name);
        written->push_back(value == nullptr ? AtenValue() : *value);
    }
    m_modules = modules;
    return outputs;
}

/// What an ATen operator makes, in the name of a node that calls graphs.
Result<Values> Pt2NodeImporter::make(const Pt2Node &node, const std::string &name, AtenArguments arguments,
    std::size_t results, const std::string &suffix)
{
    NodeWriter writer = writerOf(node, {});
    return AtenContext(name, {}, {}, writer).otherMany(name, std::move(arguments), results, suffix);
}

Result<AtenValue> Pt2NodeImporter::makeOne(
    const Pt2Node &node, const std::string &name, AtenArguments arguments, const std::string &suffix)
{
    TRY(const Values made, make(node, name, std::move(arguments), 1, suffix));
    return made.front();
}

Result<void> Pt2NodeImporter::bindResults(const Pt2Node &node, Values outputs)
{
    const auto names = pt2ResultsOf(node);
    if (names.size() != outputs.size())
        return pt2Error(node, ErrorCode::InvalidInput,
            "its graph returns " + std::to_string(outputs.size()) + " values, where "
                + std::to_string(names.size()) + " were expected",
            "export the model anew");
    NodeWriter writer = writerOf(node, names);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty() || std::holds_alternative<std::monostate>(outputs[i]))
            continue;
        TRY_VOID(pt2SetOnce(*m_frame, names[i], outputs[i], node));
        if (const auto *tensor = std::get_if<TensorId>(&outputs[i]))
            TRY_VOID(writer.bind(i, *tensor));
    }
    return checkDeclared(node, names);
}

/// The value as a constant of derivatives; itself where it is one.
Result<TensorId> Pt2NodeImporter::withoutGradient(const Pt2Node &node, TensorId tensor)
{
    if (m_writer.isKnown(tensor) || !isFloating(m_writer.typeOf(tensor).dataType))
        return tensor;
    const std::string path = pt2PathOf(node, m_modules);
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    TRY(const auto made,
        m_writer.emit(name, SourceNode{path, pt2ShortTarget(node.target)}, OperatorKind::Identity,
            attributesFrom({{"detached", std::int64_t{1}}}), {tensor}, {}, false));
    return made.front();
}

/// The value `after` of a tensor that was written where no gradients are followed: it has the gradient of
/// `before`, and what was written adds none.
Result<TensorId> Pt2NodeImporter::writtenAside(const Pt2Node &node, TensorId before, TensorId after)
{
    TRY(const TensorId value, withoutGradient(node, after));
    if (m_writer.isKnown(before) || m_writer.at(before).role == TensorRole::Buffer
        || !isFloating(m_writer.typeOf(before).dataType))
        return value;
    const auto combine = [&](OperatorKind kind, TensorId a, TensorId b) -> Result<TensorId> {
        TRY(const auto made,
            m_writer.emit(node.name + ".written",
                SourceNode{pt2PathOf(node, m_modules), pt2ShortTarget(node.target)}, kind, {}, {a, b}, {}));
        return made.front();
    };
    TRY(const TensorId fixed, withoutGradient(node, before));
    TRY(const TensorId own, combine(OperatorKind::Sub, before, fixed));
    return combine(OperatorKind::Add, value, own);
}

/// Gives a tensor of this graph what an inner graph wrote into it, perhaps with gradients off.
Result<void> Pt2NodeImporter::keepWritten(
    const Pt2Node &node, const std::string &name, TensorId before, TensorId after, bool stopsGradients)
{
    TRY_VOID(checkSharing(node, name));
    if (stopsGradients) {
        TRY(after, writtenAside(node, before, after));
    }
    noteChanged(before, name);
    m_frame->set(name, AtenValue(after));
    const auto *view = m_frame->viewOf(name);
    return view == nullptr ? Result<void>{} : writeIntoBase(node, *view, name);
}

/// Says of a buffer that is read after it was changed that no step sees what an earlier one wrote.
void Pt2NodeImporter::noteChanged(TensorId before, const std::string &name)
{
    const Tensor &tensor = m_writer.at(before);
    const bool stored = tensor.role == TensorRole::Buffer || tensor.role == TensorRole::Weight;
    if (stored && isFloating(tensor.type.dataType) && m_frame->isUsedBehind(name, m_position))
        m_writer.note("'" + tensor.name
            + "' is written in each step and then read: here each step begins with what the file has, "
              "PyTorch's with what the step before wrote");
}

/// No gradient flows through what is computed with gradients off.
Result<Values> Pt2NodeImporter::stopGradients(const Pt2Node &node, Values outputs)
{
    for (AtenValue &output : outputs) {
        if (const auto *tensor = std::get_if<TensorId>(&output)) {
            TRY(output, withoutGradient(node, *tensor));
        } else if (std::holds_alternative<AtenComplex>(output)) {
            TRY(output, makeOne(node, "detach", {{"self", output}}, "detached"));
        }
    }
    return outputs;
}

/// Graphs that are called with a setting switched, once or several times, or if something holds.
Result<void> Pt2NodeImporter::importInner(const Pt2Node &node, const std::string &target)
{
    const std::string name = target.substr(target.find('.') + 1);
    using Runner = Result<Values> (Pt2NodeImporter::*)(const Pt2Node &, const GraphCall &);
    static const std::map<std::string, Runner> kRunners = {{"scan", &Pt2NodeImporter::runScan},
        {"associative_scan", &Pt2NodeImporter::runAssociativeScan}, {"map_impl", &Pt2NodeImporter::runMap},
        {"while_loop", &Pt2NodeImporter::runWhile}, {"cond", &Pt2NodeImporter::runCondition}};
    static const std::set<std::string> kPlain = {"wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap",
        "tag_activation_checkpoint", "wrap_activation_checkpoint", "invoke_subgraph", "hints_wrapper",
        "strict_mode"};
    const auto runner = kRunners.find(name);
    if (runner == kRunners.end() && kPlain.count(name) == 0)
        return pt2Error(node, ErrorCode::NotSupported, "it calls graphs in a way that Planloom does not know",
            "write this step with plain tensor operators, or with torch.cond, scan, associative_scan, map or "
            "while_loop");
    TRY(const GraphCall call, graphCall(node));
    if (runner != kRunners.end()) {
        TRY(Values outputs, (this->*runner->second)(node, call));
        return bindResults(node, std::move(outputs));
    }
    const bool isOn = !call.flags.empty() && call.flags.front();
    if (name == "wrap_with_autocast" && isOn)
        return pt2Error(node, ErrorCode::NotSupported,
            "it computes in types that torch.autocast chooses, which the program does not say",
            "save exported.run_decompositions({}) instead, which writes the types, or export the module "
            "without torch.autocast and choose types by a plan's precision rows");
    const Values arguments = call.flat();
    Values written;
    TRY(Values outputs, runGraph(node, *call.graphs.front(), arguments, &written));
    const bool stopsGradients = name == "wrap_with_set_grad_enabled" && !isOn;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto *before = std::get_if<TensorId>(&arguments[i]);
        const auto *after = std::get_if<TensorId>(&written[i]);
        if (before != nullptr && after != nullptr && *before != *after)
            TRY_VOID(keepWritten(node, call.names[i], *before, *after, stopsGradients));
    }
    if (stopsGradients) {
        TRY(outputs, stopGradients(node, std::move(outputs)));
    }
    return bindResults(node, std::move(outputs));
}

// --- loops -------------------------------------------------------------------------------------------------

/// Sequences step by step: what each of them has at the first, the second, .. place of its first dimension.
Result<std::vector<Values>> Pt2NodeImporter::stepsOf(const Pt2Node &node, const Values &sequences)
{
    std::int64_t steps = kNoSteps;
    for (const AtenValue &sequence : sequences) {
        const auto length = lengthOf(m_writer, sequence);
        if (!length || (steps != kNoSteps && *length != steps))
            return pt2Error(
                node, ErrorCode::InvalidInput, "its sequences are not equally long", "export the model anew");
        steps = *length;
    }
    if (steps < 1 || steps > kMostSteps)
        return pt2Error(node, ErrorCode::NotSupported,
            "it runs for " + std::to_string(std::max<std::int64_t>(steps, 0)) + " steps, where 1 to "
                + std::to_string(kMostSteps) + " are unrolled",
            "export with shorter sequences, or scan over chunks: an outer scan whose step computes a whole "
            "chunk "
            "with tensor operators (cumsum, matrix products)");
    std::vector<Values> rows(static_cast<std::size_t>(steps));
    for (const AtenValue &sequence : sequences) {
        TRY(const Values parts,
            make(node, "unbind", {{"self", sequence}, {"dim", std::int64_t{0}}}, rows.size(), "steps"));
        for (std::size_t t = 0; t < rows.size(); ++t)
            rows[t].push_back(parts[t]);
    }
    return rows;
}

/// A result of all steps along a new first dimension; nothing where none reads it.
Result<AtenValue> Pt2NodeImporter::stackSteps(const Pt2Node &node, std::size_t slot, const Values &steps)
{
    const auto names = pt2ResultsOf(node);
    if (slot >= names.size() || names[slot].empty() || !m_frame->isUsed(names[slot]))
        return AtenValue();
    return makeOne(node, "stack", {{"tensors", tensorList(steps)}, {"dim", std::int64_t{0}}}, "all_steps");
}

/// scan(step, states, sequences, more): step(states, rows, more) -> (states, results)
Result<Values> Pt2NodeImporter::runScan(const Pt2Node &node, const GraphCall &call)
{
    Values states = call.list(0);
    TRY(const auto rows, stepsOf(node, call.list(1)));
    const Values more = call.list(2);
    std::vector<Values> results;
    for (const Values &row : rows) {
        Values arguments = states;
        arguments.insert(arguments.end(), row.begin(), row.end());
        arguments.insert(arguments.end(), more.begin(), more.end());
        TRY(const Values outputs, runGraph(node, *call.graphs.front(), std::move(arguments)));
        if (outputs.size() < states.size())
            return pt2Error(node, ErrorCode::InvalidInput, "its step returns fewer values than it has states",
                "export the model anew");
        std::copy_n(outputs.begin(), states.size(), states.begin());
        results.resize(outputs.size() - states.size());
        for (std::size_t i = 0; i < results.size(); ++i)
            results[i].push_back(outputs[states.size() + i]);
    }
    for (const Values &steps : results) {
        TRY(AtenValue all, stackSteps(node, states.size(), steps));
        states.push_back(std::move(all));
    }
    return states;
}

/// associative_scan(combine, sequences, more): each place is what combine makes of the one before and of its
/// own row. One after the other: no fewer calls would do.
Result<Values> Pt2NodeImporter::runAssociativeScan(const Pt2Node &node, const GraphCall &call)
{
    TRY(const auto rows, stepsOf(node, call.list(0)));
    const Values more = call.list(1);
    std::vector<Values> results(rows.front().size());
    Values last;
    for (const Values &row : rows) {
        if (last.empty()) {
            last = row;
        } else {
            last.insert(last.end(), row.begin(), row.end());
            last.insert(last.end(), more.begin(), more.end());
            TRY(last, runGraph(node, *call.graphs.front(), std::move(last)));
        }
        if (last.size() != results.size())
            return pt2Error(node, ErrorCode::InvalidInput, "its step returns other values than it takes",
                "export the model anew");
        for (std::size_t i = 0; i < results.size(); ++i)
            results[i].push_back(last[i]);
    }
    Values outputs;
    for (const Values &steps : results) {
        TRY(AtenValue all, stackSteps(node, outputs.size(), steps));
        outputs.push_back(std::move(all));
    }
    return outputs;
}

/// map_impl(function, sequences, more)
Result<Values> Pt2NodeImporter::runMap(const Pt2Node &node, const GraphCall &call)
{
    TRY(const auto rows, stepsOf(node, call.list(0)));
    const Values more = call.list(1);
    std::vector<Values> results;
    for (Values row : rows) {
        row.insert(row.end(), more.begin(), more.end());
        TRY(const Values outputs, runGraph(node, *call.graphs.front(), std::move(row)));
        results.resize(outputs.size());
        for (std::size_t i = 0; i < outputs.size(); ++i)
            results[i].push_back(outputs[i]);
    }
    Values outputs;
    for (const Values &steps : results) {
        TRY(AtenValue all, stackSteps(node, outputs.size(), steps));
        outputs.push_back(std::move(all));
    }
    return outputs;
}

/// A truth value that is known before a run; nothing if it is not.
Result<std::optional<bool>> Pt2NodeImporter::truthOf(const AtenValue &value)
{
    if (const auto *flag = std::get_if<bool>(&value))
        return std::optional(*flag);
    if (const auto *number = std::get_if<std::int64_t>(&value))
        return std::optional(*number != 0);
    const auto *id = std::get_if<TensorId>(&value);
    const auto data = id == nullptr || !m_writer.isKnown(*id) ? nullptr : m_writer.valuesOf(*id);
    if (!data || elementCount(data->type.shape) != 1)
        return std::optional<bool>();
    return std::optional(readNumber(data->type.dataType, data->bytes.data(), 0).asReal() != 0);
}

/// while_loop(condition, step, states, more)
Result<Values> Pt2NodeImporter::runWhile(const Pt2Node &node, const GraphCall &call)
{
    if (call.graphs.size() != 2)
        return pt2Error(
            node, ErrorCode::InvalidInput, "it calls other than two graphs", "export the model anew");
    Values states = call.list(0);
    const Values more = call.list(1);
    for (std::int64_t step = 0; step <= kMostSteps; ++step) {
        Values arguments = states;
        arguments.insert(arguments.end(), more.begin(), more.end());
        TRY(const Values condition, runGraph(node, *call.graphs[0], arguments));
        TRY(const auto goesOn, truthOf(condition.empty() ? AtenValue() : condition.front()));
        if (!goesOn)
            return pt2Error(node, ErrorCode::NotSupported,
                "how often it runs depends on values that are not known before a run",
                "let a counter decide that begins with a constant (torch.tensor(0)), or use scan over a "
                "fixed "
                "number of steps");
        if (!*goesOn)
            return states;
        TRY(states, runGraph(node, *call.graphs[1], std::move(arguments)));
    }
    return pt2Error(node, ErrorCode::NotSupported,
        "it runs for more than " + std::to_string(kMostSteps) + " steps",
        "export with fewer steps, or compute several of them in one");
}

// --- choices -----------------------------------------------------------------------------------------------

/// One side of a choice that is made in a run. It reads 0 in place of its operands where the other side is
/// taken: whatever its gradients are then (of log(x) for one, or of x / |x|), none of it reaches an operand.
Result<Values> Pt2NodeImporter::runSide(
    const Pt2Node &node, const Pt2Graph &graph, Values operands, TensorId condition, bool side)
{
    const Pt2Frame frame(graph);
    for (std::size_t i = 0; i < operands.size() && i < graph.inputs.size(); ++i) {
        const auto *name = std::get_if<Pt2Tensor>(&graph.inputs[i]);
        const auto *id = std::get_if<TensorId>(&operands[i]);
        const bool isComplex = std::holds_alternative<AtenComplex>(operands[i]);
        if (name == nullptr || !frame.isUsed(name->name) || (id == nullptr && !isComplex)
            || (id != nullptr && m_writer.isKnown(*id)))
            continue;
        const DataType type = isComplex ? DataType::Float32 : m_writer.typeOf(*id).dataType;
        const AtenValue zero = isFloating(type) ? AtenValue(0.0)
            : type == DataType::Bool            ? AtenValue(false)
                                                : AtenValue(std::int64_t{0});
        TRY(operands[i],
            makeOne(node, "where",
                {{"condition", condition}, {"self", side ? operands[i] : zero},
                    {"other", side ? zero : operands[i]}},
                side ? "when_true" : "when_false"));
    }
    return runGraph(node, graph, std::move(operands));
}

Result<AtenValue> Pt2NodeImporter::selectSide(
    const Pt2Node &node, TensorId condition, const AtenValue &whenTrue, const AtenValue &whenFalse)
{
    const auto isTensor = [](const AtenValue &value) {
        return std::holds_alternative<TensorId>(value) || std::holds_alternative<AtenComplex>(value);
    };
    if (isTensor(whenTrue) && isTensor(whenFalse))
        return makeOne(
            node, "where", {{"condition", condition}, {"self", whenTrue}, {"other", whenFalse}}, "chosen");
    const auto *a = std::get_if<std::int64_t>(&whenTrue);
    const auto *b = std::get_if<std::int64_t>(&whenFalse);
    const bool areNothing =
        std::holds_alternative<std::monostate>(whenTrue) && std::holds_alternative<std::monostate>(whenFalse);
    if (areNothing || (a != nullptr && b != nullptr && *a == *b))
        return whenTrue;
    return pt2Error(node, ErrorCode::NotSupported, "its sides return numbers or sizes that differ",
        "return tensors of one shape from both sides");
}

/// cond(condition, when true, when false, operands): one side where the condition is known; else both are
/// computed, and what was to be is chosen of their results.
Result<Values> Pt2NodeImporter::runCondition(const Pt2Node &node, const GraphCall &call)
{
    if (call.graphs.size() != 2 || call.before.size() + call.flags.size() != 1)
        return pt2Error(node, ErrorCode::InvalidInput, "it has no condition or other than two sides",
            "export the model anew");
    const AtenValue condition =
        call.before.empty() ? AtenValue(call.flags.front() ? true : false) : call.before.front();
    TRY(const auto known, truthOf(condition));
    if (known)
        return runGraph(node, *call.graphs[*known ? 0 : 1], call.flat());
    const auto *given = std::get_if<TensorId>(&condition);
    if (given == nullptr)
        return pt2Error(
            node, ErrorCode::InvalidInput, "its condition is no truth value", "export the model anew");
    TRY(const AtenValue scalar,
        makeOne(node, "reshape", {{"self", *given}, {"shape", std::vector<std::int64_t>{}}}, "condition"));
    const TensorId chooses = std::get<TensorId>(scalar);
    TRY(const Values whenTrue, runSide(node, *call.graphs[0], call.flat(), chooses, true));
    TRY(const Values whenFalse, runSide(node, *call.graphs[1], call.flat(), chooses, false));
    if (whenTrue.size() != whenFalse.size())
        return pt2Error(node, ErrorCode::InvalidInput, "its sides return different numbers of values",
            "export the model anew");
    Values outputs;
    for (std::size_t i = 0; i < whenTrue.size(); ++i) {
        TRY(AtenValue output, selectSide(node, chooses, whenTrue[i], whenFalse[i]));
        outputs.push_back(std::move(output));
    }
    return outputs;
}

} // namespace planloom
