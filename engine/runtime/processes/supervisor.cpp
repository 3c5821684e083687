#include "engine/runtime/processes/supervisor.h"

#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/processes/control_reader.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/frames.h"
#include "engine/runtime/processes/process_handles.h"
#include "engine/runtime/processes/rank_process.h"
#include "engine/runtime/processes/run_event.h"
#include "engine/runtime/processes/run_watch.h"
#include "engine/runtime/processes/stall.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
constexpr int kPollMilliseconds = 50;

Error systemError(const std::string &what)
{
    return {ErrorCode::Io, what + ": " + std::strerror(errno), {}, {}};
}

/// One rank's process, as the supervisor sees it.
struct RankProcess {
    std::int32_t rank = 0;
    pid_t process = -1;
    Descriptor socket{};
    FrameReader frames{};
    bool open = true; ///< More frames may come.
    bool exited = false;
    int status = 0;
    bool toldError = false;
    std::int64_t beats = 0; ///< Of its pulse, as last seen,
    Clock::time_point beatTime{}; ///< then.

    bool isGone() const { return exited && !open; }
};

class Supervisor
{
public:
    Supervisor(const RunRequest &request, const SuperviseOptions &options, const EventSink &sink,
        std::stop_token stop)
        : m_request(request)
        , m_layout{static_cast<std::int32_t>(request.plan.devices.size()), request.ranks}
        , m_options(options)
        , m_sink(sink)
        , m_stop(std::move(stop))
        , m_counters(request.plan.devices.size())
        , m_pulses(static_cast<std::size_t>(request.ranks))
        , m_signals(options.signals)
        , m_control(options.controlDescriptor)
        , m_watch(request.plan.devices.size(), Clock::now())
        , m_memoryKills(memoryKills())
    {
    }

    Result<SuperviseOutcome> run()
    {
        if (!m_counters.valid() || !m_pulses.valid())
            return systemError("no shared memory");
        if (m_request.ranks > 1) {
            TRY(m_world, ProcessWorld::make(m_layout, m_request.plan.groups));
            m_digest = runDigest(m_request);
        }
        for (std::int32_t rank = 0; rank < m_request.ranks; ++rank) {
            if (auto started = startRank(rank); !started) {
                m_error = std::move(started).error();
                endRanks("a rank could not be started");
                break;
            }
        }
        m_world.reset(); // the ranks have it
        if (!m_ranks.empty())
            sendHello();
        watch();
        return finish();
    }

private:
    Result<void> startRank(std::int32_t rank)
    {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            return systemError("no socket");
        Descriptor mine{ends[0]};
        const Descriptor theirs{ends[1]}; // closed here, so that the rank's death ends the stream
        const pid_t supervisor = ::getpid();
        const pid_t process = ::fork();
        if (process < 0)
            return systemError("no process");
        if (process == 0)
            becomeRank(supervisor, rank, mine, theirs.get());
        RankProcess &started = m_ranks.emplace_back();
        started.rank = rank;
        started.process = process;
        started.socket = std::move(mine);
        started.beatTime = Clock::now();
        return {};
    }

