#include "engine/gesture/order_gesture.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/gesture/contexts.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

GestureContext pipeline()
{
    const GestureContext empty = gpt(4, "");
    const auto table = galleryTable("pipeline:schedule=1f1b,micro-batches=4", empty.model, 4);
    EXPECT_TRUE(table);
    return gpt(4, print(*table));
}

/// The last row of the table after a proposal.
std::string lastRow(const GestureContext &context, const Proposal &proposal)
{
    std::string text = after(context, proposal);
    text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

bool holds(const GestureContext &context, const Proposal &proposal)
{
    const TableDocument document(after(context, proposal));
    const auto completion = completePlan(context.index().snapshot(), context.deviceCount, document.table());
    EXPECT_TRUE(completion);
    if (const auto error = firstError(*completion)) {
        ADD_FAILURE() << describe(*error) << "\n" << document.text();
        return false;
    }
    return true;
}

TEST(OrderGesture, WritesARowUnlessItClosesACycle)
{
    const GestureContext context = gpt(2, "micro-batches 4\n");
    const OperatorId act = one(context, "h.1.mlp.act");
    const OperatorId fc = one(context, "h.1.mlp.c_fc");
    const OperatorId q = one(context, "h.1.attn.q_attn");
    const OperatorId k = one(context, "h.1.attn.k_attn");
    const Proposal free = proposeOrder(context, {{k}, {q}});
    EXPECT_EQ(free.words, "h.1.attn.k_attn before h.1.attn.q_attn");
    EXPECT_EQ(lastRow(context, free), "order name:h.1.attn.k_attn before name:h.1.attn.q_attn  @gesture");
    EXPECT_TRUE(holds(context, free));
    const Proposal back = proposeOrder(context, {{act}, {fc}});
    EXPECT_EQ(refusal(back), "h.1.mlp.act can't run before h.1.mlp.c_fc: it needs what comes out of it");
    EXPECT_EQ(back.cycle, (std::vector<OperatorId>{act, fc}));
    EXPECT_EQ(lastRow(context, proposeOrder(context, {{act}, {fc}, 1})),
        "order name:h.1.mlp.act before name:h.1.mlp.c_fc at +1  @gesture");
    EXPECT_EQ(lastRow(context, proposeOrder(context, {{act}, {fc}, 1, 2})),
        "order name:h.1.mlp.act before name:h.1.mlp.c_fc at +1 of 2  @gesture");
    EXPECT_EQ(refusal(proposeOrder(context, {{act}, {fc}, 1, 3})),
        "there is no micro-batch 4: the plan has 4, numbered from 0");
    EXPECT_FALSE(refusal(proposeOrder(context, {{act}, {act}})).empty());
    EXPECT_FALSE(refusal(proposeOrder(context, {{}, {act}})).empty());
}

TEST(OrderGesture, SeesTheOtherRows)
{
    const GestureContext context =
        gpt(2, "micro-batches 4\norder name:h.1.attn.k_attn before name:h.1.attn.q_attn\n");
    const OperatorId q = one(context, "h.1.attn.q_attn");
    const OperatorId k = one(context, "h.1.attn.k_attn");
    const Proposal turned = proposeOrder(context, {{q}, {k}});
    EXPECT_FALSE(refusal(turned).empty());
    EXPECT_EQ(turned.cycle, (std::vector<OperatorId>{q, k}));
    EXPECT_EQ(after(context, proposeOrder(context, {{k}, {q}, 2})),
        "micro-batches 4\norder name:h.1.attn.k_attn before name:h.1.attn.q_attn at +2  @gesture\n");
    EXPECT_TRUE(proposeOrder(context, {{q}, {k}, 1}).accepted());
    EXPECT_FALSE(proposeOrder(context, {{q}, {k}, -1}).accepted());
}

TEST(OrderGesture, KnowsWhatRunsOnceAStep)
{
    const auto index = indexOf("zoo:mlp?batch=8");
    const GestureContext context = contextOf(index, 2, "");
    const Proposal early =
        proposeOrder(context, {{one(context, "layers.3.linear")}, {one(context, "loss.count")}, -1});
    EXPECT_EQ(refusal(early),
        "layers.3.linear can't run before loss.count: loss.count runs once, before the first micro-batch");
}

TEST(OrderGesture, PairsLayersAndSaysBackward)
{
    const GestureContext context = gpt(2, "");
    const auto firsts = forward(context, "name:h.*.attn.k_attn");
    const auto seconds = forward(context, "name:h.*.attn.q_attn");
    EXPECT_EQ(lastRow(context, proposeOrder(context, {firsts, seconds})),
        "order name:h.*.attn.k_attn before name:h.*.attn.q_attn  @gesture");
    std::vector<OperatorId> backward;
    for (const OperatorId op : forward(context, "layer:1"))
        if (context.graph().at(op).mirror.valid())
            backward.push_back(context.graph().at(op).mirror);
    const Proposal proposal = proposeOrder(context, {backward, {one(context, "h.0.ln_1'")}});
    EXPECT_EQ(lastRow(context, proposal), "order backward & layer:1 before name:h.0.ln_1'  @gesture");
    EXPECT_TRUE(holds(context, proposal));
    EXPECT_EQ(proposal.words, "backward layer 1 before backward h.0.ln_1");
}

/// A row that orders one operator before another.
struct OrderedPair {
    std::string first;
    std::string second;
    std::int32_t offset = 0;
};

/// Against the transitive closure, by brute force.
void comparePaths(const std::vector<OrderedPair> &rows)
{
    std::string text;
    for (const OrderedPair &row : rows)
        text += "order name:" + row.first + " before name:" + row.second + " at "
            + (row.offset < 0 ? "" : "+") + std::to_string(row.offset) + "\n";
    const GestureContext context = gpt(2, text);
    const Graph &graph = context.graph();
    RandomTable random(8);
    const auto count = static_cast<std::int32_t>(graph.operators.size());
    OrderPaths finder(context);
    const auto edge = [&](OperatorId a, OperatorId b) -> std::optional<std::int32_t> {
        for (const TensorId tensor : graph.at(a).outputs) {
            if (!tensor.valid())
                continue;
            const auto &users = context.index().uses().consumers[static_cast<std::size_t>(tensor.index)];
            if (std::find(users.begin(), users.end(), b) != users.end())
                return 0;
        }
        for (const OrderedPair &row : rows) {
            if (graph.at(a).name == row.first && graph.at(b).name == row.second)
                return row.offset;
        }
        return std::nullopt;
    };
    /// Least offsets from `from` by repeated relaxation.
    const auto leastFrom = [&](const std::vector<OperatorId> &from) {
        std::vector<std::int32_t> least(static_cast<std::size_t>(count), 1000);
        for (const OperatorId op : from)
            least[static_cast<std::size_t>(op.index)] = 0;
        for (bool changed = true; changed;) {
            changed = false;
            const auto relax = [&](OperatorId a, OperatorId b, std::int32_t offset) {
                const std::int32_t total = least[static_cast<std::size_t>(a.index)] + offset;
                if (total < least[static_cast<std::size_t>(b.index)] && total < 900) {
                    least[static_cast<std::size_t>(b.index)] = total;
                    changed = true;
                }
            };
            for (std::int32_t a = 0; a < count; ++a) {
                for (const TensorId tensor : graph.at(OperatorId{a}).outputs) {
                    if (!tensor.valid())
                        continue;
                    for (const OperatorId user :
                        context.index().uses().consumers[static_cast<std::size_t>(tensor.index)])
                        relax({a}, user, 0);
                }
            }
            for (const OrderedPair &row : rows)
                relax(one(context, row.first), one(context, row.second), row.offset);
        }
        return least;
    };
    int found = 0;
    for (int i = 0; i < 300; ++i) {
        // Of one to one, and of several to several.
        const int sources = i % 3 == 0 ? 4 : 1;
        std::vector<OperatorId> from;
        std::vector<OperatorId> to;
        for (int k = 0; k < sources; ++k) {
            from.push_back({random.number(0, count - 1)});
            to.push_back({random.number(0, count - 1)});
        }
        const std::int32_t most = random.number(-2, 2);
        const auto path = finder.find(from, to, most);
        const auto least = leastFrom(from);
        const bool expected = std::any_of(to.begin(), to.end(),
            [&](OperatorId op) { return least[static_cast<std::size_t>(op.index)] <= most; });
        ASSERT_EQ(!path.empty(), expected)
            << graph.at(from.front()).name << " to " << graph.at(to.front()).name << " " << most;
        if (path.empty())
            continue;
        ++found;
        ASSERT_NE(std::find(from.begin(), from.end(), path.front()), from.end());
        ASSERT_NE(std::find(to.begin(), to.end(), path.back()), to.end());
        std::int32_t total = 0;
        for (std::size_t p = 0; p + 1 < path.size(); ++p) {
            const auto step = edge(path[p], path[p + 1]);
            ASSERT_TRUE(step);
            total += *step;
        }
        ASSERT_LE(total, most);
    }
    EXPECT_GT(found, 20);
}

TEST(OrderPaths, FindsPathsWhereThereAreSome)
{
    comparePaths({{"h.2.attn.k_attn", "h.2.attn.q_attn", 1}, {"h.3.mlp.c_fc", "h.0.ln_1", 1}});
}

TEST(OrderPaths, FindsPathsToEarlierMicroBatches)
{
    comparePaths({{"h.0.ln_1", "h.2.mlp.c_fc", -1}, {"h.2.attn.k_attn", "h.3.attn.q_attn", -1},
        {"h.3.mlp.c_fc", "h.0.ln_1", 3}});
}

TEST(BlockOrder, IsThePatternForAllMicroBatchesOrThisOne)
{
    const GestureContext context = pipeline();
    const BlockRef forward1{{0}, Direction::Forward, 1};
    const BlockRef backward0{{0}, Direction::Backward, 0};
    const Proposal early = proposeBlockOrder(context, backward0, forward1, false);
    EXPECT_EQ(early.words, "move B0 of stage 0 before F1 of stage 0");
    const std::string row = lastRow(context, early);
    EXPECT_EQ(row.substr(0, 15), "order backward ");
    EXPECT_NE(row.find(" at +1  @gesture"), std::string::npos) << row;
    EXPECT_TRUE(holds(context, early));
    const GestureContext next = gpt(4, after(context, early));
    ASSERT_TRUE(next.plan);
    for (const OrderConstraint &order : next.plan->orders) {
        EXPECT_EQ(context.graph().at(order.first).direction, Direction::Backward);
        EXPECT_EQ(context.graph().at(order.second).direction, Direction::Forward);
        EXPECT_EQ(next.plan->decisions[static_cast<std::size_t>(order.first.index)].stage, StageId{0});
        EXPECT_EQ(next.plan->decisions[static_cast<std::size_t>(order.second.index)].stage, StageId{0});
    }
    // Moving it back takes the row's place.
    const Proposal back = proposeBlockOrder(next, forward1, backward0, false);
    ASSERT_TRUE(back.accepted());
    EXPECT_EQ(TableDocument(after(next, back)).rowLines().size(), next.document.rowLines().size());
    EXPECT_TRUE(holds(next, back));
    EXPECT_NE(
        lastRow(context, proposeBlockOrder(context, backward0, forward1, true)).find(" at +1 of 0  @gesture"),
        std::string::npos);
    EXPECT_EQ(refusal(proposeBlockOrder(context, {{0}, Direction::Backward, 1}, forward1, false)),
        "B1 of stage 0 needs what F1 of stage 0 keeps for it");
    EXPECT_FALSE(refusal(proposeBlockOrder(context, forward1, {{0}, Direction::Forward, 0}, false)).empty());
    EXPECT_FALSE(refusal(proposeBlockOrder(context, {{9}, Direction::Forward, 0}, forward1, false)).empty());
    EXPECT_EQ(operatorsOfStage(context, {9}).size(), 0u);
    EXPECT_GT(operatorsOfStage(context, {1}).size(), 10u);
}

TEST(BlockOrder, LeavesOutWhatRunsOnceAStep)
{
    // Stages go there and back over two devices: the last one, with the loss, is beside the first.
    const GestureContext context = gpt(2,
        "micro-batches 4\nstage layer:0 : 0\nstage layer:1 : 1\nstage layer:2 : 2\nstage layer:3 : 3\n"
        "place layer:0 : devices 0\nplace layer:1-2 : devices 1\nplace layer:3 : devices 0\n"
        "schedule 1f1b\n");
    ASSERT_TRUE(context.plan);
    const auto ofLast = operatorsOfStage(context, {3});
    const auto once = std::find_if(ofLast.begin(), ofLast.end(),
        [&](OperatorId op) { return context.batch().oncePerStep[static_cast<std::size_t>(op.index)]; });
    ASSERT_NE(once, ofLast.end()) << "the number of labels is the same for all micro-batches";
    const Proposal proposal =
        proposeBlockOrder(context, {{0}, Direction::Forward, 3}, {{3}, Direction::Forward, 1}, false);
    EXPECT_TRUE(proposal.accepted()) << proposal.refusal->message;
    const GestureContext next = gpt(2, after(context, proposal));
    ASSERT_TRUE(next.plan) << lastRow(context, proposal);
    EXPECT_FALSE(next.plan->orders.empty());
    for (const OrderConstraint &order : next.plan->orders)
        EXPECT_NE(order.second, *once);
}

TEST(InFlight, IsOneNumberAStage)
{
    const GestureContext context = pipeline();
    const Proposal two = proposeInFlight(context, {1}, 2);
    EXPECT_EQ(two.words, "at most 2 micro-batches in flight on stage 1");
    EXPECT_EQ(lastRow(context, two), "in-flight 2 stage 1  @gesture");
    EXPECT_TRUE(holds(context, two));
    const GestureContext next = gpt(4, after(context, two));
    EXPECT_EQ(lastRow(next, proposeInFlight(next, {1}, 3)), "in-flight 3 stage 1  @gesture");
    EXPECT_EQ(TableDocument(after(next, proposeInFlight(next, {1}, 3))).rowLines().size(),
        next.document.rowLines().size());
    const GestureContext shared = gpt(4, context.document.text() + "in-flight 3\n");
    const Proposal apart = proposeInFlight(shared, {1}, 2);
    EXPECT_TRUE(holds(shared, apart));
    EXPECT_EQ(TableDocument(after(shared, apart)).rowLines().size(), shared.document.rowLines().size() + 3);
    EXPECT_FALSE(refusal(proposeInFlight(context, {1}, 0)).empty());
    EXPECT_EQ(refusal(proposeInFlight(context, {7}, 1)), "there is no stage 7: the plan has 4 stages");
}

TEST(Text, NamesItsOperatorsInThreeWays)
{
    const GestureContext context = gpt(4, "place all : devices 0\n");
    const OperatorId fc = one(context, "h.1.mlp.c_fc");
    EXPECT_EQ(lastRow(context, proposeText(context, "split n by 2", {fc})),
        "split name:h.1.mlp.c_fc : n by 2  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "split n by 2 where c_fc", {})),
        "split name:*.c_fc : n by 2  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "split name:h.0.mlp.c_fc : n by 2", {})),
        "split name:h.0.mlp.c_fc : n by 2  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, " place 1 where h.1.mlp ", {})),
        "place in:h.1.mlp : devices 1  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "place 1,2", forward(context, "layer:2"))),
        "place layer:2 : devices 1,2  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "replicate by 2 where layernorm", {})),
        "replicate kind:LayerNorm : by 2  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "stage 0 where layer:0-1", {})),
        "stage layer:0-1 : 0  @gesture");
    EXPECT_EQ(lastRow(context, proposeText(context, "recompute per layer where layer:0-1", {})),
        "recompute layer:0-1 per layer");
    EXPECT_EQ(lastRow(context, proposeText(context, "order before layer:2 where layer:1", {})),
        "order layer:1 before layer:2  @gesture");
    EXPECT_EQ(
        lastRow(context, proposeText(context, "coshard n by 2", {fc})), "coshard name:h.1.mlp.c_fc : n by 2");
    EXPECT_EQ(lastRow(context, proposeText(context, "mesh tp=4", {})), "mesh tp=4");
    EXPECT_EQ(lastRow(context, proposeText(context, "off stage all : 0", {})), "off stage all : 0");
    EXPECT_EQ(after(context, proposeText(context, "free", {fc})), context.document.text());
    for (const char *text : {"split n by 2 where c_fc", "place h0 where layer:0", "recompute where layer:1"})
        EXPECT_TRUE(holds(context, proposeText(context, text, {}))) << text;
}

TEST(Text, OrdersWhatIsCommunicated)
{
    const GestureContext context = pipeline();
    const char *const row = "communicate backward & layer:1 sends after layer:0 & backward at +1";
    EXPECT_EQ(lastRow(context, proposeText(context, row, {})), row);
    EXPECT_EQ(refusal(proposeText(context, "communicate layer:0 sends after name:missing", {})),
        "no operator is called 'missing'");
}

TEST(Text, ReplacesRowsAboutTheWholePlan)
{
    const GestureContext context = gpt(4, "mesh tp=2\nmicro-batches 2\nschedule gpipe\n");
    EXPECT_EQ(after(context, proposeText(context, "micro-batches 4", {})),
        "mesh tp=2\nmicro-batches 4\nschedule gpipe\n");
    EXPECT_EQ(after(context, proposeText(context, "schedule 1f1b", {})),
        "mesh tp=2\nmicro-batches 2\nschedule 1f1b\n");
    EXPECT_EQ(after(context, proposeText(context, "mesh dp=2 tp=2", {})),
        "mesh dp=2 tp=2\nmicro-batches 2\nschedule gpipe\n");
    EXPECT_EQ(refusal(proposeText(context, "mesh dp=8", {})), "the mesh needs 8 devices, there are 4");
}

TEST(Text, SaysWhatItDoesNotUnderstand)
{
    const GestureContext context = gpt(4, "");
    for (const char *text : {"", "nonsense", "split", "split n by 2", "split n by 2 where nothing_like_it",
             "split n by 2 where", "split zz by 2 where c_fc", "place devices 9 where layer:1",
             "stage x where layer:1", "split n by x where c_fc", "place tp=1 where layer:0",
             "order before where layer:1", "split \"n where c_fc", "where", "split n by 3 where c_fc"}) {
        const Proposal proposal = proposeText(context, text, {});
        EXPECT_TRUE(proposal.refusal) << text;
        EXPECT_TRUE(proposal.edit.empty());
        EXPECT_FALSE(proposal.refusal && proposal.refusal->message.empty());
    }
}

TEST(Text, IsNeverTakenAback)
{
    RandomTable random(21);
    const GestureContext context = gpt(4, "mesh dp=2 tp=2\nsplit all : batch over dp\n");
    const char *const kWords[] = {"split", "place", "where", "n", "by", "2", "3", "over", "tp", "layer:1",
        "c_fc", ":", "all", "devices", "order", "before", "at", "+1", "stage", "recompute", "\"", "replicate",
        "coshard", "zero1", "@gesture", "#", "set{", "}", "in-flight", "mesh", "dp=2", "value", "then", "!",
        "&", "(", "h0", "tp:1", "hold", "free", "in0.0", "batch"};
    const auto some = forward(context, "layer:1");
    for (int i = 0; i < 4000; ++i) {
        std::string text;
        for (int n = random.number(0, 8); n > 0; --n)
            text += std::string(kWords[random.number(0, static_cast<int>(std::size(kWords)) - 1)])
                + (random.chance(85) ? " " : "");
        const Proposal proposal =
            proposeText(context, text, random.chance(50) ? some : std::vector<OperatorId>{});
        ASSERT_TRUE(!proposal.refusal || proposal.edit.empty()) << text;
        TableDocument document = context.document;
        ASSERT_TRUE(document.apply(proposal.edit)) << text;
        ASSERT_TRUE(document.errors().empty()) << text << "\n" << document.text();
    }
}

} // namespace
} // namespace planloom
