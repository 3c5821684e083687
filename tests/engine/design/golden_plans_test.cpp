// Every plan of the gallery on small models of the zoo is, byte for byte, what it was when golden_plans.txt
// was written: its programs and its simulated timeline. What changes them on purpose writes the file anew
// (PLANLOOM_GOLDEN=write build/tests/tests/design_tests --gtest_filter=GoldenPlans.*) and says why.

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/design/make_plan.h"
#include "engine/gallery/gallery.h"
#include "engine/interop/perfetto.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/simulate/timeline.h"
#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace planloom {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/design/golden_plans.txt";

constexpr const char *kModels[] = {"zoo:mlp?batch=16",
    "zoo:gpt?layers=4&hidden=32&heads=4&seq=8&vocab=32&batch=16",
    "zoo:llama?layers=4&hidden=32&heads=4&kv_heads=2&ffn=48&seq=8&vocab=32&batch=16",
    "zoo:moe?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=16&experts=4",
    "zoo:swin?layers=2&hidden=16&heads=4&image=64&window=4&classes=8&batch=16&patch=2",
    "zoo:t5?layers=2&hidden=32&heads=4&d_kv=8&ffn=64&src=8&tgt=8&vocab=96&batch=16",
    "zoo:evoformer?layers=4&msa=8&pair=8&single=8&seqs=8&residues=8&heads=2&pair_heads=2&head_width=4&"
    "triangle=8&batch=16",
    "zoo:vgg?image=32&batch=16&classes=8&depth=11&width=4&head=16"};

/// Beside every entry as it is.
constexpr const char *kFurther[] = {"zero1:micro-batches=2", "zero2:micro-batches=2", "zero3:micro-batches=2",
    "3d:dp=2,tp=2,pp=1,micro-batches=2,zero=3", "3d:dp=1,tp=2,pp=2,micro-batches=4",
    "pipeline:schedule=gpipe,micro-batches=4", "pipeline:schedule=zb-h1,micro-batches=8",
    "pipeline:schedule=interleaved,micro-batches=4", "pipeline:schedule=dualpipe,micro-batches=8"};

/// Sixteen digits are enough to tell texts apart that nobody makes alike on purpose.
std::string digestOf(const std::string &text)
{
    return sha256(text).substr(0, 16);
}

/// A plan's line: what it is of, and the digests of its programs and its timeline; or that there is none.
std::string lineOf(
    const std::string &spec, const ModelSnapshot &model, const std::string &entry, const std::string &cluster)
{
    PlanRequest request;
    request.model = model;
    request.gallery = entry;
    request.target.cluster = cluster;
    request.upTo = PlanGrade::Simulated;
    request.allowsCopies = true;
    std::string line = spec.substr(4, spec.find('?') - 4) + " " + entry + " " + cluster + " ";
    const auto answer = planOf(request);
    if (!answer || !(*answer)->timeline)
        return line + "none";
    ExecutionPlan plan = *(*answer)->execution;
    plan.origin.clear();
    std::ostringstream timeline;
    writePerfetto(timeline, plan, *(*answer)->timeline);
    return line + digestOf(toJson(plan)) + " " + digestOf(timeline.str());
}

TEST(GoldenPlans, AreAsTheyWere)
{
    std::string made;
    for (const char *spec : kModels) {
        const auto model = openModel({spec, {}, {}}, {}, KeepContent::No);
        ASSERT_TRUE(model) << describe(model.error());
        std::vector<std::string> entries(std::begin(kFurther), std::end(kFurther));
        for (const GalleryEntry &entry : builtInGallery().entries)
            if (std::none_of(entry.parameters.begin(), entry.parameters.end(),
                    [](const GalleryParameter &each) { return each.maySolve(); })) // which the search decides
                entries.push_back(entry.name);
        for (const std::string &entry : entries)
            for (const char *cluster : {"dgx-a100:4", "mixed-h100-a100:16"})
                made += lineOf(spec, *model, entry, cluster) + "\n";
    }
    if (const char *asked = std::getenv("PLANLOOM_GOLDEN"); asked && std::string(asked) == "write") {
        std::ofstream(kGolden) << made;
        return;
    }
    const auto golden = readFile(kGolden);
    ASSERT_TRUE(golden) << describe(golden.error());
    std::istringstream now(made);
    std::istringstream before(*golden);
    int different = 0;
    std::string a;
    std::string b;
    while (std::getline(now, a) && std::getline(before, b))
        if (a != b && ++different <= 10)
            ADD_FAILURE() << "was " << b << "\n is " << a;
    EXPECT_EQ(different, 0);
    EXPECT_EQ(std::count(made.begin(), made.end(), '\n'), std::count(golden->begin(), golden->end(), '\n'));
}

} // namespace
} // namespace planloom
