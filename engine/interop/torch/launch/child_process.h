#pragma once

#include "engine/base/result.h"
#include "engine/runtime/processes/process_handles.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace planloom {

/// A program that runs beside this one, whose output is read through pipes. It has a process group of its
/// own, so that a terminal's Ctrl-C comes to this process alone, and nothing on its standard input. One that
/// still runs when this goes is killed. Of one thread at a time.
class ChildProcess
{
public:
    /// @param words  the program, found on PATH, and its arguments
    /// @param environment  "NAME=VALUE", beside this process's
    /// @return NotFound for a program that cannot be started; Io
    static Result<ChildProcess> start(
        std::vector<std::string> words, std::vector<std::string> environment = {});
    ChildProcess(ChildProcess &&other) noexcept;
    ChildProcess &operator=(ChildProcess &&) = delete;
    ~ChildProcess();

    int output() const { return m_output.get(); } ///< To be read; its end is the program's.
    int errors() const { return m_errors.get(); }
    void signal(int number) const;
    /// Its exit status once it has ended, 128 + N where signal N ended it.
    std::optional<int> status();

private:
    ChildProcess(pid_t process, Descriptor output, Descriptor errors);

    pid_t m_process;
    std::optional<int> m_status{};
    Descriptor m_output;
    Descriptor m_errors;
};

} // namespace planloom
