#include "engine/interop/torch/launch/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {

namespace {

/// What a program is started with: its standard streams, and no signal held back.
struct SpawnSettings {
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};

    SpawnSettings(int output, int errors)
    {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
        posix_spawnattr_init(&attributes);
        sigset_t none;
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    }
    SpawnSettings(const SpawnSettings &) = delete;
    SpawnSettings &operator=(const SpawnSettings &) = delete;
    ~SpawnSettings()
    {
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
};

} // namespace

Result<ChildProcess> ChildProcess::start(std::vector<std::string> words, std::vector<std::string> environment)
{
    int output[2];
    int errors[2];
    const auto pipeError = [] {
        return Error{ErrorCode::Io, std::string("a pipe cannot be made: ") + std::strerror(errno), {}, {}};
    };
    if (::pipe2(output, O_CLOEXEC) != 0)
        return pipeError();
    Descriptor outputRead(output[0]);
    const Descriptor outputWrite(output[1]);
    if (::pipe2(errors, O_CLOEXEC) != 0)
        return pipeError();
    Descriptor errorsRead(errors[0]);
    const Descriptor errorsWrite(errors[1]);
    for (const int read : {output[0], errors[0]})
        ::fcntl(read, F_SETFL, O_NONBLOCK);
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char *> variables;
    for (std::string &variable : environment)
        variables.push_back(variable.data());
    for (char **variable = environ; *variable != nullptr; ++variable)
        variables.push_back(*variable);
    variables.push_back(nullptr);
    const SpawnSettings settings(output[1], errors[1]);
    pid_t process = 0;
    if (const int failure = ::posix_spawnp(&process, words.front().c_str(), &settings.actions,
            &settings.attributes, arguments.data(), variables.data()))
        return Error{ErrorCode::NotFound, std::string("it cannot be started: ") + std::strerror(failure), {},
            words.front()};
    return ChildProcess(process, std::move(outputRead), std::move(errorsRead));
}

ChildProcess::ChildProcess(pid_t process, Descriptor output, Descriptor errors)
    : m_process(process)
    , m_output(std::move(output))
    , m_errors(std::move(errors))
{
}

ChildProcess::ChildProcess(ChildProcess &&other) noexcept
    : m_process(std::exchange(other.m_process, 0))
    , m_status(other.m_status)
    , m_output(std::move(other.m_output))
    , m_errors(std::move(other.m_errors))
{
}

ChildProcess::~ChildProcess()
{
    if (m_process <= 0 || m_status)
        return;
    signal(SIGKILL);
    while (::waitpid(m_process, nullptr, 0) < 0 && errno == EINTR) { }
}

void ChildProcess::signal(int number) const
{
    if (m_process > 0 && !m_status)
        ::kill(-m_process, number);
}

std::optional<int> ChildProcess::status()
{
    int state = 0;
    if (!m_status && ::waitpid(m_process, &state, WNOHANG) == m_process)
        m_status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return m_status;
}

} // namespace planloom
