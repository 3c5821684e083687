#include "engine/graph/dimensions/batch.h"

#include "engine/base/ids.h"
#include "engine/graph/dimensions/batch_flow.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// The dimension of the tensor that is cut when the identifier is, or -1.
std::int32_t cutDimension(const Annotation &annotation, const TensorTerms &terms, std::int32_t identifier)
{
    for (std::size_t i = 0; i < terms.terms.size(); ++i) {
        if (disjointFactor(annotation, terms.terms[i]) == identifier)
            return static_cast<std::int32_t>(i);
    }
    return -1;
}

/// Nothing is cut, and all is the same in every micro-batch.
BatchInfo uncut(const Graph &graph, std::int64_t size, std::int64_t mostMicroBatches)
{
    BatchInfo info;
    info.size = size;
    info.mostMicroBatches = mostMicroBatches;
    info.tensorRole.assign(graph.tensors.size(), BatchRole::Same);
    info.tensorDimension.assign(graph.tensors.size(), -1);
    info.operatorDimension.assign(graph.operators.size(), -1);
    info.oncePerStep.assign(graph.operators.size(), false);
    return info;
}

/// One attempt to run the step in micro-batches, given which inputs are cut.
///
/// Passes over the operators repeat until they hold together: a pass may find that operators have to run once
/// per step, or that operators which make a value of the batch's extent (an Expand, a Fill) should make
/// slices of it. Each repetition decides something about at least one operator for good.
class Attempt
{
public:
    /// @param cutInputs  by position in Graph::inputs: the dimension that is cut, or -1
    Attempt(const Graph &graph, std::int64_t size, std::vector<std::int32_t> cutInputs)
        : m_graph(graph)
        , m_size(size)
        , m_cutInputs(std::move(cutInputs))
        , m_once(graph.operators.size())
        , m_asked(graph.operators.size(), -1)
        , m_producer(graph.tensors.size())
        , m_trained(graph.tensors.size())
    {
        for (std::size_t i = 0; i < graph.tensors.size(); ++i)
            m_trained[i] = graph.tensors[i].role == TensorRole::Weight;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            const Operator &op = graph.operators[i];
            if (op.direction != Direction::Forward)
                continue;
            bool trained = false;
            for (const TensorId id : op.inputs)
                trained = trained || (id && m_trained[at(id)]);
            for (const TensorId id : op.outputs) {
                if (id) {
                    m_producer[at(id)] = OperatorId{static_cast<std::int32_t>(i)};
                    m_trained[at(id)] = trained;
                }
            }
        }
    }

    /// @return true if micro-batches leave the result as it is; then `info` is complete
    bool run()
    {
        // A bound on the work, far above what models need (each pass is linear in the model).
        constexpr int kMostPasses = 200;
        for (int i = 0; i < kMostPasses; ++i) {
            m_again = false;
            const bool held = pass();
            if (!m_again)
                return held;
        }
        m_info.limitedBy = "the model: no end to what depends on the whole batch";
        return false;
    }

    BatchInfo &info() { return m_info; }

