#include "engine/runtime/training/checkpoint.h"

#include "engine/base/words.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/lowering/layout/box_algebra.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace planloom {

namespace {

namespace fs = std::filesystem;

constexpr const char *kFormatKey = "planloom.checkpoint";
constexpr const char *kFormatVersion = "1";

/// Calls `piece(first element in its place, first element in the box, elements)` for each run of `box` that
/// lies together in both.
template<typename Piece>
Result<void> forEachRun(const FileRuns &runs, const Shape &shape, const IndexMask &box, Piece piece)
{
    const std::size_t rank = shape.size();
    std::size_t outer = rank; // dimensions before it are walked through, those behind it are whole
    std::int64_t row = 1;
    while (outer > 0) {
        --outer;
        row *= box.ranges[outer].size();
        if (box.ranges[outer].size() != shape[outer])
            break;
    }
    const std::int64_t total = elementCount(box);
    std::vector<std::int64_t> index(outer, 0);
    for (std::int64_t done = 0; done < total; done += row) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < rank; ++d)
            at = at * shape[d] + box.ranges[d].begin + (d < outer ? index[d] : 0);
        for (std::int64_t i = 0; i < row;) {
            const std::int64_t own = at + i;
            const std::int64_t inRun = own % runs.length;
            const std::int64_t count = std::min(row - i, runs.length - inRun);
            TRY_VOID(piece(runs.first + own / runs.length * runs.stride + inRun, done + i, count));
            i += count;
        }
        for (std::size_t d = outer; d-- > 0;) { // next row
            if (++index[d] < box.ranges[d].size())
                break;
            index[d] = 0;
        }
    }
    return {};
}

bool isKept(TensorRole role)
{
    return role == TensorRole::Weight || role == TensorRole::OptimizerState;
}

SafetensorsMetadata metadataOf(const CheckpointState &state)
{
    SafetensorsMetadata metadata{{"format", "pt"}, {kFormatKey, kFormatVersion},
        {"step", std::to_string(state.step)}, {"seed", std::to_string(state.seed)},
        {"next_batch", std::to_string(state.nextBatch)}, {"schedule", print(state.schedule)},
        {"data", state.data}};
    if (state.learningRate) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.17g", *state.learningRate);
        metadata["learning_rate"] = text.data();
    }
    return metadata;
}

Result<CheckpointState> stateOf(const SafetensorsMetadata &metadata, const std::string &path)
{
    const auto text = [&](const char *key) {
        const auto found = metadata.find(key);
        return found == metadata.end() ? std::string{} : found->second;
    };
    const auto damaged = [&](const char *key) {
        return Error{ErrorCode::InvalidInput,
            std::string{"the checkpoint's \""} + key + "\" is no number: \"" + text(key) + "\"",
            "copy the file again, or resume from another one", path};
    };
    if (text(kFormatKey) != kFormatVersion)
        return Error{ErrorCode::InvalidInput, "this is no checkpoint of a run",
            "give a file that --checkpoint wrote, or the folder it is in", path};
    CheckpointState state;
    for (const auto &[key, to] :
        {std::pair{"step", &state.step}, std::pair{"next_batch", &state.nextBatch}}) {
        const std::string word = text(key);
        char *end = nullptr;
        errno = 0;
        *to = std::strtoll(word.c_str(), &end, 10);
        if (word.empty() || *end != '\0' || errno != 0 || *to < 0)
            return damaged(key);
    }
    const std::string seed = text("seed");
    char *end = nullptr;
    state.seed = std::strtoull(seed.c_str(), &end, 10);
    if (seed.empty() || *end != '\0')
        return damaged("seed");
    if (const std::string rate = text("learning_rate"); !rate.empty()) {
        state.learningRate = std::strtod(rate.c_str(), &end);
        if (*end != '\0' || !(*state.learningRate >= 0))
            return damaged("learning_rate");
    }
    state.data = text("data");
    TRY(state.schedule, parseRateSchedule(text("schedule")));
    return state;
}

/// The last checkpoint of a folder.
Result<std::string> lastIn(const std::string &folder)
{
    std::error_code failure;
    std::string last;
    fs::directory_iterator entry{folder, failure};
    for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with("step-") && name.ends_with(".safetensors"))
            last = std::max(last, name);
    }
    if (failure)
        return Error{ErrorCode::Io, "cannot list the folder: " + failure.message(), {}, folder};
    if (last.empty())
        return Error{ErrorCode::NotFound, "there is no checkpoint in the folder",
            "give a folder that --checkpoint named", folder};
    return (fs::path{folder} / last).string();
}

} // namespace

