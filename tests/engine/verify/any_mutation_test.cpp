// Whatever is changed in a plan, in memory or in its file, is refused by the reader, rejected by the
// verifier, or harmless: then the plan is run, two steps on CPU devices, and gives what the unpartitioned
// model gives.

#include "engine/verify/verify.h"
#include "tests/engine/verify/verified_plans.h"

#include "engine/design/models/reference.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"

#include "tests/engine/lowering/precise_plans.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/verify/header_mutations.h"
#include "tests/engine/verify/unpartitioned.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

namespace planloom {
namespace {

using nlohmann::json;

/// A plan to be mutated.
struct Subject {
    std::string name{};
    ExecutionPlan plan{};
    RunOutcome reference{}; ///< Of the unpartitioned model, the whole batch at once.
    CheckTolerances tolerances{};
    json document{};
};

Subject subjectOf(std::string name, ExecutionPlan plan)
{
    const auto report = verify(plan);
    EXPECT_TRUE(report && report->ok())
        << name << ": " << (report ? report->failure->reason : report.error().message);
    const auto reference = referenceOf(plan);
    EXPECT_TRUE(reference) << describe(reference.error());
    const CheckTolerances tolerances = tolerancesOf(plan);
    Subject subject{std::move(name), std::move(plan), outcomeOf(**reference), tolerances, {}};
    subject.document = json::parse(toJson(subject.plan));
    return subject;
}

/// Learns fast and remembers, so that a wrong first step shows in the second.
GraphSnapshot modelOf(const std::string &spec)
{
    const auto forward = buildZooModel(spec);
    EXPECT_TRUE(forward) << describe(forward.error());
    TrainingOptions options;
    options.optimizer = OperatorKind::SgdStep;
    options.learningRate = 0.3;
    options.momentum = 0.9;
    auto step = buildTrainingStep(*forward, options);
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

ExecutionPlan planOf(const GraphSnapshot &graph, std::int32_t devices, const std::string &text)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << text;
    auto plan = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// Two replicas written once.
ExecutionPlan unitsPlan(const GraphSnapshot &graph, const std::string &sharding)
{
    const auto table =
        parseTable("mesh dp=2\nmicro-batches 2\nsplit all : batch over dp\n" + sharding + " all");
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 2, *table, {.units = UseUnits::WherePossible});
    EXPECT_TRUE(completion && !firstError(*completion) && !completion->plan.units.isOne());
    auto plan = lower(completion->plan, *clusterNamed("cpu:2"));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// Plans of random tables, each with something that none before it has: units, slices, casts, waits ...
void appendRandom(const GraphSnapshot &graph, const std::string &name, std::vector<Subject> &list)
{
    const Model model(graph);
    std::set<std::string> seen;
    const std::uint32_t seeds = std::getenv("PLANLOOM_MUTATIONS") ? 200 : 12;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        const RandomCase drawn =
            randomCase(*graph, seed, {.touched = 0.3, .wholeBatches = true, .precisions = seed % 3 == 0});
        RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered)
            continue;
        const std::set<std::string> traits = traitsOf(drawn, outcome);
        if (std::includes(seen.begin(), seen.end(), traits.begin(), traits.end()))
            continue;
        seen.insert(traits.begin(), traits.end());
        list.push_back(subjectOf(name + " random " + std::to_string(seed), *std::move(outcome.lowered)));
    }
}

constexpr const char *kLanesBothWays =
    "lanes all : 2\nmicro-batches 2\nstage layer:0 : 0\nstage layer:1 : 1\n"
    "place layer:0 : devices 0,1\nplace layer:1 : devices 1,0\n"
    "schedule chimera\n";

std::vector<Subject> subjects()
{
    const GraphSnapshot mlp = modelOf("zoo:mlp?layers=2&hidden=8&batch=8&input=6&classes=4");
    const GraphSnapshot gpt = modelOf("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8");
    const GraphSnapshot deep = modelOf("zoo:gpt?layers=2&hidden=8&heads=2&seq=4&batch=4&vocab=8");
    std::vector<Subject> list;
    for (const auto &[gallery, devices] : {std::pair{"single", 1}, {"data-parallel:micro-batches=2", 2},
             {"zero1", 2}, {"zero1:micro-batches=2", 2}, {"zero2:micro-batches=2", 2},
             {"zero3:micro-batches=2", 2}, {"pipeline:schedule=1f1b,micro-batches=4", 2}})
        list.push_back(subjectOf(std::string("mlp ") + gallery, galleryPlan(mlp, gallery, devices)));
    for (const auto &[gallery, devices] :
        {std::pair{"tensor-parallel", 2}, {"pipeline:schedule=gpipe,micro-batches=2", 2},
            {"pipeline:schedule=1f1b,micro-batches=4", 2}, {"3d:dp=2,tp=2,pp=2,micro-batches=2", 8}})
        list.push_back(subjectOf(std::string("gpt ") + gallery, galleryPlan(gpt, gallery, devices)));
    list.push_back(subjectOf(
        "mlp value split", planOf(mlp, 2, "split kind:Linear : value by 2\nplace all : devices 0,1\n")));
    list.push_back(
        subjectOf("gpt recompute", planOf(gpt, 1, "micro-batches 2\nrecompute layer:* per layer\n")));
    list.push_back(
        subjectOf("gpt coshard", planOf(gpt, 1, "micro-batches 2\ncoshard kind:Gelu : batch by 2\n")));
    list.push_back(subjectOf(
        "gpt bf16 tensor parallel", precisePlan(gpt, "tensor-parallel", 2, "precision all : bf16")));
    list.push_back(
        subjectOf("mlp bf16 zero1", precisePlan(mlp, "zero1:micro-batches=2", 2, "precision all : bf16")));
    list.push_back(
        subjectOf("mlp bf16 zero3", precisePlan(mlp, "zero3:micro-batches=2", 2, "precision all : bf16")));
    list.push_back(subjectOf("gpt slices",
        planOf(
            gpt, 2, "micro-batches 2\nslice all : sequence by 2\nmesh tp=2\nsplit all : heads over tp\n")));
    list.push_back(
        subjectOf("gpt lanes", planOf(gpt, 2, "micro-batches 2\nlanes all : 2\nplace all : devices 0,1\n")));
    list.push_back(subjectOf("gpt lanes both ways", planOf(deep, 2, kLanesBothWays)));
    list.push_back(
        subjectOf("gpt zb-h1 pipeline", galleryPlan(gpt, "pipeline:schedule=zb-h1,micro-batches=4", 2)));
    list.push_back(
        subjectOf("gpt key split", planOf(gpt, 2, "mesh cp=2\nsplit kind:Attention : t over cp\n")));
    list.push_back(subjectOf("gpt ring", planOf(gpt, 4, "mesh cp=4\nring kind:Attention : over cp\n")));
    list.push_back(subjectOf("gpt ulysses", galleryPlan(gpt, "context-parallel:ulysses=2", 2)));
    list.push_back(subjectOf("gpt ring and key split",
        planOf(gpt, 4, "mesh cp=2 kp=2\nring kind:Attention : over cp\nsplit kind:Attention : t over kp\n")));
    list.push_back(subjectOf(
        "mlp offload", planOf(mlp, 1, "micro-batches 2\noffload all : states\noffload all : activations\n")));
    list.push_back(subjectOf("gpt offload bf16",
        precisePlan(gpt, "data-parallel", 2,
            "precision all : bf16\noffload all : states\noffload all : activations")));
    list.push_back(subjectOf("gpt weight versions",
        planOf(gpt, 2,
            "micro-batches 2\nsplit all : batch by 2\nplace all : devices 0,1\nweight-versions all : 2\n")));
    list.push_back(subjectOf(
        "mlp updates", planOf(mlp, 1, "micro-batches 4 update every 1\nweight-versions in:layers.0 : 2\n")));
    list.push_back(subjectOf("mlp pipedream", galleryPlan(mlp, "pipedream:micro-batches=4", 2)));
    list.push_back(subjectOf("gpt pipedream-2bw", galleryPlan(gpt, "pipedream-2bw:micro-batches=4", 2)));
    list.push_back(subjectOf("mlp weight versions bf16 zero3",
        precisePlan(mlp, "zero3:micro-batches=2", 2,
            "precision all : bf16\nweight-versions in:layers.0 : 3\nweight-versions in:layers.1 : 2")));
    list.push_back(subjectOf("gpt whole batches", planOf(gpt, 1, "micro-batches 3 whole\n")));
    list.push_back(subjectOf("mlp data parallel whole batches",
        planOf(mlp, 2, "micro-batches 2 whole\nsplit all : batch by 2\nplace all : devices 0,1\n")));
    const GraphSnapshot volumes =
        modelOf("zoo:cosmoflow?stages=1&width=1&volume=4&channels=1&head=2&parameters=2&batch=2");
    list.push_back(subjectOf("cosmoflow spatial", galleryPlan(volumes, "spatial", 2)));
    for (const char *sharding : {"zero1", "zero3"})
        list.push_back(subjectOf(std::string("mlp units ") + sharding, unitsPlan(mlp, sharding)));
    appendRandom(mlp, "mlp", list);
    appendRandom(gpt, "gpt", list);
    return list;
}

/// What became of the mutants of one kind.
struct Tally {
    int refused = 0; ///< By the reader.
    int rejected = 0; ///< By the verifier.
    int equal = 0; ///< Accepted, run, and the same.
    int all() const { return refused + rejected + equal; }
};

/// The values of `from`, which files do not hold, for the tensors that are still of their type.
GraphSnapshot withValues(const Graph &graph, const Graph &from)
{
    Graph result = graph;
    for (std::size_t t = 0; t < std::min(result.tensors.size(), from.tensors.size()); ++t)
        if (result.tensors[t].type == from.tensors[t].type && from.tensors[t].data)
            result.tensors[t].data = from.tensors[t].data;
    return std::make_shared<const Graph>(std::move(result));
}

/// A random place below `value`: each level is left with some chance.
json &placeIn(json &value, Dice &dice)
{
    json *at = &value;
    while (at->is_structured() && !at->empty() && dice.below(8) != 0) {
        auto child = at->begin();
        std::advance(child, static_cast<std::ptrdiff_t>(dice.below(at->size())));
        at = &*child;
    }
    return *at;
}

enum class JsonEdit { Change, Erase, Repeat, Swap, Retype };
constexpr std::array<const char *, 5> kJsonEdits{
    "changed", "erased", "repeated", "swapped", "of another type"};

bool editJson(json &section, JsonEdit edit, const std::vector<std::string> &words, Dice &dice)
{
    json &at = placeIn(section, dice);
    switch (edit) {
    case JsonEdit::Change:
        if (at.is_boolean())
            at = !at.get<bool>();
        else if (at.is_number_integer())
            at = dice.below(8) == 0 ? json(18446744073709551615ULL) : json(dice.near(at.get<std::int64_t>()));
        else if (at.is_number_float())
            at = at.get<double>() * 2;
        else if (at.is_string())
            at = words[dice.below(words.size())];
        else
            return false;
        return true;
    case JsonEdit::Erase:
        if (!at.is_structured() || at.empty())
            return false;
        if (at.is_array()) {
            at.erase(dice.below(at.size()));
        } else {
            auto member = at.begin();
            std::advance(member, static_cast<std::ptrdiff_t>(dice.below(at.size())));
            at.erase(member);
        }
        return true;
    case JsonEdit::Repeat:
        if (!at.is_array() || at.empty())
            return false;
        at.push_back(json(at[dice.below(at.size())]));
        return true;
    case JsonEdit::Swap: {
        if (!at.is_array() || at.size() < 2)
            return false;
        const std::size_t a = dice.below(at.size());
        const auto b = static_cast<std::size_t>(dice.another(static_cast<std::int32_t>(a), at.size()));
        std::swap(at[a], at[b]);
        return true;
    }
    case JsonEdit::Retype: {
        static const std::vector<json> kValues{
            json(), json("text"), json(-1), json(0.5), json::array(), json::object(), json(true)};
        at = kValues[dice.below(kValues.size())];
        return true;
    }
    }
    return false;
}

class AnyMutation : public testing::Test
{
protected:
    static const std::vector<Subject> &plans()
    {
        static const std::vector<Subject> list = subjects();
        return list;
    }