private:
    bool pass()
    {
        m_info = uncut(m_graph, m_size, m_size);
        m_info.oncePerStep = m_once;
        for (std::size_t i = 0; i < m_graph.inputs.size(); ++i) {
            if (m_cutInputs[i] >= 0)
                setSplit(m_graph.inputs[i], m_cutInputs[i]);
        }
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const OperatorId id{static_cast<std::int32_t>(i)};
            const Direction direction = m_graph.operators[i].direction;
            const bool held = direction == Direction::Forward ? forward(id)
                : direction == Direction::Backward            ? backward(id)
                                                              : optimizer(id);
            if (!held)
                return false;
        }
        return lossIsSum() && anyIsCut();
    }

    void setSplit(TensorId id, std::int32_t dimension)
    {
        m_info.tensorRole[at(id)] = BatchRole::Split;
        m_info.tensorDimension[at(id)] = dimension;
    }

    BatchRole roleOf(TensorId id) const { return m_info.tensorRole[at(id)]; }

    bool fail(OperatorId id, const std::string &reason)
    {
        m_info.limitedBy = "operator '" + m_graph.at(id).name + "': " + reason;
        return false;
    }

    /// `id` cannot work on micro-batches: let it run once per step if nothing trained goes into it.
    bool wholeOrFail(OperatorId id, const std::string &reason)
    {
        for (const TensorId output : m_graph.at(id).outputs) {
            if (output && runOnce(output))
                return true;
        }
        // Roles may be out of date if another pass is due: let that one judge.
        return m_again ? false : fail(id, reason);
    }

    /// Makes the operators that `tensor` comes from run once per step, from this pass on, if they may.
    /// @param now  the operator that the pass is at: what follows it learns of it in this pass
    bool runOnce(TensorId tensor, OperatorId now = {})
    {
        std::vector<OperatorId> open{m_producer[at(tensor)]};
        std::vector<OperatorId> cone;
        std::vector<bool> seen(m_graph.operators.size());
        while (!open.empty()) {
            const OperatorId id = open.back();
            open.pop_back();
            if (!id || m_once[at(id)] || seen[at(id)])
                continue;
            seen[at(id)] = true;
            const Operator &op = m_graph.at(id);
            if (op.mirror)
                return false;
            for (const TensorId output : op.outputs) {
                if (output && (m_trained[at(output)] || output == m_graph.loss))
                    return false;
            }
            cone.push_back(id);
            for (const TensorId input : op.inputs) {
                if (input)
                    open.push_back(m_producer[at(input)]);
            }
        }
        if (cone.empty())
            return false;
        for (const OperatorId id : cone) {
            m_once[at(id)] = true;
            m_info.oncePerStep[at(id)] = true;
            m_info.operatorDimension[at(id)] = -1;
            setStep(id);
        }
        m_again = m_again || cone != std::vector{now};
        return true;
    }

    void setStep(OperatorId id)
    {
        for (const TensorId output : m_graph.at(id).outputs) {
            if (!output)
                continue;
            m_info.tensorRole[at(output)] = BatchRole::Step;
            m_info.tensorDimension[at(output)] = -1;
        }
    }

    /// Lets what is made of values of the step, and of nothing that differs from micro-batch to micro-batch
    /// or is trained, run once per step, with all that it reads.
    bool runOnceIfOfStep(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        bool step = false;
        for (const TensorId input : op.inputs) {
            if (!input)
                continue;
            if (m_trained[at(input)]
                || (roleOf(input) != BatchRole::Step && roleOf(input) != BatchRole::Same))
                return false;
            step = step || roleOf(input) == BatchRole::Step;
        }
        return step && !op.mirror && m_asked[at(id)] < 0
            && std::find(op.outputs.begin(), op.outputs.end(), m_graph.loss) == op.outputs.end()
            && std::any_of(op.outputs.begin(), op.outputs.end(),
                [&](TensorId output) { return output && runOnce(output, id); });
    }

    bool forward(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        if (m_once[at(id)]) {
            setStep(id);
            return true;
        }
        if (runOnceIfOfStep(id))
            return true;
        std::int32_t identifier = m_asked[at(id)];
        bool local = false;
        bool summands = false;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input)
                continue;
            local = local || roleOf(input) == BatchRole::Local;
            summands = summands || roleOf(input) == BatchRole::Summand;
            if (roleOf(input) != BatchRole::Split)
                continue;
            const auto dimension = static_cast<std::size_t>(m_info.tensorDimension[at(input)]);
            const TensorTerms &terms = op.annotation.inputs[slot];
            const auto cut =
                terms.opaque ? std::nullopt : disjointFactor(op.annotation, terms.terms[dimension]);
            if (!cut) {
                return wholeOrFail(id,
                    "needs dimension " + std::to_string(dimension) + " of '" + m_graph.at(input).name
                        + "', which holds the batch, whole");
            }
            if (identifier >= 0 && identifier != *cut)
                return wholeOrFail(id, "its inputs hold the batch in dimensions that do not go together");
            identifier = *cut;
        }
        if (summands && !mayPassSummands(op, identifier >= 0 || local))
            return wholeSummands(id) && forward(id);
        m_info.operatorDimension[at(id)] = identifier;
        if (identifier >= 0) {
            m_info.mostMicroBatches = std::gcd(
                m_info.mostMicroBatches, op.annotation.dimensions[static_cast<std::size_t>(identifier)].size);
            if (m_info.mostMicroBatches < m_size && m_info.limitedBy.empty())
                fail(id, "its part of the batch's dimension has " + dimensionText(op, identifier));
            if (!alignUncut(id, identifier))
                return false;
            if (m_once[at(id)])
                return true;
        }
        return setOutputs(id, identifier, local, summands);
    }

    static std::string dimensionText(const Operator &op, std::int32_t identifier)
    {
        const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(identifier)];
        return "size " + std::to_string(dimension.size) + " ('" + dimension.name + "')";
    }

    /// True if the operator's outputs for a sum are the sum of its outputs for the summands.
    bool mayPassSummands(const Operator &op, bool batchDependent) const
    {
        if (batchDependent)
            return false;
        std::vector<std::int32_t> summands;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] && roleOf(op.inputs[slot]) == BatchRole::Summand)
                summands.push_back(static_cast<std::int32_t>(slot));
        }
        if (op.kind == OperatorKind::Mul && summands.size() == 1)
            return true;
        const bool hasBias = entryOf(op.kind).work.hasBias && op.inputs.size() > 2 && op.inputs[2].valid();
        if (hasBias) // which would be added once for each micro-batch
            return false;
        // Jointly linear: a linear input that is the same in every micro-batch would be added once for each.
        std::vector<std::int32_t> linear;
        for (const std::int32_t slot : op.annotation.linearInputs) {
            if (op.inputs[static_cast<std::size_t>(slot)])
                linear.push_back(slot);
        }
        std::sort(linear.begin(), linear.end());
        return linear == summands;
    }

    /// An operator needs sums over the batch as values: they can be had if nothing trained goes into them.
    bool wholeSummands(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        const auto &linear = op.annotation.linearInputs;
        const auto isLinear = [&](std::size_t slot) {
            return std::find(linear.begin(), linear.end(), static_cast<std::int32_t>(slot)) != linear.end();
        };
        bool nonlinear = false;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            nonlinear = nonlinear
                || (op.inputs[slot] && roleOf(op.inputs[slot]) == BatchRole::Summand && !isLinear(slot));
        }
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input || roleOf(input) != BatchRole::Summand || (nonlinear && isLinear(slot)))
                continue;
            if (!runOnce(input)) {
                return m_again
                    ? false
                    : fail(id, "needs '" + m_graph.at(input).name + "' summed over the whole batch");
            }
        }
        return true;
    }

    /// Inputs that have the batch's identifier but are not cut: asks their producers for slices.
    bool alignUncut(OperatorId id, std::int32_t identifier)
    {
        const Operator &op = m_graph.at(id);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            const TensorTerms &terms = op.annotation.inputs[slot];
            if (!input || roleOf(input) == BatchRole::Split || roleOf(input) == BatchRole::Step
                || !mentions(terms, identifier))
                continue;
            const std::int32_t dimension = cutDimension(op.annotation, terms, identifier);
            if (roleOf(input) == BatchRole::Same && askForSlices(input, dimension))
                continue;
            // Made whole and read in slices, it is made once.
            if (roleOf(input) == BatchRole::Same && m_producer[at(input)] && runOnce(input))
                continue;
            // A constant is simply read in slices; but the gradient of what is trained would come in slices
            // too, and a weight stays whole.
            const bool stays = m_graph.at(input).role == TensorRole::Weight || m_graph.loss.valid();
            if (roleOf(input) != BatchRole::Same || (m_trained[at(input)] && stays)) {
                return wholeOrFail(id,
                    "'" + m_graph.at(input).name
                        + "' is as long as the batch, but does not come in micro-batches");
            }
        }
        return true;
    }

    bool askForSlices(TensorId tensor, std::int32_t dimension)
    {
        const OperatorId producer = m_producer[at(tensor)];
        if (!producer || dimension < 0 || m_info.operatorDimension[at(producer)] >= 0)
            return false;
        const Operator &op = m_graph.at(producer);
        const auto slot = static_cast<std::size_t>(
            std::find(op.outputs.begin(), op.outputs.end(), tensor) - op.outputs.begin());
        const TensorTerms &terms = op.annotation.outputs[slot];
        const auto cut = terms.opaque
            ? std::nullopt
            : disjointFactor(op.annotation, terms.terms[static_cast<std::size_t>(dimension)]);
        if (!cut)
            return false;
        m_asked[at(producer)] = *cut;
        m_again = true;
        return true;
    }

    bool setOutputs(OperatorId id, std::int32_t identifier, bool local, bool summands)
    {
        const Operator &op = m_graph.at(id);
        const bool statistics = op.kind == OperatorKind::BatchMean || op.kind == OperatorKind::BatchVariance;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorId output = op.outputs[slot];
            if (!output)
                continue;
            BatchRole &role = m_info.tensorRole[at(output)];
            role = local ? BatchRole::Local : summands ? BatchRole::Summand : BatchRole::Same;
            if (identifier < 0)
                continue;
            const TensorTerms &terms = op.annotation.outputs[slot];
            if (terms.opaque)
                return wholeOrFail(id, "makes '" + m_graph.at(output).name + "' whole only");
            if (mentions(terms, identifier)) {
                const std::int32_t dimension = cutDimension(op.annotation, terms, identifier);
                if (dimension < 0)
                    return wholeOrFail(id, "cannot make '" + m_graph.at(output).name + "' in micro-batches");
                setSplit(output, dimension);
            } else if (op.annotation.dimensions[static_cast<std::size_t>(identifier)].mark
                == DimensionMark::Reduce) {
                if (combinationOf(op.annotation, slot) != Combination::Sum)
                    return wholeOrFail(
                        id, "makes '" + m_graph.at(output).name + "' of the whole batch, and not by summing");
                role = statistics ? BatchRole::Local : BatchRole::Summand;
            }
        }
        return true;
    }

    bool backward(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        std::int32_t identifier = -1;
        if (op.mirror) {
            if (m_once[at(op.mirror)])
                return fail(op.mirror, "has a gradient, but needs the whole batch");
            identifier = m_info.operatorDimension[at(op.mirror)];
            if (identifier >= 0
                && op.annotation.dimensions[static_cast<std::size_t>(identifier)].mark
                    == DimensionMark::Frozen)
                return fail(id, "its batch dimension may not be split");
        }
        m_info.operatorDimension[at(id)] = identifier;
        for (const TensorId output : op.outputs) {
            if (!output || m_graph.at(output).role != TensorRole::Gradient)
                continue;
            // The forward pTensor decides. A loss summand's gradient is that of the sum, in every
            // micro-batch; what all micro-batches share collects a summand from each.
            const TensorId of = m_graph.at(output).of;
            switch (roleOf(of)) {
            case BatchRole::Split:
                setSplit(output, m_info.tensorDimension[at(of)]);
                break;
            case BatchRole::Same:
                m_info.tensorRole[at(output)] = BatchRole::Summand;
                break;
            case BatchRole::Summand:
                m_info.tensorRole[at(output)] = BatchRole::Same;
                break;
            case BatchRole::Local:
                m_info.tensorRole[at(output)] = BatchRole::Local;
                break;
            case BatchRole::Step:
                return fail(
                    id, "makes the gradient of '" + m_graph.at(of).name + "', which needs the whole batch");
            }
        }
        return true;
    }

    bool optimizer(OperatorId id)
    {
        m_info.oncePerStep[at(id)] = true;
        for (const TensorId output : m_graph.at(id).outputs) {
            if (output && m_graph.at(output).role == TensorRole::Activation)
                m_info.tensorRole[at(output)] = BatchRole::Step;
        }
        return true;
    }

    bool lossIsSum()
    {
        if (!m_graph.loss || roleOf(m_graph.loss) == BatchRole::Summand)
            return true;
        const OperatorId producer = m_producer[at(m_graph.loss)];
        if (producer)
            return fail(producer, "the loss is not a sum over the batch");
        m_info.limitedBy = "the loss is not a sum over the batch";
        return false;
    }

    /// Micro-batches of which nothing is computed are none.
    bool anyIsCut()
    {
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i)
            if (!m_info.oncePerStep[i])
                return true;
        m_info.limitedBy = "the model: none of its operators works on a part of the batch";
        return false;
    }

    const Graph &m_graph;
    std::int64_t m_size;
    std::vector<std::int32_t> m_cutInputs;
    std::vector<bool> m_once; ///< By operator; grows from pass to pass.
    std::vector<std::int32_t> m_asked; ///< By operator: identifier that a consumer wants cut, or -1.
    std::vector<OperatorId> m_producer; ///< By tensor: the forward operator.
    std::vector<bool> m_trained; ///< By tensor: depends on a weight.
    bool m_again = false; ///< Something was decided that earlier operators of the pass did not know.
    BatchInfo m_info;
};