std::map<TensorId, StoredPlace> storedPlaces(const ExecutionPlan &plan)
{
    const Graph &graph = *plan.graph;
    std::set<TensorId> kept;
    for (const DeviceProgram &device : plan.devices)
        for (const Instruction &instruction : device.setup)
            for (const std::int32_t output : instruction.outputs)
                if (const TensorId id = device.buffers[static_cast<std::size_t>(output)].tensor;
                    isKept(graph.at(id).role))
                    kept.insert(id);
    // Parts of one tensor of the model's files go where files have them, if all of them are there.
    std::map<std::string, std::int64_t> found;
    for (const TensorId id : kept)
        if (const Tensor &tensor = graph.at(id); tensor.filePart)
            found[tensor.filePart->name] += elementCount(tensor.type.shape);
    std::map<TensorId, StoredPlace> places;
    for (const TensorId id : kept) {
        const Tensor &tensor = graph.at(id);
        const std::int64_t count = elementCount(tensor.type.shape);
        if (tensor.filePart && found[tensor.filePart->name] == elementCount(tensor.filePart->shape))
            places[id] = {
                tensor.filePart->name, {tensor.type.dataType, tensor.filePart->shape}, runsInFile(tensor)};
        else
            places[id] = {tensor.name, {tensor.type.dataType, shapeInFiles(graph, id)},
                {1, std::max<std::int64_t>(count, 1), 0, count}};
    }
    return places;
}

std::string checkpointName(std::int64_t step)
{
    std::array<char, 48> name{};
    std::snprintf(name.data(), name.size(), "step-%08lld.safetensors", static_cast<long long>(step));
    return name.data();
}

Result<Checkpoint> Checkpoint::open(const std::string &path)
{
    Checkpoint checkpoint;
    checkpoint.m_path = path;
    std::error_code failure;
    if (fs::is_directory(path, failure)) {
        TRY(checkpoint.m_path, lastIn(path));
    }
    TRY(checkpoint.m_file, SafetensorsFile::open(checkpoint.m_path));
    TRY(checkpoint.m_state, stateOf(checkpoint.m_file.metadata(), checkpoint.m_path));
    return checkpoint;
}

Result<void> Checkpoint::require(const std::map<TensorId, StoredPlace> &places) const
{
    for (const auto &[id, place] : places) {
        const auto found = m_file.tensors().find(place.name);
        if (found == m_file.tensors().end())
            return Error{ErrorCode::InvalidInput, "the checkpoint has no tensor " + place.name,
                "resume with the model and the optimizer that it was written with", m_path};
        if (found->second.type != place.type)
            return Error{ErrorCode::InvalidInput,
                place.name + " is " + nameOf(place.type.dataType) + " " + toString(place.type.shape)
                    + " in the model, the checkpoint has " + nameOf(found->second.type.dataType) + " "
                    + toString(found->second.type.shape),
                "resume with the model that it was written with", m_path};
    }
    return {};
}

std::size_t Checkpoint::unused(const std::map<TensorId, StoredPlace> &places) const
{
    std::set<std::string> used;
    for (const auto &[id, place] : places)
        used.insert(place.name);
    return m_file.tensors().size() - used.size();
}

Result<void> Checkpoint::load(
    const StoredPlace &place, const Shape &shape, const IndexMask &box, std::byte *to) const
{
    const SafetensorsEntry &entry = m_file.tensors().at(place.name);
    const std::int64_t size = sizeOf(place.type.dataType);
    // One piece of the file has it all; runs are picked out of it.
    std::int64_t first = elementCount(place.type.shape);
    std::int64_t last = 0;
    TRY_VOID(forEachRun(
        place.runs, shape, box, [&](std::int64_t inPlace, std::int64_t, std::int64_t count) -> Result<void> {
            first = std::min(first, inPlace);
            last = std::max(last, inPlace + count);
            return {};
        }));
    if (last <= first)
        return {};
    std::vector<std::byte> piece(static_cast<std::size_t>((last - first) * size));
    TRY_VOID(m_file.read(entry, static_cast<std::uint64_t>(first * size), piece));
    return forEachRun(place.runs, shape, box,
        [&](std::int64_t inPlace, std::int64_t inBox, std::int64_t count) -> Result<void> {
            std::copy_n(piece.data() + (inPlace - first) * size, count * size, to + inBox * size);
            return {};
        });
}

