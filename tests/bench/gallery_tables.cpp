// New plans of the gallery beside the best of Megatron-LM's space: gallery_tables [swin|t5|evoformer ...]
// [--fused] [--all].
//
// On DGX-2 V100 x 32 in simulation, on the configurations of nnScaler's evaluation (OSDI '24). Both sides are
// searched by the same rule: every value of the parameters below, stages balanced by what operators
// take; the fastest plan that fits the devices' memory is shown, and the fastest that would without
// that limit. --all shows every plan.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "engine/gallery/gallery.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace planloom;

namespace {

constexpr std::int32_t kDevices = 32;

struct Measured {
    std::string spec{};
    double seconds = 0;
    double peak = 0; ///< GB.
    double bubble = 0;
    double exposed = 0; ///< Seconds of communication while nothing is computed, mean of the devices.
    double sent = 0; ///< TB, all devices.
    bool fits = false;
};

struct Space {
    const char *name = "";
    std::vector<std::string> specs{};
};

struct Case {
    const char *name = "";
    const char *model = "";
    std::vector<Space> spaces{};
};

std::vector<std::int32_t> powers(std::int32_t most)
{
    std::vector<std::int32_t> list;
    for (std::int32_t n = 1; n <= most; n *= 2)
        list.push_back(n);
    return list;
}

/// All dp x pp x tp of the devices, with micro-batches of each size.
void forMeshes(std::int32_t batch, const std::vector<std::int32_t> &sizes,
    const std::function<void(std::int32_t dp, std::int32_t pp, std::int32_t tp, std::int32_t microBatches)>
        &use)
{
    for (const std::int32_t tp : powers(kDevices))
        for (const std::int32_t pp : powers(kDevices / tp))
            for (const std::int32_t size : sizes) {
                const std::int32_t dp = kDevices / tp / pp;
                if (batch % (dp * size) == 0 && batch / (dp * size) >= pp)
                    use(dp, pp, tp, batch / (dp * size));
            }
}

std::string meshText(std::int32_t dp, std::int32_t pp, std::int32_t tp, std::int32_t microBatches)
{
    return "dp=" + std::to_string(dp) + ",pp=" + std::to_string(pp) + ",tp=" + std::to_string(tp)
        + ",micro-batches=" + std::to_string(microBatches);
}

/// Megatron-LM's: dp x pp x tp, micro-batches, 1F1B, layers recomputed, states sharded over the replicas.
/// @param sequence  with sequence parallelism between the products (2022)
Space megatron(std::int32_t batch, const std::vector<std::int32_t> &sizes, bool sequence)
{
    Space space{sequence ? "Megatron-LM with sequence parallelism" : "Megatron-LM", {}};
    forMeshes(batch, sizes, [&](auto dp, auto pp, auto tp, auto count) {
        if (!sequence || tp > 1)
            space.specs.push_back("3d:" + meshText(dp, pp, tp, count) + (dp > 1 ? ",zero=1" : "")
                + (sequence ? ",sequence=1" : ""));
    });
    return space;
}

std::vector<Case> allCases()
{
    std::vector<Case> cases;
    {
        Case swin{
            "swin", "zoo:swin?layers=50&hidden=1536&heads=32&window=48&image=1536&batch=256&classes=1000"};
        swin.spaces = {megatron(256, {1, 2}, false), megatron(256, {1, 2}, true)};
        for (const bool coshard : {false, true}) {
            Space space{coshard ? "coshard (R-6)" : "coshard's space without coshard", {}};
            forMeshes(256, {1}, [&](auto dp, auto pp, auto tp, auto count) {
                // Pipelines with states sharded, or replicas with weights sharded, as the rest of the model
                // needs it.
                if (tp < 2 || tp > 8 || (pp > 1 && dp > 2))
                    return;
                for (const std::int32_t turns :
                    coshard ? std::vector<std::int32_t>{2, 4, 8} : std::vector<std::int32_t>{1})
                    for (const bool sequence : {false, true})
                        for (const char *layers : {"0-1", "0-3"})
                            if (coshard || layers[2] == '1')
                                space.specs.push_back("coshard:" + meshText(dp, pp, tp, count)
                                    + ",attention=" + std::to_string(turns)
                                    + ",feed-forward=" + std::to_string(coshard ? 4 : 1) + ",layers=" + layers
                                    + (pp == 1       ? ",zero=3"
                                            : dp > 1 ? ",zero=1"
                                                     : "")
                                    + (sequence ? ",sequence=1" : ""));
            });
            swin.spaces.push_back(std::move(space));
        }
        cases.push_back(std::move(swin));
    }
    {
        Case t5{"t5",
            "zoo:t5?layers=32&hidden=6144&heads=96&d_kv=64&ffn=24576&vocab=2097152&src=1024&tgt=1024&batch="
            "256"};
        Space pipelines{"1F1B", {}};
        forMeshes(256, {1, 2, 4}, [&](auto dp, auto pp, auto tp, auto count) {
            if (pp > 1)
                pipelines.specs.push_back("3d:" + meshText(dp, pp, tp, count) + (dp > 1 ? ",zero=1" : ""));
        });
        Space interlaced{"interlaced (R-7)", {}};
        forMeshes(256, {1, 2, 4}, [&](auto dp, auto pp, auto tp, auto count) {
            if (pp > 1 && dp < 4)
                interlaced.specs.push_back(
                    "interlaced:" + meshText(dp, pp, tp, count) + (dp > 1 ? ",zero=1" : ""));
        });
        t5.spaces = {std::move(pipelines), megatron(256, {1, 2, 4}, false), std::move(interlaced)};
        cases.push_back(std::move(t5));
    }
    {
        // Six times as wide as AlphaFold's: 3.1 billion parameters.
        Case evoformer{"evoformer",
            "zoo:evoformer?layers=48&recycles=2&batch=128&seqs=128&residues=256&msa=1536&pair=768&triangle="
            "768&heads=48"
            "&pair_heads=24"};
        Space flat{"data parallel and axial (R-9)", {}};
        Space pipelines{"1F1B over the passes, one after another", {}};
        Space ours{"3F1B (R-8)", {}};
        for (const std::int32_t dap : powers(8)) {
            for (const std::int32_t pp : powers(kDevices / dap)) {
                const std::int32_t dp = kDevices / dap / pp;
                const std::string text = "dp=" + std::to_string(dp) + ",dap=" + std::to_string(dap);
                const std::string counts = ",micro-batches=" + std::to_string(128 / dp);
                if (pp == 1)
                    flat.specs.push_back("axial:" + text + counts + (dp > 1 ? ",zero=1" : ""));
                if (pp > 1 && dap == 1)
                    pipelines.specs.push_back("1f1b:dp=" + std::to_string(dp) + ",pp=" + std::to_string(pp)
                        + counts + (dp > 1 ? ",zero=1" : ""));
                for (const char *schedule : {"3f1b", "1f1b", "gpipe"})
                    if (pp > 1 && pp < 32)
                        ours.specs.push_back("3f1b:" + text + ",pp=" + std::to_string(pp) + counts
                            + ",schedule=" + schedule + (dp > 1 ? ",zero=1" : ""));
            }
        }
        evoformer.spaces = {
            megatron(128, {1}, false), std::move(flat), std::move(pipelines), std::move(ours)};
        cases.push_back(std::move(evoformer));
    }
    return cases;
}

std::optional<Measured> measure(const ModelSnapshot &model, const std::string &spec, const std::string &rows)
{
    PlanRequest request;
    request.model = model;
    request.gallery = spec;
    request.target = {"dgx2-v100:" + std::to_string(kDevices), {}, kDevices};
    request.table = TableDocument(rows);
    const auto answer = planOf(request);
    if (!answer)
        return std::nullopt;
    const TimelineSummary &summary = (*answer)->summary;
    return Measured{spec, summary.stepSeconds, static_cast<double>(summary.largestPeak.count) / 1e9,
        summary.bubble, summary.exposedCommunicationSeconds, static_cast<double>(summary.sent.count) / 1e12,
        static_cast<double>(summary.largestPeak.count) <= (*answer)->cluster.device.memory.value};
}

void show(const char *what, const Measured &measured)
{
    std::printf("    %-9s %8.2f s  peak %5.1f GB  bubble %4.1f%%  exposed %6.2f s  sent %5.1f TB  %s\n", what,
        measured.seconds, measured.peak, 100 * measured.bubble, measured.exposed, measured.sent,
        measured.spec.c_str());
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool fused = std::erase(words, "--fused") > 0;
    const bool all = std::erase(words, "--all") > 0;
    for (const Case &one : allCases()) {
        if (!words.empty() && std::find(words.begin(), words.end(), one.name) == words.end())
            continue;
        std::printf("%s: %s, %s attention\n", one.name, one.model, fused ? "fused" : "plain");
        const auto model = openModel({one.model, {}, {}}, {}, KeepContent::No);
        if (!model) {
            std::fprintf(stderr, "%s\n", describe(model.error()).c_str());
            return 1;
        }
        const std::string common =
            std::string("precision all : fp16\n") + (fused ? "" : "attention all : plain\n");
        for (const Space &space : one.spaces) {
            std::optional<Measured> best;
            std::optional<Measured> unlimited;
            std::int32_t planned = 0;
            std::int32_t fitting = 0;
            for (const std::string &spec : space.specs)
                for (const bool recomputes : {true, false}) {
                    const bool own = !spec.starts_with("3d:");
                    const auto measured =
                        measure(*model, own ? spec + (recomputes ? ",recompute=1" : ",recompute=0") : spec,
                            common + (recomputes && !own ? "recompute layer:* per layer\n" : ""));
                    if (!measured)
                        continue;
                    ++planned;
                    fitting += measured->fits ? 1 : 0;
                    if (all)
                        show(measured->fits ? "fits" : "", *measured);
                    if (measured->fits && (!best || measured->seconds < best->seconds))
                        best = measured;
                    if (!unlimited || measured->seconds < unlimited->seconds)
                        unlimited = measured;
                    if (recomputes && !measured->fits)
                        break; // keeping more will not, either
                }
            std::printf("  %s: %d plans, %d fit\n", space.name, planned, fitting);
            if (best)
                show("best", *best);
            if (unlimited && !unlimited->fits)
                show("(beyond", *unlimited);
        }
    }
    return 0;
}
