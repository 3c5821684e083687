// The check is a judge: what rounding alone does is no difference, however far it goes behind many
// normalisations, and a plan that was made wrong is always one.

#include "engine/runtime/training/check.h"

#include "engine/design/models/reference.h"
#include "tests/engine/runtime/training_plans.h"
#include "tests/engine/runtime/wrong_plans.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace planloom {
namespace {

RunOptions optionsOf(std::uint64_t seed, std::int32_t steps)
{
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.seed = seed;
    options.steps = steps;
    return options;
}

/// 53 batch normalisations, on images of 32 by 32.
constexpr const char *kDeepNetwork = "zoo:resnet?depth=50&width=4&image=32&classes=10&batch=8";

TEST(Judge, RoundingBehindManyNormalisationsIsNoDifference)
{
    for (const auto &[gallery, devices] : {std::pair{"data-parallel", 2}, {"tensor-parallel", 2},
             {"zero3", 4}, {"pipeline:micro-batches=1", 2}}) {
        SCOPED_TRACE(gallery);
        const ExecutionPlan plan = trainingPlanOf(kDeepNetwork, gallery, devices);
        const auto reference = referenceOf(plan);
        ASSERT_TRUE(reference) << describe(reference.error());
        const RunOptions options = optionsOf(3, 1);
        const auto got = runOnCpu(plan, options);
        ASSERT_TRUE(got) << describe(got.error());
        const auto check = checkAgainst(**reference, plan, *got, options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError << " of " << check->allowed
                               << " in double " << check->inDouble.value_or(-1);
    }
}

/// Runs a plan that may never end: some are stopped.
Result<RunOutcome> runFor(const ExecutionPlan &plan, const RunOptions &options, std::chrono::seconds most)
{
    std::stop_source stop;
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    std::thread watch([&] {
        std::unique_lock lock{mutex};
        if (!ended.wait_for(lock, most, [&] { return done; }))
            stop.request_stop();
    });
    auto outcome = runOnCpu(plan, options, {}, stop.get_token());
    {
        const std::lock_guard lock{mutex};
        done = true;
    }
    ended.notify_all();
    watch.join();
    return outcome;
}

/// A right plan, what it computes in Float64, and what it is held against.
struct Subject {
    std::string name{};
    ExecutionPlan plan{};
    std::shared_ptr<const ExecutionPlan> reference{};
    RunOutcome exact{};
    Movement rounding{}; ///< Between that and the reference in Float64.
};

std::vector<Subject> subjects()
{
    struct Case {
        const char *model;
        const char *gallery;
        std::int32_t devices;
    };
    constexpr const char *kMlp = "zoo:mlp?layers=3&hidden=16&batch=8&input=8&classes=4";
    constexpr const char *kGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=16";
    constexpr const char *kLlama =
        "zoo:llama?layers=1&hidden=32&heads=4&kv_heads=2&ffn=32&seq=8&batch=4&vocab=16";
    constexpr const char *kDeep = "zoo:resnet?depth=50&width=2&image=32&classes=4&batch=8";
    constexpr std::array kCases{Case{kMlp, "data-parallel:micro-batches=2", 2}, Case{kMlp, "zero1", 2},
        Case{kMlp, "zero3:micro-batches=2", 2}, Case{kMlp, "pipeline:schedule=1f1b,micro-batches=4", 2},
        Case{kGpt, "tensor-parallel", 2}, Case{kGpt, "tensor-parallel", 4},
        Case{kGpt, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8}, Case{kGpt, "data-parallel:micro-batches=4", 2},
        Case{kLlama, "tensor-parallel", 4}, Case{kDeep, "data-parallel", 2},
        Case{kDeep, "tensor-parallel", 2}};
    std::vector<Subject> list;
    for (const Case &each : kCases) {
        Subject subject{std::string(each.model) + " " + each.gallery,
            trainingPlanOf(each.model, each.gallery, each.devices, OperatorKind::SgdStep), {}, {}, {}};
        auto reference = referenceOf(subject.plan);
        EXPECT_TRUE(reference) << describe(reference.error());
        subject.reference = *std::move(reference);
        RunOptions options = optionsOf(5, 2);
        options.inDouble = true;
        auto exact = runOnCpu(subject.plan, options);
        EXPECT_TRUE(exact) << describe(exact.error());
        subject.exact = *std::move(exact);
        const auto model = runOnCpu(*subject.reference, options);
        EXPECT_TRUE(model) << describe(model.error());
        auto rounding = movementBetween(*model, subject.exact);
        EXPECT_TRUE(rounding) << describe(rounding.error());
        subject.rounding = *std::move(rounding);
        list.push_back(std::move(subject));
    }
    return list;
}

struct Tally {
    int different = 0;
    int same = 0; ///< They compute what the right plan does.
    int unrunnable = 0;
};

/// A mutant computes the same if in Float64 it does what the plan does that it was made of: to 12 digits of
/// the largest number, or as near as that plan is to the model on one device, whose sums are in another
/// order.
bool computesTheSame(const RunOutcome &mutant, const RunOutcome &exact, const Movement &rounding)
{
    const auto compared = compareOutcomes(mutant, exact, {1e-12, 1e-12, 1e-12, 1e-12, 1e-12}, rounding);
    return compared && compared->ok;
}

/// Of mutants in turn of all kinds and plans, until `wanted` were wrong.
TEST(Judge, PlansThatWereMadeWrongAreDifferent)
{
    const char *asked = std::getenv("PLANLOOM_WRONG_PLANS");
    const int wanted = asked ? std::atoi(asked) : 22;
    const std::vector<Subject> plans = subjects();
    const std::vector<Mutation> kinds = wrong::all();
    std::map<std::string, Tally> tallies;
    Dice dice(11);
    int found = 0;
    for (int attempt = 0; found < wanted && attempt < 40 * wanted; ++attempt) {
        const Mutation &kind = kinds[static_cast<std::size_t>(attempt) % kinds.size()];
        const Subject &subject = dice.of(plans);
        ExecutionPlan mutant = subject.plan;
        if (!kind.apply(mutant, dice))
            continue;
        Tally &tally = tallies[kind.name];
        RunOptions options = optionsOf(5, 2);
        options.inDouble = true;
        const auto exact = runFor(mutant, options, std::chrono::seconds{20});
        options.inDouble = false;
        const auto got = exact ? runFor(mutant, options, std::chrono::seconds{20}) : exact;
        if (!got) {
            ++tally.unrunnable;
            continue;
        }
        if (computesTheSame(*exact, subject.exact, subject.rounding)) {
            ++tally.same;
            continue;
        }
        SCOPED_TRACE(subject.name + ", attempt " + std::to_string(attempt) + ": " + kind.name);
        const auto check = checkAgainst(*subject.reference, mutant, *got, options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_FALSE(check->ok) << check->worstTensor << " " << check->worstError << " of " << check->allowed
                                << ", in double " << check->inDouble.value_or(-1);
        ++tally.different;
        ++found;
    }
    EXPECT_EQ(found, wanted);
    for (const auto &[name, tally] : tallies)
        if (asked)
            std::printf("%-45s different %4d, the same %4d, unrunnable %4d\n", name.c_str(), tally.different,
                tally.same, tally.unrunnable);
}

} // namespace
} // namespace planloom
