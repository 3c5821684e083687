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

#include "engine/design/make_plan.h"
#include "engine/design/opened_model.h"
#include "tests/dice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace planloom;
using nlohmann::json;

namespace {

constexpr double kSameSeconds = 1e-9; ///< Of a step: sums in another order.

std::string numberOf(std::int64_t n)
{
    return std::to_string(n);
}

std::string smallModel(Dice &dice)
{
    const std::int64_t heads = dice.of<std::int64_t>({2, 4, 8});
    const std::string layers = numberOf(1 + dice.below(6));
    const std::string hidden = numberOf(heads * dice.of<std::int64_t>({8, 16, 32, 64}));
    const std::string batch = numberOf(dice.of<std::int64_t>({4, 6, 8, 12, 16, 32}));
    const std::string common = "?layers=" + layers + "&hidden=" + hidden + "&batch=" + batch;
    const std::string attention =
        "&heads=" + numberOf(heads) + "&vocab=" + numberOf(dice.of<std::int64_t>({512, 8000}));
    const std::string seq = "&seq=" + numberOf(dice.of<std::int64_t>({32, 128, 512}));
    switch (dice.below(5)) {
    case 0:
        return "zoo:mlp" + common;
    case 1:
        return "zoo:llama" + common + attention + seq
            + "&kv_heads=" + numberOf(dice.hits(0.5) ? heads : heads / 2)
            + "&ffn=" + numberOf(dice.of<std::int64_t>({256, 1024}));
    case 2:
        return "zoo:moe" + common + attention + seq
            + "&experts=" + numberOf(dice.of<std::int64_t>({2, 4, 8}));
    default:
        return "zoo:gpt" + common + attention + seq;
    }
}

std::string largeModel(Dice &dice, const std::vector<std::string> &files)
{
    if (!files.empty() && dice.hits(0.5))
        return dice.of(files);
    return dice.of<std::string>({"zoo:gpt?layers=24&hidden=2048&heads=16&seq=1024&batch=64",
        "zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=48",
        "zoo:gpt?layers=40&hidden=5120&heads=40&seq=2048&batch=128",
        "zoo:llama?layers=32&hidden=4096&heads=32&kv_heads=8&ffn=14336&seq=4096&batch=32&vocab=32000",
        "zoo:llama?layers=22&hidden=2048&heads=32&kv_heads=4&ffn=5632&seq=2048&batch=64&vocab=32000",
        "zoo:moe?layers=16&hidden=1024&heads=16&experts=16&seq=1024&batch=32",
        "zoo:mlp?layers=16&hidden=8192&batch=4096", "zoo:t5", "zoo:swin", "zoo:resnet", "zoo:evoformer"});
}

std::string anyCluster(Dice &dice, bool small)
{
    const std::string profile =
        dice.of<std::string>({"dgx-h100", "dgx-a100", "dgx2-v100", "rtx4090", "hgx-b200", "mixed-h100-a100"});
    const std::vector<std::int64_t> counts = small
        ? std::vector<std::int64_t>{2, 3, 4, 5, 6, 7, 8, 12, 16}
        : std::vector<std::int64_t>{2, 3, 4, 5, 6, 7, 8, 8, 12, 16, 24, 32, 64};
    const std::int64_t most = profile == "mixed-h100-a100" ? 16 : 64;
    return profile + ":" + numberOf(std::min(dice.of(counts), most));
}

/// Rows of any kind that a person might add.
std::string anyRows(Dice &dice, const Model &model, std::int32_t devices)
{
    const auto upTo = [&](std::int64_t most) { // mostly a power of two
        std::vector<std::int64_t> values;
        for (std::int64_t n = 1; n <= most; n *= 2)
            values.push_back(n);
        return dice.hits(0.8) ? dice.of(values) : 1 + dice.below(most);
    };
    const auto layers = static_cast<std::int32_t>(model.index->layers().scopes.size());
    switch (dice.below(10)) {
    case 0:
    case 1:
    case 2: {
        const std::int64_t dp = upTo(devices);
        const std::int64_t tp = upTo(devices / dp);
        const std::int64_t pp = upTo(devices / dp / tp);
        std::string text = "mesh";
        for (const auto &[axis, size] : {std::pair("dp", dp), std::pair("pp", pp), std::pair("tp", tp)})
            if (size > 1)
                text += std::string(" ") + axis + "=" + numberOf(size);
        return text == "mesh" ? "place all : devices 0" : text;
    }
    case 3:
        return "micro-batches " + numberOf(dice.of<std::int64_t>({1, 2, 4, 8, 16}));
    case 4:
        return "degree " + dice.of<std::string>({"data", "tensor", "pipeline"}) + " "
            + dice.of<std::string>({"exactly", "at most", "at least"}) + " " + numberOf(upTo(devices));
    case 5:
        return dice.of<std::string>({"zero1 all", "zero2 all", "zero3 all"});
    case 6:
        return dice.of<std::string>({"recompute all per layer", "recompute all never"});
    case 7:
        return "schedule " + dice.of<std::string>({"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v"});
    case 8: {
        const auto forward = static_cast<std::int64_t>(model.index->forwardCount());
        const Operator *op = nullptr;
        for (int i = 0; i < 50 && (op == nullptr || op->annotation.dimensions.empty()); ++i)
            op = &model.graph->operators[static_cast<std::size_t>(dice.below(forward))];
        if (op->annotation.dimensions.empty())
            return "micro-batches 1";
        return "split name:" + op->name + " : " + dice.of(op->annotation.dimensions).name + " by "
            + numberOf(upTo(devices));
    }
    default: {
        if (layers < 2 || devices < 2)
            return "degree pipeline exactly 1";
        const std::int64_t cut = 1 + dice.below(layers - 1);
        std::string text;
        for (std::int32_t layer = 0; layer < layers; ++layer)
            text += "stage layer:" + numberOf(layer) + " : " + (layer < cut ? "0" : "1") + "\n";
        return text;
    }
    }
}

struct Planned {
    double seconds = 0;
    bool fits = false;
    double bound = 0; ///< 0: nothing is said.
    std::string plan{};
};

std::optional<Planned> planned(
    const ModelSnapshot &model, const std::string &cluster, std::int32_t devices, const std::string &rows)
{
    PlanRequest request;
    request.model = model;
    request.target.cluster = cluster;
    request.target.deviceCount = devices;
    request.table = TableDocument(rows);
    request.search = true;
    request.upTo = PlanGrade::Timed;
    const auto answer = planOf(request);
    if (!answer || (*answer)->error || (*answer)->summary.stepSeconds <= 0)
        return std::nullopt;
    Planned result;
    result.seconds = (*answer)->summary.stepSeconds;
    result.fits =
        static_cast<double>((*answer)->summary.largestPeak.count) <= leastMemory((*answer)->cluster);
    if (const auto &search = (*answer)->search) {
        result.fits = search->fits;
        result.bound = search->bound;
        result.plan = toString(search->best.configuration);
    }
    return result;
}

class Draws
{
public:
    Draws(std::vector<std::string> files, bool small)
        : m_files(std::move(files))
        , m_small(small)
    {
    }

