#include "engine/hardware/framework.h"

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

Cluster h100s()
{
    auto cluster = clusterNamed("dgx-h100:8");
    EXPECT_TRUE(cluster) << describe(cluster.error());
    return *std::move(cluster);
}

double secondsOf(const Cluster &cluster, OperatorKind kind, const std::vector<TensorType> &inputs,
    const std::vector<TensorType> &outputs, bool joined = false)
{
    Operator op;
    op.kind = kind;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        op.inputs.push_back(TensorId{static_cast<std::int32_t>(i)});
    op.outputs.push_back(TensorId{static_cast<std::int32_t>(inputs.size())});
    return costModelOf(cluster).kernel({op, inputs, outputs, DataType::BFloat16, joined, {}});
}

TEST(Framework, EveryProfileSaysWhatItIsAndWhereItsFiguresComeFrom)
{
    const auto names = frameworkNames();
    ASSERT_GE(names.size(), 6U);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    for (const std::string &name : names) {
        EXPECT_FALSE(meaningOfFramework(name).empty()) << name;
        const auto cluster = withFramework(h100s(), name);
        ASSERT_TRUE(cluster) << describe(cluster.error());
        EXPECT_EQ(cluster->framework, name);
        EXPECT_EQ(cluster->name, "dgx-h100:8+" + name);
        for (const Sourced *figure : {&cluster->device.hostTime, &cluster->device.unfused,
                 &cluster->device.attentionEfficiency, &cluster->device.attentionBackwardEfficiency})
            EXPECT_EQ(figure->value > 0, !figure->source.empty()) << name;
        const auto read = clusterFromJson(toJson(*cluster));
        ASSERT_TRUE(read) << describe(read.error());
        EXPECT_EQ(read->framework, name);
        EXPECT_EQ(toJson(*read), toJson(*cluster));
    }
}

TEST(Framework, SaysWhatItTakesForGrantedWithItsSource)
{
    const auto eager = assumptionsOfFramework("fsdp");
    ASSERT_EQ(eager.size(), 8U);
    EXPECT_EQ(eager[0].words, "a launch takes the host 8 us");
    EXPECT_EQ(eager[1].words, "every element-wise operator is a launch by itself");
    EXPECT_EQ(eager[2].words, "RmsNorm is 8 kernels forward, 14 backward");
    EXPECT_EQ(eager[5].words, "attention on hopper reaches 37.4% of peak forward, 32.8% backward");
    for (const FrameworkAssumption &each : eager)
        EXPECT_FALSE(each.source.empty()) << each.words;
    const auto own = assumptionsOfFramework("planloom");
    ASSERT_EQ(own.size(), 4U);
    EXPECT_EQ(own[0].words, "the host launches kernels as fast as the device takes them");
    EXPECT_EQ(own[1].words, "element-wise operators that follow one another are one launch");
    EXPECT_EQ(own[3].words,
        "a channel of a collective holds 1 of the multiprocessors of what is computed beside it");
    EXPECT_TRUE(assumptionsOfFramework("megatrom").empty());
}

TEST(Framework, CollectivesLeaveTheMultiprocessorsThatTheirChannelsDoNotHold)
{
    Cluster cluster = h100s();
    const auto trained = withFramework(cluster, "megatron");
    ASSERT_TRUE(trained);
    EXPECT_DOUBLE_EQ(trained->device.besideCollectives.value,
        1 - cluster.links.intraChannels.value / cluster.device.multiprocessors.value);
    EXPECT_FALSE(trained->device.besideCollectives.source.empty());
    cluster.device.multiprocessors = {}; // a device of which nobody knows how many it has
    const auto unknown = withFramework(cluster, "megatron");
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->device.besideCollectives.value, 0);
}

TEST(Framework, WithoutOneNothingChanges)
{
    const auto same = withFramework(h100s(), "");
    ASSERT_TRUE(same);
    EXPECT_EQ(toJson(*same), toJson(h100s()));
}

TEST(Framework, AnUnknownOneIsRefusedWithThoseThereAre)
{
    const auto refused = withFramework(h100s(), "megatrom");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
    EXPECT_NE(refused.error().advice.find("megatron"), std::string::npos);
    EXPECT_NE(refused.error().message.find("megatrom"), std::string::npos);
}

/// What one framework says and the other does not would stay.
TEST(Framework, TwoAreNotPutOnOneCluster)
{
    const auto eager = withFramework(h100s(), "fsdp");
    ASSERT_TRUE(eager);
    const auto again = withFramework(*eager, "fsdp");
    ASSERT_TRUE(again);
    EXPECT_EQ(toJson(*again), toJson(*eager));
    const auto both = withFramework(*eager, "megatron");
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(both.error().message.find("fsdp"), std::string::npos);
}

