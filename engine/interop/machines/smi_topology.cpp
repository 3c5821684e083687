#include "engine/base/text.h"
#include "engine/interop/machines/host_topology.h"
#include "engine/interop/machines/number_text.h"

#include <algorithm>
#include <array>
#include <map>

namespace planloom {

namespace {

constexpr std::size_t kMostColumns = 4096;
constexpr std::int64_t kMostNvLinks = 1024;

/// A word of a line and where it begins.
struct Word {
    std::string text{};
    std::size_t column = 0;
};

/// `nvidia-smi` underlines its heading on terminals: what it switches fonts with is no letter.
std::string withoutEscapes(std::string_view line)
{
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
            i += 2;
            while (i < line.size() && (isDigit(line[i]) || line[i] == ';'))
                ++i;
            continue; // the letter that ends it
        }
        plain += line[i];
    }
    return plain;
}

std::vector<Word> wordsOf(std::string_view line)
{
    std::vector<Word> words;
    for (std::size_t i = 0; i < line.size();) {
        if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
            ++i;
            continue;
        }
        const std::size_t begin = i;
        while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            ++i;
        words.push_back({std::string(line.substr(begin, i - begin)), begin});
    }
    return words;
}

bool isDevice(std::string_view word)
{
    return word.size() > 3 && word.substr(0, 3) == "GPU"
        && std::all_of(word.begin() + 3, word.end(), isDigit);
}

/// How far two columns are from one another; nothing for a word that says none.
struct Way {
    std::int32_t nvLinks = 0;
    bool isSelf = false;
};
std::optional<Way> wayOf(std::string_view word)
{
    static constexpr std::array<std::string_view, 6> kPaths{"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
    if (word == "X")
        return Way{0, true};
    if (std::find(kPaths.begin(), kPaths.end(), word) != kPaths.end())
        return Way{};
    if (word.substr(0, 2) != "NV")
        return std::nullopt;
    const auto count = wholeNumber(word.substr(2));
    if (!count || *count < 1 || *count > kMostNvLinks)
        return std::nullopt;
    return Way{static_cast<std::int32_t>(*count), false};
}

/// The matrix as it stands in the text.
class MatrixReader
{
public:
    Result<HostTopology> read(std::string_view text)
    {
        std::int32_t number = 0;
        bool isInMatrix = true;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string line = withoutEscapes(text.substr(begin, end - begin));
            begin = end + 1;
            ++number;
            const std::vector<Word> words = wordsOf(line);
            if (words.empty())
                continue;
            if (m_columns.empty()) {
                if (isDevice(words.front().text))
                    TRY_VOID(readHeading(words, number));
                continue;
            }
            if (words.front().text.starts_with("Legend:") || line.starts_with("NIC Legend"))
                isInMatrix = false;
            if (isInMatrix) {
                TRY_VOID(readRow(words, number));
            } else if (words.size() == 2 && words.front().text.ends_with(':')) {
                m_legend[words[0].text.substr(0, words[0].text.size() - 1)] = words[1].text; // "NIC0: mlx5_0"
            }
        }
        return finish(number);
    }

private:
    Result<void> readHeading(const std::vector<Word> &words, std::int32_t number)
    {
        for (const Word &word : words) {
            if (word.text == "CPU" || word.text == "NUMA")
                break; // "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
            if (std::find(m_columns.begin(), m_columns.end(), word.text) != m_columns.end())
                return atLine(number, "the column " + word.text.substr(0, 40) + " stands twice");
            if (m_columns.size() >= kMostColumns)
                return Error{ErrorCode::ResourceLimit,
                    "there are more than " + std::to_string(kMostColumns) + " columns", {},
                    "line:" + std::to_string(number) + ":1"};
            m_columns.push_back(word.text);
        }
        m_devices = static_cast<std::size_t>(std::count_if(m_columns.begin(), m_columns.end(), isDevice));
        for (std::size_t c = 0; c < m_columns.size(); ++c)
            if (isDevice(m_columns[c]) != (c < m_devices))
                return atLine(
                    number, "the column " + m_columns[c].substr(0, 40) + " stands behind those of cards");
        if (m_devices > kMostHostDevices)
            return Error{ErrorCode::ResourceLimit,
                "there are more than " + std::to_string(kMostHostDevices) + " devices", {},
                "line:" + std::to_string(number) + ":1"};
        return {};
    }

    Result<void> readRow(const std::vector<Word> &words, std::int32_t number)
    {
        if (m_rows.size() == m_columns.size())
            return {}; // what people paste may go on
        const std::string &name = words.front().text;
        const std::size_t row = m_rows.size();
        if (name != m_columns[row])
            return atLine(number,
                "the row " + name.substr(0, 40) + " stands where that of " + m_columns[row].substr(0, 40)
                    + " was expected");
        if (words.size() < m_columns.size() + 1)
            return atLine(number,
                "the row of " + name + " has " + std::to_string(words.size() - 1) + " cells, where "
                    + std::to_string(m_columns.size()) + " were expected",
                "the line may have been cut off");
        std::vector<Way> ways;
        for (std::size_t c = 0; c < m_columns.size(); ++c) {
            const auto way = wayOf(words[c + 1].text);
            if (!way)
                return atLine(number,
                    "\"" + words[c + 1].text.substr(0, 40) + "\" is no way from " + name + " to "
                        + m_columns[c],
                    "known: X, NV1, NV2, ..., PIX, PXB, PHB, NODE, SYS, SOC");
            if (way->isSelf != (c == row))
                return atLine(number, "X stands where " + name + " meets " + m_columns[c].substr(0, 40));
            ways.push_back(*way);
        }
        for (std::size_t c = 0; c < row; ++c)
            if (m_rows[c][row].nvLinks != ways[c].nvLinks)
                return atLine(number,
                    name + " has " + std::to_string(ways[c].nvLinks) + " NVLinks to " + m_columns[c]
                        + ", which has " + std::to_string(m_rows[c][row].nvLinks) + " back");
        m_rows.push_back(std::move(ways));
        m_lines.push_back(number);
        return {};
    }

    Result<HostTopology> finish(std::int32_t last)
    {
        if (m_columns.empty())
            return atLine(
                1, "there is no line of headings that begins with GPU0", "nvidia-smi topo -m prints one");
        // Rows of cards are missing where somebody printed those of devices alone.
        if (m_rows.size() < m_devices)
            return atLine(last,
                "the matrix ends behind " + std::to_string(m_rows.size()) + " of " + std::to_string(m_devices)
                    + " devices",
                "the file may have been cut off");
        HostTopology host;
        host.source = "nvidia-smi topo -m";
        host.links.assign(m_devices * m_devices, 0);
        for (std::size_t a = 0; a < m_devices; ++a) {
            host.devices.push_back({.name = m_columns[a], .line = m_lines[a]});
            for (std::size_t b = 0; b < m_devices; ++b)
                host.links[a * m_devices + b] = m_rows[a][b].nvLinks;
        }
        for (std::size_t c = m_devices; c < m_columns.size(); ++c) {
            const auto found = m_legend.find(m_columns[c]);
            host.nics.push_back({found == m_legend.end() ? m_columns[c] : found->second, 0});
        }
        return host;
    }

    std::vector<std::string> m_columns{}; ///< Devices, then cards.
    std::size_t m_devices = 0;
    std::vector<std::vector<Way>> m_rows{};
    std::vector<std::int32_t> m_lines{}; ///< By row.
    std::map<std::string, std::string> m_legend{};
};

} // namespace

Result<HostTopology> readSmiTopology(std::string_view text)
{
    return MatrixReader().read(text);
}

} // namespace planloom
