// Any bytes are refused with a place, or read as definitions that print as they read; on small inputs these
// give types, annotations, bodies and work, or errors.

#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operator_files/operator_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

/// Asks all that the catalogue asks of a definition, on inputs of one shape.
void ask(const std::shared_ptr<const OperatorDefinition> &definition, const Shape &shape)
{
    const auto attributes = completedAttributes(definition, {});
    if (!attributes)
        return;
    const std::vector<TensorType> inputs(definition->inputs.size(), TensorType{DataType::Float32, shape});
    const std::vector<bool> present(inputs.size(), true);
    const auto types = customTypes(*attributes, inputs, present);
    if (!types) {
        require(types.error().code != ErrorCode::Internal && !types.error().message.empty());
        return;
    }
    require(types->size() == definition->resultCount());
    Graph graph;
    Operator op;
    op.kind = OperatorKind::Custom;
    op.attributes = *attributes;
    const auto add = [&graph](const TensorType &type) {
        Tensor tensor;
        tensor.name = "t" + std::to_string(graph.tensors.size());
        tensor.type = type;
        graph.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    };
    for (const TensorType &type : inputs)
        op.inputs.push_back(add(type));
    for (const TensorType &type : *types)
        op.outputs.push_back(add(type));
    op.annotation = customAnnotation(*attributes, inputs, present, *types).annotation;
    require(op.annotation.inputs.size() == inputs.size() && op.annotation.outputs.size() == types->size());
    const GradientRule rule = gradientRule(graph, op);
    require(rule.gradientOf.size() == inputs.size());
    require(customFlops(op, inputs, *types) >= 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    const auto definitions = readOperatorFile(bytes, "fuzz.ops");
    if (!definitions) {
        require(definitions.error().code != ErrorCode::Internal && !definitions.error().message.empty());
        return 0;
    }
    const std::string printed = printOperatorFile(*definitions);
    const auto again = readOperatorFile(printed, "fuzz.ops");
    require(again.has_value());
    require(printOperatorFile(*again) == printed);
    for (std::size_t i = 0; i < definitions->size() && i < 8; ++i)
        for (const Shape &shape : {Shape{}, Shape{6}, Shape{4, 6}, Shape{2, 4, 6}})
            ask((*definitions)[i], shape);
    return 0;
}
