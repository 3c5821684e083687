#include "engine/interop/torch/launch/torch_run.h"

#include "engine/base/files.h"
#include "engine/interop/npy.h"
#include "engine/interop/safetensors.h"
#include "engine/interop/torch/launch/child_process.h"
#include "engine/interop/torch/torch_export.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/run_event.h"
#include "engine/runtime/training/check.h"
#include "engine/runtime/training/step_data.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace planloom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostLine = std::size_t{1} << 28U; ///< Spans of a step are one line.
constexpr std::size_t kKeptErrors = 8192;
constexpr double kSameInDouble = 1e-9; ///< What is closer than this there is the same computation.

/// A folder that is gone with all that is in it in the end.
class ScratchFolder
{
public:
    static Result<ScratchFolder> make()
    {
        std::error_code code;
        std::string pattern = (fs::temp_directory_path(code) / "planloom-torch-XXXXXX").string();
        if (code || ::mkdtemp(pattern.data()) == nullptr)
            return Error{ErrorCode::Io,
                std::string("a temporary folder cannot be made: ") + std::strerror(errno),
                "set TMPDIR to a folder with room", pattern};
        return ScratchFolder(pattern);
    }
    ScratchFolder(ScratchFolder &&other) noexcept
        : m_path(std::exchange(other.m_path, {}))
    {
    }
    ScratchFolder &operator=(ScratchFolder &&) = delete;
    ~ScratchFolder()
    {
        std::error_code ignored;
        if (!m_path.empty())
            fs::remove_all(m_path, ignored);
    }
    fs::path operator/(const char *name) const { return fs::path(m_path) / name; }

private:
    explicit ScratchFolder(std::string path)
        : m_path(std::move(path))
    {
    }
    std::string m_path;
};

bool hasValues(const Tensor &tensor)
{
    return tensor.data || (tensor.external && tensor.external->present);
}

/// Whether the plan's weights have values. @return InvalidInput where some have, and others are to be drawn
Result<bool> hasWeights(const RunRequest &request)
{
    std::string with;
    std::string without;
    for (const Tensor &tensor : request.plan.graph->tensors)
        if (tensor.role == TensorRole::Weight)
            (hasValues(tensor) ? with : without) = tensor.name;
    if (with.empty() || without.empty() || !request.options.randomWeights)
        return without.empty();
    return Error{ErrorCode::NotSupported,
        "weight " + with + " has values and weight " + without + " has none: PyTorch's run draws all or none",
        "give all weights values, or run it on the processor", "--random-weights"};
}

/// What a run is fed, as train.py --batches reads it: a file for each batch that it may come to, in order.
/// @return whether there is any; as `StepData` and `fittedInput`; Io
Result<bool> writeBatches(
    const RunRequest &request, const fs::path &folder, std::vector<std::string> &warnings)
{
    const RunOptions &options = request.options;
    const bool streams = options.training.batches == BatchSource::Files;
    if (!streams && options.inputs.empty())
        return false;
    const Graph &graph = *request.plan.graph;
    NamedArrays same;
    for (const auto &[name, array] : options.inputs) {
        const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
            [&graph, &name = name](TensorId id) { return graph.at(id).name == name; });
        if (input == graph.inputs.end()) {
            warnings.push_back("the model has no input called " + name);
            continue;
        }
        TRY(same[name], fittedInput(graph.at(*input), array, "input:" + name));
    }
    std::error_code code;
    fs::create_directories(folder, code);
    std::optional<StepData> data;
    std::int64_t count = 1;
    if (streams) {
        TRY(data, StepData::open(options.training.data, request.plan.graph));
        const std::int64_t aStep = request.plan.batch.wholeBatches ? batchCuts(request.plan) : 1;
        count =
            options.training.resume.empty() ? std::min(data->count(), options.steps * aStep) : data->count();
    }
    for (std::int64_t i = 0; i < count; ++i) {
        NamedArrays batch;
        if (data) {
            TRY(batch, data->read(i));
        }
        batch.insert(same.begin(), same.end());
        const std::string number = std::to_string(i);
        const std::string zeros(number.size() < 12 ? 12 - number.size() : 0, '0');
        TRY_VOID(writeSafetensors(folder / (zeros + number + ".safetensors"), batch));
    }
    return true;
}

