#pragma once

// Random models, clusters and rows, planned with the rows and without: what bounds are held against.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "tests/dice.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

inline constexpr double kSameSeconds = 1e-9; ///< Of a step: sums in another order.

inline std::string numberOf(std::int64_t n)
{
    return std::to_string(n);
}

inline std::string smallModel(Dice &dice)
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

inline std::string largeModel(Dice &dice, const std::vector<std::string> &files)
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

inline std::string anyCluster(Dice &dice, bool small)
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
inline std::string anyRows(Dice &dice, const Model &model, std::int32_t devices)
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
        if (dice.hits(0.3))
            return "place name:" + op->name + " : devices " + numberOf(dice.below(devices));
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

inline std::optional<Planned> planned(
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
    void draw(std::uint64_t seed, const std::function<void(nlohmann::json)> &tell)
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
        const nlohmann::json base{{"seed", seed}, {"model", name}, {"cluster", cluster},
            {"step", free->seconds}, {"bound", free->bound}, {"plan", free->plan}};
        const auto compare = [&](const std::string &what, const std::optional<Planned> &other) {
            if (!other || !other->fits)
                return;
            nlohmann::json line = base;
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

} // namespace planloom