TEST(Framework, StandsBehindTheCluster)
{
    using Words = std::pair<std::string, std::string>;
    EXPECT_EQ(splitFramework("dgx-h100:8"), Words("dgx-h100:8", ""));
    EXPECT_EQ(splitFramework("dgx-h100:8+fsdp"), Words("dgx-h100:8", "fsdp"));
    EXPECT_EQ(splitFramework("dgx-h100+fsdp:8"), Words("dgx-h100:8", "fsdp"));
    EXPECT_EQ(splitFramework("/a+b/own.json"), Words("/a+b/own.json", ""));
    EXPECT_EQ(splitFramework("/a+b/own.json+fsdp"), Words("/a+b/own.json", "fsdp"));
    for (const char *word : {"dgx-h100:8", "dgx-h100:8+fsdp", "/a+b/own.json", "/a+b/own.json+fsdp"}) {
        const auto [cluster, framework] = splitFramework(word);
        EXPECT_EQ(joinFramework(cluster, framework), word);
    }
}

/// Where every operator is a launch, one of few elements takes what the host does; where they are fused, it
/// rides along.
TEST(Framework, EagerOnesLaunchEveryElementWiseOperator)
{
    const Cluster plain = h100s();
    const auto eager = withFramework(plain, "fsdp");
    ASSERT_TRUE(eager);
    const TensorType few{DataType::BFloat16, {64}};
    const TensorType many{DataType::BFloat16, {8192, 8192}};
    EXPECT_GE(secondsOf(*eager, OperatorKind::Gelu, {few}, {few}, true), eager->device.hostTime.value);
    EXPECT_LT(secondsOf(plain, OperatorKind::Gelu, {few}, {few}, true), plain.device.launchLatency.value);
    EXPECT_GT(secondsOf(*eager, OperatorKind::Gelu, {many}, {many}, true),
        secondsOf(plain, OperatorKind::Gelu, {many}, {many}, true));
    // A product of many elements takes the device as long either way.
    EXPECT_DOUBLE_EQ(secondsOf(*eager, OperatorKind::MatMul, {many, many}, {many}),
        secondsOf(plain, OperatorKind::MatMul, {many, many}, {many}));
}

/// Eager PyTorch has no kernel of its own for a norm by the mean square, and one for that by the variance.
TEST(Framework, EagerOnesComposeWhatTheyHaveNoKernelFor)
{
    const Cluster plain = h100s();
    const auto eager = withFramework(plain, "fsdp");
    const auto compiled = withFramework(plain, "fsdp-compiled");
    ASSERT_TRUE(eager && compiled);
    const TensorType rows{DataType::BFloat16, {8192, 4096}};
    const TensorType scale{DataType::BFloat16, {4096}};
    const auto norm = [&](const Cluster &cluster, OperatorKind kind) {
        return secondsOf(cluster, kind, {rows, scale}, {rows});
    };
    EXPECT_GT(norm(*eager, OperatorKind::RmsNorm), 5 * norm(plain, OperatorKind::RmsNorm));
    EXPECT_LT(norm(*compiled, OperatorKind::RmsNorm), 1.1 * norm(plain, OperatorKind::RmsNorm));
    EXPECT_LT(norm(*eager, OperatorKind::LayerNorm), 1.1 * norm(plain, OperatorKind::LayerNorm));
    const TensorType few{DataType::BFloat16, {1, 64}};
    const TensorType fewScale{DataType::BFloat16, {64}};
    EXPECT_GE(secondsOf(*eager, OperatorKind::RmsNorm, {few, fewScale}, {few}),
        8 * eager->device.hostTime.value); // a launch each
}

TEST(Framework, ComposedOperatorsOfAFileAreCheckedWithTheirPlace)
{
    const auto eager = withFramework(h100s(), "fsdp");
    ASSERT_TRUE(eager);
    const std::string text = toJson(*eager);
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string changed = text;
        const auto at = changed.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return clusterFromJson(changed.replace(at, from.size(), to));
    };
    const auto kind = with("\"Rotary\"", "\"Rotory\"");
    ASSERT_FALSE(kind);
    EXPECT_NE(kind.error().where.find("composed/Rotory"), std::string::npos) << kind.error().where;
    const auto figure = with("\"backwardKernels\"", "\"kernelsBack\"");
    ASSERT_FALSE(figure);
    EXPECT_NE(figure.error().where.find("composed/"), std::string::npos) << figure.error().where;
}

} // namespace
} // namespace planloom
