#include "engine/kernels/custom/custom_call.h"

#include <algorithm>
#include <cstring>

namespace planloom {

namespace {

using Bytes = std::vector<std::byte>;

Buffer bufferOver(const TensorType &type, std::byte *data)
{
    Buffer buffer;
    buffer.data = data;
    buffer.dataType = type.dataType;
    buffer.shape = type.shape;
    buffer.wholeShape = type.shape;
    for (const std::int64_t extent : type.shape)
        buffer.mask.ranges.push_back({0, extent});
    return buffer;
}

std::vector<Range> wholeRanges(const Annotation &annotation)
{
    std::vector<Range> ranges;
    for (const Dimension &dimension : annotation.dimensions)
        ranges.push_back({0, dimension.size});
    return ranges;
}

/// What lies where while a body is run.
class BodyRun
{
public:
    BodyRun(const CustomCall &custom, const Graph &body)
        : m_custom(custom)
        , m_body(body)
        , m_data(body.tensors.size(), nullptr)
        , m_own(body.tensors.size())
    {
        for (std::size_t slot = 0; slot < body.inputs.size(); ++slot)
            if (body.inputs[slot])
                m_data[at(body.inputs[slot])] = custom.inputs[slot]->data;
        for (std::size_t t = 0; t < body.tensors.size(); ++t)
            if (const auto &constant = body.tensors[t].data) {
                m_own[t] = constant->bytes;
                m_data[t] = m_own[t].data();
            }
    }

    /// Lets a result be made where it is wanted, without a copy.
    void place(TensorId tensor, std::byte *data) { m_data[at(tensor)] = data; }

    Result<void> forward()
    {
        for (const Operator &op : m_body.operators) {
            KernelCall call = callOf(op);
            for (const TensorId id : op.inputs)
                call.inputs.push_back(bufferOf(id));
            for (const TensorId id : op.outputs)
                call.outputs.push_back(bufferOf(id));
            TRY_VOID(runKernel(call));
        }
        return {};
    }

    /// The gradient of `tensor` so far; zeros where none was added.
    void addGradient(TensorId tensor, const std::byte *data)
    {
        const TensorType &type = m_body.at(tensor).type;
        const auto count = static_cast<std::size_t>(elementCount(type.shape));
        Bytes &sum = gradientOf(tensor);
        const auto add = [&]<typename Number>(Number) {
            auto *to = reinterpret_cast<Number *>(sum.data());
            const auto *from = reinterpret_cast<const Number *>(data);
            for (std::size_t i = 0; i < count; ++i)
                to[i] += from[i];
        };
        if (type.dataType == DataType::Float64)
            add(double{});
        else
            add(float{});
    }

    Result<void> backward(const std::vector<bool> &needed)
    {
        for (std::size_t i = m_body.operators.size(); i-- > 0;) {
            const Operator &op = m_body.operators[i];
            const GradientRule rule = gradientRule(m_body, op);
            std::vector<bool> wanted;
            bool any = false;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                wanted.push_back(op.inputs[slot] && rule.gradientOf[slot] && needed[at(op.inputs[slot])]);
                any = any || wanted.back();
            }
            const bool reached = std::any_of(op.outputs.begin(), op.outputs.end(),
                [this](TensorId id) { return m_gradients.count(id) != 0; });
            if (any && reached)
                TRY_VOID(backwardStep(op, wanted));
        }
        return {};
    }

    /// Puts the gradient of an input where it is wanted.
    void give(TensorId tensor, const Buffer &to) const
    {
        const auto found = m_gradients.find(tensor);
        if (found == m_gradients.end())
            fillZero(to);
        else
            std::memcpy(to.data, found->second.data(), byteCount(to));
    }

private:
    KernelCall callOf(const Operator &op) const
    {
        KernelCall call;
        call.op = &op;
        call.ranges = wholeRanges(op.annotation);
        call.seed = m_custom.call.seed;
        call.step = m_custom.call.step;
        return call;
    }

    Buffer bufferOf(TensorId id)
    {
        if (!id)
            return {};
        const TensorType &type = m_body.at(id).type;
        std::byte *&data = m_data[at(id)];
        if (data == nullptr) {
            m_own[at(id)].resize(static_cast<std::size_t>(
                std::max<std::int64_t>(elementCount(type.shape) * sizeOf(type.dataType), 1)));
            data = m_own[at(id)].data();
        }
        return bufferOver(type, data);
    }

    Bytes &gradientOf(TensorId tensor)
    {
        Bytes &sum = m_gradients[tensor];
        const TensorType &type = m_body.at(tensor).type;
        if (sum.empty())
            sum.resize(static_cast<std::size_t>(
                std::max<std::int64_t>(elementCount(type.shape) * sizeOf(type.dataType), 1)));
        return sum;
    }

