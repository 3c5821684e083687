#include "engine/interop/torch/torch_export.h"

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/interop/safetensors.h"
#include "engine/interop/torch/buffer_names.h"
#include "engine/interop/torch/embedded_runtime.h"
#include "engine/interop/torch/operator_modules.h"
#include "engine/interop/torch/program_text.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/interop/torch/starters.h"
#include "engine/runtime/devices/draw.h"
#include "engine/runtime/devices/host_values.h"
#include "engine/runtime/devices/memory_plan.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

namespace planloom {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kAlignment = 64;

/// "stage0", "stages_0_3": by the stages that a program has.
std::string moduleName(const DeviceProgram &program, std::set<std::string> &taken)
{
    std::set<std::int32_t> stages;
    for (const Segment &segment : program.segments)
        if (isPass(segment.kind))
            stages.insert(segment.stage.index);
    std::string name = stages.size() == 1 ? "stage" : stages.empty() ? "idle" : "stages";
    for (const std::int32_t stage : stages)
        name += (stages.size() == 1 ? "" : "_") + std::to_string(stage);
    std::string made = name;
    for (char next = 'b'; !taken.insert(made).second; ++next)
        made = name + next;
    return made;
}

const char *roleText(const Tensor &tensor)
{
    switch (tensor.role) {
    case TensorRole::Input:
        return "input";
    case TensorRole::Weight:
        return "weight";
    case TensorRole::OptimizerState:
        return "state";
    default:
        return "constant";
    }
}

/// The tensors that a plan loads, as the runtime has to know them.
class TensorTable
{
public:
    explicit TensorTable(const ExecutionPlan &plan)
        : m_plan(plan)
        , m_uses(usesOf(*plan.graph))
    {
        for (const DeviceProgram &device : plan.devices) {
            note(device, device.setup);
            for (const Segment &segment : device.segments)
                note(device, segment.instructions);
        }
    }

    json toJson() const
    {
        json tensors = json::object();
        for (const TensorId id : m_loaded) {
            const Tensor &tensor = m_plan.graph->at(id);
            const FileRuns runs = runsInFile(tensor);
            const Shape &inFiles = tensor.filePart ? tensor.filePart->shape : shapeInFiles(*m_plan.graph, id);
            const DrawRule rule = drawRule(*m_plan.graph, m_uses, id);
            const auto index = static_cast<std::size_t>(id.index);
            tensors[tensor.name] = {{"role", roleText(tensor)}, {"shape", tensor.type.shape},
                {"dtype", nameOf(tensor.type.dataType)},
                {"file",
                    {{"name", nameInFiles(tensor)}, {"shape", inFiles},
                        {"runs", {runs.count, runs.length, runs.first, runs.stride}}}},
                {"batch_dimension",
                    index < m_plan.batch.tensorDimension.size() ? m_plan.batch.tensorDimension[index] : -1},
                {"draw",
                    {{"low", rule.low}, {"high", rule.high}, {"first", rule.first}, {"count", rule.count}}}};
        }
        return tensors;
    }

    const std::set<TensorId> &loaded() const { return m_loaded; }

private:
    template<typename Instructions> void note(const DeviceProgram &device, const Instructions &instructions)
    {
        for (const Instruction &instruction : instructions)
            if (instruction.kind == InstructionKind::Load || updates(instruction))
                for (const std::int32_t buffer :
                    instruction.kind == InstructionKind::Load ? instruction.outputs : instruction.inputs)
                    if (buffer >= 0
                        && m_plan.graph->at(device.buffers[static_cast<std::size_t>(buffer)].tensor).role
                            != TensorRole::Gradient
                        && m_plan.graph->at(device.buffers[static_cast<std::size_t>(buffer)].tensor).role
                            != TensorRole::Activation)
                        m_loaded.insert(device.buffers[static_cast<std::size_t>(buffer)].tensor);
    }
    bool updates(const Instruction &instruction) const
    {
        return instruction.kind == InstructionKind::Kernel
            && m_plan.graph->at(instruction.op).direction == Direction::Optimizer;
    }