    /// `count` mutants, their kinds in turn.
    void tryOut(const std::vector<Mutation> &kinds, int count)
    {
        Dice dice(7);
        for (int i = 0; i < count; ++i) {
            const Mutation &kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
            for (int attempt = 0; attempt < 100; ++attempt) {
                const Subject &subject = plans()[dice.below(plans().size())];
                ExecutionPlan mutant = subject.plan;
                if (!kind.apply(mutant, dice))
                    continue;
                judge(kind.name, subject, std::move(mutant), i);
                break;
            }
        }
        for (const Mutation &kind : kinds)
            EXPECT_GT(m_tally[kind.name].all(), 0) << kind.name;
    }

    void judge(const std::string &kind, const Subject &subject, ExecutionPlan mutant, int number)
    {
        Tally &tally = m_tally[kind];
        const auto report = verify(mutant);
        if (!report || !report->ok()) {
            EXPECT_FALSE((report ? report->failure->reason : report.error().message).empty());
            ++tally.rejected;
            return;
        }
        SCOPED_TRACE(subject.name + ", mutant " + std::to_string(number) + ": " + kind);
        // Another graph is another model: that is what its plan has to compute.
        // In other precisions it is the same in these.
        std::optional<RunOutcome> own;
        const bool otherPrecisions = mutant.precisions != subject.plan.precisions;
        if (mutant.graph != subject.plan.graph || otherPrecisions) {
            if (mutant.graph != subject.plan.graph)
                mutant.graph = withValues(*mutant.graph, *subject.plan.graph);
            const auto reference = referenceOf(mutant);
            // Backward operators in other precisions than their forwards are no plan of rows.
            ASSERT_TRUE(reference || otherPrecisions) << describe(reference.error());
            if (reference)
                own = outcomeOf(**reference);
        }
        const auto timeline = simulate(mutant,
            *clusterNamed("cpu:"
                + std::to_string(mutant.devices.size()
                    * static_cast<std::size_t>(mutant.units.count)))); // labels must not trip it up either
        EXPECT_TRUE(timeline) << describe(timeline.error());
        const auto check = compareOutcomes(outcomeOf(mutant), own ? *own : subject.reference,
            otherPrecisions ? tolerancesOf(mutant) : subject.tolerances);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
        ++tally.equal;
    }