/// The step in one piece: the only way where micro-batches would change the result.
BatchInfo onePiece(const Graph &graph, std::int64_t size, std::string reason)
{
    BatchInfo info = uncut(graph, size, 1);
    info.limitedBy = std::move(reason);
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        info.oncePerStep[i] = graph.operators[i].direction == Direction::Optimizer;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &tensor = graph.tensors[i];
        if (tensor.role == TensorRole::Gradient && graph.at(tensor.of).role == TensorRole::Weight)
            info.tensorRole[i] = BatchRole::Summand;
    }
    return info;
}

/// True if what is made of an input and stays whole is no more work than one sample is: else the input is
/// more than something that samples share.
bool isSharedBySamples(const Graph &graph, const BatchInfo &info, TensorId input)
{
    double all = 0;
    double whole = 0;
    std::vector<bool> made(graph.tensors.size());
    made[at(input)] = true;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || info.oncePerStep[i])
            continue;
        const double flops = workOf(graph, op).flops;
        all += flops;
        if (info.operatorDimension[i] >= 0
            || std::none_of(
                op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && made[at(id)]; }))
            continue;
        whole += flops;
        for (const TensorId output : op.outputs)
            if (output)
                made[at(output)] = true;
    }
    return whole * static_cast<double>(info.size) <= all;
}

} // namespace