std::vector<std::string> wordsOf(const RunRequest &request, const std::string &python,
    const ScratchFolder &scratch, std::int32_t world, bool fed)
{
    const RunOptions &options = request.options;
    const TrainingRun &training = options.training;
    std::vector<std::string> words{python, "-u", "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", std::to_string(world), (scratch / "plan/train.py").string(), "--log-file",
        "/dev/stdout", "--steps", std::to_string(options.steps),
        options.randomWeights ? "--random-weights" : "--seed", std::to_string(options.seed), "--data",
        training.batches == BatchSource::Drawn ? "synthetic" : "same"};
    const auto add = [&](const char *name, const std::string &value) {
        words.insert(words.end(), {name, value});
    };
    if (training.learningRate) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.17g", *training.learningRate);
        add("--learning-rate", text.data());
    }
    if (training.schedule)
        add("--rate-schedule", print(*training.schedule));
    if (!training.checkpoints.empty())
        add("--checkpoint", training.checkpoints);
    if (training.every > 0)
        add("--checkpoint-every", std::to_string(training.every));
    if (!training.resume.empty())
        add("--resume", training.resume);
    if (request.spans || request.liveSpans)
        words.emplace_back("--spans");
    if (options.keepGradients)
        add("--dump", (scratch / "dump.safetensors").string());
    if (fed)
        add("--batches", (scratch / "batches").string());
    return words;
}

/// Lines of what arrives in pieces.
class PipeLines
{
public:
    explicit PipeLines(int descriptor)
        : m_descriptor(descriptor)
    {
    }
    int descriptor() const { return m_descriptor; }
    /// What is there now. @return complete lines; at the end, what is left
    std::vector<std::string> read()
    {
        std::array<char, 1 << 16> chunk{};
        ssize_t count = 0;
        while (m_descriptor >= 0 && (count = ::read(m_descriptor, chunk.data(), chunk.size())) > 0)
            m_text.append(chunk.data(), static_cast<std::size_t>(count));
        if (count == 0)
            m_descriptor = -1;
        std::vector<std::string> lines;
        std::size_t begin = 0;
        for (std::size_t end = m_text.find('\n'); end != std::string::npos; end = m_text.find('\n', begin)) {
            lines.push_back(m_text.substr(begin, end - begin));
            begin = end + 1;
        }
        m_text.erase(0, begin);
        if ((m_descriptor < 0 && !m_text.empty()) || m_text.size() > kMostLine)
            lines.push_back(std::exchange(m_text, {}));
        return lines;
    }

private:
    int m_descriptor;
    std::string m_text{};
};

/// One run: what its processes say, until they have ended.
class TorchRun
{
public:
    TorchRun(ChildProcess child, const EventSink &sink, const SignalReader &signals)
        : m_child(std::move(child))
        , m_sink(sink)
        , m_signals(signals)
        , m_output(m_child.output())
        , m_errors(m_child.errors())
    {
    }

    /// Until torchrun and all that holds its output have ended. @return what "done" said
    Result<Json> run(const std::stop_token &stop)
    {
        while (!m_child.status() || m_output.descriptor() >= 0) {
            std::array<pollfd, 3> waits{pollfd{m_output.descriptor(), POLLIN, 0},
                pollfd{m_errors.descriptor(), POLLIN, 0}, pollfd{m_signals.descriptor(), POLLIN, 0}};
            ::poll(waits.data(), waits.size(), 100);
            for (const std::string &line : m_output.read())
                hear(line);
            for (const std::string &line : m_errors.read())
                m_said = (m_said + line + "\n")
                             .substr(std::max(m_said.size() + line.size() + 1, kKeptErrors) - kKeptErrors);
            signalfd_siginfo info{};
            if (waits[2].revents != 0 && ::read(m_signals.descriptor(), &info, sizeof info) == sizeof info)
                cancel(info.ssi_signo == SIGINT ? "interrupted" : "terminated");
            if (stop.stop_requested())
                cancel("asked to");
            sayAlive();
            if (m_cancelledAt && Clock::now() - *m_cancelledAt > std::chrono::seconds(5)) {
                m_child.signal(SIGKILL);
                if (m_child.status())
                    break; // a rank that hangs holds the pipe until it sees that torchrun is gone
            }
        }
        return outcome();
    }

    void send(const Json &event)
    {
        if (!m_sink(event.dump(-1, ' ', false, Json::error_handler_t::replace)))
            cancel("nobody reads its events");
        m_lastEvent = Clock::now();
    }

private:
    void hear(const std::string &line)
    {
        Json heard = Json::parse(line, nullptr, false);
        const bool isEvent =
            heard.is_object() && heard.contains("v") && heard.contains("t") && runEventIn(heard);
        if (!isEvent) {
            Json warning = event("warn");
            warning["text"] = line;
            return send(warning);
        }
        const std::string type = heard["t"].is_string() ? heard["t"].get<std::string>() : std::string{};
        if (type == "done") // which is told once the outcome is compared
            m_done = std::move(heard);
        else if (type == "error")
            m_told.push_back(errorIn(heard));
        else
            send(heard);
    }

