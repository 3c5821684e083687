// Random models of all kinds of operators, planned in every way: says which of them end the program, hang, or
// get a plan that is not proven. It goes on where it stopped, if it is given a file to remember that in.
//
//     random_models [--count N] [--seed S] [--state FILE]    tries N models, from seed S or the file's on
//     random_models --show S                                 prints the model of a seed
//     random_models --reduce S                               prints the smallest part of it that still fails

#include "tests/fuzz/random_model.h"
#include "tests/fuzz/reduce_model.h"
#include "tests/fuzz/watched_trial.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

using namespace planloom;

namespace {

struct Asked {
    std::int64_t count = 100;
    std::uint64_t seed = 0;
    std::string state{};
    std::optional<std::uint64_t> show{};
    std::optional<std::uint64_t> reduce{};
};

std::optional<Asked> read(int count, char **values)
{
    Asked asked;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string_view name = values[i];
        const char *value = values[i + 1];
        const std::uint64_t number = std::strtoull(value, nullptr, 10);
        if (name == "--count")
            asked.count = static_cast<std::int64_t>(number);
        else if (name == "--seed")
            asked.seed = number;
        else if (name == "--state")
            asked.state = value;
        else if (name == "--show")
            asked.show = number;
        else if (name == "--reduce")
            asked.reduce = number;
        else
            return std::nullopt;
    }
    if (count % 2 == 0)
        return std::nullopt;
    if (std::uint64_t next = 0; std::ifstream(asked.state) >> next)
        asked.seed = next;
    return asked;
}

void print(std::uint64_t seed, const TrialFinding &finding)
{
    std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(seed), finding.stage.c_str(),
        finding.what.c_str());
    std::fflush(stdout);
}

int show(std::uint64_t seed)
{
    const auto graph = randomModel(seed);
    std::printf("%s", graph ? textOf(*graph).c_str() : describe(graph.error()).c_str());
    return graph ? 0 : 1;
}

/// Of the first finding.
int reduce(std::uint64_t seed)
{
    auto graph = randomModel(seed);
    const auto outcome = graph ? tryWatched(*graph, seed, {}) : TrialOutcome{};
    if (outcome.findings.empty())
        return 0;
    const TrialFinding first = outcome.findings.front();
    const Graph reduced = reducedModel(*std::move(graph), [&](const Graph &smaller) {
        const auto found = tryWatched(smaller, seed, {}).findings;
        return std::any_of(found.begin(), found.end(),
            [&](const TrialFinding &each) { return each.cause() == first.cause(); });
    });
    for (const TrialFinding &finding : tryWatched(reduced, seed, {}).findings)
        print(seed, finding);
    std::printf("%s", textOf(reduced).c_str());
    return 1;
}

int tryAll(const Asked &asked)
{
    std::map<std::string, std::int64_t> counts;
    std::map<std::string, std::vector<std::uint64_t>> causes;
    for (std::uint64_t seed = asked.seed; seed < asked.seed + static_cast<std::uint64_t>(asked.count);
         ++seed) {
        const auto graph = randomModel(seed);
        if (!graph) {
            causes["drawing: " + graph.error().message].push_back(seed);
            continue;
        }
        const TrialOutcome outcome = tryWatched(*graph, seed, {});
        for (const TrialFinding &finding : outcome.findings) {
            print(seed, finding);
            causes[finding.cause()].push_back(seed);
        }
        for (const auto &[name, count] : outcome.counts)
            counts[name] += count;
        if (!asked.state.empty())
            std::ofstream(asked.state) << seed + 1 << "\n";
    }
    std::printf("%lld models", static_cast<long long>(asked.count));
    for (const auto &[name, count] : counts)
        std::printf(", %lld %s", static_cast<long long>(count), name.c_str());
    std::printf("\n");
    for (const auto &[cause, seeds] : causes)
        std::printf("%zu x %s (seed %llu)\n", seeds.size(), cause.c_str(),
            static_cast<unsigned long long>(seeds.front()));
    return causes.empty() ? 0 : 1;
}

} // namespace

int main(int count, char **values)
{
    const auto asked = read(count, values);
    if (!asked) {
        std::fprintf(stderr, "random_models [--count N] [--seed S] [--state FILE] [--show S] [--reduce S]\n");
        return 2;
    }
    return asked->show ? show(*asked->show) : asked->reduce ? reduce(*asked->reduce) : tryAll(*asked);
}