BatchInfo analyseBatch(const Graph &graph)
{
    const BatchInput input = batchInputOf(graph);
    const std::int64_t size = input.size;
    if (size <= 0)
        return onePiece(graph, 0, "the model: none of its inputs has a batch dimension");
    if (size == 1)
        return onePiece(graph, 1, "");

    const std::vector<std::int32_t> cut = inputsAlong(graph, input);
    Attempt attempt(graph, size, cut);
    if (attempt.run())
        return std::move(attempt.info());
    // An input may be as long as the batch by chance (positions in a sequence): an attempt that holds
    // together without it proves so.
    if (std::count(cut.begin(), cut.end(), -1) + 1 < static_cast<std::ptrdiff_t>(cut.size())) {
        for (std::size_t i = cut.size(); i-- > 0;) {
            if (cut[i] < 0)
                continue;
            std::vector<std::int32_t> fewer = cut;
            fewer[i] = -1;
            Attempt other(graph, size, std::move(fewer));
            if (other.run() && isSharedBySamples(graph, other.info(), graph.inputs[i]))
                return std::move(other.info());
        }
    }
    BatchInfo info = onePiece(graph, size, attempt.info().limitedBy);
    BatchFlow flow = followBatch(graph, cut);
    info.operatorDimension = std::move(flow.operatorDimension);
    info.obstacles = std::move(flow.obstacles);
    return info;
}

