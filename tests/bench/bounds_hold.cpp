// Whether what the search says of all plans is true: bounds_hold [--count N] [--seed S] [--state FILE]
// [--models FOLDER]...
// [--small] [--json].
//
// Draws a model, a cluster and rows, and plans them twice: without the rows and with them. A plan of some
// rows may be no faster than the bound of the search without them, and should not be faster than the plan
// that was found; nor may fewer of the devices be. One line of JSON a draw goes to FILE, which is also where
// a later call goes on; the summary is of all its lines. The exit status is 1 if a bound is broken.
// --small draws small models alone, of which thousands are tried in minutes; --models adds the models of a
// folder.

#include "tests/bound_draws.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace planloom;
using nlohmann::json;

namespace {

struct Tally {
    int draws = 0;
    int broken = 0; ///< Below the bound.
    int faster = 0; ///< By over 1% than the plan found.
    int muchFaster = 0; ///< By over 5%.
    std::vector<double> gaps{};

    void add(const json &line)
    {
        const double step = line.at("step");
        const double bound = line.at("bound");
        const double seconds = line.at("seconds");
        ++draws;
        broken += seconds < bound * (1 - kSameSeconds) ? 1 : 0;
        faster += seconds < 0.99 * step ? 1 : 0;
        muchFaster += seconds < 0.95 * step ? 1 : 0;
        gaps.push_back(1 - bound / step);
    }
    double gapAt(double share)
    {
        if (gaps.empty())
            return 0;
        std::sort(gaps.begin(), gaps.end());
        return gaps[std::min(
            gaps.size() - 1, static_cast<std::size_t>(share * static_cast<double>(gaps.size())))];
    }
};

std::vector<std::string> modelsIn(const std::vector<std::string> &folders)
{
    std::vector<std::string> files;
    for (const std::string &folder : folders)
        for (const auto &entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".onnx" || entry.path().extension() == ".pt2")
                files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
}

void print(const json &line)
{
    const double seconds = line.at("seconds");
    const double step = line.at("step");
    const bool broken = seconds < line.at("bound").get<double>() * (1 - kSameSeconds);
    if (!broken && seconds >= 0.99 * step)
        return;
    std::string with = line.at("with");
    std::replace(with.begin(), with.end(), '\n', ';');
    std::printf("%s seed %llu, %s on %s: %.4g ms (%s), none said to be below %.4g; with %s: %.4g ms (%s), "
                "%.1f%% faster\n",
        broken ? "BROKEN" : "faster", static_cast<unsigned long long>(line.at("seed").get<std::uint64_t>()),
        line.at("model").get<std::string>().c_str(), line.at("cluster").get<std::string>().c_str(),
        1e3 * step, line.at("plan").get<std::string>().c_str(), 1e3 * line.at("bound").get<double>(),
        with.c_str(), 1e3 * seconds, line.at("its_plan").get<std::string>().c_str(),
        100 * (1 - seconds / step));
}

} // namespace

int main(int argc, char **argv)
{
    std::int64_t count = 200;
    std::uint64_t seed = 0;
    std::string state;
    std::vector<std::string> folders;
    bool small = false;
    bool asJson = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (word == "--count")
            count = std::atoll(value());
        else if (word == "--seed")
            seed = std::strtoull(value(), nullptr, 10);
        else if (word == "--state")
            state = value();
        else if (word == "--models")
            folders.emplace_back(value());
        else if (word == "--small")
            small = true;
        else if (word == "--json")
            asJson = true;
        else {
            std::fprintf(stderr,
                "bounds_hold [--count N] [--seed S] [--state FILE] [--models FOLDER]... [--small] "
                "[--json]\n");
            return 2;
        }
    }
    Tally tally;
    const auto take = [&](const json &line) {
        tally.add(line);
        if (asJson)
            std::printf("%s\n", line.dump().c_str());
        else
            print(line);
        std::fflush(stdout);
    };
    if (std::ifstream before(state); before)
        for (std::string text; std::getline(before, text);)
            if (const json line = json::parse(text, nullptr, false); !line.is_discarded()) {
                take(line);
                seed = std::max(seed, line.at("seed").get<std::uint64_t>() + 1);
            }
    std::ofstream out;
    if (!state.empty())
        out.open(state, std::ios::app);
    Draws draws(modelsIn(folders), small);
    for (; tally.draws < count; ++seed)
        draws.draw(seed, [&](const json &line) {
            take(line);
            if (out.is_open())
                out << line.dump() << std::endl;
        });
    const double share = 100.0 / std::max(1, tally.draws);
    if (asJson) {
        const json summary{{"draws", tally.draws}, {"below_a_bound", tally.broken},
            {"faster_by_1_percent", tally.faster}, {"faster_by_5_percent", tally.muchFaster},
            {"median_gap", tally.gapAt(0.5)}, {"ninth_gap", tally.gapAt(0.9)}};
        std::printf("%s\n", summary.dump().c_str());
        return tally.broken > 0 ? 1 : 0;
    }
    std::printf("%d draws: %d below a bound, %d (%.1f%%) over 1%% faster than what was found, %d over 5%%; "
                "gap %.1f%% in the "
                "median, %.1f%% in nine of ten\n",
        tally.draws, tally.broken, tally.faster, tally.faster * share, tally.muchFaster,
        100 * tally.gapAt(0.5), 100 * tally.gapAt(0.9));
    return tally.broken > 0 ? 1 : 0;
}