    /// A model on a cluster without rows, with several, and on fewer devices.
    void draw(std::uint64_t seed, const std::function<void(json)> &tell)
    {
        Dice dice(seed);
        const std::string name = m_small ? smallModel(dice) : largeModel(dice, m_files);
        const std::string cluster = anyCluster(dice, m_small);
        const auto model = openModel({name, {}, {}}, {}, KeepContent::No);
        const auto target = resolve(TargetChoice{cluster, {}, 0});
        if (!model || !target) {
            std::fprintf(stderr, "%s\n", describe(model ? target.error() : model.error()).c_str());
            return;
        }
        const std::int32_t devices = target->deviceCount;
        const auto free = planned(*model, cluster, devices, {});
        if (!free || !free->fits)
            return;
        const json base{{"seed", seed}, {"model", name}, {"cluster", cluster}, {"step", free->seconds},
            {"bound", free->bound}, {"plan", free->plan}};
        const auto compare = [&](const std::string &what, const std::optional<Planned> &other) {
            if (!other || !other->fits)
                return;
            json line = base;
            line["with"] = what;
            line["seconds"] = other->seconds;
            line["its_plan"] = other->plan;
            tell(std::move(line));
        };
        for (int i = 0; i < kRowsOfOne; ++i) {
            const std::string rows = anyRows(dice, **model, devices);
            compare(rows, planned(*model, cluster, devices, rows));
        }
        if (devices > 1) {
            const auto fewer = static_cast<std::int32_t>(1 + dice.below(devices - 1));
            compare("only " + numberOf(fewer) + " devices", planned(*model, cluster, fewer, {}));
        }
    }

private:
    static constexpr int kRowsOfOne = 4;
    std::vector<std::string> m_files{};
    bool m_small = false;
};

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
