#include "engine/analyse/block_label.h"
#include "engine/design/explain/gallery_effect.h"
#include "engine/design/gallery_folder.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace planloom {
namespace {

constexpr const char *kSwin =
    "zoo:swin?layers=2&hidden=16&heads=4&image=64&window=4&classes=8&batch=8&patch=2";
constexpr const char *kT5 = "zoo:t5?layers=2&hidden=32&heads=4&d_kv=8&ffn=64&src=8&tgt=8&vocab=96&batch=8";
constexpr const char *kFolding = "zoo:evoformer?layers=4&msa=8&pair=8&single=8&seqs=8&residues=8&heads=2&"
                                 "pair_heads=2&head_width=4&triangle=8"
                                 "&batch=4";
constexpr const char *kVision = "zoo:vgg?image=32&batch=8&classes=8&depth=11&width=4&head=16";

ModelSnapshot opened(const std::string &spec)
{
    auto model = openModel({spec, {}, {}}, {}, KeepContent::No);
    EXPECT_TRUE(model) << describe(model.error());
    return model ? *model : nullptr;
}

PlanRequest requestOf(const ModelSnapshot &model, const std::string &gallery, std::int32_t devices = 4)
{
    PlanRequest request;
    request.model = model;
    request.gallery = gallery;
    request.target = {"cpu:" + std::to_string(devices), {}, devices};
    return request;
}

TEST(GalleryPlans, EveryEntryIsVerifiedOrRefusedWithAReasonOnEveryModel)
{
    std::set<std::string> verified;
    const std::string gpt = "zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=8";
    const std::string forwardAlone = "without a backward pass";
    for (const std::string &spec :
        {std::string(kSwin), std::string(kT5), std::string(kFolding), std::string(kVision), gpt, forwardAlone,
            std::string("zoo:moe?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=8&experts=4"),
            std::string("zoo:mlp?batch=8")}) {
        ModelOptions options;
        options.inference = spec == forwardAlone;
        const auto read = openModel({options.inference ? gpt : spec, {}, options}, {}, KeepContent::No);
        ASSERT_TRUE(read) << describe(read.error());
        const ModelSnapshot model = *read;
        for (const GalleryEntry &entry : builtInGallery().entries) {
            SCOPED_TRACE(entry.name + " on " + spec);
            const auto answer = planOf(requestOf(model, entry.name));
            if (!answer) {
                EXPECT_GT(answer.error().message.size(), 20u);
                continue;
            }
            ASSERT_TRUE((*answer)->verdict);
            EXPECT_TRUE((*answer)->verdict->ok());
            if ((*answer)->verdict->ok())
                verified.insert(entry.name);
        }
    }
    for (const GalleryEntry &entry : builtInGallery().entries)
        EXPECT_TRUE(entry.name == "3f1b" || verified.contains(entry.name))
            << entry.name << " fits none of the models";
}

TEST(GalleryPlans, ConstraintTablesOfThePaperVerifyOnItsModels)
{
    struct Case {
        const char *model;
        const char *spec;
        std::int32_t devices;
    };
    const std::string twice = std::string(kFolding) + "&recycles=2";
    const Case cases[]{
        {kSwin, "data-parallel", 4}, {kT5, "data-parallel:micro-batches=2", 4},
        {kSwin, "tensor-parallel", 2}, {kT5, "tensor-parallel", 4},
        {kSwin, "zero1", 4}, {kT5, "zero3", 4},
        {kSwin, "gpipe", 4}, {kT5, "1f1b:pp=2,tp=2,recompute=1", 4}, {kT5, "pipeline:interleave=2", 2},
        {kSwin, "alpa", 2}, {kT5, "alpa:pp=2,dp=1,tp=2,micro-batches=4", 4},
        {kSwin, "coshard:dp=2,tp=2,attention=2", 4},
        {kSwin, "coshard:pp=2,tp=2,dp=1,attention=2,sequence=1", 4},
        {kT5, "coshard:tp=2,attention=2,layers=*", 4},
        {kT5, "interlaced", 4}, {kT5, "interlaced:pp=2,tp=2,recompute=1", 4},
        {kT5, "interlaced:pp=2,dp=2", 4},
        {twice.c_str(), "3f1b", 4}, {twice.c_str(), "3f1b:pp=2,dap=2,recompute=1", 4},
        {kFolding, "axial", 4}, {kFolding, "axial:dp=2", 4},
        {kSwin, "autodist", 2}, {kT5, "autodist:pp=2,dp=1,tp=2,micro-batches=4", 4},
    };
    for (const Case &one : cases) {
        SCOPED_TRACE(std::string(one.spec) + " on " + one.model);
        const auto answer = planOf(requestOf(opened(one.model), one.spec, one.devices));
        ASSERT_TRUE(answer) << describe(answer.error());
        ASSERT_TRUE((*answer)->verdict);
        EXPECT_TRUE((*answer)->verdict->ok());
    }
}

TEST(GalleryPlans, InterlacedJoinsWhatAllDevicesMakeBeforeItIsSent)
{
    const ModelSnapshot model = opened(kT5);
    const auto answer = planOf(requestOf(model, "interlaced:pp=4,micro-batches=8"));
    ASSERT_TRUE(answer) << describe(answer.error());
    // The lookups' summands, and the gradient of the head's input: 3 times in both passes of every
    // micro-batch (two lookups), once by all four devices each.
    std::int64_t reductions = 0;
    for (const KindTraffic &kind : (*answer)->summary.kinds)
        if (kind.kind == InstructionKind::AllReduce || kind.kind == InstructionKind::ReduceScatter)
            reductions += kind.count;
    EXPECT_GE(reductions, 8 * 3);
    // A stage sends to the next one, not to everybody: fewer messages than devices squared a micro-batch.
    for (const KindTraffic &kind : (*answer)->summary.kinds)
        if (kind.kind == InstructionKind::Send) {
            EXPECT_LT(kind.count, 8 * 4 * 4);
        }
}

/// The blocks of a device's first segments, as lanes name them.
std::set<std::string> blocksOf(const PlanRequest &request)
{
    const auto answer = planOf(request);
    EXPECT_TRUE(answer) << describe(answer.error());
    std::set<std::string> names;
    const StagesInParts stages = stagesInParts(*(*answer)->execution);
    for (const Segment &segment : (*answer)->execution->devices[0].segments)
        if (isPass(segment.kind))
            names.insert(blockLabel(segment.kind, 0, stages.partOf(segment), stages.wideOf(segment.stage)));
    return names;
}

TEST(GalleryPlans, BlocksAroundAPipelineHaveNamesOfTheirOwn)
{
    const ModelSnapshot model = opened(kT5);
    EXPECT_EQ(blocksOf(requestOf(model, "interlaced:pp=4,micro-batches=8")),
        (std::set<std::string>{"B0", "E0", "F0", "H0", "e0", "h0"}));
    EXPECT_EQ(blocksOf(requestOf(model, "interlaced:pp=2,dp=2")),
        (std::set<std::string>{"B0", "E0", "F0", "H0", "e0", "h0"}));
    for (const char *plan : {"1f1b:pp=4,micro-batches=8", "1f1b:pp=2,dp=2",
             "pipeline:stages=4,interleave=2,micro-batches=8", "tensor-parallel", "single"})
        EXPECT_EQ(blocksOf(requestOf(model, plan)), (std::set<std::string>{"B0", "F0"})) << plan;
}

TEST(GalleryPlans, SolverParametersAreSearched)
{
    PlanRequest request = requestOf(opened(kT5), "alpa");
    request.upTo = PlanGrade::Timed;
    const auto answer = planOf(request);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_TRUE((*answer)->search);
    const auto given = planOf(requestOf(opened(kT5), "alpa:dp=2,pp=2,tp=1,micro-batches=4"));
    ASSERT_TRUE(given) << describe(given.error());
    EXPECT_NE((*given)->table.text().find("mesh dp=2 pp=2"), std::string::npos) << (*given)->table.text();
}

TEST(GalleryPlans, EffectSaysWhatIsNotCutAndWhy)
{
    const ModelSnapshot model = opened("zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=33&batch=8");
    PlanRequest request = requestOf(model, "tensor-parallel");
    request.target = {"dgx-h100:4", {}, 4};
    const auto effect = effectOf(request);
    ASSERT_TRUE(effect) << describe(effect.error());
    EXPECT_TRUE(effect->fits);
    EXPECT_GT(effect->summary.stepSeconds, 0);
    // 33 words are cut in 9, 9, 9 and 6; norms need not be.
    ASSERT_FALSE(effect->uncut.empty());
    for (const std::string &words : effect->uncut)
        EXPECT_EQ(words.find("does not divide"), std::string::npos) << words;
    EXPECT_NE(effect->uncut.back().find(" with weights over tp ("), std::string::npos)
        << effect->uncut.back();
    EXPECT_EQ(std::count_if(effect->uncut.begin(), effect->uncut.end(),
                  [](const std::string &words) { return words.find("c_attn") != std::string::npos; }),
        0); // fused: cut head by head
    ASSERT_EQ(effect->values.size(), 3u);
    EXPECT_EQ(effect->values[0].value, "4");
    EXPECT_FALSE(effect->values[0].isGiven);
    const auto answer = planOf(request);
    ASSERT_TRUE(answer);
    for (const UncutWeights &uncut : uncutWeights(*(*answer)->plan))
        EXPECT_EQ(uncut.matters, uncut.isIndivisible) << wordsOf(uncut);
    request.gallery = "data-parallel"; // replicas are not what the axis cuts weights by
    EXPECT_TRUE(effectOf(request)->uncut.empty());
    request.gallery = "spatial";
    EXPECT_FALSE(effectOf(request));
}

TEST(GalleryPlans, FilesOfAFolderStandInForThoseThatComeWithPlanloom)
{
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / "planloom-gallery-folder";
    std::filesystem::create_directories(folder);
    const auto write = [&](const char *name, const char *text) { std::ofstream(folder / name) << text; };
    write("halves.gallery",
        "entry halves\nmeaning two parts\nparameter tp : count = 2\nrows\n    mesh tp={tp}\n    find pairs "
        "over tp\n");
    write("mine.gallery", "entry single\nmeaning mine\nrows\n    place all : devices 0\n");
    write("broken.gallery", "entry broken\nmeaning no\nrows\n    splitt all\n");
    write("notes.txt", "no entry");
    const Gallery gallery = findGallery(folder);
    EXPECT_EQ(gallery.entries.size(), builtInGallery().entries.size() + 1);
    ASSERT_NE(gallery.find("halves"), nullptr);
    EXPECT_EQ(gallery.find("single")->meaning, "mine");
    ASSERT_EQ(gallery.notes.size(), 1u);
    EXPECT_NE(gallery.notes[0].find("broken.gallery:4:5"), std::string::npos) << gallery.notes[0];
    EXPECT_EQ(findGallery(folder / "missing").entries.size(), builtInGallery().entries.size());
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace planloom