    const ExecutionPlan &m_plan;
    Uses m_uses;
    std::set<TensorId> m_loaded{};
};

/// What check.py and the runtime read of a plan, beside its programs.
json planJson(const ExecutionPlan &plan, const TensorTable &tensors)
{
    const Graph &graph = *plan.graph;
    std::vector<std::string> inputs;
    for (const TensorId id : graph.inputs)
        if (tensors.loaded().contains(id))
            inputs.push_back(graph.at(id).name);
    std::vector<std::vector<std::int32_t>> groups;
    for (const auto &group : plan.groups) {
        auto &members = groups.emplace_back();
        for (const DeviceId device : group)
            members.push_back(device.index);
    }
    double rate = 0;
    for (const Operator &op : graph.operators)
        if (op.attributes.has("learning_rate"))
            rate = op.attributes.real("learning_rate");
    json document{{"format", "planloom-torch"}, {"version", 1}, {"model", graph.name},
        {"world", static_cast<std::int64_t>(plan.devices.size()) * plan.units.count},
        {"units", {{"count", plan.units.count}, {"inner", plan.units.inner}}},
        {"micro_batches", plan.microBatches}, {"updates", plan.updates},
        {"whole_batches", plan.batch.wholeBatches}, {"batch", plan.batch.size}, {"learning_rate", rate},
        {"loss", graph.loss.valid() ? json(graph.at(graph.loss).name) : json(nullptr)}, {"inputs", inputs},
        {"groups", groups}, {"tensors", tensors.toJson()}};
    json peaks = json::array();
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const auto memory = planMemory(plan, static_cast<std::int32_t>(d), kAlignment);
        peaks.push_back(memory ? memory->peak[0] : 0);
    }
    document["peak_bytes"] = std::move(peaks);
    return document;
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &words)
{
    for (const auto &[word, by] : words)
        for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
            text.replace(at, word.size(), by);
    return text;
}

std::string devicesWords(const SharedModule &module, const ExecutionPlan &plan)
{
    std::string words = module.devices.size() == 1 ? "device " : "devices ";
    words += rangesOf(module.devices, kFewRuns) + " of " + std::to_string(plan.devices.size());
    if (plan.units.count > 1)
        words += ", in each of " + std::to_string(plan.units.count) + " scale units";
    return words;
}

json linesJson(const ProgramText &text, const DeviceProgram &program)
{
    const std::vector<ProgramBlock> blocks = blocksOf(program);
    json lines = json::array();
    for (std::size_t b = 0; b < blocks.size(); ++b)
        lines.push_back(
            {text.lines[b + 1].first, blocks[b].segment, blocks[b].begin, text.lines[b + 1].second});
    return lines;
}

std::set<std::string> unitQueues(const DeviceProgram &program)
{
    std::set<std::string> queues;
    for (const Segment &segment : program.segments)
        for (const Instruction &instruction : segment.instructions)
            if (instruction.acrossUnits)
                queues.insert(replaced(nameOf(queueOf(instruction)), {{"-", "_"}}));
    return queues;
}

/// Text within a docstring.
std::string docText(const std::string &text)
{
    return replaced(text, {{"\\", "\\\\"}, {"\"\"\"", "'''"}});
}

/// The head of a module that has `text`: it imports what that uses.
std::string importsOf(const std::string &text)
{
    std::vector<std::string> names;
    for (const char *const name : {"accumulate", "accumulate_", "wait"})
        if (text.find(std::string(name) + "(") != std::string::npos)
            names.emplace_back(name);
    std::string head = usesName(text, "torch") ? "import torch\n" : "";
    if (usesName(text, "F"))
        head += "import torch.nn.functional as F\n";
    head += head.empty() ? "" : "\n";
    if (!names.empty())
        head += "from runtime import " + joinedBy(names) + "\n";
    if (usesName(text, "ops"))
        head += "from runtime import operators as ops\n";
    return head;
}