BatchInfo wholeBatchInfo(const Graph &graph)
{
    BatchInfo info = uncut(graph, batchInputOf(graph).size, std::numeric_limits<std::int32_t>::max());
    info.wholeBatches = true;
    for (const TensorId input : graph.inputs)
        info.tensorRole[at(input)] = BatchRole::Local;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction == Direction::Optimizer) {
            info.oncePerStep[i] = true;
            for (const TensorId output : op.outputs)
                if (output)
                    info.tensorRole[at(output)] = BatchRole::Step;
            continue;
        }
        const bool local = std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id && info.tensorRole[at(id)] != BatchRole::Same; });
        for (const TensorId output : op.outputs) {
            if (!output)
                continue;
            const bool collects = op.direction == Direction::Backward
                && graph.at(output).role == TensorRole::Gradient
                && info.tensorRole[at(graph.at(output).of)] == BatchRole::Same;
            info.tensorRole[at(output)] = collects ? BatchRole::Summand
                : local                            ? BatchRole::Local
                                                   : BatchRole::Same;
        }
    }
    if (graph.loss)
        info.tensorRole[at(graph.loss)] = BatchRole::Summand;
    return info;
}

std::vector<Range> microBatchRanges(const BatchInfo &batch, const Graph &graph, OperatorId op,
    std::int32_t microBatch, std::int32_t microBatches)
{
    const std::int32_t identifier = batch.operatorDimension[at(op)];
    if (identifier < 0)
        return {};
    const Annotation &annotation = graph.at(op).annotation;
    std::vector<Range> ranges;
    ranges.reserve(annotation.dimensions.size());
    for (const Dimension &dimension : annotation.dimensions)
        ranges.push_back({0, dimension.size});
    Range &range = ranges[static_cast<std::size_t>(identifier)];
    range = {range.end * microBatch / microBatches, range.end * (microBatch + 1) / microBatches};
    return ranges;
}

} // namespace planloom
