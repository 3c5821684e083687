// Whatever numbers and names a graph holds: what is written is read back as it was.

#include "engine/graph/graph.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/lowering/program/graph_json.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace planloom {
namespace {

/// Equal bit for bit, but that one NaN is as good as another.
bool isSame(double a, double b)
{
    return (std::isnan(a) && std::isnan(b))
        || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool isSame(const Attribute &a, const Attribute &b)
{
    if (a.index() != b.index())
        return false;
    if (const auto *real = std::get_if<double>(&a))
        return isSame(*real, std::get<double>(b));
    if (const auto *reals = std::get_if<std::vector<double>>(&a)) {
        const auto &others = std::get<std::vector<double>>(b);
        return std::equal(reals->begin(), reals->end(), others.begin(), others.end(),
            [](double x, double y) { return isSame(x, y); });
    }
    return a == b;
}

double realFrom(std::mt19937 &random)
{
    using Limits = std::numeric_limits<double>;
    const double special[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 0.0, -0.0, 1.0,
        Limits::denorm_min(), -3 * Limits::denorm_min(), Limits::min() / 2, Limits::max(), Limits::lowest(),
        0.1, 1e-45, 3.4028234663852886e38};
    const std::size_t choice = random() % (std::size(special) + 1);
    if (choice < std::size(special))
        return special[choice];
    return std::bit_cast<double>((std::uint64_t{random()} << 32U) | random()); // any double that there is
}

std::string textFrom(std::mt19937 &random)
{
    static const std::vector<std::string> kTexts = {
        "", "inf", "nan", "a,b", "\"quoted\" \\ /", "\u00e9\u4e2d", "\n\t"};
    return kTexts[random() % kTexts.size()];
}

template<typename T, typename Make> std::vector<T> listOf(std::mt19937 &random, const Make &make)
{
    std::vector<T> list(random() % 4);
    for (T &each : list)
        each = make(random);
    return list;
}

Attribute attributeFrom(std::mt19937 &random)
{
    const auto integer = [](std::mt19937 &from) {
        return static_cast<std::int64_t>((std::uint64_t{from()} << 32U) | from());
    };
    switch (random() % 6) {
    case 0:
        return integer(random);
    case 1:
        return realFrom(random);
    case 2:
        return textFrom(random);
    case 3:
        return listOf<std::int64_t>(random, integer);
    case 4:
        return listOf<double>(random, realFrom);
    default:
        return listOf<std::string>(random, textFrom);
    }
}

TEST(GraphNumbers, AllAttributesAreReadBack)
{
    std::mt19937 random(44);
    for (int round = 0; round < 200; ++round) {
        SCOPED_TRACE(round);
        Graph graph = *trainingStep(smallModels()[0]);
        Operator &op = graph.operators.front();
        std::map<std::string, Attribute> all;
        for (int i = 0; i < 8; ++i)
            all.insert_or_assign("extra_" + std::to_string(i), attributeFrom(random));
        for (Operator &each : graph.operators)
            if (&each == &op || (each.direction == Direction::Backward && each.mirror == OperatorId{0}))
                for (const auto &[name, value] : all)
                    each.attributes.set(name, value);
        // As text, since that is what JSON's infinities and NaN do not survive.
        const auto back = graphFromJson(nlohmann::json::parse(graphToJson(graph).dump()));
        ASSERT_TRUE(back) << describe(back.error());
        for (const auto &[name, value] : all) {
            SCOPED_TRACE(name);
            EXPECT_TRUE(isSame(back->operators.front().attributes.all().at(name), value));
        }
        EXPECT_EQ(graphToJson(*back).dump(), graphToJson(graph).dump());
    }
}

TEST(GraphNumbers, OlderReadersAreToldOfWhatTheyDoNotKnow)
{
    ExecutionPlan plan = galleryPlan(trainingStep(smallModels()[0]), "data-parallel", 2);
    const auto versionOf = [](const ExecutionPlan &of) {
        return nlohmann::json::parse(toJson(of))["version"];
    };
    const nlohmann::json before = versionOf(plan);
    Graph graph = *plan.graph;
    for (Operator &each : graph.operators)
        if (&each == &graph.operators.front()
            || (each.direction == Direction::Backward && each.mirror == OperatorId{0}))
            each.attributes.set("max", std::numeric_limits<double>::infinity());
    plan.graph = std::make_shared<const Graph>(std::move(graph));
    EXPECT_LT(before, 6);
    EXPECT_EQ(versionOf(plan), 6);
    const auto back = executionPlanFromJson(toJson(plan));
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_TRUE(std::isinf(back->graph->operators.front().attributes.real("max")));
}

TEST(GraphNumbers, AWordThatIsNoNumberIsRefused)
{
    const Graph graph = *trainingStep(smallModels()[0]);
    for (const char *wrong : {R"({"real": "much"})", R"({"real": null})", R"({"reals": ["-nan"]})",
             R"({"number": 1})", R"({"real": 1.0, "reals": []})", R"({"texts": [1]})"}) {
        SCOPED_TRACE(wrong);
        nlohmann::json document = graphToJson(graph);
        document["operators"][0]["attributes"]["max"] = nlohmann::json::parse(wrong);
        const auto back = graphFromJson(document);
        ASSERT_FALSE(back);
        EXPECT_EQ(back.error().code, ErrorCode::InvalidInput);
        EXPECT_NE(back.error().where.find("/attributes/max"), std::string::npos);
    }
}

TEST(GraphNumbers, NamesThatAreNoUtf8AreWrittenAllTheSame)
{
    ExecutionPlan plan = galleryPlan(trainingStep(smallModels()[0]), "data-parallel", 2);
    Graph graph = *plan.graph;
    graph.operators.front().name = "caf\xe9";
    plan.graph = std::make_shared<const Graph>(std::move(graph));
    const auto back = executionPlanFromJson(toJson(plan));
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(back->graph->operators.front().name, "caf\ufffd");
}

} // namespace
} // namespace planloom