/// Numbers that devices might have had of their own, and have alike, are none of the rank's: functions that
/// use no others don't name it.
void dropIdleNames(ProgramText &text)
{
    std::string made;
    std::int32_t line = 0;
    std::vector<std::int32_t> dropped; ///< Lines, counted from 1.
    std::size_t function = 0;
    for (std::size_t begin = 0; begin < text.module.size(); ++line) {
        const std::size_t end = std::min(text.module.find('\n', begin), text.module.size() - 1) + 1;
        std::string own = text.module.substr(begin, end - begin);
        if (own.starts_with("def "))
            function = begin;
        const std::size_t letters = own.find("rank = run");
        if (letters != std::string::npos && own.ends_with("run.rank\n")) {
            const std::size_t next = std::min(text.module.find("\ndef ", function), text.module.size());
            if (text.module.substr(function, next - function).find("rank.", end - function)
                == std::string::npos)
                own =
                    letters == 4 ? std::string{} : replaced(own, {{", rank = ", " = "}, {", run.rank", ""}});
            if (own.empty())
                dropped.push_back(line + 1);
        }
        made += own;
        begin = end;
    }
    text.module = std::move(made);
    for (auto &[name, lines] : text.lines)
        for (std::int32_t &each : lines)
            each -= static_cast<std::int32_t>(std::count_if(
                dropped.begin(), dropped.end(), [&](std::int32_t gone) { return gone < each; }));
}

/// Programs of `plan` below `folder`, and plan.json.
Result<json> addPrograms(TorchExport &made, const ExecutionPlan &plan, const std::string &folder)
{
    const ProgramContext context{
        plan, analyseDimensions(*plan.graph), unevenCollectives(plan), PlanRows(plan)};
    ModuleFolder modules;
    std::vector<ProgramText> texts;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        TRY(ProgramText text, programText(context, static_cast<std::int32_t>(d)));
        modules.add(static_cast<std::int32_t>(d), text.module);
        texts.push_back({{}, std::move(text.lines)});
    }
    const TensorTable tensors(plan);
    json document = planJson(plan, tensors);
    std::set<std::string> taken;
    json programs = json::object();
    for (const SharedModule &module : modules.finish()) {
        const auto first = static_cast<std::size_t>(module.devices.front());
        const std::string name = moduleName(plan.devices[first], taken);
        const std::string words = "\"\"\"What " + devicesWords(module, plan)
            + (module.devices.size() == 1 ? " runs of " : " run of ") + plan.graph->name
            + ".\n\nWritten by Planloom; README.md says how to read it.\n"
            + (context.rows.list().empty()
                    ? ""
                    : "Communication follows from these rows:\n\n" + docText(context.rows.list()))
            + "\"\"\"\n\n";
        ProgramText text{module.text, texts[first].lines};
        dropIdleNames(text);
        const std::string before = words + importsOf(text.module);
        const auto offset = static_cast<std::int32_t>(std::count(before.begin(), before.end(), '\n'));
        for (auto &[function, lines] : text.lines)
            for (std::int32_t &line : lines)
                line += offset;
        made.files[folder + "programs/" + name + ".py"] = before + text.module;
        programs[name] = {{"devices", module.devices}, {"names", module.names}, {"numbers", module.numbers},
            {"unit_queues", unitQueues(plan.devices[first])},
            {"lines", linesJson(text, plan.devices[first])}};
    }
    made.programs = static_cast<std::int32_t>(programs.size());
    document["programs"] = std::move(programs);
    made.files[folder + "programs/__init__.py"] = "";
    return document;
}

/// Values of constants that the plan loads: with the loss's gradient as the plan's precision and
/// micro-batches have it.
Result<std::map<std::string, TensorData>> constantsOf(
    const ExecutionPlan &plan, const std::set<TensorId> &loaded)
{
    std::map<std::string, TensorData> values;
    const double scale =
        lossScaleOf(*plan.graph, plan.precisions) / (plan.batch.wholeBatches ? batchCuts(plan) : 1);
    for (const TensorId id : loaded) {
        const Tensor &tensor = plan.graph->at(id);
        if (std::string_view(roleText(tensor)) != "constant")
            continue;
        if (!tensor.data && tensor.external && tensor.external->present) {
            TRY(values[tensor.name], loadExternal(tensor));
            continue;
        }
        if (!tensor.data)
            continue;
        TensorData data = *tensor.data;
        data.type = tensor.type;
        if (scale != 1 && isLossGradient(*plan.graph, id) && data.type.dataType == DataType::Float32) {
            const auto number = static_cast<float>(scale);
            std::memcpy(data.bytes.data(), &number, sizeof number);
        }
        values[tensor.name] = std::move(data);
    }
    return values;
}

