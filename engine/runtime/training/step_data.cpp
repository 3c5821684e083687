#include "engine/runtime/training/step_data.h"

#include "engine/base/words.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/interop/npz.h"
#include "engine/kernels/elements/narrow_float.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace planloom {

namespace {

namespace fs = std::filesystem;

std::string typeWords(const TensorType &type)
{
    return std::string{nameOf(type.dataType)} + " " + toString(type.shape);
}

/// True if `a` comes before `b`, with runs of digits in the order of their numbers.
bool naturallyBefore(const std::string &a, const std::string &b)
{
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (!isDigit(a[i]) || !isDigit(b[j])) {
            if (a[i] != b[j])
                return a[i] < b[j];
            ++i;
            ++j;
            continue;
        }
        const auto number = [&](const std::string &text, std::size_t &at) {
            while (at < text.size() && text[at] == '0')
                ++at;
            const std::size_t begin = at;
            while (at < text.size() && isDigit(text[at]))
                ++at;
            return text.substr(begin, at - begin);
        };
        const std::string x = number(a, i);
        const std::string y = number(b, j);
        if (x != y)
            return x.size() != y.size() ? x.size() < y.size() : x < y;
    }
    return std::pair{a.size() - i, a} < std::pair{b.size() - j, b};
}

/// The array whose first index is `at`.
TensorData sliceOf(const TensorData &stack, std::int64_t at)
{
    TensorData slice{stack.type, {}};
    slice.type.shape.erase(slice.type.shape.begin());
    const auto bytes =
        static_cast<std::ptrdiff_t>(elementCount(slice.type.shape) * sizeOf(slice.type.dataType));
    slice.bytes.assign(stack.bytes.begin() + at * bytes, stack.bytes.begin() + (at + 1) * bytes);
    return slice;
}

bool isRoundedTo(DataType from, DataType to)
{
    return from == DataType::Float32 && isNarrowFloat(to);
}

} // namespace

Result<TensorData> fittedInput(const Tensor &tensor, TensorData array, const std::string &where)
{
    const auto bytesOf = [](const TensorType &type) {
        return static_cast<std::size_t>(elementCount(type.shape) * sizeOf(type.dataType));
    };
    if (isRoundedTo(array.type.dataType, tensor.type.dataType) && array.type.shape == tensor.type.shape
        && array.bytes.size() == bytesOf(array.type)) {
        TensorData rounded{tensor.type, std::vector<std::byte>(bytesOf(tensor.type))};
        narrow(reinterpret_cast<const float *>(array.bytes.data()), tensor.type.dataType,
            rounded.bytes.data(), static_cast<std::size_t>(elementCount(tensor.type.shape)));
        return rounded;
    }
    if (array.type != tensor.type || array.bytes.size() != bytesOf(tensor.type))
        return Error{ErrorCode::InvalidInput,
            "input " + tensor.name + " is " + typeWords(tensor.type) + " in the model, the array given is "
                + typeWords(array.type),
            "give an array of the model's type and shape", where};
    return array;
}

StepData::StepData(GraphSnapshot graph)
    : m_graph(std::move(graph))
{
    for (const TensorId id : m_graph->inputs)
        m_inputs.emplace(m_graph->at(id).name, id);
}

Result<StepData> StepData::open(const std::string &path, const GraphSnapshot &graph)
{
    StepData data{graph};
    std::error_code failure;
    const fs::path root{path};
    if (!fs::is_directory(root, failure)) {
        if (root.extension() == ".npy" && data.m_inputs.size() == 1) {
            TRY_VOID(data.addStack(data.m_inputs.begin()->first, path));
        } else {
            TRY_VOID(data.addMembers(path));
        }
        return data;
    }
    for (const auto &[name, id] : data.m_inputs)
        if (const fs::path file = root / (name + ".npy"); fs::is_regular_file(file, failure))
            TRY_VOID(data.addStack(name, file.string()));
    if (!data.m_stacks.empty())
        return data;
    fs::directory_iterator entry{root, failure};
    for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
        const std::string extension = entry->path().extension().string();
        if (entry->is_directory(failure) || extension == ".npz"
            || (extension == ".npy" && data.m_inputs.size() == 1))
            data.m_files.push_back(entry->path().string());
    }
    if (failure)
        return Error{ErrorCode::Io, "cannot list the folder: " + failure.message(), {}, path};
    if (data.m_files.empty())
        return Error{ErrorCode::InvalidInput, "there are no batches in the folder",
            "put one .npz, or one folder of <input>.npy, there for each step; or <input>.npy with the steps "
            "as their first dimension",
            path};
    std::sort(data.m_files.begin(), data.m_files.end(), naturallyBefore);
    data.m_count = static_cast<std::int64_t>(data.m_files.size());
    TRY(const auto first, data.readFile(data.m_files.front()));
    for (const auto &[name, array] : first)
        data.m_names.insert(name);
    return data;
}

