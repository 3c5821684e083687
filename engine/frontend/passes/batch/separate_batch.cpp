#include "engine/frontend/passes/batch/separate_batch.h"

#include "engine/base/ids.h"
#include "engine/frontend/passes/batch/outer_dimension.h"
#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/dimensions/batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// How a tensor's elements lie, of a dimension that counts `before` things outside the batch.
enum class Form : std::uint8_t {
    Joined, ///< As the model has it.
    Apart, ///< [before rest]: in the same order, as two dimensions.
    Swapped, ///< (rest before): one dimension, counted the other way round.
};

class BatchSeparator
{
public:
    explicit BatchSeparator(Graph &graph)
        : m_graph(graph)
        , m_flow(followBatch(graph, inputsAlong(graph, batchInputOf(graph))))
        , m_uses(usesOf(graph))
        , m_isOutput(graph.tensors.size())
        , m_tensorNames(UniqueNames::ofTensors(graph))
        , m_operatorNames(UniqueNames::ofOperators(graph))
    {
        for (const TensorId id : graph.outputs)
            m_isOutput[at(id)] = true;
    }

    std::int32_t run()
    {
        const bool joins = std::any_of(m_flow.obstacles.begin(), m_flow.obstacles.end(),
            [](const BatchObstacle &each) { return each.joins; });
        if (!joins
            && std::none_of(m_graph.operators.begin(), m_graph.operators.end(),
                [&](const Operator &op) { return strideOf(op) > 1; }))
            return 0;
        const std::vector<Operator> operators = std::exchange(m_graph.operators, {});
        m_operators = &operators;
        for (const Operator &op : operators)
            append(op);
        removeDeadCode(m_graph);
        return m_changed;
    }

private:
    /// What of an operator goes with the batch: the dimension of each input and output, or -1.
    struct Along {
        std::int64_t before = 1;
        std::vector<std::int32_t> inputs{};
        std::vector<std::int32_t> outputs{};
    };

    void append(const Operator &op)
    {
        if (op.kind == OperatorKind::Reshape)
            return appendReshape(op);
        if (const std::int64_t stride = strideOf(op); stride > 1)
            return appendStrided(op, stride);
        const auto along = alongOf(op);
        if (along && wantsSwapped(op) && mayReorder(op.kind))
            return appendSwapped(op, *along);
        if (along && appendApart(op, *along))
            return;
        if (along && mayReorder(op.kind))
            return appendSwapped(op, *along);
        Operator same = op;
        for (TensorId &input : same.inputs)
            input = input ? formOf(input, Form::Joined, {}) : input;
        m_graph.operators.push_back(std::move(same));
    }

