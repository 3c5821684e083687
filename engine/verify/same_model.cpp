#include "engine/verify/same_model.h"

namespace planloom {

std::string differenceOf(const Graph &plan, const Graph &model)
{
    const auto count = [](std::size_t a, std::size_t b, const char *what) {
        return "the plan has " + std::to_string(a) + " " + what + ", the model " + std::to_string(b);
    };
    if (plan.tensors.size() != model.tensors.size())
        return count(plan.tensors.size(), model.tensors.size(), "tensors");
    if (plan.operators.size() != model.operators.size())
        return count(plan.operators.size(), model.operators.size(), "operators");
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const Tensor &a = plan.tensors[i];
        const Tensor &b = model.tensors[i];
        const TensorId id{static_cast<std::int32_t>(i)};
        if (a.name == b.name && a.role == b.role && a.of == b.of && a.type != b.type
            && a.type.dataType == b.type.dataType && shapeInFiles(plan, id) == shapeInFiles(model, id))
            return "the plan has '" + a.name + "' as " + toString(a.type.shape) + ", the model now as "
                + toString(b.type.shape) + ": solve the model again";
        if (a.name != b.name || a.type != b.type || a.role != b.role || a.of != b.of
            || a.fileShape != b.fileShape || a.filePart != b.filePart)
            return "tensor '" + a.name + "' differs from the model's '" + b.name + "'";
    }
    for (std::size_t i = 0; i < plan.operators.size(); ++i) {
        const Operator &a = plan.operators[i];
        const Operator &b = model.operators[i];
        const auto differ = [&](const char *what) {
            return "operator '" + a.name + "' has other " + what + " than the model's '" + b.name + "'";
        };
        if (a.name != b.name)
            return differ("name");
        if (a.kind != b.kind || a.direction != b.direction)
            return differ("kind");
        if (a.inputs != b.inputs || a.outputs != b.outputs)
            return differ("inputs or outputs");
        if (!(a.annotation == b.annotation))
            return differ("dimensions");
        if (a.attributes.all().size() != b.attributes.all().size())
            return differ("attributes");
        for (const auto &[name, value] : a.attributes.all()) {
            const auto it = b.attributes.all().find(name);
            if (it == b.attributes.all().end() || it->second != value)
                return "attribute '" + name + "' of operator '" + a.name + "' is not the model's";
        }
    }
    if (plan.inputs != model.inputs || plan.outputs != model.outputs || plan.loss != model.loss)
        return "the plan has other inputs, outputs or loss than the model";
    return {};
}

} // namespace planloom