    [[noreturn]] void becomeRank(pid_t supervisor, std::int32_t rank, Descriptor &other, int socket)
    {
        other.close();
        for (RankProcess &started : m_ranks)
            started.socket.close(); // of other ranks, whose streams end with the supervisor
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != supervisor)
            ::_exit(1); // it died before the line above
        ::setsid(); // Ctrl-C asks the supervisor, which asks the rank
        m_signals.release();
        if (m_world)
            m_world->becomeRank(rank);
        const RankStart start{
            m_request, rank, m_world.get(), socket, m_counters.data(), m_pulses.data() + rank};
        ::_exit(m_options.rank ? m_options.rank(start) : rankMain(start));
    }

    void send(const Json &event)
    {
        if (m_sink && !m_sink(event.dump(-1, ' ', false, Json::error_handler_t::replace)))
            cancel("nobody reads the events");
    }

    void sendHello()
    {
        Json hello = event("hello");
        hello["pid"] = ::getpid();
        hello["rank_pid"] = m_ranks.front().process;
        Json pids = Json::array();
        for (const RankProcess &rank : m_ranks)
            pids.push_back(rank.process);
        hello["rank_pids"] = std::move(pids);
        hello["devices"] = m_request.plan.devices.size();
        hello["steps"] = m_request.options.steps;
        hello["clock"] = "CLOCK_MONOTONIC of this machine, which all ranks read";
        send(hello);
    }

    void cancel(const std::string &why)
    {
        if (m_cancelled)
            return;
        m_cancelled = true;
        endRanks(why);
    }

    /// Asks all ranks to end; `escalate` sees to it that they do.
    void endRanks(const std::string &why)
    {
        if (!m_ending.begin(Clock::now()))
            return;
        for (const RankProcess &rank : m_ranks)
            (void)writeFrame(rank.socket.get(), "cancel"); // a rank that is gone needs no cancel
        Json cancelling = event("cancelling");
        cancelling["why"] = why;
        cancelling["stage"] = "ask";
        if (m_cancelled)
            send(cancelling);
    }

    /// Asks the run to end behind its step.
    void askToFinish(const std::string &why)
    {
        if (!m_ending.beginBehindStep())
            return;
        (void)writeFrame(m_ranks.front().socket.get(), "finish"); // which tells the others
        Json finishing = event("finishing");
        finishing["why"] = why;
        send(finishing);
    }

    /// Until all ranks have ended and everything they sent is read.
    void watch()
    {
        m_watch.changed(Clock::now());
        while (!std::all_of(m_ranks.begin(), m_ranks.end(), [](const auto &rank) { return rank.isGone(); })) {
            std::vector<pollfd> waited{
                {m_control.descriptor(), POLLIN, 0}, {m_signals.descriptor(), POLLIN, 0}};
            for (const RankProcess &rank : m_ranks)
                waited.push_back({rank.open ? rank.socket.get() : -1, POLLIN, 0});
            (void)::poll(waited.data(), waited.size(), kPollMilliseconds);
            if (waited[0].revents != 0)
                readControl();
            if (waited[1].revents != 0)
                readSignal();
            for (std::size_t i = 0; i < m_ranks.size(); ++i)
                attend(m_ranks[i], waited[i + 2].revents != 0);
            if (m_stop.stop_requested())
                cancel("a stop was requested");
            escalate();
            reportProgress();
        }
    }

    void attend(RankProcess &rank, bool readable)
    {
        if (rank.isGone())
            return;
        if (rank.open && readable)
            rank.open = readSocket(rank);
        if (!rank.exited)
            rank.exited = ::waitpid(rank.process, &rank.status, WNOHANG) == rank.process;
        if (rank.exited && rank.open)
            rank.open = drain(rank);
        if (rank.isGone())
            noteEnd(rank);
    }

    bool readSocket(RankProcess &rank)
    {
        std::array<char, 65536> bytes{};
        const ssize_t got = ::recv(rank.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0)
            return errno == EINTR || errno == EAGAIN;
        if (got == 0)
            return false;
        rank.frames.feed({bytes.data(), static_cast<std::size_t>(got)});
        for (;;) {
            const auto frame = rank.frames.next();
            if (!frame)
                return false;
            if (!frame->has_value())
                return true;
            if (!take(rank, **frame))
                return false;
        }
    }

    /// Reads what an ended rank left behind. Always false: nothing will follow.
    bool drain(RankProcess &rank)
    {
        pollfd left{rank.socket.get(), POLLIN, 0};
        while (::poll(&left, 1, 0) > 0 && readSocket(rank)) { }
        return false;
    }

    /// The first error is the run's; the rest of the ranks end.
    void breakRun(Error error)
    {
        if (!m_error)
            m_error = std::move(error);
        endRanks(m_error->message);
    }

    /// @return false if it breaks the run, as an event that cannot be read does
    bool take(RankProcess &rank, const std::string &text)
    {
        const Json frame = Json::parse(text, nullptr, false);
        if (!frame.is_object())
            return true;
        m_watch.changed(Clock::now());
        auto read = runEventIn(frame);
        if (!read) {
            breakRun({ErrorCode::Internal, "a damaged event: " + read.error().message, {}, {}});
            return false;
        }
        if (read->type == "rank") {
            checkDigest(rank, read->text);
            return true;
        }
        if (read->type == "ready") {
            m_ready = true;
        } else if (read->error) {
            rank.toldError = true;
            if (m_error || m_done)
                return true; // it was ended for that error, or with the run
            breakRun(*read->error);
        } else if (read->check) {
            m_outcome.check = read->check;
        } else if (read->type == "done") {
            m_done = true;
            RunOutcome &outcome = read->outcome;
            m_outcome.firstStep = outcome.firstStep;
            m_outcome.checkpoint = std::move(outcome.checkpoint);
            m_outcome.stopped = outcome.stopped;
            m_outcome.losses = std::move(outcome.losses);
            m_outcome.stepSeconds = std::move(outcome.stepSeconds);
            m_outcome.dropped = std::move(outcome.dropped);
            m_outcome.peak = std::move(outcome.peak);
        }
        send(frame);
        return true;
    }

    void checkDigest(const RankProcess &rank, const std::string &digest)
    {
        if (digest == m_digest)
            return;
        const Error error{ErrorCode::InvalidInput,
            nameOfRank(m_layout, rank.rank) + " runs another plan (" + digest.substr(0, 12)
                + ") than the run was started with (" + m_digest.substr(0, 12) + ")",
            "start all ranks with the same plan, steps, seed and version of Planloom", {}};
        Json wrong = errorEvent(error);
        wrong["rank"] = rank.rank;
        if (!m_error)
            send(wrong);
        breakRun(error);
    }

    void readControl()
    {
        for (const std::string &line : m_control.read()) {
            if (line == "cancel")
                cancel("asked to");
            else if (line == "finish")
                askToFinish("asked to");
        }
    }

    void readSignal()
    {
        signalfd_siginfo info{};
        if (::read(m_signals.descriptor(), &info, sizeof(info)) != sizeof(info))
            return;
        if (info.ssi_signo == SIGINT && !m_request.options.training.checkpoints.empty()
            && !m_ending.isBehindStep())
            askToFinish("interrupted");
        else
            cancel(info.ssi_signo == SIGINT ? "interrupted" : "terminated");
    }

    void escalate()
    {
        const auto stage = m_ending.next(Clock::now());
        if (!stage)
            return;
        const bool terminates = *stage == RunEnding::Stage::Terminate;
        for (const RankProcess &rank : m_ranks)
            if (!rank.exited)
                ::kill(rank.process, terminates ? SIGTERM : SIGKILL);
        Json cancelling = event("cancelling");
        cancelling["stage"] = terminates ? "terminate" : "kill";
        if (m_cancelled)
            send(cancelling);
    }

    Json deviceStates() const
    {
        Json devices = Json::array();
        for (std::int32_t d = 0; d < m_layout.devices; ++d) {
            const DeviceProgress &progress = m_counters.data()[d];
            devices.push_back(
                deviceState(m_request.plan, d, progress.issued.load(), progress.finished.load()));
        }
        return devices;
    }

    std::vector<std::int64_t> issuedNow() const
    {
        std::vector<std::int64_t> issued;
        for (std::int32_t d = 0; d < m_layout.devices; ++d)
            issued.push_back(m_counters.data()[d].issued.load());
        return issued;
    }

    void reportProgress()
    {
        const auto now = Clock::now();
        switch (m_watch.due(issuedNow(), now)) {
        case RunWatch::Report::Progress: {
            Json progress = event("progress");
            progress["devices"] = deviceStates();
            send(progress);
            break;
        }
        case RunWatch::Report::Alive:
            send(event("alive"));
            break;
        case RunWatch::Report::None:
            break;
        }
        const std::vector<bool> silent = silentRanks(now);
        const double limit = stallLimit(m_options.stallSeconds, m_request.predictedStepSeconds);
        const bool isSilent = std::find(silent.begin(), silent.end(), true) != silent.end();
        const bool isLong = m_ready && m_watch.quietSeconds(now) >= limit;
        if (!m_watch.stalls(isSilent || isLong) || m_ending.hasBegun() || m_done)
            return;
        const Stall found = findStall(m_request.plan, m_layout, issuedNow(), silent);
        Json stalled = event("stalled");
        stalled["seconds"] = isSilent ? m_options.stallSeconds : limit;
        stalled["text"] = found.text;
        if (found.rank >= 0)
            stalled["rank"] = found.rank;
        stalled["device"] = found.device;
        stalled["devices"] = deviceStates();
        send(stalled);
    }

    /// By rank: it lives, but has not beaten for long.
    std::vector<bool> silentRanks(Clock::time_point now)
    {
        std::vector<bool> silent;
        for (RankProcess &rank : m_ranks) {
            const std::int64_t beats = m_pulses.data()[rank.rank].beats.load();
            if (beats != rank.beats) {
                rank.beats = beats;
                rank.beatTime = now;
            }
            silent.push_back(!rank.exited
                && std::chrono::duration<double>(now - rank.beatTime).count() >= m_options.stallSeconds);
        }
        return silent;
    }

    /// A rank has ended: for its own good reasons, or the run breaks.
    void noteEnd(const RankProcess &rank)
    {
        const bool failed = WIFSIGNALED(rank.status) || WEXITSTATUS(rank.status) != 0;
        if (rank.rank == 0 && m_request.ranks > 1)
            endRanks("rank 0 has ended");
        if (m_ending.hasBegun() && (m_cancelled || m_error || m_done))
            return;
        if (rank.toldError || m_done || (!failed && rank.rank != 0))
            return;
        Error error{ErrorCode::Internal, nameOfRank(m_layout, rank.rank) + " ended without a word",
            "run again; the plan is unchanged", {}};
        Json died = errorEvent(error);
        if (WIFSIGNALED(rank.status)) {
            const int signal = WTERMSIG(rank.status);
            error.message = nameOfRank(m_layout, rank.rank) + " was killed by signal "
                + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
            died["signal"] = signal;
            if (signal == SIGKILL && memoryKills() > m_memoryKills) {
                error.code = ErrorCode::ResourceLimit;
                error.message += ", by the system, because memory ran out";
                error.advice =
                    "use a smaller batch, more micro-batches or recomputation, or close other programs";
            }
        } else {
            error.message = nameOfRank(m_layout, rank.rank) + " ended with status "
                + std::to_string(WEXITSTATUS(rank.status));
            died["status"] = WEXITSTATUS(rank.status);
        }
        for (std::int32_t d = m_layout.first(rank.rank); d < m_layout.end(rank.rank); ++d)
            if (const auto place = placeOf(m_request.plan, d, m_counters.data()[d].issued.load()))
                error.message +=
                    "; device " + std::to_string(d) + " was at " + describe(m_request.plan, d, *place);
        died["code"] = nameOf(error.code);
        died["message"] = error.message;
        died["advice"] = error.advice;
        died["rank"] = rank.rank;
        died["devices"] = deviceStates();
        send(died);
        breakRun(std::move(error));
    }

    Result<SuperviseOutcome> finish()
    {
        if (m_cancelled && !m_done) {
            Error error{ErrorCode::Cancelled, "the run was cancelled", {}, {}};
            if (!m_error)
                send(errorEvent(error));
            return error;
        }
        if (m_error)
            return *m_error;
        if (m_done)
            return m_outcome;
        return Error{
            ErrorCode::Internal, "the run ended without a word", "run again; the plan is unchanged", {}};
    }

    const RunRequest &m_request;
    RankLayout m_layout;
    const SuperviseOptions &m_options;
    const EventSink &m_sink;
    std::stop_token m_stop;
    SharedValues<DeviceProgress> m_counters;
    SharedValues<RankPulse> m_pulses;
    SignalReader m_signals;
    std::unique_ptr<ProcessWorld> m_world{}; ///< Until the ranks are forked.
    std::string m_digest{}; ///< Of what all ranks run.
    std::vector<RankProcess> m_ranks{};
    ControlReader m_control;
    RunWatch m_watch;
    std::int64_t m_memoryKills; ///< Of the system, before the run.
    RunEnding m_ending{}; ///< What all ranks are asked to do,
    bool m_cancelled = false; ///< at once because somebody wanted it.
    bool m_ready = false;
    bool m_done = false;
    std::optional<Error> m_error{};
    SuperviseOutcome m_outcome{};
};

} // namespace

Result<SuperviseOutcome> superviseRun(
    const RunRequest &request, const SuperviseOptions &options, const EventSink &sink, std::stop_token stop)
{
    if (!request.plan.graph || request.plan.devices.empty())
        return Error{ErrorCode::InvalidInput, "the plan has no devices", {}, {}};
    if (!request.plan.units.isOne()) {
        RunRequest whole{request};
        whole.plan = expandUnits(request.plan);
        return superviseRun(whole, options, sink, std::move(stop));
    }
    const auto devices = static_cast<std::int32_t>(request.plan.devices.size());
    if (request.ranks < 1 || request.ranks > devices)
        return Error{ErrorCode::InvalidInput,
            "a plan for " + std::to_string(devices) + (devices == 1 ? " device" : " devices")
                + " cannot run in " + std::to_string(request.ranks) + " processes",
            "choose from 1 to " + std::to_string(devices), "ranks"};
    return Supervisor{request, options, sink, std::move(stop)}.run();
}

} // namespace planloom