Result<std::map<std::string, TensorData>> weightsOf(
    const ExecutionPlan &plan, const std::set<TensorId> &loaded)
{
    std::map<std::string, TensorData> values;
    for (const TensorId id : loaded) {
        const Tensor &tensor = plan.graph->at(id);
        if (tensor.role != TensorRole::Weight)
            continue;
        TensorData data;
        if (tensor.data)
            data = *tensor.data;
        else if (tensor.external && tensor.external->present) {
            TRY(data, loadExternal(tensor));
        } else
            return Error{ErrorCode::InvalidInput, "weight " + tensor.name + " has no values",
                "leave --weights out, and give them to train.py", "tensor:" + tensor.name};
        const std::string &name = nameInFiles(tensor);
        const Shape &whole = tensor.filePart ? tensor.filePart->shape : shapeInFiles(*plan.graph, id);
        TensorData &file = values[name];
        const FileRuns runs = runsInFile(tensor);
        const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
        file.type = {tensor.type.dataType, whole};
        file.bytes.resize(static_cast<std::size_t>(elementCount(whole)) * size);
        for (std::int64_t run = 0; run < runs.count; ++run)
            std::memcpy(file.bytes.data() + static_cast<std::size_t>(runs.first + run * runs.stride) * size,
                data.bytes.data() + static_cast<std::size_t>(run * runs.length) * size,
                static_cast<std::size_t>(runs.length) * size);
    }
    return values;
}

std::string summaryOf(const ExecutionPlan &plan, std::int32_t programs)
{
    const std::int64_t world = static_cast<std::int64_t>(plan.devices.size()) * plan.units.count;
    return counted(world, "process") + ", " + counted(plan.stageCount, "stage") + ", "
        + counted(batchCuts(plan), "micro-batch") + ", " + counted(programs, "distinct program");
}

Error ioError(const fs::path &path, const std::error_code &code)
{
    return Error{ErrorCode::Io, "the folder cannot be written: " + code.message(), {}, path.string()};
}

/// Nothing is there, or what this has written before.
Result<void> checkFolder(const fs::path &folder)
{
    std::error_code code;
    if (!fs::exists(folder, code))
        return {};
    if (!fs::is_directory(folder, code))
        return Error{ErrorCode::InvalidInput, "it is no folder", "name another one", folder.string()};
    bool ours = false;
    std::string foreign;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder, code)) {
        const std::string name = entry.path().filename().string();
        ours = ours || name == "plan.json";
        static const std::set<std::string> kOurs{"plan.json", "programs", "runtime", "reference", "train.py",
            "check.py", "checkpoints.py", "dataset.py", "README.md", "train.sbatch", "constants.safetensors",
            "weights.safetensors", "parallelize.py", "stages.py", "styles.py", "schedule.csv", "__pycache__"};
        if (!kOurs.contains(name))
            foreign = name;
    }
    if (code)
        return ioError(folder, code);
    if (foreign.empty() && (ours || fs::is_empty(folder, code)))
        return {};
    return Error{ErrorCode::InvalidInput,
        foreign.empty() ? "the folder has files of others"
                        : "the folder has files of others, such as " + foreign,
        "name an empty folder, or one that is not there yet", folder.string()};
}

} // namespace