Result<void> StepData::noteSteps(const Tensor &tensor, const TensorType &found, const std::string &where)
{
    TensorType expected = tensor.type;
    const Shape &shape = found.shape;
    if (shape.size() != expected.shape.size() + 1
        || !std::equal(expected.shape.begin(), expected.shape.end(), shape.begin() + 1)
        || (found.dataType != expected.dataType && !isRoundedTo(found.dataType, expected.dataType)))
        return Error{ErrorCode::InvalidInput,
            "input " + tensor.name + " is " + typeWords(expected)
                + " in the model; expected as much behind a dimension of steps, found " + typeWords(found),
            "stack the batches along a new first dimension, or put each into a file of its own; --inputs "
            "feeds the same batch to all steps",
            where};
    if (m_count > 0 && shape[0] != m_count)
        return Error{ErrorCode::InvalidInput,
            "input " + tensor.name + " has " + counted(shape[0], "step") + ", others have "
                + std::to_string(m_count),
            "give as many steps of every input", where};
    if (shape[0] == 0)
        return Error{ErrorCode::InvalidInput, "input " + tensor.name + " has no steps", {}, where};
    m_count = shape[0];
    m_names.insert(tensor.name);
    return {};
}

Result<void> StepData::addStack(const std::string &input, const std::string &path)
{
    Stack stack;
    stack.path = path;
    TRY(stack.source, openByteSource(path));
    const std::uint64_t size = stack.source->size();
    std::vector<std::byte> head(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMostNpyHeadBytes)));
    TRY_VOID(stack.source->read(0, head));
    TRY(stack.head, parseNpyHead(head, size, path));
    if (stack.head.isColumnMajor)
        return Error{ErrorCode::NotSupported, "the array is column-major: its steps do not lie together",
            "write it with numpy.save(path, numpy.ascontiguousarray(array))", path};
    TRY_VOID(noteSteps(m_graph->at(m_inputs.at(input)), stack.head.type, path));
    m_stacks.emplace(input, std::move(stack));
    return {};
}

Result<void> StepData::addMembers(const std::string &path)
{
    TRY(auto members, readInputs(path));
    for (auto &[name, array] : members) {
        const auto input = m_inputs.find(name);
        if (input == m_inputs.end())
            continue;
        TRY_VOID(noteSteps(m_graph->at(input->second), array.type, path + ": " + name));
        m_members.emplace(name, std::move(array));
    }
    if (!m_members.empty())
        return {};
    std::string known;
    for (const auto &[name, id] : m_inputs)
        known += (known.empty() ? "" : ", ") + name;
    return Error{ErrorCode::InvalidInput, "no array of the file is an input of the model",
        "name arrays as the model's inputs: " + known, path};
}

Result<NamedArrays> StepData::fitted(NamedArrays arrays, const std::string &where) const
{
    NamedArrays batch;
    for (auto &[name, array] : arrays) {
        const auto input = m_inputs.find(name);
        if (input == m_inputs.end())
            continue;
        TRY(batch[name], fittedInput(m_graph->at(input->second), std::move(array), where + ": " + name));
    }
    for (const std::string &name : m_names)
        if (!batch.contains(name))
            return Error{ErrorCode::InvalidInput, "there is no array " + name + ", which the first batch has",
                "give the same inputs in every step", where};
    if (batch.empty())
        return Error{ErrorCode::InvalidInput, "no array of the batch is an input of the model",
            "name arrays as the model's inputs", where};
    return batch;
}

Result<NamedArrays> StepData::readFile(const std::string &path) const
{
    NamedArrays arrays;
    if (fs::path{path}.extension() == ".npy") {
        TRY(arrays[m_inputs.begin()->first], readNpy(path));
    } else {
        TRY(arrays, readInputs(path));
    }
    return fitted(std::move(arrays), path);
}

Result<NamedArrays> StepData::read(std::int64_t step) const
{
    const std::int64_t at = step % m_count;
    if (!m_files.empty())
        return readFile(m_files[static_cast<std::size_t>(at)]);
    NamedArrays batch;
    for (const auto &[name, member] : m_members) {
        TRY(batch[name], fittedInput(m_graph->at(m_inputs.at(name)), sliceOf(member, at), name));
    }
    for (const auto &[name, stack] : m_stacks) {
        TensorData slice{stack.head.type, {}};
        slice.type.shape.erase(slice.type.shape.begin());
        slice.bytes.resize(
            static_cast<std::size_t>(elementCount(slice.type.shape) * sizeOf(slice.type.dataType)));
        TRY_VOID(stack.source->read(
            stack.head.begin + static_cast<std::uint64_t>(at) * slice.bytes.size(), slice.bytes));
        TRY(batch[name], fittedInput(m_graph->at(m_inputs.at(name)), std::move(slice), stack.path));
    }
    return batch;
}

BatchStream::BatchStream(const StepData &data, std::int64_t first)
    : m_data(data)
    , m_next(first)
    , m_reading(reading(first))
{
}

BatchStream::~BatchStream()
{
    if (m_reading.valid())
        m_reading.wait();
}

std::future<Result<NamedArrays>> BatchStream::reading(std::int64_t step)
{
    return std::async(std::launch::async, [this, step] { return m_data.read(step); });
}

Result<NamedArrays> BatchStream::take(bool another)
{
    auto batch = m_reading.get();
    ++m_next;
    if (another && batch)
        m_reading = reading(m_next);
    return batch;
}

} // namespace planloom
