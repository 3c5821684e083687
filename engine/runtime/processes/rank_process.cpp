#include "engine/runtime/processes/rank_process.h"

#include "engine/base/digest.h"
#include "engine/interop/npz.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/frames.h"
#include "engine/runtime/processes/run_ranks.h"
#include "engine/runtime/training/check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace planloom {

namespace {

/// Where the array `name` goes below `folder`. Names come from model files: none may lead out of the folder.
std::string pathOfArray(const std::string &folder, const std::string &name)
{
    std::filesystem::path path = folder;
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('/', begin), name.size());
        const std::string part = name.substr(begin, end - begin);
        path /= part.empty() || part == "." || part == ".." ? "_" : part;
        begin = end + 1;
    }
    return path.string() + ".npy";
}

using Json = nlohmann::json;

/// The rank's end of the socket; frames of several threads do not mix.
class EventSocket
{
public:
    explicit EventSocket(int socket)
        : m_socket(socket)
    {
    }

    void send(const Json &event)
    {
        const std::lock_guard lock{m_mutex};
        // A supervisor that is gone is noticed by the reader of the socket, which ends the process.
        (void)writeFrame(m_socket, event.dump(-1, ' ', false, Json::error_handler_t::replace));
    }

private:
    std::mutex m_mutex;
    int m_socket;
};

constexpr int kBeatMilliseconds = 200;

/// Waits for "cancel" and "finish", and beats; without a supervisor there is nobody to run for.
void listen(int socket, RankPulse &pulse, std::stop_source &stop, std::stop_source &finish)
{
    FrameReader frames;
    std::array<char, 256> bytes{};
    for (;;) {
        pulse.beats.fetch_add(1, std::memory_order_relaxed);
        pollfd waited{socket, POLLIN, 0};
        if (::poll(&waited, 1, kBeatMilliseconds) == 0)
            continue;
        const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            ::_exit(1);
        frames.feed({bytes.data(), static_cast<std::size_t>(got)});
        for (;;) {
            const auto frame = frames.next();
            if (!frame)
                ::_exit(1);
            if (!frame->has_value())
                break;
            if (**frame == "cancel")
                stop.request_stop();
            else if (**frame == "finish")
                finish.request_stop();
        }
    }
}

Json bytesOf(const std::vector<Bytes> &each)
{
    Json all = Json::array();
    for (const Bytes &bytes : each)
        all.push_back(bytes.count);
    return all;
}

void sendSpans(EventSocket &events, const Timeline &timeline)
{
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d)
        events.send(spansEvent(timeline, static_cast<std::int32_t>(d)));
}

/// Writes what `--dump` shows, and says where it went if that cannot be.
Result<void> writeOutcome(const std::string &folder, const RunOutcome &outcome)
{
    for (const auto &[name, array] : dumpOf(outcome)) {
        const std::string path = pathOfArray(folder, name);
        if (auto written = writeNpy(path, array); !written) {
            Error error = std::move(written).error();
            if (error.advice.empty())
                error.advice =
                    "make room on that disk, or choose another folder: the run itself has succeeded";
            if (error.where.empty())
                error.where = path;
            return error;
        }
    }
    return {};
}

nlohmann::json doneEvent(const RunOutcome &outcome, bool ok)
{
    Json done = event("done");
    done["ok"] = ok;
    done["steps"] = outcome.losses.size();
    done["losses"] = outcome.losses;
    done["step_seconds"] = outcome.stepSeconds;
    done["dropped"] = outcome.dropped;
    done["first_step"] = outcome.firstStep;
    done["stopped"] = outcome.stopped;
    done["checkpoint"] = outcome.checkpoint;
    done["peak_bytes"] = bytesOf(outcome.peak);
    return done;
}

/// Hears of the run at rank 0, and of its own devices at every rank.
RunEvents handlersOf(const RankStart &start, EventSocket &events, std::stop_token finish)
{
    RunEvents handlers;
    handlers.finish = std::move(finish);
    handlers.counters = start.counters;
    if (start.request.liveSpans) {
        handlers.spans = [&events](DeviceId device, const std::vector<LiveSpan> &ended) {
            events.send(liveEvent(device.index, ended));
        };
    }
    if (start.rank != 0)
        return handlers;
    handlers.loaded = [&events](const std::vector<Bytes> &peak) {
        Json ready = event("ready");
        ready["peak_bytes"] = bytesOf(peak);
        events.send(ready);
    };
    handlers.saved = [&events](const SavedCheckpoint &saved) { events.send(checkpointEvent(saved)); };
    handlers.resumed = [&events](std::int64_t step, const std::string &path) {
        Json resumed = event("resumed");
        resumed["step"] = step;
        resumed["path"] = path;
        events.send(resumed);
    };
    handlers.warning = [&events](const std::string &text) {
        Json warning = event("warn");
        warning["text"] = text;
        events.send(warning);
    };
    handlers.stepDone = [&events](std::int32_t step, double loss, double seconds) {
        Json done = event("step");
        done["n"] = step;
        done["loss"] = loss;
        done["seconds"] = seconds;
        events.send(done);
    };
    return handlers;
}

/// @return whether the check held
Result<bool> runRank(
    const RankStart &start, EventSocket &events, const std::stop_token &stop, std::stop_token finish)
{
    const RunRequest &request = start.request;
    RunOptions options{request.options};
    options.keepGradients = options.keepGradients || request.reference != nullptr;
    const RunEvents handlers = handlersOf(start, events, std::move(finish));
    if (start.rank == 0 && request.reference)
        TRY_VOID(requireMemoryOfCheck(*request.reference, request.plan, freeMemory()));
    if (start.rank == 0)
        events.send(event("load"));
    TRY(const auto outcome,
        start.world == nullptr
            ? runOnCpu(request.plan, options, handlers, stop)
            : runRankOnCpu(request.plan, options, handlers, *start.world, start.rank, stop));
    if (start.rank != 0)
        return true;
    if (request.spans)
        sendSpans(events, outcome.measured);
    bool ok = true;
    if (request.reference && !outcome.stopped) {
        options.devices = {}; // the model that it is compared with runs on the CPU
        TRY(const auto report, checkAgainst(*request.reference, request.plan, outcome, options, stop));
        events.send(checkEvent(report));
        ok = report.ok;
    }
    if (!request.outcomeFolder.empty())
        TRY_VOID(writeOutcome(request.outcomeFolder, outcome));
    events.send(doneEvent(outcome, ok));
    return ok;
}

} // namespace

std::string runDigest(const RunRequest &request)
{
    return sha256(std::to_string(request.options.steps) + "/" + std::to_string(request.options.seed) + "/"
        + planFileText(request.plan));
}

int rankMain(const RankStart &start)
{
    std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of write()
    EventSocket events{start.socket};
    std::stop_source stop;
    std::stop_source finish;
    // Lives until the process ends by _exit.
    std::thread{[&] { listen(start.socket, *start.pulse, stop, finish); }}.detach();
    if (start.world != nullptr) {
        Json rank = event("rank");
        rank["rank"] = start.rank;
        rank["digest"] = runDigest(start.request);
        events.send(rank);
    }
    Result<bool> ok = false;
    try {
        ok = runRank(start, events, stop.get_token(), finish.get_token());
    } catch (const std::bad_alloc &) {
        ok = Error{ErrorCode::ResourceLimit, "rank " + std::to_string(start.rank) + " found no memory",
            "use a smaller model or batch, or run fewer devices on this machine", {}};
    }
    if (!ok)
        events.send(errorEvent(ok.error()));
    return ok && *ok ? 0 : 1;
}

} // namespace planloom
