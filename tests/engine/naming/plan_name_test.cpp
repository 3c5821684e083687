#include "tests/engine/naming/named_plans.h"

#include "engine/gallery/gallery.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace planloom {
namespace {

constexpr const char *kGpt = "zoo:gpt?layers=4&hidden=32&heads=4&seq=16&vocab=32&batch=8";
constexpr const char *kMixture = "zoo:moe?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=8&experts=4";
constexpr const char *kVision = "zoo:vgg?image=32&batch=8&classes=8&depth=11&width=4&head=16";
constexpr const char *kT5 = "zoo:t5?layers=2&hidden=32&heads=4&d_kv=8&ffn=64&src=8&tgt=8&vocab=96&batch=8";
constexpr const char *kFolding = "zoo:evoformer?layers=4&msa=8&pair=8&single=8&seqs=8&residues=8&heads=2&"
                                 "pair_heads=2&head_width=4&triangle=8&batch=4&recycles=2";

ModelSnapshot opened(const std::string &spec, bool inference = false)
{
    ModelOptions options;
    options.inference = inference;
    auto model = openModel({spec, {}, options}, {}, KeepContent::No);
    EXPECT_TRUE(model) << describe(model.error());
    return model ? *model : nullptr;
}

PlanName nameFor(const ModelSnapshot &model, const std::string &spec, const std::string &rows = {},
    std::int32_t devices = 4)
{
    const auto answer = plannedFor(model, spec, rows, devices);
    EXPECT_TRUE(answer) << describe(answer.error());
    return answer ? planNameOf(*(*answer)->plan, *model) : PlanName{};
}

struct Named {
    const char *model;
    const char *spec;
    std::int32_t devices;
    const char *sentence;
};

constexpr Named kNamed[] = {
    {kGpt, "single", 1, "a single device"},
    {kGpt, "data-parallel", 4, "data parallel 4"},
    {kGpt, "tensor-parallel", 4, "tensor parallel 4"},
    {kGpt, "tensor-parallel:sequence=1", 4, "tensor parallel 4 with sequence parallelism"},
    {kT5, "tensor-parallel", 4, "tensor parallel 4"},
    {kVision, "tensor-parallel", 2, "tensor parallel 2"},
    {kGpt, "sequence-parallel", 4, "tensor parallel 4 with sequence parallelism"},
    {kGpt, "zero1", 4, "data parallel 4, ZeRO-1 on 4"},
    {kGpt, "zero2", 4, "data parallel 4, ZeRO-2 on 4"},
    {kGpt, "zero3", 4, "data parallel 4, ZeRO-3 on 4"},
    {kGpt, "1f1b", 4, "1F1B over 4 stages, 8 micro-batches"},
    {kGpt, "1f1b:pp=2,tp=2,recompute=1", 4,
        "1F1B over 2 stages, tensor parallel 2, full recomputation, 8 micro-batches"},
    {kGpt, "gpipe", 4, "GPipe over 4 stages, 8 micro-batches"},
    {kGpt, "pipeline", 4, "1F1B over 4 stages, 8 micro-batches"},
    {kGpt, "pipeline:interleave=2", 2,
        "interleaved 1F1B over 4 stages (2 chunks on each of 2 ranks), 8 micro-batches"},
    {kGpt, "bidirectional", 4,
        "Chimera over 4 stages, in 2 lanes with weights of their own, 4 micro-batches"},
    {kGpt, "context-parallel", 4, "context parallel 4 (ring)"},
    {kGpt, "context-parallel:ring=0", 4, "context parallel 4 (gathered)"},
    {kGpt, "context-parallel:cp=2,ulysses=2", 4, "context parallel 4 (ring of 2, heads over 2)"},
    {kGpt, "context-parallel:zigzag=1", 4, "context parallel 4 (gathered, zigzag)"},
    {kGpt, "terapipe", 4, "1F1B over 4 stages, every sequence in 4 slices, 8 micro-batches"},
    {kGpt, "pipedream", 4,
        "1F1B over 4 stages, 8 micro-batches, 8 updates a step, asynchronous with up to 4 versions of "
        "weights"},
    {kGpt, "pipedream-2bw", 4,
        "1F1B over 4 stages, 8 micro-batches, 2 updates a step, asynchronous with up to 2 versions of "
        "weights"},
    {kGpt, "3d:pp=2,tp=2,dp=2,sequence=1,zero=1,recompute=full", 8,
        "1F1B over 2 stages, data parallel 2, tensor parallel 2 with sequence parallelism, ZeRO-1 on 2, full "
        "recomputation, 4 micro-batches"},
    {kGpt, "3d:cp=2,tp=2,dp=2,zigzag=1,zero=1", 8,
        "data parallel 2, tensor parallel 2, context parallel 2 (gathered, zigzag), ZeRO-1 on 4"},
    {kGpt, "3d:pp=2,interleave=2,recompute=core_attn,offload=mlp", 4,
        "interleaved 1F1B over 4 stages (2 chunks on each of 2 ranks), data parallel 2, recomputation of "
        "h.*.attn.attention (4 operators), activations of h.*.mlp (12 operators) in host memory, 4 "
        "micro-batches"},
    {kMixture, "3d:ep=2,tp=2", 4,
        "data parallel 2, tensor parallel 2, expert parallel 2; h.1.moe.gate.router data parallel 2, copied "
        "on 2"},
    {kGpt, "alpa:pp=2,dp=1,tp=2,micro-batches=4", 4, "the same on 4 devices, 4 micro-batches"},
    {kGpt, "autodist:pp=2,dp=1,tp=2,micro-batches=4", 4, "the same on 4 devices, 4 micro-batches"},
    {kGpt, "coshard", 4,
        "data parallel 4, full recomputation, coshard of 60 operators of layers 0-3 in 2 and 4 turns"},
    {kGpt, "coshard:pp=2,tp=2,dp=1,attention=2,layers=*,sequence=1", 4,
        "1F1B over 2 stages, tensor parallel 2 with sequence parallelism, full recomputation, coshard of 60 "
        "operators of layers 0-3 in 2 and 4 turns, 8 micro-batches"},
    {kT5, "interlaced", 4,
        "1F1B over 6 stages on 4 ranks, 6 operators interlaced over the devices of several stages, 8 "
        "micro-batches"},
    {kT5, "interlaced:pp=2,tp=2,recompute=1", 4,
        "1F1B over 4 stages on 2 ranks, 6 operators interlaced over the devices of several stages, tensor "
        "parallel 2, full recomputation, 8 micro-batches"},
    {kT5, "interlaced:pp=2,dp=2", 4,
        "1F1B over 4 stages on 2 ranks, 6 operators interlaced over the devices of several stages, data "
        "parallel 2, 4 micro-batches"},
    {kFolding, "3f1b", 4, "3F1B over 12 stages (3 chunks on each of 4 ranks), 4 micro-batches"},
    {kFolding, "3f1b:pp=2,dap=2,recompute=1", 4,
        "3F1B over 6 stages (3 chunks on each of 2 ranks), context parallel 2 (axial), full recomputation, 4 "
        "micro-batches; Add (2 operators) cut in 2"},
    {kFolding, "axial", 4, "context parallel 4 (axial); Add (2 operators) cut in 4"},
    {kFolding, "axial:dp=2", 4, "data parallel 2, context parallel 2 (axial); Add (2 operators) cut in 4"},
    {kVision, "conv-dense", 4, "data parallel 4; 6 operators tensor parallel 4"},
    {kVision, "spatial", 4, "spatial parallel 4; Conv and Linear (5 operators) copied on 4"},
    {kVision, "spatial:dp=2,height=2", 4,
        "data parallel 2, spatial parallel 2; Linear (3 operators) data parallel 2, copied on 2"},
    {kMixture, "expert-parallel", 4, "data parallel 4, expert parallel 4"},
    {kGpt, "inference", 4, "GPipe over 4 stages, 8 micro-batches, forward pass alone"},
};

TEST(PlanName, SaysWhatEveryEntryOfTheGalleryIs)
{
    std::set<std::string> seen;
    for (const Named &each : kNamed) {
        SCOPED_TRACE(std::string(each.spec) + " on " + each.model);
        const std::string name = std::string(each.spec).substr(0, std::string(each.spec).find(':'));
        seen.insert(name);
        const PlanName found = nameFor(opened(each.model, name == "inference"), each.spec, {}, each.devices);
        EXPECT_EQ(found.sentence, each.sentence);
        EXPECT_FALSE(found.title.empty());
        EXPECT_LE(found.title.size(), kLongestPlanTitle) << found.title;
    }
    for (const GalleryEntry &entry : builtInGallery().entries)
        EXPECT_TRUE(seen.contains(entry.name)) << entry.name << " has no expected name";
}

TEST(PlanName, IsOfTheDecisionsWhateverMadeThem)
{
    const ModelSnapshot model = opened(kGpt);
    EXPECT_EQ(nameFor(model, "tensor-parallel"), nameFor(model, "3d:tp=4,micro-batches=1"));
    EXPECT_EQ(nameFor(model, "zero2"),
        nameFor(model, {}, "mesh rest=4\nsplit all : batch over rest\nzero2 weight:* over rest\n"));
    EXPECT_EQ(nameFor(model, "single", {}, 1).sentence, "a single device");
}

/// The plan of a spec with operators taken out of it: each runs whole on one device.
PlanName nameWithout(const std::string &spec, const std::map<std::string, std::int32_t> &apart)
{
    const ModelSnapshot model = opened(kGpt);
    const auto answer = plannedFor(model, spec, {}, 4);
    EXPECT_TRUE(answer) << describe(answer.error());
    Plan plan = *(*answer)->plan;
    for (const auto &[name, device] : apart) {
        OperatorDecision &decision = plan.decisions[at(model->index->findOperator(name))];
        decision.partition = {};
        decision.devices = {DeviceId{device}};
    }
    return planNameOf(plan, *model);
}

TEST(PlanName, SaysWhatIsApart)
{
    EXPECT_EQ(nameWithout("1f1b:pp=2,dp=2,micro-batches=4", {{"h.0.ln_1", 0}, {"h.0.ln_2", 0}}).sentence,
        "1F1B over 2 stages, data parallel 2, 4 micro-batches; LayerNorm (2 operators) apart on device 0");
    // Of groups that are otherwise, two are told: the larger first.
    EXPECT_EQ(nameWithout("data-parallel",
                  {{"h.0.ln_1", 0}, {"h.1.ln_1", 1}, {"h.2.ln_1", 2}, {"h.3.ln_1", 3}, {"h.3.ln_2", 3}})
                  .sentence,
        "data parallel 4; LayerNorm (2 operators) apart on device 3, h.0.ln_1 apart on device 0, and 2 more");
}

TEST(PlanName, SaysWhatIsCutOtherwise)
{
    const ModelSnapshot model = opened(kGpt);
    const std::string mesh = "mesh dp=2 tp=2\n";
    EXPECT_EQ(nameFor(model, {}, mesh + "split !layer:2 : batch over dp\nreplicate layer:2 : by 2 over dp\n")
                  .sentence,
        "data parallel 2; layer 2 copied on 4");
    EXPECT_EQ(
        nameFor(model, {}, mesh + "split all : batch over dp\nplace kind:LayerNorm & layer:0 : devices 0\n")
            .sentence,
        "one micro-batch after another over 2 stages, data parallel 2; 20 operators whole");
}

TEST(PlanName, SaysIdleDevicesAndRowsOfOrder)
{
    const ModelSnapshot model = opened(kGpt);
    EXPECT_EQ(nameFor(model, {}, "mesh dp=2\nsplit all : batch over dp\n").sentence,
        "data parallel 2, 2 of 4 devices idle");
    const PlanName held = nameFor(model, "1f1b:micro-batches=4", "in-flight 2\n");
    EXPECT_NE(held.sentence.find("and 1 row of its own"), std::string::npos) << held.sentence;
}

TEST(PlanName, SaysPrecisionOnlyWhereItIsNotUsual)
{
    const ModelSnapshot model = opened(kGpt);
    EXPECT_EQ(nameFor(model, "data-parallel", "precision all : bf16\n").sentence, "data parallel 4");
    EXPECT_NE(
        nameFor(model, "data-parallel", "precision all : fp8\n").sentence.find("fp8"), std::string::npos);
}

TEST(PlanName, TitlesNameEverySchedule)
{
    std::set<std::string> titles;
    for (const ScheduleKind kind : kAllSchedules)
        EXPECT_TRUE(titles.insert(titleOf(kind)).second) << titleOf(kind);
    EXPECT_FALSE(titles.contains(""));
}

} // namespace
} // namespace planloom
