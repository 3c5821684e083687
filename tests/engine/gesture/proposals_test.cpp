#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/gesture/contexts.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

struct Setting {
    const char *model;
    std::int32_t devices;
    const char *gallery;
    bool lowers = false; ///< Small enough to carry every plan out.
};
const Setting kSettings[] = {
    {"zoo:llama?layers=2&batch=4", 4, "3d:dp=1,tp=2,pp=2,schedule=gpipe,micro-batches=2"},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 4, "single", true},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 4, "data-parallel", true},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 4, "tensor-parallel", true},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 4,
        "pipeline:schedule=1f1b,micro-batches=4", true},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 8,
        "3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=2", true},
    {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8", 2, "zero1"},
    {"zoo:t5?layers=2&batch=4", 4, "pipeline:micro-batches=2"},
    {"zoo:mlp?batch=8", 4, "data-parallel", true},
    {"zoo:resnet?depth=18&batch=4", 2, "data-parallel"},
    {"zoo:moe?layers=4&batch=4", 2, "tensor-parallel"},
    {"zoo:evoformer?layers=2", 2, "tensor-parallel"},
};

std::shared_ptr<const SelectorIndex> cachedIndex(const std::string &spec)
{
    static std::map<std::string, std::shared_ptr<const SelectorIndex>> known;
    auto &index = known[spec];
    if (!index)
        index = indexOf(spec);
    return index;
}

class RandomGesture
{
public:
    explicit RandomGesture(std::uint32_t seed)
        : m_random(seed)
    {
    }

    std::vector<OperatorId> selection(const GestureContext &context)
    {
        const auto forward = forwardSelected(context.index(), selectAll());
        const auto layers = static_cast<std::int32_t>(context.index().layers().scopes.size());
        const OperatorId some =
            forward[static_cast<std::size_t>(m_random.number(0, static_cast<int>(forward.size()) - 1))];
        const int kind = m_random.number(0, 5);
        if (kind < 3)
            return {some};
        std::vector<OperatorId> chosen;
        const std::int32_t layer = m_random.number(0, std::max(layers - 1, 0));
        const std::int32_t last = kind == 3 ? layer : std::min(layer + 1, layers - 1);
        for (const OperatorId op : forward) {
            const std::int32_t at = context.index().layerOf(op);
            if (kind == 5 ? context.graph().at(op).kind == context.graph().at(some).kind
                          : at >= layer && at <= last)
                chosen.push_back(op);
        }
        return chosen.empty() ? std::vector<OperatorId>{some} : chosen;
    }

    Proposal proposal(const GestureContext &context)
    {
        const auto operators = selection(context);
        const int kind = m_random.number(0, 15);
        if (kind < 4) {
            SplitGesture gesture;
            gesture.operators = operators;
            gesture.on = operators.front();
            const auto chips = chipsOf(context, gesture.on);
            gesture.kind = m_random.chance(70) ? SplitKind::Dimension
                : m_random.chance(50)          ? SplitKind::Replicate
                                               : SplitKind::Value;
            if (!chips.empty()) {
                const auto &chip =
                    chips[static_cast<std::size_t>(m_random.number(0, static_cast<int>(chips.size()) - 1))];
                gesture.dimension = chip.dimension;
                gesture.parts = m_random.chance(70) && !chip.counts.empty()
                    ? chip.counts[static_cast<std::size_t>(
                        m_random.number(0, static_cast<int>(chip.counts.size()) - 1))]
                    : m_random.number(1, 8);
            }
            if (!context.mesh.empty() && m_random.chance(40))
                gesture.axis = context
                                   .mesh[static_cast<std::size_t>(
                                       m_random.number(0, static_cast<int>(context.mesh.size()) - 1))]
                                   .name;
            return proposeSplit(context, gesture);
        }
        if (kind < 8) {
            PlaceGesture gesture;
            gesture.operators = operators;
            gesture.replicate = m_random.chance(15);
            if (!context.mesh.empty() && m_random.chance(30)) {
                const auto &axis = context.mesh[static_cast<std::size_t>(
                    m_random.number(0, static_cast<int>(context.mesh.size()) - 1))];
                gesture.coordinates = {{axis.name, m_random.number(0, axis.size - 1)}};
            } else if (m_random.chance(90)) {
                const std::int32_t first = m_random.number(0, context.deviceCount - 1);
                const std::int32_t count =
                    m_random.chance(60) ? 1 : m_random.number(1, context.deviceCount - first);
                for (std::int32_t d = first; d < first + count; ++d)
                    gesture.devices.push_back({d});
            }
            return proposePlace(context, gesture);
        }
        switch (kind) {
        case 8:
            return proposeFree(context, operators);
        case 9:
            return proposeHold(context, operators);
        case 10:
            return proposeRecompute(context, operators);
        case 11:
            return proposeStage(context, operators, {m_random.number(0, 2)});
        case 12:
            return proposeOrder(context, {operators, selection(context), m_random.number(-1, 1)});
        case 13:
            return proposeInFlight(
                context, {m_random.number(0, context.plan->stageCount - 1)}, m_random.number(1, 4));
        default:
            return proposeBlockOrder(context, block(context), block(context), m_random.chance(30));
        }
    }