Result<SavePlan> planSave(const ExecutionPlan &plan)
{
    const Graph &graph = *plan.graph;
    SavePlan save;
    save.places = storedPlaces(plan);
    save.devices.resize(plan.devices.size());

    struct Candidate {
        bool isNarrow = false; ///< In another type than the model's: a copy of a master.
        std::size_t device = 0;
        std::int32_t buffer = 0;
    };
    std::map<TensorId, std::vector<Candidate>> updated;
    std::map<TensorId, std::vector<Candidate>> loaded;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceProgram &device = plan.devices[d];
        std::set<std::int32_t> seen;
        const auto consider = [&](std::int32_t b, std::map<TensorId, std::vector<Candidate>> &to) {
            if (b < 0 || !device.buffers[static_cast<std::size_t>(b)].persistent || !seen.insert(b).second)
                return;
            const BufferInfo &info = device.buffers[static_cast<std::size_t>(b)];
            // New values have tensors of their own, whose buffers are those of what they replace.
            if (save.places.contains(info.tensor))
                to[info.tensor].push_back({info.dataType != graph.at(info.tensor).type.dataType, d, b});
        };
        for (const Segment &segment : device.segments)
            if (isOfUpdate(segment.kind))
                for (const Instruction &instruction : segment.instructions)
                    for (const std::int32_t output : instruction.outputs)
                        consider(output, updated);
        for (const Instruction &instruction : device.setup)
            for (const std::int32_t output : instruction.outputs)
                consider(output, loaded);
        for (const BufferInfo &info : device.buffers)
            if (info.persistent && info.versions > 1)
                return Error{ErrorCode::NotSupported,
                    "the plan keeps several versions of its weights, which a checkpoint has no room for",
                    "take a plan without delayed gradients, or no checkpoints", "checkpoint"};
    }
    for (const auto &[id, place] : save.places) {
        std::vector<Candidate> &candidates = updated.contains(id) ? updated[id] : loaded[id];
        std::stable_sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) { return a.isNarrow < b.isNarrow; });
        std::vector<IndexMask> left{wholeMask(graph.at(id).type.shape)};
        for (const Candidate &candidate : candidates) {
            const IndexMask &held =
                plan.devices[candidate.device].buffers[static_cast<std::size_t>(candidate.buffer)].index;
            SavedPiece piece{candidate.buffer, {}};
            std::vector<IndexMask> rest;
            for (const IndexMask &box : left) {
                const auto common = intersection(box, held);
                if (!common) {
                    rest.push_back(box);
                    continue;
                }
                piece.boxes.push_back(*common);
                subtract(box, *common, rest);
            }
            left = std::move(rest);
            if (!piece.boxes.empty())
                save.devices[candidate.device].push_back(std::move(piece));
        }
        if (!left.empty() && elementCount(graph.at(id).type.shape) > 0)
            return Error{ErrorCode::Internal,
                "no device keeps all of " + graph.at(id).name + " from step to step", {},
                "tensor:" + graph.at(id).name};
    }
    return save;
}

CheckpointWriter::CheckpointWriter(const ExecutionPlan &plan, const SavePlan &save, SafetensorsWriter file)
    : m_plan(&plan)
    , m_save(&save)
    , m_file(std::move(file))
    , m_mutex(std::make_unique<std::mutex>())
{
}

Result<CheckpointWriter> CheckpointWriter::create(
    const std::string &path, const ExecutionPlan &plan, const SavePlan &save, const CheckpointState &state)
{
    std::map<std::string, TensorType> tensors;
    for (const auto &[id, place] : save.places)
        tensors[place.name] = place.type;
    TRY(auto file, SafetensorsWriter::create(path, tensors, metadataOf(state)));
    return CheckpointWriter{plan, save, std::move(file)};
}

Result<CheckpointWriter> CheckpointWriter::join(
    const std::string &path, const ExecutionPlan &plan, const SavePlan &save)
{
    TRY(auto file, SafetensorsWriter::join(path));
    return CheckpointWriter{plan, save, std::move(file)};
}

Result<void> CheckpointWriter::putBox(const BufferInfo &info, const IndexMask &box, const std::byte *data)
{
    const Tensor &tensor = m_plan->graph->at(info.tensor);
    const StoredPlace &place = m_save->places.at(info.tensor);
    const std::int64_t size = sizeOf(place.type.dataType);
    const auto count = static_cast<std::size_t>(elementCount(box));
    std::vector<std::byte> cut;
    if (box != info.index) {
        cut.resize(count * static_cast<std::size_t>(sizeOf(info.dataType)));
        copyBox(data, info.index, cut.data(), box, box, sizeOf(info.dataType));
        data = cut.data();
    }
    std::vector<std::byte> converted;
    if (info.dataType != place.type.dataType) {
        converted.resize(count * static_cast<std::size_t>(size));
        convertFloats(data, info.dataType, converted.data(), place.type.dataType, count);
        data = converted.data();
    }
    return forEachRun(place.runs, tensor.type.shape, box,
        [&](std::int64_t inPlace, std::int64_t inBox, std::int64_t elements) {
            return m_file.write(place.name, static_cast<std::uint64_t>(inPlace * size),
                {data + inBox * size, static_cast<std::size_t>(elements * size)});
        });
}

void CheckpointWriter::put(const BufferInfo &info, const std::vector<IndexMask> &boxes, const std::byte *data)
{
    for (const IndexMask &box : boxes) {
        auto written = putBox(info, box, data);
        if (written)
            continue;
        const std::lock_guard lock{*m_mutex};
        if (!m_failure)
            m_failure = std::move(written).error();
        return;
    }
}

Result<void> CheckpointWriter::finish() const
{
    if (m_failure)
        return *m_failure;
    return {};
}

Result<void> CheckpointWriter::commit()
{
    TRY_VOID(finish());
    return m_file.commit();
}

} // namespace planloom
