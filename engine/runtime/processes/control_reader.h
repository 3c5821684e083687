#pragma once

#include <string>
#include <vector>

namespace planloom {

/// Lines that arrive at a descriptor a few bytes at a time, as commands on standard input do.
class ControlReader
{
public:
    /// @param descriptor  -1: nowhere, and no line ever comes
    explicit ControlReader(int descriptor)
        : m_descriptor(descriptor)
    {
    }
    int descriptor() const { return m_descriptor; } ///< To wait for; -1 once it has ended.
    /// Reads what is there, which must be something or the end. @return the lines that are complete now,
    /// without their ends. Of a line that is longer than any command, what has come so far is dropped.
    std::vector<std::string> read();

private:
    int m_descriptor;
    std::string m_text{}; ///< Of a line whose end has not come.
};

} // namespace planloom
