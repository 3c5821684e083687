#include "engine/kernels/custom/custom_call.h"

#include <algorithm>
#include <array>
#include <map>

namespace planloom {

namespace {

std::int32_t libraryType(DataType type)
{
    using enum DataType;
    static const std::map<DataType, std::int32_t> kTypes = {{Float32, PLANLOOM_OPERATOR_FLOAT32},
        {Float64, PLANLOOM_OPERATOR_FLOAT64}, {Int64, PLANLOOM_OPERATOR_INT64},
        {Int32, PLANLOOM_OPERATOR_INT32}, {Int16, PLANLOOM_OPERATOR_INT16}, {Int8, PLANLOOM_OPERATOR_INT8},
        {UInt8, PLANLOOM_OPERATOR_UINT8}, {Bool, PLANLOOM_OPERATOR_BOOL}};
    const auto found = kTypes.find(type);
    return found == kTypes.end() ? 0 : found->second;
}

/// A tensor as the library sees it, with the lists that it points to.
struct LibraryTensor {
    std::vector<std::int64_t> sizes{};
    std::vector<std::int64_t> strides{};
    std::vector<std::int64_t> offsets{};
    std::vector<std::int64_t> whole{};

    planloom_operator_tensor over(const Buffer *buffer)
    {
        planloom_operator_tensor tensor{};
        if (buffer == nullptr)
            return tensor;
        sizes = buffer->shape;
        strides.assign(sizes.size(), 1);
        for (std::size_t d = sizes.size(); d-- > 1;)
            strides[d - 1] = strides[d] * sizes[d];
        for (std::size_t d = 0; d < sizes.size(); ++d) {
            offsets.push_back(firstOf(*buffer, d));
            whole.push_back(wholeExtent(*buffer, d));
        }
        tensor.data = buffer->data;
        tensor.type = libraryType(buffer->dataType);
        tensor.rank = static_cast<std::int32_t>(sizes.size());
        tensor.sizes = sizes.data();
        tensor.strides = strides.data();
        tensor.offsets = offsets.data();
        tensor.whole = whole.data();
        return tensor;
    }
};

std::vector<planloom_operator_tensor> tensorsOver(
    const std::vector<const Buffer *> &buffers, std::vector<LibraryTensor> &lists)
{
    lists.resize(buffers.size());
    std::vector<planloom_operator_tensor> tensors;
    for (std::size_t slot = 0; slot < buffers.size(); ++slot)
        tensors.push_back(lists[slot].over(buffers[slot]));
    return tensors;
}

/// Attributes as the library sees them. Texts point into `attributes`.
std::vector<planloom_operator_attribute> libraryAttributes(
    const Attributes &attributes, std::vector<std::vector<double>> &lists)
{
    std::vector<planloom_operator_attribute> all;
    lists.resize(attributes.all().size());
    for (const auto &[name, value] : attributes.all()) {
        planloom_operator_attribute attribute{};
        attribute.name = name.c_str();
        std::vector<double> &list = lists[all.size()];
        if (const auto *integer = std::get_if<std::int64_t>(&value))
            attribute.number = static_cast<double>(*integer);
        else if (const auto *real = std::get_if<double>(&value))
            attribute.number = *real;
        else if (const auto *text = std::get_if<std::string>(&value))
            attribute.text = text->c_str();
        else if (const auto *integers = std::get_if<std::vector<std::int64_t>>(&value))
            list.assign(integers->begin(), integers->end());
        else if (const auto *reals = std::get_if<std::vector<double>>(&value))
            list = *reals;
        else
            continue; // lists of texts have no use in arithmetic
        if (std::holds_alternative<std::vector<std::int64_t>>(value)
            || std::holds_alternative<std::vector<double>>(value)) {
            list.reserve(1); // an empty list is no missing one
            attribute.numbers = list.data();
            attribute.count = list.size();
        }
        all.push_back(attribute);
    }
    return all;
}

} // namespace

Result<void> callLibrary(const CustomCall &custom, planloom_operator_function function)
{
    for (const auto *list : {&custom.inputs, &custom.outputs})
        for (const Buffer *buffer : *list)
            if (buffer != nullptr && libraryType(buffer->dataType) == 0)
                return unsupportedType(custom.call, buffer->dataType);
    std::vector<LibraryTensor> inputLists;
    std::vector<LibraryTensor> outputLists;
    const auto inputs = tensorsOver(custom.inputs, inputLists);
    const auto outputs = tensorsOver(custom.outputs, outputLists);
    std::vector<std::vector<double>> attributeLists;
    const auto attributes = libraryAttributes(custom.attributes, attributeLists);
    std::vector<std::byte> workspace;
    if (custom.definition.workspace) {
        TRY(const DefinedSizes part, custom.partSizes());
        TRY(const DefinedSizes whole, custom.wholeSizes());
        TRY(const std::int64_t bytes, workspaceBytes(custom.definition, custom.attributes, part, whole));
        workspace.resize(static_cast<std::size_t>(bytes));
    }
    const std::string type = toString(custom.definition.name);
    std::array<char, 512> why{};
    planloom_operator_call call{};
    call.version = PLANLOOM_OPERATOR_VERSION;
    call.size = sizeof call;
    call.type = type.c_str();
    call.name = custom.call.op->name.c_str();
    call.input_count = static_cast<std::uint32_t>(inputs.size());
    call.output_count = static_cast<std::uint32_t>(outputs.size());
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.attribute_count = static_cast<std::uint32_t>(attributes.size());
    call.attributes = attributes.data();
    call.workspace = workspace.empty() ? nullptr : workspace.data();
    call.workspace_size = workspace.size();
    call.error = why.data();
    call.error_size = why.size();
    const int status = function(&call);
    if (status == 0)
        return {};
    why.back() = '\0';
    const std::string reason = why.front() == '\0' ? "status " + std::to_string(status) : why.data();
    return Error{ErrorCode::CheckFailed,
        "the library's function " + custom.definition.library->function + " failed on operator "
            + custom.call.op->name + " (" + type + "): " + reason,
        "see " + custom.definition.library->path, "operator:" + custom.call.op->name};
}

} // namespace planloom
