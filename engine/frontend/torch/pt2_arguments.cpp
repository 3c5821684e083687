#include "engine/frontend/torch/pt2_arguments.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

std::string pt2PathOf(const Pt2Node &node, const std::vector<std::string> &modules)
{
    std::string name;
    std::string outer;
    for (const std::string &module : node.modules.empty() ? modules : node.modules) {
        const bool inside = !outer.empty() && module.size() > outer.size() + 1
            && module.compare(0, outer.size(), outer) == 0 && module[outer.size()] == '.';
        if (module == outer)
            continue;
        std::string part = inside ? module.substr(outer.size() + 1) : module;
        std::replace(part.begin(), part.end(), '/', '_');
        name += "/" + part;
        outer = module;
    }
    return name + "/" + node.name;
}

std::string pt2ShortTarget(const std::string &target)
{
    const std::string prefix = "torch.ops.";
    return target.compare(0, prefix.size(), prefix) == 0 ? target.substr(prefix.size()) : target;
}

std::vector<std::string> pt2ResultsOf(const Pt2Node &node)
{
    std::vector<std::string> names;
    for (const Pt2Argument &output : node.outputs) {
        if (const auto *tensor = std::get_if<Pt2Tensor>(&output)) {
            names.push_back(tensor->name);
        } else if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&output)) {
            for (const Pt2Tensor &item : *tensors)
                names.push_back(item.name);
        } else {
            names.emplace_back();
        }
    }
    return names;
}

Error pt2Error(const Pt2Node &node, ErrorCode code, std::string message, std::string advice)
{
    return {code, "node '" + node.name + "' (" + pt2ShortTarget(node.target) + "): " + std::move(message),
        std::move(advice), "node:" + node.name};
}

Result<AtenValue> pt2Value(const Pt2Frame &frame, const std::string &name, const Pt2Node &node)
{
    if (const AtenValue *value = frame.find(name))
        return *value;
    return pt2Error(node, ErrorCode::InvalidInput, "it reads '" + name + "', which nothing makes",
        "export the model anew");
}

Result<AtenValue> pt2Argument(const Pt2Frame &frame, const Pt2Argument &argument, const Pt2Node &node)
{
    if (std::holds_alternative<Pt2None>(argument))
        return AtenValue();
    if (const auto *tensor = std::get_if<Pt2Tensor>(&argument))
        return pt2Value(frame, tensor->name, node);
    if (const auto *symbol = std::get_if<Pt2Symbol>(&argument))
        return pt2Value(frame, symbol->name, node);
    if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&argument)) {
        std::vector<TensorId> ids;
        std::vector<AtenComplex> pairs;
        bool isComplex = false;
        for (const Pt2Tensor &item : *tensors) {
            AtenValue value = TensorId{};
            if (!item.name.empty()) {
                TRY(value, pt2Value(frame, item.name, node));
            }
            const auto *id = std::get_if<TensorId>(&value);
            const auto *complex = std::get_if<AtenComplex>(&value);
            if (id == nullptr && complex == nullptr)
                return pt2Error(node, ErrorCode::InvalidInput, "'" + item.name + "' is no tensor",
                    "export the model anew");
            isComplex = isComplex || complex != nullptr;
            pairs.push_back(complex != nullptr ? *complex : AtenComplex{*id, {}});
            ids.push_back(pairs.back().real);
        }
        if (isComplex)
            return AtenValue(std::move(pairs));
        return AtenValue(std::move(ids));
    }
    if (const auto *numbers = std::get_if<std::vector<Pt2Number>>(&argument)) {
        std::vector<std::int64_t> integers;
        std::vector<double> reals;
        for (const Pt2Number &number : *numbers) {
            AtenValue value;
            if (const auto *named = std::get_if<Pt2Symbol>(&number)) {
                TRY(value, pt2Value(frame, named->name, node));
            } else if (const auto *integer = std::get_if<std::int64_t>(&number)) {
                value = *integer;
            } else {
                value = std::get<double>(number);
            }
            if (const auto *integer = std::get_if<std::int64_t>(&value)) {
                integers.push_back(*integer);
                reals.push_back(static_cast<double>(*integer));
            } else if (const auto *real = std::get_if<double>(&value)) {
                reals.push_back(*real);
            } else {
                return pt2Error(node, ErrorCode::NotSupported,
                    "a size depends on values that are not known before a run",
                    "export the model with static shapes");
            }
        }
        if (integers.size() == reals.size())
            return AtenValue(std::move(integers));
        return AtenValue(std::move(reals));
    }
    if (const auto *unreadable = std::get_if<Pt2Unreadable>(&argument)) {
        // Devices, layouts and memory formats do not change what is computed.
        static const std::set<std::string_view> kIgnored = {"device", "layout", "memory_format"};
        if (kIgnored.count(unreadable->kind) != 0)
            return AtenValue();
        return pt2Error(node, ErrorCode::NotSupported,
            "it takes an argument of kind '" + unreadable->kind + "', which Planloom cannot read",
            "write the module without it");
    }
    return std::visit(
        [](const auto &value) -> Result<AtenValue> {
            using Value = std::decay_t<decltype(value)>;
            constexpr bool isPlain =
                std::is_same_v<Value,
                    std::
                        int64_t> || std::is_same_v<Value, double> || std::is_same_v<Value, bool> || std::is_same_v<Value, std::string> || std::is_same_v<Value, Pt2DataType> || std::is_same_v<Value, std::complex<double>>;
            if constexpr (isPlain)
                return AtenValue(value);
            else
                return AtenValue();
        },
        argument);
}