    void sayAlive()
    {
        if (Clock::now() - m_lastEvent >= std::chrono::seconds(1))
            send(event("alive"));
    }

    void cancel(const char *why)
    {
        if (m_cancelledAt)
            return;
        m_cancelledAt = Clock::now();
        m_why = why;
        m_child.signal(SIGTERM); // torchrun hands it on to its ranks
    }

    Result<Json> outcome()
    {
        if (m_cancelledAt)
            return cancelled(m_why);
        const int status = m_child.status().value_or(1);
        if (status == 0 && m_done.is_object())
            return m_done;
        // Ranks that are ended, or left alone, because of another one say so, too.
        for (const ErrorCode passedBy : {ErrorCode::Cancelled, ErrorCode::Internal})
            if (std::any_of(
                    m_told.begin(), m_told.end(), [&](const Error &error) { return error.code != passedBy; }))
                std::erase_if(m_told, [&](const Error &error) { return error.code == passedBy; });
        if (!m_told.empty())
            return m_told.front();
        std::string last;
        for (std::size_t begin = 0; begin < m_said.size();) {
            const std::size_t end = std::min(m_said.find('\n', begin), m_said.size());
            const std::string line = m_said.substr(begin, end - begin);
            if (line.find("Error") != std::string::npos && line.find("ChildFailedError") == std::string::npos)
                last = line;
            begin = end + 1;
        }
        return Error{ErrorCode::Internal,
            "PyTorch's run ended with status " + std::to_string(status)
                + (last.empty() ? std::string{} : ": " + last),
            {}, "torchrun"};
    }

    ChildProcess m_child;
    const EventSink &m_sink;
    const SignalReader &m_signals;
    PipeLines m_output;
    PipeLines m_errors;
    std::string m_said{}; ///< The last of what was said on standard error.
    std::vector<Error> m_told{};
    Json m_done{};
    std::optional<Clock::time_point> m_cancelledAt{};
    std::string m_why{};
    Clock::time_point m_lastEvent = Clock::now();
};

/// What train.py --dump wrote, and the losses that it told.
Result<RunOutcome> outcomeIn(const fs::path &dump, const SuperviseOutcome &told)
{
    RunOutcome outcome;
    outcome.losses = told.losses;
    TRY(const auto file, SafetensorsFile::open(dump));
    for (const auto &[name, entry] : file.tensors()) {
        TensorData data{entry.type, std::vector<std::byte>(entry.bytes)};
        TRY_VOID(file.read(entry, 0, data.bytes));
        if (name.starts_with("grad/"))
            outcome.gradients[name.substr(5)] = std::move(data);
        else if (name.starts_with("weight/"))
            outcome.weights[name.substr(7)] = std::move(data);
    }
    return outcome;
}

/// Of loss, gradients and weights. Where they are further apart than a few steps of the number format, a
/// second run of the reference, moved by one unit in the last place, says what rounding explains.
Result<CheckReport> compared(const RunRequest &request, const RunOutcome &got, const std::stop_token &stop)
{
    RunOptions options = request.options;
    options.devices = {};
    options.training.checkpoints.clear();
    const auto referenceRun = [&](std::uint64_t moved) -> Result<RunOutcome> {
        options.moved = moved;
        TRY(auto outcome, runOnCpu(*request.reference, options, {}, stop));
        outcome.outputs.clear();
        for (auto *const arrays : {&outcome.gradients, &outcome.weights})
            std::erase_if(*arrays, [&](const auto &each) {
                return !got.gradients.contains(each.first) && !got.weights.contains(each.first);
            });
        return outcome;
    };
    TRY(const auto reference, referenceRun(0));
    const CheckTolerances tolerances = tolerancesOf(request.plan);
    TRY(auto report, compareOutcomes(got, reference, tolerances));
    if (report.ok)
        return report;
    TRY(const auto moved, referenceRun(1));
    TRY(const auto movement, movementBetween(reference, moved));
    return compareOutcomes(got, reference, tolerances, movement);
}

