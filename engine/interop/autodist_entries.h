#pragma once

#include "engine/base/result.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// One entry of a file of partition constraints (autodist_yaml.h).
struct AutodistEntry {
    std::string name{};
    std::string parent{}; ///< Empty for every module.
    std::vector<std::pair<std::int32_t, std::int32_t>> positions{}; ///< Input, dimension.
    std::vector<YAML::Mark> positionMarks{};
    bool copies = true;
    YAML::Mark mark{};
};

/// Reads the entries of a file.
class AutodistReader
{
public:
    explicit AutodistReader(const std::string &file)
        : m_file(file)
    {
    }
    Result<std::vector<AutodistEntry>> read(std::string_view text) const;
    Error wrong(const YAML::Mark &mark, std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            m_file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1)};
    }

private:
    Result<AutodistEntry> readEntry(const YAML::Node &node) const;
    Result<void> readPosition(const YAML::Node &node, AutodistEntry &entry) const;
    Result<std::string> text(const YAML::Node &node, const char *member) const;

    const std::string &m_file;
};

} // namespace planloom
