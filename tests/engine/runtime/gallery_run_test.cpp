// Plans of the gallery that no other system has, and those it shares with few: run, and compared with the
// model on one device.

#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <ostream>

namespace planloom {
namespace {

struct GalleryRun {
    const char *model;
    const char *spec;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const GalleryRun &run)
{
    return out << run.spec << " of " << run.model;
}

constexpr const char *kRunT5 = "zoo:t5?layers=2&hidden=16&heads=4&d_kv=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kRunSwin =
    "zoo:swin?layers=2&hidden=8&heads=4&window=2&image=32&patch=2&classes=4&batch=4";
constexpr const char *kRunFolding = "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=4&residues=4&heads=2&"
                                    "pair_heads=2&head_width=4&triangle=8&batch=4";
constexpr const char *kRunRecycled = "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=4&residues=4&heads=2&"
                                     "pair_heads=2&head_width=4&triangle=8&batch=4&recycles=2";
constexpr const char *kRunGpt = "zoo:gpt?layers=4&hidden=16&heads=2&seq=8&batch=4&vocab=24";
constexpr const char *kRunVision = "zoo:vgg?depth=11&width=2&head=8&image=32&classes=4&batch=4";

class GalleryRuns : public testing::TestWithParam<GalleryRun>
{
};

TEST_P(GalleryRuns, LikeTheModelOnOneDevice)
{
    const GalleryRun &given = GetParam();
    const GraphSnapshot graph = trainingStep(given.model);
    const auto table = galleryTable(given.spec, graph, given.devices);
    ASSERT_TRUE(table) << describe(table.error());
    const auto plan = loweredRows(graph, print(*table), given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
}

const GalleryRun kGalleryRuns[] = {{kRunT5, "interlaced", 2},
    {kRunT5, "interlaced:pp=2,tp=2,micro-batches=4,recompute=1", 4},
    {kRunT5, "interlaced:pp=2,dp=2,zero=1", 4}, {kRunSwin, "coshard:dp=2,attention=2", 2},
    {kRunSwin, "coshard:pp=2,tp=2,dp=1,attention=2,sequence=1", 4}, {kRunFolding, "axial", 2},
    {kRunFolding, "axial:dp=2,dap=2", 4}, {kRunRecycled, "3f1b", 2},
    {kRunRecycled, "3f1b:pp=2,dap=2,recompute=1", 4},
    {kRunRecycled, "3f1b:pp=2,dp=2,schedule=gpipe,zero=1", 4}, {kRunVision, "conv-dense", 2},
    {kRunT5, "1f1b:pp=2,tp=2,recompute=1", 4}, {kRunT5, "sequence-parallel", 2},
    {kRunGpt, "terapipe:slices=4,micro-batches=2", 2},
    {kRunGpt, "terapipe:slices=2,micro-batches=4,schedule=gpipe", 4}};

INSTANTIATE_TEST_SUITE_P(Gallery, GalleryRuns, testing::ValuesIn(kGalleryRuns));

} // namespace
} // namespace planloom