/// How far the plan's programs and the model's are apart in double precision, where rounding explains
/// nothing: by check.py, on drawn weights. Nothing where it could not say.
std::optional<double> apartInDouble(const RunRequest &request, const std::string &python,
    const ScratchFolder &scratch, const std::stop_token &stop)
{
    const std::string found = (scratch / "double.json").string();
    auto child = ChildProcess::start(
        {python, (scratch / "plan/check.py").string(), "--double", "--out", found, "--steps",
            std::to_string(request.options.steps), "--seed", std::to_string(request.options.seed)});
    if (!child)
        return {};
    PipeLines output(child->output());
    PipeLines errors(child->errors());
    while (!child->status() && !stop.stop_requested()) {
        std::array<pollfd, 2> waits{
            pollfd{output.descriptor(), POLLIN, 0}, pollfd{errors.descriptor(), POLLIN, 0}};
        ::poll(waits.data(), waits.size(), 100);
        (void)output.read();
        (void)errors.read();
    }
    const auto text = readFile(found);
    const Json said = text ? Json::parse(*text, nullptr, false) : Json{};
    if (!said.is_object() || !said.contains("loss") || !said["loss"].is_number())
        return {};
    double worst = said["loss"].get<double>();
    for (const char *const of : {"gradient", "weight"})
        if (const Json &each = said.value(of, Json::array()); each.size() == 2 && each[0].is_number())
            worst = std::max(worst, each[0].get<double>());
    return worst;
}

Result<void> writeDump(const std::string &folder, const RunOutcome &outcome)
{
    for (const auto &[name, array] : dumpOf(outcome))
        TRY_VOID(writeNpy(folder + "/" + name + ".npy", array));
    return {};
}

SuperviseOutcome toldIn(const Json &done)
{
    SuperviseOutcome outcome;
    if (auto read = runEventIn(done)) {
        outcome.firstStep = read->outcome.firstStep;
        outcome.checkpoint = read->outcome.checkpoint;
        outcome.losses = std::move(read->outcome.losses);
        outcome.stepSeconds = std::move(read->outcome.stepSeconds);
        outcome.peak = std::move(read->outcome.peak);
    }
    return outcome;
}

Result<SuperviseOutcome> ranOnTorch(const RunRequest &request, const TorchRunOptions &options,
    const EventSink &sink, const SignalReader &signals, const std::stop_token &stop)
{
    TRY_VOID(requireTorchRun(request));
    TRY(const bool weights, hasWeights(request));
    TRY(const auto made,
        exportTorch(request.plan,
            {.weights = weights && request.options.training.resume.empty(),
                .reference = request.reference.get()}));
    TRY(const auto place, torchPlaceOf(options.probe, made.world));
    TRY(const auto scratch, ScratchFolder::make());
    TRY_VOID(writeTorchFolder(made, scratch / "plan"));
    std::vector<std::string> warnings;
    TRY(const bool fed, writeBatches(request, scratch / "batches", warnings));
    if (!place.onGpus)
        warnings.push_back("runs on CPUs: " + place.whyNot);
    TRY(auto child,
        ChildProcess::start(wordsOf(request, options.probe.python, scratch, made.world, fed),
            {place.onGpus ? "PLANLOOM_DEVICE=cuda" : "PLANLOOM_DEVICE=cpu"}));
    TorchRun run(std::move(child), sink, signals);
    for (const std::string &text : warnings) {
        Json warning = event("warn");
        warning["text"] = text;
        run.send(warning);
    }
    auto done = run.run(stop);
    if (!done)
        return std::move(done).error();
    SuperviseOutcome outcome = toldIn(*done);
    if (request.options.keepGradients) {
        TRY(const auto got, outcomeIn(scratch / "dump.safetensors", outcome));
        if (!request.outcomeFolder.empty())
            TRY_VOID(writeDump(request.outcomeFolder, got));
        if (request.reference) {
            TRY(outcome.check, compared(request, got, stop));
            if (!outcome.check->ok) {
                outcome.check->inDouble = apartInDouble(request, options.probe.python, scratch, stop);
                outcome.check->ok = outcome.check->inDouble && *outcome.check->inDouble <= kSameInDouble;
            }
            run.send(checkEvent(*outcome.check));
        }
    }
    run.send(*done);
    return outcome;
}

} // namespace

Result<void> requireTorchRun(const RunRequest &request)
{
    TRY(const bool weights, hasWeights(request));
    if (!weights && !request.options.randomWeights && request.options.training.resume.empty())
        return Error{ErrorCode::InvalidInput, "the model's weights have no values",
            "--random-weights SEED draws them", "--random-weights"};
    return {};
}

Result<SuperviseOutcome> runOnTorch(
    const RunRequest &request, const TorchRunOptions &options, const EventSink &sink, std::stop_token stop)
{
    const SignalReader signals(options.signals);
    auto outcome = ranOnTorch(request, options, sink, signals, stop);
    if (!outcome)
        sink(errorEvent(outcome.error()).dump(-1, ' ', false, Json::error_handler_t::replace));
    return outcome;
}

} // namespace planloom