Result<TorchExport> exportTorch(const ExecutionPlan &plan, const TorchExportOptions &options)
{
    TorchExport made;
    TRY(json document, addPrograms(made, plan, {}));
    const std::int32_t programs = made.programs;
    const TensorTable tensors(plan);
    TRY(made.tensors["constants.safetensors"], constantsOf(plan, tensors.loaded()));
    if (options.weights) {
        TRY(made.tensors["weights.safetensors"], weightsOf(plan, tensors.loaded()));
    }
    std::string all;
    for (const auto &[path, text] : made.files)
        all += path + text;
    document["digest"] = sha256(all + document.dump());
    if (options.reference != nullptr) {
        TRY(json reference, addPrograms(made, *options.reference, "reference/"));
        const TensorTable referenceTensors(*options.reference);
        TRY(made.tensors["reference/constants.safetensors"],
            constantsOf(*options.reference, referenceTensors.loaded()));
        reference["digest"] = sha256(reference.dump());
        made.files["reference/plan.json"] = reference.dump() + "\n";
        made.programs = programs;
    }
    const std::int64_t world = document["world"];
    made.world = static_cast<std::int32_t>(world);
    const std::int64_t onNode = std::min<std::int64_t>(world, 8);
    const auto start = [&](TorchStarter starter, std::int32_t perNode) {
        return commandOf({.starter = starter, .processes = made.world, .perNode = perNode, .steps = 10});
    };
    const auto half = std::max(made.world / 2, 1);
    const std::vector<std::pair<std::string, std::string>> words{{"MODEL_NAME", plan.graph->name},
        {"RANK_COUNT", std::to_string(world)}, {"NODE_COUNT", std::to_string((world + onNode - 1) / onNode)},
        {"RANKS_PER_NODE", std::to_string(onNode)}, {"SUMMARY", summaryOf(plan, programs)},
        {"INPUT_NAMES", joinedBy(document["inputs"].get<std::vector<std::string>>())},
        {"BATCH_SIZE", std::to_string(plan.batch.size)},
        {"START_HERE", start(TorchStarter::Torchrun, made.world)},
        {"START_ON_TWO", start(TorchStarter::Torchrun, half)},
        {"START_BY_SLURM", start(TorchStarter::Sbatch, static_cast<std::int32_t>(onNode))},
        {"START_BY_MPI", start(TorchStarter::Mpirun, made.world)}};
    std::string text;
    for (const auto &[path, program] : made.files)
        text += program;
    made.files.merge(operatorModules(text));
    for (const RuntimeFile &file : embeddedRuntime()) {
        const std::string path(file.path);
        if (path.starts_with("runtime/operators/"))
            continue;
        made.files[path] = path == "README.md" || path == "train.sbatch"
            ? replaced(std::string(file.text), words)
            : std::string(file.text);
    }
    made.files["plan.json"] = document.dump() + "\n";
    return made;
}

Result<void> writeTorchFolder(const TorchExport &made, const fs::path &folder)
{
    TRY_VOID(checkFolder(folder));
    fs::path target = fs::absolute(folder).lexically_normal();
    if (!target.has_filename())
        target = target.parent_path();
    std::error_code code;
    if (!target.has_parent_path() || !fs::exists(target.parent_path(), code))
        return Error{
            ErrorCode::NotFound, "there is no folder to put it in", {}, target.parent_path().string()};
    fs::path fresh = target;
    fresh += ".part";
    fs::remove_all(fresh, code);
    const auto write = [&]() -> Result<void> {
        for (const auto &[path, text] : made.files) {
            fs::create_directories((fresh / path).parent_path(), code);
            if (code)
                return ioError(fresh, code);
            TRY_VOID(writeFile(fresh / path, text));
        }
        for (const auto &[path, values] : made.tensors)
            if (!values.empty())
                TRY_VOID(writeSafetensors(fresh / path, values));
        const fs::path own = target / "dataset.py"; // the user's
        if (fs::exists(own, code))
            fs::copy_file(own, fresh / "dataset.py", fs::copy_options::overwrite_existing, code);
        fs::remove_all(target, code);
        fs::rename(fresh, target, code);
        return code ? Result<void>(ioError(target, code)) : Result<void>{};
    };
    auto outcome = write();
    if (!outcome)
        fs::remove_all(fresh, code);
    return outcome;
}

} // namespace planloom
