#include "engine/hardware/kernel_timings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace planloom {

namespace {

/// Words of a table's line: size, count, type, redop, root; then time, algbw, busbw, #wrong out of place, and
/// the same four in place.
constexpr std::size_t kLeastWords = 9;
constexpr std::size_t kTime = 5;
constexpr std::size_t kAlgorithmBandwidth = 6;
constexpr std::size_t kBusBandwidth = 7;
constexpr std::size_t kWrong = 8;

struct Program {
    std::string_view name;
    CollectiveKind kind;
};
constexpr std::array<Program, 5> kPrograms{{
    {"all_reduce_perf", CollectiveKind::AllReduce},
    {"all_gather_perf", CollectiveKind::AllGather},
    {"reduce_scatter_perf", CollectiveKind::ReduceScatter},
    {"alltoall_perf", CollectiveKind::AllToAll},
    {"broadcast_perf", CollectiveKind::Broadcast},
}};

std::optional<CollectiveKind> programIn(std::string_view text)
{
    for (const Program &program : kPrograms)
        if (text.find(program.name) != std::string_view::npos
            || text.find(program.name.substr(0, program.name.size() - 5)) != std::string_view::npos)
            return program.kind;
    return std::nullopt;
}

std::optional<double> numberOf(const std::string &word)
{
    char *end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    return !word.empty() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// What the lines of one run say before its table.
struct RunOfTests {
    std::optional<CollectiveKind> kind{};
    std::int32_t ranks = 0;
    std::set<std::string> hosts{};
};

/// Reads a table line by line.
class Reader
{
public:
    explicit Reader(const std::string &file)
        : m_file(file)
        , m_ofFile(programIn(file.substr(file.rfind('/') + 1)))
    {
    }

    Result<void> line(const std::string &text, std::size_t number)
    {
        m_line = number;
        std::istringstream stream(text);
        std::vector<std::string> words;
        for (std::string word; stream >> word;)
            words.push_back(word);
        if (words.empty())
            return {};
        if (words.front().starts_with('#')) {
            comment(text, words);
            return {};
        }
        const auto size = numberOf(words.front());
        if (!size || words.size() < kLeastWords) // what a launcher or NCCL itself prints between
            return {};
        return row(words, *size);
    }

    std::vector<CollectiveTiming> take() { return std::move(m_timings); }

private:
    void comment(const std::string &text, const std::vector<std::string> &words)
    {
        if (const auto kind = programIn(text); kind && text.find("_perf") != std::string::npos) {
            if (m_hasRows)
                begin();
            m_run.kind = kind;
        }
        // "#  Rank  0 Group  0 Pid  1234 on  host-1 device  0 [0x07] NVIDIA H100"
        if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
            if (m_hasRows)
                begin();
            ++m_run.ranks;
            const auto on = std::find(words.begin(), words.end(), "on");
            if (on != words.end() && on + 1 != words.end())
                m_run.hosts.insert(*(on + 1));
        }
    }

    void begin()
    {
        m_run = {};
        m_hasRows = false;
    }

    Error wrong(std::string message, std::string advice) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            m_file + ":" + std::to_string(m_line)};
    }

    Result<void> row(const std::vector<std::string> &words, double size)
    {
        m_hasRows = true;
        const auto kind = m_run.kind ? m_run.kind : m_ofFile;
        if (!kind)
            return wrong("nothing before this table says which collective it is of",
                "name the file as the program: all_reduce.txt, alltoall.txt, ...");
        const auto hosts = static_cast<std::int32_t>(std::max<std::size_t>(m_run.hosts.size(), 1));
        if (m_run.ranks < 2)
            return wrong("expected the lines \"#  Rank ...\" of two ranks or more before this table, found "
                    + std::to_string(m_run.ranks),
                "give the whole output of the program");
        if (size < 1) // nothing was sent
            return {};
        const auto time = numberOf(words[kTime]);
        if (!time || *time <= 0)
            return wrong("expected a time above 0 us, found \"" + words[kTime].substr(0, 60) + "\"",
                "correct the line or leave it out");
        if (const auto bad = numberOf(words[kWrong]); bad && *bad > 0)
            return wrong("expected 0 wrong values, found " + words[kWrong],
                "a run that computes wrong says nothing of time");
        TRY_VOID(checkBandwidth(words, *kind, size, *time));
        CollectiveTiming timing;
        timing.kind = *kind;
        timing.shape.ranks = m_run.ranks;
        timing.shape.nodes = hosts;
        timing.bytes = {static_cast<std::int64_t>(size)};
        timing.seconds = *time * 1e-6;
        timing.where = m_file + ":" + std::to_string(m_line);
        m_timings.push_back(std::move(timing));
        return {};
    }

    /// The table has its bandwidths of the size and the time, with the factor of its collective.
    Result<void> checkBandwidth(
        const std::vector<std::string> &words, CollectiveKind kind, double size, double time) const
    {
        const double n = m_run.ranks;
        const double factor = kind == CollectiveKind::AllReduce ? 2 * (n - 1) / n
            : kind == CollectiveKind::Broadcast                 ? 1
                                                                : (n - 1) / n;
        const auto algorithm = numberOf(words[kAlgorithmBandwidth]);
        const auto bus = numberOf(words[kBusBandwidth]);
        const double expected = size / time * 1e-3; // GB/s
        if (!algorithm || !bus)
            return wrong("expected bandwidths behind the time, found \"" + words[kAlgorithmBandwidth] + "\"",
                "correct the line or leave it out");
        // Printed with two decimals.
        const auto differs = [](double one, double other) {
            return std::abs(one - other) > 0.02 + 0.02 * other;
        };
        if (differs(*algorithm, expected) || differs(*bus, expected * factor))
            return wrong("expected " + std::to_string(expected) + " and " + std::to_string(expected * factor)
                    + " GB/s of this size, time and number of ranks, found " + words[kAlgorithmBandwidth]
                    + " and " + words[kBusBandwidth],
                "see that the lines \"#  Rank ...\" are those of this table");
        return {};
    }

    const std::string &m_file;
    std::optional<CollectiveKind> m_ofFile;
    std::size_t m_line = 0;
    RunOfTests m_run{};
    bool m_hasRows = false;
    std::vector<CollectiveTiming> m_timings{};
};

} // namespace

Result<void> addNcclTests(KernelTimings &timings, std::string_view text, const std::string &file)
{
    Reader reader(file);
    std::istringstream stream{std::string(text)};
    std::size_t number = 0;
    for (std::string line; std::getline(stream, line);)
        TRY_VOID(reader.line(line, ++number));
    std::vector<CollectiveTiming> read = reader.take();
    if (read.empty())
        return Error{ErrorCode::InvalidInput, "expected a table as nccl-tests print it, found none",
            "give the whole output of all_reduce_perf, all_gather_perf, ...", file};
    // What was measured by itself stands for what a file of kernels has beside it.
    timings.collectives = std::move(read);
    timings.collectiveSource = "nccl-tests, " + file.substr(file.rfind('/') + 1);
    return {};
}

} // namespace planloom