    /// Nothing where no input has other things outside the batch, or not along one identifier.
    std::optional<Along> alongOf(const Operator &op) const
    {
        std::int32_t identifier = -1;
        Along along;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input || m_flow.places[at(input)].before == 1)
                continue;
            const BatchPlace &place = m_flow.places[at(input)];
            const auto found = onlyIdentifier(op.annotation, op.annotation.inputs[slot], place.dimension);
            if (found < 0 || (identifier >= 0 && (found != identifier || place.before != along.before)))
                return std::nullopt;
            identifier = found;
            along.before = place.before;
        }
        if (identifier < 0)
            return std::nullopt;
        for (const TensorTerms &terms : op.annotation.inputs)
            along.inputs.push_back(dimensionWith(op.annotation, terms, identifier));
        for (const TensorTerms &terms : op.annotation.outputs)
            along.outputs.push_back(dimensionWith(op.annotation, terms, identifier));
        return along;
    }

    /// The identifier that is all of a dimension; -1 if there is none that may be cut.
    static std::int32_t onlyIdentifier(
        const Annotation &annotation, const TensorTerms &terms, std::int32_t dimension)
    {
        if (terms.opaque)
            return -1;
        const Term &term = terms.terms[static_cast<std::size_t>(dimension)];
        const auto factor = disjointFactor(annotation, term);
        return factor && term.factors.size() == 1 ? *factor : -1;
    }

    static std::int32_t dimensionWith(
        const Annotation &annotation, const TensorTerms &terms, std::int32_t identifier)
    {
        for (std::size_t d = 0; !terms.opaque && d < terms.terms.size(); ++d)
            if (onlyIdentifier(annotation, terms, static_cast<std::int32_t>(d)) == identifier)
                return static_cast<std::int32_t>(d);
        return -1;
    }

    /// True if all that is made of the operator's one output goes, through operators that take any order of
    /// items, to those that have no room for another dimension.
    bool wantsSwapped(const Operator &op) const
    {
        const Operator *next = &op;
        constexpr int kMostSteps = 16;
        for (int step = 0; step < kMostSteps; ++step) {
            if (next->outputs.size() != 1 || m_isOutput[at(next->outputs.front())]
                || m_uses.consumers[at(next->outputs.front())].size() != 1)
                return false;
            next = &(*m_operators)[at(m_uses.consumers[at(next->outputs.front())].front())];
            if (!alongOf(*next) || !mayReorder(next->kind))
                return false;
            if (!hasRoomForDimension(next->kind))
                return true;
        }
        return false;
    }

    /// A dimension's position and what stands outside the batch in it.
    struct Cut {
        std::int32_t dimension = -1;
        std::int64_t before = 1;
        auto operator<=>(const Cut &) const = default;
    };

    Shape apart(Shape shape, const Cut &cut) const
    {
        const auto d = static_cast<std::size_t>(cut.dimension);
        shape[d] /= cut.before;
        shape.insert(shape.begin() + cut.dimension, cut.before);
        return shape;
    }

    /// The tensor in a form; made from that in which it is, before the next operator.
    TensorId formOf(TensorId id, Form wanted, Cut cut)
    {
        const auto made = m_made.find(id);
        const Form has = made == m_made.end() ? Form::Joined : made->second.form;
        if (has != Form::Joined)
            cut = made->second.cut;
        const TensorId now = has == Form::Joined ? id : made->second.id;
        if (has == wanted)
            return now;
        const auto key = std::tuple(id, wanted, wanted == Form::Joined ? Cut{} : cut);
        if (const auto found = m_converted.find(key); found != m_converted.end())
            return found->second;
        const TensorId result = convert(now, m_original.at(id).shape, has, wanted, cut);
        m_converted.emplace(key, result);
        return result;
    }

    /// @param joined  the shape that the tensor has in the model
    TensorId convert(TensorId now, const Shape &joined, Form has, Form wanted, const Cut &cut)
    {
        const auto d = static_cast<std::size_t>(cut.dimension);
        Shape shape = apart(joined, cut);
        if (has == Form::Swapped)
            std::swap(shape[d], shape[d + 1]);
        now = reshaped(now, shape);
        if ((has == Form::Swapped) != (wanted == Form::Swapped)) {
            std::swap(shape[d], shape[d + 1]);
            now = transposed(now, shape, d);
        }
        return wanted == Form::Apart ? now : reshaped(now, joined);
    }

    TensorId reshaped(TensorId from, Shape shape)
    {
        if (m_graph.at(from).type.shape == shape)
            return from;
        return add(OperatorKind::Reshape, {}, from, std::move(shape), "shaped");
    }

    TensorId transposed(TensorId from, Shape shape, std::size_t d)
    {
        std::vector<std::int64_t> permutation;
        for (std::size_t i = 0; i < shape.size(); ++i)
            permutation.push_back(static_cast<std::int64_t>(i));
        std::swap(permutation[d], permutation[d + 1]);
        Attributes attributes;
        attributes.set("permutation", std::move(permutation));
        return add(OperatorKind::Transpose, std::move(attributes), from, std::move(shape), "turned");
    }

    TensorId add(
        OperatorKind kind, Attributes attributes, TensorId from, Shape shape, const std::string &suffix)
    {
        Operator op;
        op.name = m_operatorNames.take(m_scopeOf->name + "_" + suffix);
        op.kind = kind;
        op.attributes = std::move(attributes);
        op.inputs = {from};
        op.scope = m_scopeOf->scope;
        op.sources = m_scopeOf->sources;
        op.outputs = {newTensor({m_graph.at(from).type.dataType, std::move(shape)}, from, suffix)};
        m_graph.operators.push_back(std::move(op));
        return m_graph.operators.back().outputs.front();
    }

    TensorId newTensor(TensorType type, TensorId like, const std::string &suffix)
    {
        Tensor tensor;
        tensor.name = m_tensorNames.take(m_graph.at(like).name + "." + suffix);
        tensor.type = std::move(type);
        const TensorId id{static_cast<std::int32_t>(m_graph.tensors.size())};
        m_graph.tensors.push_back(std::move(tensor));
        return id;
    }

    /// The tensor that an operator makes in place of `id`, whose form is not the model's.
    TensorId makeIn(TensorId id, Form form, const Cut &cut)
    {
        TensorType type = m_graph.at(id).type;
        if (form == Form::Apart)
            type.shape = apart(type.shape, cut);
        TensorId made = id;
        if (m_isOutput[at(id)])
            made = newTensor(std::move(type), id, "apart");
        else
            m_graph.at(id).type = std::move(type);
        m_made[id] = {form, cut, made};
        return made;
    }

    /// What the model returns is as it was.
    void finish(const Operator &op)
    {
        for (const TensorId output : op.outputs) {
            const auto made = output ? m_made.find(output) : m_made.end();
            if (made == m_made.end() || !m_isOutput[at(output)])
                continue;
            formOf(output, Form::Joined, {});
            m_graph.operators.back().outputs.front() = output;
            m_converted[std::tuple(output, Form::Joined, Cut{})] = output;
        }
    }

    void appendReshape(const Operator &op)
    {
        m_scopeOf = &op;
        Operator changed = op;
        const TensorId input = op.inputs.front();
        // A Reshape reads its input in any form that keeps the order of the elements.
        const auto made = m_made.find(input);
        if (made != m_made.end())
            changed.inputs.front() = made->second.form == Form::Apart
                ? made->second.id
                : formOf(input, Form::Apart, made->second.cut);
        const TensorId output = op.outputs.front();
        const BatchPlace &place = m_flow.places[at(output)];
        if (place.before > 1) {
            remember(op);
            changed.outputs.front() = makeIn(output, Form::Apart, {place.dimension, place.before});
            ++m_changed;
        }
        m_graph.operators.push_back(std::move(changed));
        finish(op);
    }

    /// Of a Slice that takes every n-th sample, from all of them: n; else 0.
    std::int64_t strideOf(const Operator &op) const
    {
        if (op.kind != OperatorKind::Slice || m_made.contains(op.inputs.front()))
            return 0;
        const BatchPlace &place = m_flow.places[at(op.inputs.front())];
        if (!place.valid() || place.before > 1)
            return 0;
        const auto d = static_cast<std::size_t>(place.dimension);
        const std::int64_t stride = op.attributes.integers("steps")[d];
        const std::int64_t start = op.attributes.integers("starts")[d];
        const std::int64_t read = m_graph.at(op.inputs.front()).type.shape[d];
        const bool takesAll = stride > 1 && start >= 0 && start < stride
            && read == stride * m_graph.at(op.outputs.front()).type.shape[d];
        return takesAll ? stride : 0;
    }

    /// x[start::stride] as one of each group of `stride` samples, so that groups can be shared out.
    void appendStrided(const Operator &op, std::int64_t stride)
    {
        m_scopeOf = &op;
        const std::int32_t d = m_flow.places[at(op.inputs.front())].dimension;
        const TensorType made = m_graph.at(op.outputs.front()).type;
        Shape groups = m_graph.at(op.inputs.front()).type.shape;
        groups[static_cast<std::size_t>(d)] /= stride;
        groups.insert(groups.begin() + d + 1, stride);
        Operator slice = op;
        slice.name = m_operatorNames.take(op.name + "_of_group");
        slice.inputs = {reshaped(op.inputs.front(), groups)};
        std::vector<std::int64_t> starts = op.attributes.integers("starts");
        std::vector<std::int64_t> steps = op.attributes.integers("steps");
        starts.insert(starts.begin() + d, 0);
        steps.insert(steps.begin() + d, 1);
        steps[static_cast<std::size_t>(d) + 1] = 1;
        slice.attributes.set("starts", std::move(starts));
        slice.attributes.set("steps", std::move(steps));
        TensorType one = made;
        one.shape.insert(one.shape.begin() + d + 1, 1);
        slice.outputs = {newTensor(std::move(one), op.outputs.front(), "of_group")};
        Operator reshape = op;
        reshape.kind = OperatorKind::Reshape;
        reshape.attributes = {};
        reshape.inputs = slice.outputs;
        m_graph.operators.push_back(std::move(slice));
        m_graph.operators.push_back(std::move(reshape));
        ++m_changed;
    }

    void remember(const Operator &op)
    {
        for (const std::vector<TensorId> *ids : {&op.inputs, &op.outputs})
            for (const TensorId id : *ids)
                if (id)
                    m_original.emplace(id, m_graph.at(id).type);
    }

    /// The operator with one dimension more. @return false if it has no room for it
    bool appendApart(const Operator &op, const Along &along)
    {
        m_scopeOf = &op;
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        remember(op);
        for (const TensorId id : op.inputs)
            inputs.push_back(id ? m_original.at(id) : TensorType{});
        for (const TensorId id : op.outputs)
            outputs.push_back(id ? m_original.at(id) : TensorType{});
        auto room = withOuterDimension(op, along.inputs, along.outputs, along.before, inputs, outputs);
        if (!room)
            return false;
        Operator changed = op;
        changed.attributes = std::move(room->attributes);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot])
                continue;
            const std::int32_t d = along.inputs[slot];
            changed.inputs[slot] = d >= 0
                ? formOf(op.inputs[slot], Form::Apart, {d, along.before})
                : reshaped(formOf(op.inputs[slot], Form::Joined, {}), room->inputs[slot].shape);
        }
        finishWith(op, std::move(changed), along, Form::Apart);
        return true;
    }

    /// The operator as it is, on items in another order.
    void appendSwapped(const Operator &op, const Along &along)
    {
        m_scopeOf = &op;
        remember(op);
        Operator changed = op;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot])
                continue;
            const std::int32_t d = along.inputs[slot];
            changed.inputs[slot] = d >= 0 ? formOf(op.inputs[slot], Form::Swapped, {d, along.before})
                                          : formOf(op.inputs[slot], Form::Joined, {});
        }
        finishWith(op, std::move(changed), along, Form::Swapped);
    }

    void finishWith(const Operator &op, Operator changed, const Along &along, Form form)
    {
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (op.outputs[slot] && along.outputs[slot] >= 0)
                changed.outputs[slot] = makeIn(op.outputs[slot], form, {along.outputs[slot], along.before});
        m_graph.operators.push_back(std::move(changed));
        ++m_changed;
        finish(op);
    }

    struct Made {
        Form form = Form::Joined;
        Cut cut{};
        TensorId id{};
    };

    Graph &m_graph;
    BatchFlow m_flow;
    Uses m_uses;
    std::vector<bool> m_isOutput; ///< By tensor of the model.
    UniqueNames m_tensorNames;
    UniqueNames m_operatorNames;
    const std::vector<Operator> *m_operators = nullptr;
    const Operator *m_scopeOf = nullptr; ///< Whose name, scope and sources an inserted operator has.
    std::map<TensorId, TensorType> m_original; ///< Types in the model of what operators read and made so far.
    std::map<TensorId, Made> m_made; ///< What is in another form than the model's.
    std::map<std::tuple<TensorId, Form, Cut>, TensorId> m_converted;
    std::int32_t m_changed = 0;
};

} // namespace

std::int32_t separateBatch(Graph &graph)
{
    return BatchSeparator(graph).run();
}

} // namespace planloom