    Result<void> backwardStep(const Operator &forward, const std::vector<bool> &wanted)
    {
        Operator op;
        op.name = forward.name + "'";
        op.kind = forward.kind;
        op.direction = Direction::Backward;
        op.attributes = forward.attributes;
        op.annotation = backwardAnnotation(forward.annotation);
        op.outputs = forward.inputs;
        KernelCall call = callOf(op);
        for (const TensorId id : forward.outputs) {
            const auto found = m_gradients.find(id);
            call.inputs.push_back(
                found == m_gradients.end() ? Buffer{} : bufferOver(m_body.at(id).type, found->second.data()));
        }
        for (const TensorId id : forward.inputs)
            call.inputs.push_back(bufferOf(id));
        for (const TensorId id : forward.outputs)
            call.inputs.push_back(bufferOf(id));
        op.inputs.resize(call.inputs.size());
        std::vector<Bytes> made(forward.inputs.size());
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
            if (!wanted[slot]) {
                call.outputs.emplace_back();
                continue;
            }
            const TensorType &type = m_body.at(forward.inputs[slot]).type;
            made[slot].resize(static_cast<std::size_t>(
                std::max<std::int64_t>(elementCount(type.shape) * sizeOf(type.dataType), 1)));
            call.outputs.push_back(bufferOver(type, made[slot].data()));
        }
        TRY_VOID(runKernel(call));
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
            if (wanted[slot])
                addGradient(forward.inputs[slot], made[slot].data());
        return {};
    }

    const CustomCall &m_custom;
    const Graph &m_body;
    std::vector<std::byte *> m_data; ///< By tensor; null where not made yet.
    std::vector<Bytes> m_own; ///< By tensor.
    std::map<TensorId, Bytes> m_gradients;
};

Result<Graph> bodyOfCall(const CustomCall &custom)
{
    TRY(const DefinedSizes whole, custom.wholeSizes());
    TRY(Graph body,
        bodyOf(custom.definition, custom.attributes, custom.inputTypes(), custom.present(), &whole));
    for (const Tensor &tensor : body.tensors)
        if (tensor.type.dataType == DataType::Float16 || tensor.type.dataType == DataType::BFloat16)
            return unsupportedType(custom.call, tensor.type.dataType);
    return body;
}

/// A part's result must fit the buffer that the plan gave it.
Result<void> checkFits(
    const CustomCall &custom, const std::string &name, const TensorType &made, const Buffer &buffer)
{
    if (made.dataType == buffer.dataType && made.shape == buffer.shape)
        return {};
    return invalidInput(custom.call,
        "the body of " + toString(custom.definition.name) + " makes '" + name + "' as "
            + nameOf(made.dataType) + toString(made.shape) + ", where this part of the operator has "
            + nameOf(buffer.dataType) + toString(buffer.shape),
        "planloom-cli check-annotation says which split does not fit");
}

} // namespace

Result<void> runBody(const CustomCall &custom)
{
    TRY(const Graph body, bodyOfCall(custom));
    BodyRun run(custom, body);
    for (std::size_t slot = 0; slot < custom.outputs.size(); ++slot) {
        if (custom.outputs[slot] == nullptr)
            continue;
        TRY_VOID(checkFits(custom, custom.definition.result(slot).name, body.at(body.outputs[slot]).type,
            *custom.outputs[slot]));
        run.place(body.outputs[slot], custom.outputs[slot]->data);
    }
    return run.forward();
}

Result<void> runBodyBackward(const CustomCall &custom, const std::vector<const Buffer *> &gradients)
{
    TRY(const Graph body, bodyOfCall(custom));
    BodyRun run(custom, body);
    TRY_VOID(run.forward());
    // What depends on an input whose gradient is wanted.
    std::vector<bool> needed(body.tensors.size(), false);
    for (std::size_t slot = 0; slot < custom.outputs.size(); ++slot)
        if (custom.outputs[slot] != nullptr && body.inputs[slot])
            needed[at(body.inputs[slot])] = true;
    for (const Operator &op : body.operators) {
        const bool any = std::any_of(
            op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && needed[at(id)]; });
        for (const TensorId id : op.outputs)
            needed[at(id)] = any;
    }
    for (std::size_t slot = 0; slot < gradients.size(); ++slot) {
        if (gradients[slot] == nullptr)
            continue;
        const TensorId output = body.outputs[slot];
        TRY_VOID(
            checkFits(custom, custom.definition.result(slot).name, body.at(output).type, *gradients[slot]));
        run.addGradient(output, gradients[slot]->data);
    }
    TRY_VOID(run.backward(needed));
    for (std::size_t slot = 0; slot < custom.outputs.size(); ++slot)
        if (custom.outputs[slot] != nullptr)
            run.give(body.inputs[slot], *custom.outputs[slot]);
    return {};
}

} // namespace planloom