    BlockRef block(const GestureContext &context)
    {
        BlockRef made;
        made.stage = {m_random.number(0, context.plan->stageCount - 1)};
        made.direction = m_random.chance(50) ? Direction::Forward : Direction::Backward;
        made.microBatch = m_random.number(0, context.plan->microBatches - 1);
        return made;
    }

private:
    RandomTable m_random;
};

constexpr std::uint32_t kSeeds = 6; // per setting

/// The promise of every accepted proposal: the table that follows holds, where the one before held.
TEST(Proposals, AcceptedOnesLeadToTablesThatHold)
{
    int accepted = 0;
    int refused = 0;
    for (const Setting &setting : kSettings) {
        const auto index = cachedIndex(setting.model);
        const auto gallery = galleryTable(setting.gallery, index->snapshot(), setting.devices);
        ASSERT_TRUE(gallery) << setting.gallery << describe(gallery.error());
        for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
            RandomGesture random(seed * 17 + 3);
            GestureContext context = contextOf(index, setting.devices, print(*gallery));
            std::vector<std::string> story;
            for (int step = 0; step < 12; ++step) {
                const Proposal proposal = random.proposal(context);
                ASSERT_FALSE(proposal.words.empty());
                if (proposal.refusal) {
                    ++refused;
                    ASSERT_FALSE(proposal.refusal->message.empty());
                    ASSERT_TRUE(proposal.edit.empty()) << proposal.words;
                    continue;
                }
                if (proposal.edit.empty())
                    continue;
                ++accepted;
                story.push_back(proposal.words);
                const std::string before = context.document.text();
                TableDocument document = context.document;
                const auto applied = document.apply(proposal.edit);
                ASSERT_TRUE(applied) << describe(applied.error());
                ASSERT_TRUE(document.errors().empty()) << document.text();
                const auto completion = completePlan(index->snapshot(), setting.devices, document.table());
                std::string told;
                for (const std::string &words : story)
                    told += words + "; ";
                ASSERT_TRUE(completion) << describe(completion.error()) << "\n"
                                        << setting.model << " " << setting.gallery << "\n"
                                        << told << "\n"
                                        << before << "->\n"
                                        << document.text();
                // Stages are counted by completion: a row about the last one may outlive it, and says so.
                if (const auto error = firstError(*completion);
                    error && error->message.find("there is no stage") == 0) {
                    break;
                }
                if (!firstError(*completion) && setting.lowers) {
                    static const Cluster cluster = *clusterNamed("dgx-a100:8");
                    const auto lowered = lower(completion->plan, cluster);
                    ASSERT_TRUE(lowered)
                        << describe(lowered.error()) << "\n"
                        << setting.model << " " << setting.gallery << " seed " << seed << "\n"
                        << told << "\n"
                        << before << "->\n"
                        << document.text();
                }
                ASSERT_FALSE(firstError(*completion))
                    << describe(*firstError(*completion)) << "\n"
                    << setting.model << " " << setting.gallery << " seed " << seed << "\n"
                    << told << "\n"
                    << before << "->\n"
                    << document.text();
                TableDocument undone = document;
                ASSERT_TRUE(undone.apply(inverse(proposal.edit)));
                ASSERT_EQ(undone.text(), before);
                context = contextOf(index, setting.devices, std::move(document));
                ASSERT_TRUE(context.plan);
            }
        }
    }
    EXPECT_GT(accepted, 300);
    EXPECT_GT(refused, 50);
}

} // namespace
} // namespace planloom
