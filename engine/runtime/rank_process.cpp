#include "engine/runtime/rank_process.h"

#include "engine/interop/npz.h"
#include "engine/runtime/check.h"
#include "engine/runtime/event_json.h"
#include "engine/runtime/frames.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include <nlohmann/json.hpp>
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

/// Waits for "cancel"; without a supervisor there is nobody to run for.
void listen(int socket, std::stop_source &stop)
{
    FrameReader frames;
    std::array<char, 256> bytes{};
    for (;;) {
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
        }
    }
}

void sendSpans(EventSocket &events, const Timeline &timeline)
{
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d)
        events.send(spansEvent(timeline, static_cast<std::int32_t>(d)));
}

} // namespace

int rankMain(const RunRequest &request, int socket, DeviceProgress *counters)
{
    EventSocket events{socket};
    std::stop_source stop;
    std::thread{[socket, &stop] { listen(socket, stop); }}.detach(); // lives until the process ends by _exit

    RunEvents handlers;
    handlers.counters = counters;
    handlers.loaded = [&] { events.send(event("ready")); };
    handlers.warning = [&](const std::string &text) {
        Json warning = event("warn");
        warning["text"] = text;
        events.send(warning);
    };
    handlers.stepDone = [&](std::int32_t step, double loss, double seconds) {
        Json done = event("step");
        done["n"] = step;
        done["loss"] = loss;
        done["seconds"] = seconds;
        events.send(done);
    };
    if (request.liveSpans) {
        handlers.spans = [&](DeviceId device, const std::vector<LiveSpan> &ended) {
            events.send(liveEvent(device.index, ended));
        };
    }
    const auto failed = [&](const Error &error) {
        events.send(errorEvent(error));
        return 1;
    };

    RunOptions options{request.options};
    options.keepGradients = options.keepGradients || request.reference != nullptr;
    events.send(event("load"));
    const auto outcome = runOnCpu(request.plan, options, handlers, stop.get_token());
    if (!outcome)
        return failed(outcome.error());
    if (request.spans)
        sendSpans(events, outcome->measured);
    bool ok = true;
    if (request.reference) {
        options.devices = {}; // the model that it is compared with runs on the CPU
        const auto report = checkAgainst(*request.reference, request.plan, *outcome, options,
            tolerancesOf(request.plan), stop.get_token());
        if (!report)
            return failed(report.error());
        events.send(checkEvent(*report));
        ok = report->ok;
    }
    if (!request.outcomeFolder.empty()) {
        for (const auto &[name, array] : dumpOf(*outcome))
            if (const auto written = writeNpy(pathOfArray(request.outcomeFolder, name), array); !written)
                return failed(written.error());
    }
    Json done = event("done");
    done["ok"] = ok;
    done["steps"] = outcome->losses.size();
    done["losses"] = outcome->losses;
    done["step_seconds"] = outcome->stepSeconds;
    done["dropped"] = outcome->dropped;
    Json peaks = Json::array();
    for (const Bytes &peak : outcome->peak)
        peaks.push_back(peak.count);
    done["peak_bytes"] = peaks;
    events.send(done);
    return ok ? 0 : 1;
}

} // namespace planloom
