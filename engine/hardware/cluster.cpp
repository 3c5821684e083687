#include "engine/hardware/cluster.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/embedded_profiles.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

namespace planloom {

namespace {

constexpr std::uintmax_t kMostFileBytes = 1 << 20;

std::string listOfNames()
{
    std::string list;
    for (const EmbeddedProfile &profile : embeddedProfiles())
        list += (list.empty() ? "" : ", ") + std::string(profile.name);
    return list;
}

Result<Cluster> clusterFromFile(const std::string &path)
{
    TRY(const std::string text, clusterFileText(path));
    auto cluster = clusterFromJson(text);
    if (!cluster)
        cluster.error().where = path + "#" + cluster.error().where;
    return cluster;
}

/// Letters and digits in runs, in small letters, without how many there are of it: "8x H100" is "h100".
std::vector<std::string> wordsOf(std::string_view text)
{
    std::vector<std::string> words(1);
    for (const char c : text) {
        const auto letter = static_cast<unsigned char>(c);
        if (std::isalnum(letter) != 0)
            words.back() += static_cast<char>(std::tolower(letter));
        else if (!words.back().empty())
            words.emplace_back();
    }
    const auto digits = [](std::string_view word) {
        return static_cast<std::size_t>(std::find_if(word.begin(), word.end(), [](unsigned char c) {
            return std::isdigit(c) == 0;
        }) - word.begin());
    };
    for (std::string &word : words) {
        if (const std::size_t count = digits(word); count > 0 && count < word.size() && word[count] == 'x')
            word.erase(0, count + 1);
        const std::size_t times = word.rfind('x'); // "dgxb200x8"
        if (times != std::string::npos && times > 0 && times + 1 < word.size()
            && times + 1 + digits(std::string_view(word).substr(times + 1)) == word.size()
            && std::isdigit(static_cast<unsigned char>(word[times - 1])) != 0)
            word.erase(times);
    }
    std::erase(words, std::string());
    return words;
}

bool hasWord(const std::vector<std::string> &words, const std::string &word)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// A word like "80gb".
bool isMemory(const std::string &word)
{
    return word.size() > 2 && word.ends_with("gb")
        && std::all_of(word.begin(), word.end() - 2, [](unsigned char c) { return std::isdigit(c) != 0; });
}

} // namespace

std::optional<std::string> profileOfDevice(std::string_view words)
{
    std::vector<std::string> said = wordsOf(words);
    // "80 GB" is one word; "400 Gb/s" is no memory.
    for (std::size_t w = 1; w < said.size(); ++w)
        if (said[w] == "gb" && isMemory(said[w - 1] + "gb") && (w + 1 == said.size() || said[w + 1] != "s"))
            said[w] = said[w - 1] + "gb";
    std::optional<std::string> best;
    std::size_t most = 0;
    for (const EmbeddedProfile &profile : embeddedProfiles()) {
        const auto cluster = clusterFromJson(profile.json, 1);
        if (!cluster || !cluster->otherClasses.empty())
            continue;
        const DeviceModel &device = cluster->device;
        std::vector<std::string> names = device.aliases;
        names.emplace_back(profile.name);
        names.push_back(device.name);
        std::vector<std::string> own;
        for (const std::string &name : names)
            for (std::string &word : wordsOf(name))
                own.push_back(std::move(word));
        // Memory may be said as it is sold or as it is usable, and by its kind.
        const bool isOther = std::any_of(said.begin(), said.end(),
            [&](const std::string &word) { return isMemory(word) && !hasWord(own, word); });
        for (const std::string &name : names) {
            const std::vector<std::string> wanted = wordsOf(name);
            const bool all = std::all_of(
                wanted.begin(), wanted.end(), [&](const std::string &word) { return hasWord(said, word); });
            if (all && !isOther && wanted.size() > most) {
                most = wanted.size();
                best = std::string(profile.name);
            }
        }
    }
    return best;
}

Result<std::string> clusterFileText(const std::string &path)
{
    return readFile(path, {.what = "cluster file", .mostBytes = kMostFileBytes});
}

Result<Cluster> clusterNamed(std::string_view nameOrPath)
{
    if (nameOrPath.ends_with(".json"))
        return clusterFromFile(std::string(nameOrPath));

    const std::size_t colon = nameOrPath.find(':');
    const std::string_view name = nameOrPath.substr(0, colon);
    const std::string where = "cluster:" + std::string(nameOrPath.substr(0, 60));
    for (const EmbeddedProfile &profile : embeddedProfiles()) {
        if (profile.name != name)
            continue;
        const std::string advice = "write " + std::string(name) + ":8 for eight devices";
        if (colon == std::string_view::npos)
            return Error{ErrorCode::InvalidInput, "the cluster has no size", advice, where};
        const std::string_view digits = nameOrPath.substr(colon + 1);
        std::int32_t count = 0;
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (failure != std::errc{} || end != digits.data() + digits.size() || count < 1
            || count > kMostDevices)
            return Error{ErrorCode::InvalidInput,
                "expected a number of devices from 1 to " + std::to_string(kMostDevices) + ", found \""
                    + std::string(digits.substr(0, 60)) + "\"",
                advice, where};
        TRY(Cluster cluster, clusterFromJson(profile.json, count));
        cluster.name = std::string(name) + ":" + std::to_string(count);
        return cluster;
    }
    return Error{ErrorCode::NotFound,
        "there is no cluster profile \"" + std::string(name.substr(0, 60)) + "\"",
        "known are " + listOfNames() + "; or give a file that ends in .json", where};
}

Cluster unitOf(Cluster cluster, const ScaleUnits &units)
{
    cluster.deviceCount /= units.count;
    cluster.units = units;
    return cluster;
}

std::int32_t Cluster::classAt(std::int32_t index) const
{
    for (std::size_t c = 0; c < otherClasses.size(); ++c)
        for (const DeviceRange &range : otherClasses[c].where)
            if (range.has(index))
                return static_cast<std::int32_t>(c) + 1;
    return 0;
}

std::int32_t nodesOf(const Interconnect &links, std::size_t level)
{
    std::int64_t nodes = 1; // A group may be larger than any cluster.
    for (std::size_t l = 0; l <= level && nodes <= kMostDevices; ++l)
        nodes *= links.outer[l].size;
    return static_cast<std::int32_t>(std::min<std::int64_t>(nodes, kMostDevices));
}

double memoryOf(const Cluster &cluster, const ScaleUnits &units, std::int32_t device)
{
    return cluster.deviceAt(units.deviceOf(0, DeviceId{device})).memory.value;
}

double leastMemory(const Cluster &cluster)
{
    double least = cluster.device.memory.value;
    for (const DeviceClass &other : cluster.otherClasses)
        least = std::min(least, other.device.memory.value);
    return least;
}

std::string deviceNames(const Cluster &cluster)
{
    std::string names = cluster.device.name;
    for (const DeviceClass &other : cluster.otherClasses)
        names += ", " + other.device.name;
    return names;
}

bool unitsAlike(const Cluster &cluster, const ScaleUnits &units)
{
    const std::int32_t locals = cluster.deviceCount / units.count;
    const auto placeOf = [&units](std::int32_t unit, std::int32_t local) {
        return units.deviceOf(unit, DeviceId{local}).index;
    };
    for (std::int32_t u = 1; u < units.count && !cluster.otherClasses.empty(); ++u)
        for (std::int32_t d = 0; d < locals; ++d)
            if (cluster.classAt(placeOf(u, d)) != cluster.classAt(placeOf(0, d)))
                return false;

    const Interconnect &links = cluster.links;
    std::vector<std::int32_t> sizes{links.devicesPerNode}; // of what devices lie in together
    for (std::size_t level = 0; level < links.outer.size(); ++level)
        sizes.push_back(links.devicesPerNode * nodesOf(links, level));
    for (const std::int32_t size : sizes) {
        std::vector<std::int32_t> first; // the groups of unit 0's devices, by when they are first met
        for (std::int32_t u = 0; u < units.count; ++u) {
            std::map<std::int32_t, std::int32_t> numbers;
            std::vector<std::int32_t> own;
            for (std::int32_t d = 0; d < locals; ++d)
                own.push_back(numbers.emplace(placeOf(u, d) / size, static_cast<std::int32_t>(numbers.size()))
                                  .first->second);
            if (u == 0)
                first = std::move(own);
            else if (own != first)
                return false;
        }
    }

    sizes.erase(sizes.begin()); // A node's own links are its devices', unless they share cards.
    if (links.sharesPorts())
        sizes.push_back(links.devicesPerNode / links.portsPerNode());
    for (const std::int32_t size : sizes) {
        std::map<std::int32_t, std::vector<std::int32_t>> sharers; // as devices of units
        for (std::int32_t u = 0; u < units.count; ++u)
            for (std::int32_t d = 0; d < locals; ++d)
                sharers[placeOf(u, d) / size].push_back(d);
        for (auto &[group, members] : sharers)
            std::sort(members.begin(), members.end());
        for (std::int32_t u = 1; u < units.count; ++u)
            for (std::int32_t d = 0; d < locals; ++d)
                if (sharers.at(placeOf(u, d) / size) != sharers.at(placeOf(0, d) / size))
                    return false;
    }
    return true;
}

std::vector<std::string> clusterNames()
{
    std::vector<std::string> names;
    for (const EmbeddedProfile &profile : embeddedProfiles())
        names.emplace_back(profile.name);
    return names;
}

} // namespace planloom