    /// Mutants made this time; PLANLOOM_MUTATIONS asks for more, of all kinds together.
    static int countFor(int share, int usual)
    {
        const char *asked = std::getenv("PLANLOOM_MUTATIONS");
        return asked ? std::max(std::atoi(asked) / 100 * share, usual) : usual;
    }

    void TearDown() override
    {
        if (!std::getenv("PLANLOOM_MUTATIONS"))
            return;
        Tally sum;
        for (const auto &[kind, tally] : m_tally) {
            std::printf("%-40s %6d: refused %d, rejected %d, equal %d\n", kind.c_str(), tally.all(),
                tally.refused, tally.rejected, tally.equal);
            sum = {sum.refused + tally.refused, sum.rejected + tally.rejected, sum.equal + tally.equal};
        }
        std::printf("%-40s %6d: refused %d, rejected %d, equal %d\n", "together", sum.all(), sum.refused,
            sum.rejected, sum.equal);
    }

    std::map<std::string, Tally> m_tally{};
};

TEST_F(AnyMutation, OfProgramsIsRejectedOrHarmless)
{
    tryOut(programMutations(), countFor(35, 1000));
}

TEST_F(AnyMutation, OfBuffersIsRejectedOrHarmless)
{
    tryOut(bufferMutations(), countFor(10, 400));
}

TEST_F(AnyMutation, OfTheHeaderIsRejectedOrHarmless)
{
    tryOut(headerMutations(), countFor(20, 700));
}

TEST_F(AnyMutation, OfTheGraphIsRejectedOrAnotherModel)
{
    tryOut(graphMutations(), countFor(7, 300));
}

/// Two changes at once may agree with each other where one alone is found out.
TEST_F(AnyMutation, OfTwoThingsIsRejectedOrHarmless)
{
    std::vector<Mutation> all = programMutations();
    for (const auto &more : {bufferMutations(), headerMutations()})
        all.insert(all.end(), more.begin(), more.end());
    std::vector<Mutation> pairs;
    for (const Mutation &first : all)
        pairs.push_back({"two: " + first.name, [&all, &first](ExecutionPlan &plan, Dice &dice) {
                             return first.apply(plan, dice) && !plan.devices.empty()
                                 && dice.of(all).apply(plan, dice);
                         }});
    tryOut(pairs, countFor(20, 600));
}

TEST_F(AnyMutation, OfTheFileIsRefusedWithItsPlaceOrRejectedOrHarmless)
{
    Dice dice(11);
    const std::vector<std::string> sections{"batch", "decisions", "groups", "devices", "graph",
        "micro_batches", "updates", "stages", "origin", "version", "format"};
    const std::vector<std::string> words{"", "x", "kernel", "all-reduce", "send", "recv", "load", "store",
        "sum", "forward", "backward", "optimizer", "replicate", "dimension", "value", "weight", "activation",
        "input", "gradient", "+", "^", "float32", "float64", "Relu", "Gelu", "Add", "Mul"};
    const int count = countFor(8, 500);
    for (int i = 0; i < count; ++i) {
        const Subject &subject = plans()[dice.below(plans().size())];
        json document = subject.document;
        // The first five are what a file is made of.
        const std::string &section = sections[dice.below(dice.below(4) == 0 ? sections.size() : 5)];
        const auto edit = static_cast<JsonEdit>(i % 5);
        bool changed = false;
        for (int attempt = 0; attempt < 50 && !changed; ++attempt)
            changed = editJson(document[section], edit, words, dice);
        if (!changed || document == subject.document)
            continue;
        const std::string kind = "file: " + section + " " + kJsonEdits[static_cast<std::size_t>(edit)];
        auto plan = executionPlanFromJson(document.dump());
        if (!plan) {
            ++m_tally[kind].refused;
            EXPECT_FALSE(plan.error().message.empty()) << kind;
            EXPECT_GT(plan.error().where.size(), 1u)
                << kind << ": " << plan.error().message; // "/" is no place
            continue;
        }
        if (document["graph"] == subject.document["graph"])
            plan->graph = subject.plan.graph;
        judge(kind, subject, *std::move(plan), i);
    }
    for (const char *section : {"batch", "decisions", "devices", "graph"})
        for (const char *edit : kJsonEdits)
            EXPECT_GT(m_tally[std::string("file: ") + section + " " + edit].all(), 0)
                << section << " " << edit;
}

} // namespace
} // namespace planloom