Result<AtenArguments> pt2Arguments(const Pt2Frame &frame, const Pt2Node &node)
{
    AtenArguments arguments;
    for (const Pt2NamedArgument &input : node.inputs) {
        TRY(AtenValue value, pt2Argument(frame, input.value, node));
        arguments.emplace(input.name, std::move(value));
    }
    return arguments;
}

Result<std::vector<AtenValue>> pt2List(
    const Pt2Frame &frame, const Pt2Argument &argument, const Pt2Node &node)
{
    std::vector<AtenValue> values;
    if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&argument)) {
        for (const Pt2Tensor &tensor : *tensors) {
            AtenValue value;
            if (!tensor.name.empty()) {
                TRY(value, pt2Value(frame, tensor.name, node));
            }
            values.push_back(std::move(value));
        }
        return values;
    }
    TRY(AtenValue value, pt2Argument(frame, argument, node));
    if (const auto *integers = std::get_if<std::vector<std::int64_t>>(&value))
        values.assign(integers->begin(), integers->end());
    else if (const auto *reals = std::get_if<std::vector<double>>(&value))
        values.assign(reals->begin(), reals->end());
    else
        values.push_back(std::move(value));
    return values;
}

std::vector<TensorId> pt2Tensors(const Pt2Frame &frame, const Pt2Node &node)
{
    std::vector<TensorId> tensors;
    const auto add = [&](const Pt2Tensor &tensor) {
        const AtenValue *value = frame.find(tensor.name);
        if (const auto *id = value == nullptr ? nullptr : std::get_if<TensorId>(value))
            tensors.push_back(*id);
    };
    for (const Pt2NamedArgument &input : node.inputs) {
        if (const auto *tensor = std::get_if<Pt2Tensor>(&input.value))
            add(*tensor);
        if (const auto *list = std::get_if<std::vector<Pt2Tensor>>(&input.value))
            std::for_each(list->begin(), list->end(), add);
    }
    return tensors;
}

Result<void> pt2SetOnce(Pt2Frame &frame, const std::string &name, AtenValue value, const Pt2Node &node)
{
    if (frame.find(name) != nullptr)
        return pt2Error(
            node, ErrorCode::InvalidInput, "the value '" + name + "' is made twice", "export the model anew");
    frame.set(name, std::move(value));
    return {};
}

} // namespace planloom
