#include "engine/runtime/supervisor.h"

#include "engine/runtime/event_json.h"
#include "engine/runtime/frames.h"
#include "engine/runtime/rank_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
constexpr int kPollMilliseconds = 50;
constexpr auto kReportInterval = std::chrono::milliseconds{200};
constexpr auto kTerminateAfter = std::chrono::milliseconds{1000};
constexpr auto kKillAfter = std::chrono::milliseconds{1500};

Error systemError(const std::string &what)
{
    return {ErrorCode::Io, what + ": " + std::strerror(errno), {}, {}};
}

/// A file descriptor that is closed in the end.
class Descriptor
{
public:
    explicit Descriptor(int number = -1)
        : m_number(number)
    {
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() { close(); }
    int get() const { return m_number; }
    void close()
    {
        if (m_number >= 0)
            ::close(m_number);
        m_number = -1;
    }

private:
    int m_number;
};

/// Progress counters in memory that both processes see.
class SharedCounters
{
public:
    explicit SharedCounters(std::size_t count)
        : m_count(count)
        , m_memory(::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
    {
        static_assert(std::atomic<std::int64_t>::is_always_lock_free, "locks do not work across processes");
        if (valid())
            for (std::size_t i = 0; i < count; ++i)
                new (data() + i) DeviceProgress{};
    }
    SharedCounters(const SharedCounters &) = delete;
    SharedCounters &operator=(const SharedCounters &) = delete;
    ~SharedCounters()
    {
        if (valid())
            ::munmap(m_memory, size());
    }
    bool valid() const { return m_memory != MAP_FAILED; }
    DeviceProgress *data() const { return static_cast<DeviceProgress *>(m_memory); }

private:
    std::size_t size() const { return std::max<std::size_t>(1, m_count) * sizeof(DeviceProgress); }
    std::size_t m_count;
    void *m_memory;
};

/// Holds SIGINT and SIGTERM back and makes them readable.
class SignalReader
{
public:
    explicit SignalReader(bool wanted)
    {
        if (!wanted)
            return;
        sigemptyset(&m_watched);
        sigaddset(&m_watched, SIGINT);
        sigaddset(&m_watched, SIGTERM);
        if (::pthread_sigmask(SIG_BLOCK, &m_watched, &m_before) == 0)
            m_descriptor = ::signalfd(-1, &m_watched, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    SignalReader(const SignalReader &) = delete;
    SignalReader &operator=(const SignalReader &) = delete;
    ~SignalReader()
    {
        if (m_descriptor < 0)
            return;
        ::close(m_descriptor);
        release();
    }
    int descriptor() const { return m_descriptor; }
    /// In a forked child: signals act as before.
    void release() const
    {
        if (m_descriptor >= 0)
            ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
    }

private:
    sigset_t m_watched{};
    sigset_t m_before{};
    int m_descriptor = -1;
};

class Supervisor
{
public:
    Supervisor(const RunRequest &request, const SuperviseOptions &options, const EventSink &sink,
        std::stop_token stop)
        : m_request(request)
        , m_options(options)
        , m_sink(sink)
        , m_stop(std::move(stop))
        , m_counters(request.plan.devices.size())
        , m_signals(options.signals)
        , m_control(options.controlDescriptor)
        , m_issued(request.plan.devices.size(), 0)
    {
    }

    Result<SuperviseOutcome> run()
    {
        if (!m_counters.valid())
            return systemError("no shared memory");
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            return systemError("no socket");
        Descriptor mine{ends[0]};
        Descriptor theirs{ends[1]};
        const pid_t supervisor = ::getpid();
        m_rank = ::fork();
        if (m_rank < 0)
            return systemError("no process");
        if (m_rank == 0)
            becomeRank(supervisor, mine, theirs.get());
        m_socket = mine.get();
        theirs.close(); // so that the rank's death ends the stream
        sendHello();
        watch();
        return finish();
    }

private:
    [[noreturn]] void becomeRank(pid_t supervisor, Descriptor &other, int socket)
    {
        other.close();
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != supervisor)
            ::_exit(1); // it died before the line above
        ::setpgid(0, 0); // Ctrl-C asks the supervisor, which asks the rank
        m_signals.release();
        ::_exit(rankMain(m_request, socket, m_counters.data()));
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
        hello["rank_pid"] = m_rank;
        hello["devices"] = m_request.plan.devices.size();
        hello["steps"] = m_request.options.steps;
        send(hello);
    }

    void cancel(const std::string &why)
    {
        if (m_cancelled)
            return;
        m_cancelled = true;
        m_cancelTime = Clock::now();
        (void)writeFrame(m_socket, "cancel"); // a rank that is gone needs no cancel
        Json cancelling = event("cancelling");
        cancelling["why"] = why;
        cancelling["stage"] = "ask";
        send(cancelling);
    }

    /// Asks the rank to end behind its step.
    void askToFinish(const std::string &why)
    {
        if (m_finishing || m_cancelled)
            return;
        m_finishing = true;
        (void)writeFrame(m_socket, "finish");
        Json finishing = event("finishing");
        finishing["why"] = why;
        send(finishing);
    }

    /// Until the rank has ended and everything it sent is read.
    void watch()
    {
        m_lastChange = Clock::now();
        bool open = true;
        while (open || !m_exited) {
            std::array<pollfd, 3> waited{{{open ? m_socket : -1, POLLIN, 0}, {m_control, POLLIN, 0},
                {m_signals.descriptor(), POLLIN, 0}}};
            (void)::poll(waited.data(), waited.size(), kPollMilliseconds);
            if (open && waited[0].revents != 0)
                open = readSocket();
            if (waited[1].revents != 0)
                readControl();
            if (waited[2].revents != 0)
                readSignal();
            if (m_stop.stop_requested())
                cancel("a stop was requested");
            if (!m_exited)
                m_exited = ::waitpid(m_rank, &m_status, WNOHANG) == m_rank;
            if (m_exited && open)
                open = drain();
            escalate();
            reportProgress();
        }
    }

    bool readSocket()
    {
        std::array<char, 65536> bytes{};
        const ssize_t got = ::recv(m_socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0)
            return errno == EINTR || errno == EAGAIN;
        if (got == 0)
            return false;
        m_frames.feed({bytes.data(), static_cast<std::size_t>(got)});
        for (;;) {
            const auto frame = m_frames.next();
            if (!frame)
                return false;
            if (!frame->has_value())
                return true;
            try {
                take(**frame);
            } catch (const Json::exception &failure) {
                m_error =
                    Error{ErrorCode::Internal, std::string{"a damaged event: "} + failure.what(), {}, {}};
                return false;
            }
        }
    }

    /// Reads what an ended rank left behind. Always false: nothing will follow.
    bool drain()
    {
        pollfd left{m_socket, POLLIN, 0};
        while (::poll(&left, 1, 0) > 0 && readSocket()) { }
        return false;
    }

    void take(const std::string &text)
    {
        const Json frame = Json::parse(text, nullptr, false);
        if (!frame.is_object())
            return;
        const std::string type = frame.value("t", std::string{});
        m_lastChange = Clock::now();
        if (type == "ready") {
            m_ready = true;
        } else if (type == "error") {
            m_error = Error{errorCodeNamed(frame.value("code", std::string{})),
                frame.value("message", std::string{}), frame.value("advice", std::string{}),
                frame.value("where", std::string{})};
        } else if (type == "check") {
            CheckReport report;
            report.ok = frame.value("ok", false);
            report.worstTensor = frame.at("worst").value("tensor", std::string{});
            if (const Json &error = frame.at("worst").at("error"); error.is_number())
                report.worstError = error.get<double>();
            report.firstDifference = frame.value("first_difference", std::string{});
            m_outcome.check = report;
        } else if (type == "done") {
            m_done = true;
            m_outcome.firstStep = frame.value("first_step", std::int64_t{0});
            m_outcome.checkpoint = frame.value("checkpoint", std::string{});
            m_outcome.stopped = frame.value("stopped", false);
            for (const Json &loss : frame.at("losses"))
                m_outcome.losses.push_back(
                    loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
            m_outcome.stepSeconds = frame.at("step_seconds").get<std::vector<double>>();
            m_outcome.dropped = frame.at("dropped").get<std::vector<std::int64_t>>();
            for (const Json &peak : frame.at("peak_bytes"))
                m_outcome.peak.push_back({peak.get<std::int64_t>()});
        }
        send(frame);
    }

    void readControl()
    {
        std::array<char, 256> bytes{};
        const ssize_t got = ::read(m_control, bytes.data(), bytes.size());
        if (got <= 0) {
            m_control = -1;
            return;
        }
        m_controlText.append(bytes.data(), static_cast<std::size_t>(got));
        for (std::size_t end = m_controlText.find('\n'); end != std::string::npos;
             end = m_controlText.find('\n')) {
            const std::string line = m_controlText.substr(0, m_controlText.find_first_of("\r\n"));
            if (line == "cancel")
                cancel("asked to");
            else if (line == "finish")
                askToFinish("asked to");
            m_controlText.erase(0, end + 1);
        }
        if (m_controlText.size() > 4096)
            m_controlText.clear(); // no command is as long
    }

    void readSignal()
    {
        signalfd_siginfo info{};
        if (::read(m_signals.descriptor(), &info, sizeof(info)) != sizeof(info))
            return;
        if (info.ssi_signo == SIGINT && !m_request.options.training.checkpoints.empty() && !m_finishing)
            askToFinish("interrupted");
        else
            cancel(info.ssi_signo == SIGINT ? "interrupted" : "terminated");
    }

    void escalate()
    {
        if (!m_cancelled || m_exited)
            return;
        const auto waited = Clock::now() - m_cancelTime;
        const int stage = waited >= kKillAfter ? 2 : waited >= kTerminateAfter ? 1 : 0;
        if (stage <= m_cancelStage)
            return;
        m_cancelStage = stage;
        ::kill(m_rank, stage == 1 ? SIGTERM : SIGKILL);
        Json cancelling = event("cancelling");
        cancelling["stage"] = stage == 1 ? "terminate" : "kill";
        send(cancelling);
    }

    Json deviceStates() const
    {
        Json devices = Json::array();
        for (std::size_t d = 0; d < m_request.plan.devices.size(); ++d)
            devices.push_back(deviceState(m_request.plan, static_cast<std::int32_t>(d),
                m_counters.data()[d].issued.load(), m_counters.data()[d].finished.load()));
        return devices;
    }

    void reportProgress()
    {
        const auto now = Clock::now();
        bool changed = false;
        for (std::size_t d = 0; d < m_issued.size(); ++d)
            changed = changed || m_counters.data()[d].issued.load() != m_issued[d];
        if (changed) {
            m_lastChange = now;
            m_stalled = false;
        }
        if (changed && now - m_lastReport >= kReportInterval) {
            m_lastReport = now;
            for (std::size_t d = 0; d < m_issued.size(); ++d)
                m_issued[d] = m_counters.data()[d].issued.load();
            Json progress = event("progress");
            progress["devices"] = deviceStates();
            send(progress);
        }
        const double limit = std::max(m_options.stallSeconds, 20 * m_request.predictedStepSeconds);
        if (!m_ready || m_stalled || m_exited || m_done
            || std::chrono::duration<double>(now - m_lastChange).count() < limit)
            return;
        m_stalled = true;
        Json stalled = event("stalled");
        stalled["seconds"] = limit;
        stalled["devices"] = deviceStates();
        send(stalled);
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
        Error error{
            ErrorCode::Internal, "the rank process ended without a word", "see its last instructions", {}};
        Json died = errorEvent(error);
        if (WIFSIGNALED(m_status)) {
            error.message = "the rank process was killed by signal " + std::to_string(WTERMSIG(m_status))
                + " (" + ::strsignal(WTERMSIG(m_status)) + ")";
            died["signal"] = WTERMSIG(m_status);
        } else if (WIFEXITED(m_status)) {
            error.message = "the rank process ended with status " + std::to_string(WEXITSTATUS(m_status));
            died["status"] = WEXITSTATUS(m_status);
        }
        for (std::size_t d = 0; d < m_issued.size(); ++d) {
            const auto device = static_cast<std::int32_t>(d);
            if (const auto place = placeOf(m_request.plan, device, m_counters.data()[d].issued.load()))
                error.message +=
                    "; device " + std::to_string(d) + " was at " + describe(m_request.plan, device, *place);
        }
        died["message"] = error.message;
        died["rank"] = 0;
        died["devices"] = deviceStates();
        send(died);
        return error;
    }

    const RunRequest &m_request;
    const SuperviseOptions &m_options;
    const EventSink &m_sink;
    std::stop_token m_stop;
    SharedCounters m_counters;
    SignalReader m_signals;
    int m_control;
    int m_socket = -1;
    pid_t m_rank = -1;
    int m_status = 0;
    FrameReader m_frames{};
    std::string m_controlText{};
    std::vector<std::int64_t> m_issued; ///< As last reported, by device.
    Clock::time_point m_lastChange{};
    Clock::time_point m_lastReport{};
    Clock::time_point m_cancelTime{};
    int m_cancelStage = 0;
    bool m_ready = false;
    bool m_stalled = false;
    bool m_exited = false;
    bool m_cancelled = false;
    bool m_finishing = false;
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
    return Supervisor{request, options, sink, std::move(stop)}.run();
}

} // namespace planloom
