#include "engine/kernels/custom/custom_call.h"
#include "engine/kernels/kernel_table.h"

#include <algorithm>
#include <new>

namespace planloom {

namespace {

/// The shape of a tensor with these terms in a part; empty optional where the terms do not say it.
std::optional<Shape> shapeOfTerms(const KernelCall &call, const TensorTerms &terms)
{
    if (terms.opaque)
        return std::nullopt;
    const Annotation &annotation = call.op->annotation;
    Shape shape;
    for (const Term &term : terms.terms) {
        std::int64_t extent = 1;
        for (const std::int32_t factor : term.factors) {
            const auto d = static_cast<std::size_t>(factor);
            extent *= d < call.ranges.size() ? call.ranges[d].end - call.ranges[d].begin
                                             : annotation.dimensions[d].size;
        }
        shape.push_back(extent);
    }
    return shape;
}

/// Computes `custom` as its definition says.
Result<void> compute(const CustomCall &custom)
{
    const OperatorDefinition &definition = custom.definition;
    if (definition.library && custom.call.libraries != nullptr) {
        if (const auto function = custom.call.libraries->find(*definition.library))
            return callLibrary(custom, function);
    }
    if (!definition.body.empty())
        return runBody(custom);
    return notSupported(custom.call,
        "operator " + custom.call.op->name + " (" + toString(definition.name)
            + ") cannot be run: its operator file gives it no body"
            + (definition.library ? ", and its library was not loaded" : " and no library"),
        definition.library ? "allow the library with --allow-library " + definition.library->path
                           : "add a body or a line 'library' to " + definition.file);
}

Result<void> customForward(const KernelCall &call)
{
    CustomCall custom{call, *call.op->attributes.definition(), call.op->attributes, {}, {}};
    for (std::size_t slot = 0; slot < custom.definition.inputs.size(); ++slot)
        custom.inputs.push_back(findInput(call, slot));
    for (std::size_t slot = 0; slot < custom.definition.resultCount(); ++slot)
        custom.outputs.push_back(findOutput(call, slot));
    return compute(custom);
}

/// The value that a gradient operator reads: a gradient, an input or an output of the forward operator.
const Buffer *valueRead(
    const BackwardCall &backward, const OperatorDefinition &definition, const DerivativeValue &value)
{
    const std::int32_t input = inputNamed(definition, value.name);
    const std::int32_t result = resultNamed(definition, value.name);
    if (value.gradient)
        return backward.gradient(at(result));
    return input >= 0 ? backward.input(at(input)) : backward.output(at(result));
}

Result<void> customByOperator(const KernelCall &call, const OperatorDefinition &definition)
{
    const BackwardCall backward(call);
    const DefinedDerivative &derivative = definition.derivative;
    TRY(const Attributes attributes, completedAttributes(derivative.definition, call.op->attributes));
    CustomCall custom{call, *derivative.definition, attributes, {}, {}};
    // Gradients that nobody made are zeros.
    std::vector<Buffer> zeros(derivative.reads.size());
    std::vector<std::vector<std::byte>> bytes(derivative.reads.size());
    for (std::size_t i = 0; i < derivative.reads.size(); ++i) {
        const DerivativeValue &value = derivative.reads[i];
        const Buffer *buffer = valueRead(backward, definition, value);
        const auto slot = at(std::max(resultNamed(definition, value.name), 0));
        if (buffer == nullptr && value.gradient && slot < call.op->annotation.inputs.size()) {
            if (auto shape = shapeOfTerms(call, call.op->annotation.inputs[slot])) {
                zeros[i].dataType = backward.wanted(0) ? backward.wanted(0)->dataType : DataType::Float32;
                for (const Buffer &output : call.outputs)
                    if (output.data != nullptr)
                        zeros[i].dataType = output.dataType;
                zeros[i].shape = *shape;
                zeros[i].wholeShape = *std::move(shape);
                bytes[i].resize(std::max<std::size_t>(byteCount(zeros[i]), 1));
                zeros[i].data = bytes[i].data();
                buffer = &zeros[i];
            }
        }
        custom.inputs.push_back(buffer);
    }
    for (const DerivativeValue &made : derivative.makes)
        custom.outputs.push_back(backward.wanted(at(inputNamed(definition, made.name))));
    return compute(custom);
}

Result<void> customBackward(const KernelCall &call)
{
    const OperatorDefinition &definition = *call.op->attributes.definition();
    if (definition.derivative.way == DefinedDerivative::Way::Operator)
        return customByOperator(call, definition);
    if (definition.derivative.way != DefinedDerivative::Way::Body)
        return notSupported(
            call, "operator " + call.op->name + " (" + toString(definition.name) + ") has no derivative");
    const BackwardCall backward(call);
    CustomCall custom{call, definition, call.op->attributes, {}, {}};
    std::vector<const Buffer *> gradients;
    for (std::size_t slot = 0; slot < definition.inputs.size(); ++slot) {
        custom.inputs.push_back(backward.input(slot));
        custom.outputs.push_back(backward.wanted(slot));
    }
    for (std::size_t slot = 0; slot < definition.resultCount(); ++slot)
        gradients.push_back(backward.gradient(slot));
    return runBodyBackward(custom, gradients);
}

/// Bodies take memory of their own, of whatever sizes their files ask for.
template<Result<void> (*Run)(const KernelCall &)> Result<void> guarded(const KernelCall &call)
{
    try {
        return Run(call);
    } catch (const std::bad_alloc &) {
        return Error{ErrorCode::ResourceLimit,
            "operator " + call.op->name + " found no memory for the values of its body",
            "use a smaller batch, more micro-batches, or a library in place of the body",
            "operator:" + call.op->name};
    }
}

} // namespace

std::vector<TensorType> CustomCall::inputTypes() const
{
    std::vector<TensorType> types;
    for (const Buffer *input : inputs)
        types.push_back(input ? TensorType{input->dataType, input->shape} : TensorType{});
    return types;
}

std::vector<bool> CustomCall::present() const
{
    std::vector<bool> there;
    for (const Buffer *input : inputs)
        there.push_back(input != nullptr);
    return there;
}

Result<DefinedSizes> CustomCall::partSizes() const
{
    std::vector<Shape> shapes;
    for (const Buffer *input : inputs)
        shapes.push_back(input ? input->shape : Shape{});
    return definedSizes(definition, attributes, shapes, present());
}

Result<DefinedSizes> CustomCall::wholeSizes() const
{
    std::vector<Shape> shapes;
    for (const Buffer *input : inputs)
        shapes.push_back(!input ? Shape{} : input->wholeShape.empty() ? input->shape : input->wholeShape);
    return definedSizes(definition, attributes, shapes, present());
}

void addCustomKernels(KernelTable &table)
{
    table.add({OperatorKind::Custom}, guarded<customForward>, guarded<customBackward>);
}

bool hasCustomKernel(const Operator &op)
{
    const OperatorDefinition &definition = *op.attributes.definition();
    if (op.direction == Direction::Backward && definition.derivative.way == DefinedDerivative::Way::Body)
        return !definition.body.empty();
    const OperatorDefinition *computing = computedBy(op);
    return computing != nullptr && (computing->library || !computing->body.empty());
}

} // namespace planloom
