#include "tests/fuzz/watched_trial.h"

#include "tests/fuzz/model_trial.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string_view>

namespace planloom {

namespace {

constexpr int kWallSecondsPerSecond = 10; ///< Of a machine that is busy with other things.

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

void writeLine(int to, char kind, std::string text)
{
    for (char &c : text)
        c = c == '\n' ? ' ' : c;
    text = std::string(1, '\1') + kind + text + "\n";
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = write(to, text.data() + done, text.size() - done);
        if (n <= 0)
            _exit(3);
        done += static_cast<std::size_t>(n);
    }
}

[[noreturn]] void tryInChild(const Graph &forward, std::uint64_t seed, const TrialLimits &limits, int to)
{
    const auto most = static_cast<rlim_t>(limits.seconds);
    const rlimit time{most, most + 5};
    setrlimit(RLIMIT_CPU, &time);
    if (kLimitsMemory) {
        const rlimit memory{static_cast<rlim_t>(limits.memoryBytes), static_cast<rlim_t>(limits.memoryBytes)};
        setrlimit(RLIMIT_AS, &memory);
    }
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(to, STDERR_FILENO); // what an assertion or a sanitizer says
    const auto tells = [to](char kind) {
        return [to, kind](const std::string &text) { writeLine(to, kind, text); };
    };
    tryModel(forward, seed, {.stage = tells('S'), .finding = tells('F'), .count = tells('C')});
    writeLine(to, 'E', "");
    _exit(0);
}

/// All that comes until the other end closes, or the time is up.
std::string readAll(int from, int seconds)
{
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
        pollfd ready{from, POLLIN, 0};
        if (poll(&ready, 1, seconds * 1000) <= 0)
            return text;
        const ssize_t n = read(from, buffer.data(), buffer.size());
        if (n <= 0)
            return text;
        text.append(buffer.data(), static_cast<std::size_t>(n));
    }
}

/// Of what a process that crashed has written, the line that says why.
bool saysWhy(std::string_view line)
{
    for (const char *word : {"Assertion", "SUMMARY", "runtime error", "terminate called", "what():"})
        if (line.find(word) != line.npos)
            return true;
    return false;
}

std::string endOf(int status)
{
    if (!WIFSIGNALED(status))
        return "ended with status " + std::to_string(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGKILL)
        return "too slow";
    return std::string("crash: ") + strsignal(signal);
}

} // namespace

std::string TrialFinding::cause() const
{
    std::string text = stage.substr(0, stage.find(' ')) + ": ";
    bool quoted = false;
    for (std::size_t i = 0; i < what.size(); ++i) {
        const char c = what[i];
        const bool isDigit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (c == '\'')
            quoted = !quoted;
        else if (!quoted && !(isDigit && text.back() == '#'))
            text += isDigit ? '#' : c;
    }
    return text;
}

TrialOutcome tryWatched(const Graph &forward, std::uint64_t seed, const TrialLimits &limits)
{
    std::array<int, 2> ends{};
    std::fflush(nullptr);
    if (pipe(ends.data()) != 0)
        return {{{"watch", "no pipe"}}, {}};
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        tryInChild(forward, seed, limits, ends[1]);
    }
    close(ends[1]);
    const std::string text =
        child < 0 ? std::string{} : readAll(ends[0], limits.seconds * kWallSecondsPerSecond);
    close(ends[0]);
    if (child < 0)
        return {{{"watch", "no process"}}, {}};
    const bool ended = text.find("\1E") != text.npos;
    if (!ended)
        kill(child, SIGKILL); // hung, unless it is gone already
    int status = 0;
    waitpid(child, &status, 0);

    TrialOutcome outcome;
    std::string stage;
    std::string why;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.size() < 2 || line[0] != '\1')
            why += saysWhy(line) ? ": " + line : "";
        else if (line[1] == 'S')
            stage = line.substr(2);
        else if (line[1] == 'F')
            outcome.findings.push_back({stage, line.substr(2)});
        else if (line[1] == 'C')
            ++outcome.counts[line.substr(2)];
    }
    if (!ended)
        outcome.findings.push_back({stage, endOf(status) + why});
    else if (!why.empty())
        outcome.findings.push_back({stage, "said on the way" + why});
    return outcome;
}

} // namespace planloom
