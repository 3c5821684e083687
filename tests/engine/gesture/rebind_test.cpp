#include "engine/gesture/rebind.h"

#include "tests/engine/gesture/contexts.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace planloom {

namespace {

/// A changed model, and where the operators of the first one are in it.
struct Changed {
    Graph forward{};
    std::vector<std::int32_t> after{}; ///< By forward operator of the first; -1 if it was taken out.
};

Changed unchanged(const Graph &forward)
{
    Changed changed{forward, std::vector<std::int32_t>(forward.operators.size())};
    std::iota(changed.after.begin(), changed.after.end(), 0);
    return changed;
}

void rename(Changed &changed, double share, std::mt19937 &random)
{
    std::vector<std::size_t> order(changed.forward.operators.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const auto count = static_cast<std::size_t>(share * static_cast<double>(order.size()));
    for (std::size_t i = 0; i < count; ++i)
        changed.forward.operators[order[i]].name =
            "renamed." + std::to_string(i * 7919 % 100003) + "." + std::to_string(i);
}

/// An operator that keeps shapes behind the first output of operator `at`.
void insertBehind(Changed &changed, std::size_t at, const std::string &name)
{
    Graph &graph = changed.forward;
    const TensorId from = graph.operators[at].outputs.front();
    Tensor made = graph.at(from);
    made.name = name + ".out";
    const TensorId to{static_cast<std::int32_t>(graph.tensors.size())};
    graph.tensors.push_back(made);
    for (std::size_t i = at + 1; i < graph.operators.size(); ++i)
        std::replace(graph.operators[i].inputs.begin(), graph.operators[i].inputs.end(), from, to);
    const auto rank = made.type.shape.size();
    Operator op = graph.operators[at];
    op.name = name;
    op.kind = OperatorKind::Tanh;
    op.attributes = {};
    op.inputs = {from};
    op.outputs = {to};
    std::string dims;
    for (std::size_t d = 0; d < rank; ++d)
        dims += (d > 0 ? " d" : "d") + std::to_string(d);
    const auto annotation = parseAnnotation(dims + " -> " + dims, {made.type.shape}, {made.type.shape});
    ASSERT_TRUE(annotation);
    op.annotation = *annotation;
    graph.operators.insert(graph.operators.begin() + static_cast<std::ptrdiff_t>(at) + 1, op);
    for (std::int32_t &index : changed.after)
        index += index > static_cast<std::int32_t>(at) ? 1 : 0;
}

/// Takes an operator out whose output is of its input's type. @return false if it is none
bool takeOut(Changed &changed, std::size_t at)
{
    Graph &graph = changed.forward;
    const Operator op = graph.operators[at];
    if (op.inputs.size() != 1 || op.outputs.size() != 1
        || graph.at(op.inputs[0]).type != graph.at(op.outputs[0]).type
        || graph.at(op.inputs[0]).role != TensorRole::Activation || op.outputs[0] == graph.loss)
        return false;
    for (Operator &other : graph.operators)
        std::replace(other.inputs.begin(), other.inputs.end(), op.outputs[0], op.inputs[0]);
    graph.operators.erase(graph.operators.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::int32_t &index : changed.after) {
        if (index == static_cast<std::int32_t>(at))
            index = -1;
        else if (index > static_cast<std::int32_t>(at))
            --index;
    }
    return true;
}

SelectorIndex trainingIndexOf(const Graph &forward)
{
    auto graph = buildTrainingStep(forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(graph) << describe(graph.error());
    return SelectorIndex(shared(*std::move(graph)));
}

/// Rows of every kind of selector.
TableDocument rowsFor(const SelectorIndex &index, std::mt19937 &random)
{
    std::string text;
    const auto &operators = index.graph().operators;
    const auto pick = [&] { return operators[random() % index.forwardCount()]; };
    const auto name = [](const Operator &op) { return toString(selectName(globOf(op.name))).substr(5); };
    for (int i = 0; i < 40; ++i)
        text += "place name:" + name(pick()) + " : devices 0\n";
    for (int i = 0; i < 10; ++i)
        text += "place " + toString(selectSet({pick().name, pick().name, pick().name}))
            + " : devices 1  # a set\n";
    for (int i = 0; i < 10; ++i) {
        const Operator op = pick();
        const std::string &path = index.pathOf(op.scope);
        if (!path.empty())
            text += "split " + toString(selectIn(globOf(path))) + " : batch by 2  @gesture\n";
    }
    for (int i = 0; i < 10; ++i)
        text += "order name:" + name(pick()) + " before name:" + name(pick()) + "\n";
    text += "split kind:Linear : batch by 2\nrecompute name:*mlp* per layer\nzero1 weight:* by 2\nplace all "
            ": devices 0,1\n";
    if (!index.layers().scopes.empty())
        text += "stage layer:0 : 0\nstage !layer:0 : 1\noff place layer:0 & kind:Linear : devices 3\n";
    return TableDocument(text);
}

/// Rows that select the counterparts of what they selected, and what is new at most; of those that selected
/// any.
struct Bound {
    int all = 0;
    int right = 0;
    std::string wrong{};
};

Bound checkRows(const SelectorIndex &before, const SelectorIndex &after, const TableDocument &old,
    const TableDocument &now, const Changed &changed)
{
    Bound bound;
    std::set<std::int32_t> known(changed.after.begin(), changed.after.end());
    for (std::size_t line = 0; line < old.lines().size(); ++line) {
        const auto &row = old.lines()[line]->row;
        const auto &rewritten = now.lines()[line]->row;
        if (!row || !hasSelector(row->rule))
            continue;
        EXPECT_TRUE(rewritten);
        std::vector<std::int32_t> wanted;
        for (const OperatorId op : forwardOnes(before.graph(), before.select(row->selector))) {
            if (changed.after[static_cast<std::size_t>(op.index)] >= 0)
                wanted.push_back(changed.after[static_cast<std::size_t>(op.index)]);
        }
        std::sort(wanted.begin(), wanted.end());
        if (wanted.empty())
            continue;
        std::vector<std::int32_t> selected;
        for (const OperatorId op : forwardOnes(after.graph(), after.select(rewritten->selector))) {
            if (known.count(op.index) > 0)
                selected.push_back(op.index);
        }
        ++bound.all;
        if (selected == wanted && after.check(rewritten->selector))
            ++bound.right;
        else
            bound.wrong += old.lines()[line]->text + "   ->   " + now.lines()[line]->text + "\n";
    }
    return bound;
}

TableDocument rebound(const TableDocument &document, const Rebinding &rebinding)
{
    TableDocument now = document;
    EXPECT_TRUE(now.apply(rebinding.edit));
    EXPECT_EQ(now.lineCount(), document.lineCount());
    return now;
}

const char *const kModels[] = {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=4",
    "zoo:t5?layers=2&hidden=64&heads=4", "zoo:swin", "zoo:evoformer", "zoo:resnet", "zoo:mlp"};

Graph forwardModel(const char *spec)
{
    auto forward = buildZooModel(spec);
    EXPECT_TRUE(forward) << spec << describe(forward.error());
    return forward ? *std::move(forward) : Graph{};
}

} // namespace

TEST(Rebind, NothingChangesForTheSameModel)
{
    std::mt19937 random(1);
    for (const char *spec : kModels) {
        SCOPED_TRACE(spec);
        const Graph forward = forwardModel(spec);
        const SelectorIndex before = trainingIndexOf(forward);
        const TableDocument rows = rowsFor(before, random);
        const Rebinding rebinding = rebind(before, trainingIndexOf(forward), rows);
        EXPECT_TRUE(rebinding.edit.empty());
        EXPECT_EQ(rebinding.fresh, 0);
        EXPECT_EQ(rebinding.gone, 0);
        EXPECT_TRUE(rebinding.lost.empty());
        EXPECT_GT(rebinding.bound, 40);
    }
}

TEST(Rebind, ATenthOfTheOperatorsRenamed)
{
    std::mt19937 random(2);
    for (const char *spec : kModels) {
        SCOPED_TRACE(spec);
        const Graph forward = forwardModel(spec);
        const SelectorIndex before = trainingIndexOf(forward);
        for (int round = 0; round < 3; ++round) {
            Changed changed = unchanged(forward);
            rename(changed, 0.1, random);
            const SelectorIndex after = trainingIndexOf(changed.forward);
            const TableDocument rows = rowsFor(before, random);
            const Rebinding rebinding = rebind(before, after, rows);
            EXPECT_EQ(rebinding.fresh, 0);
            EXPECT_EQ(rebinding.gone, 0);
            const Bound bound = checkRows(before, after, rows, rebound(rows, rebinding), changed);
            EXPECT_GT(bound.all, 40);
            EXPECT_GE(bound.right, 0.95 * bound.all) << bound.wrong;
        }
    }
}

TEST(Rebind, EveryOperatorRenamed)
{
    std::mt19937 random(3);
    for (const char *spec : kModels) {
        SCOPED_TRACE(spec);
        const Graph forward = forwardModel(spec);
        const SelectorIndex before = trainingIndexOf(forward);
        Changed changed = unchanged(forward);
        rename(changed, 1, random);
        const SelectorIndex after = trainingIndexOf(changed.forward);
        const TableDocument rows = rowsFor(before, random);
        const Rebinding rebinding = rebind(before, after, rows);
        EXPECT_EQ(rebinding.fresh, 0);
        EXPECT_EQ(rebinding.gone, 0);
        const Bound bound = checkRows(before, after, rows, rebound(rows, rebinding), changed);
        EXPECT_GE(bound.right, 0.95 * bound.all) << bound.wrong;
    }
}

TEST(Rebind, OperatorsPutInAndTakenOut)
{
    std::mt19937 random(4);
    for (const char *spec : kModels) {
        SCOPED_TRACE(spec);
        const Graph forward = forwardModel(spec);
        const SelectorIndex before = trainingIndexOf(forward);
        Changed changed = unchanged(forward);
        int fresh = 0;
        while (fresh < 3) {
            const std::size_t at = random() % changed.forward.operators.size();
            const TensorId out = changed.forward.operators[at].outputs.front();
            const Tensor &tensor = changed.forward.at(out);
            if (tensor.type.dataType != DataType::Float32 || tensor.type.shape.empty()
                || out == changed.forward.loss)
                continue;
            insertBehind(changed, at, "put.in." + std::to_string(fresh++));
        }
        const bool one = [&] {
            for (std::size_t at = changed.forward.operators.size() / 2; at < changed.forward.operators.size();
                 ++at) {
                if (changed.forward.operators[at].name.rfind("put.in", 0) != 0 && takeOut(changed, at))
                    return true;
            }
            return false;
        }();
        rename(changed, 0.1, random);
        const SelectorIndex after = trainingIndexOf(changed.forward);
        const TableDocument rows = rowsFor(before, random);
        const Rebinding rebinding = rebind(before, after, rows);
        EXPECT_EQ(rebinding.fresh, 3);
        EXPECT_EQ(rebinding.gone, one ? 1 : 0);
        const Bound bound = checkRows(before, after, rows, rebound(rows, rebinding), changed);
        EXPECT_GE(bound.right, 0.95 * bound.all) << bound.wrong;
    }
}

TEST(Rebind, AnotherBatchSizeAndATenthRenamed)
{
    std::mt19937 random(5);
    const Graph forward = forwardModel("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=4");
    const SelectorIndex before = trainingIndexOf(forward);
    Changed changed = unchanged(forward);
    changed.forward = forwardModel("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8");
    ASSERT_EQ(changed.forward.operators.size(), forward.operators.size());
    rename(changed, 0.1, random);
    const SelectorIndex after = trainingIndexOf(changed.forward);
    const TableDocument rows = rowsFor(before, random);
    const Rebinding rebinding = rebind(before, after, rows);
    EXPECT_EQ(rebinding.fresh, 0);
    const Bound bound = checkRows(before, after, rows, rebound(rows, rebinding), changed);
    EXPECT_GE(bound.right, 0.95 * bound.all) << bound.wrong;
}

TEST(Rebind, NumberedNamesThatMoveOnAreNotTakenForWhatTheyWere)
{
    // As exporters number what has no name: one operator more, and each name is that of the one before.
    const Graph forward = [] {
        Graph graph = forwardModel("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=4");
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            graph.operators[i].name = "op_" + std::to_string(i);
        return graph;
    }();
    std::mt19937 random(6);
    const SelectorIndex before = trainingIndexOf(forward);
    Changed changed = unchanged(forward);
    insertBehind(changed, forward.operators.size() / 3, "x");
    for (std::size_t i = 0; i < changed.forward.operators.size(); ++i)
        changed.forward.operators[i].name = "op_" + std::to_string(i);
    const SelectorIndex after = trainingIndexOf(changed.forward);
    const TableDocument rows = rowsFor(before, random);
    const Rebinding rebinding = rebind(before, after, rows);
    EXPECT_EQ(rebinding.fresh, 1);
    EXPECT_EQ(rebinding.gone, 0);
    const Bound bound = checkRows(before, after, rows, rebound(rows, rebinding), changed);
    EXPECT_GE(bound.right, 0.95 * bound.all) << bound.wrong;
}

TEST(Rebind, RowsKeepTheirFormNotesAndOrigin)
{
    const Graph forward = forwardModel("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=4");
    const SelectorIndex before = trainingIndexOf(forward);
    Changed changed = unchanged(forward);
    std::string first;
    for (Operator &op : changed.forward.operators) {
        if (op.kind == OperatorKind::Linear && first.empty()) {
            first = op.name;
            op.name = "a b";
        }
    }
    const SelectorIndex after = trainingIndexOf(changed.forward);
    const TableDocument rows("# above\nplace name:" + first + " : devices 0  @gesture  # why\n"
        + "off split set{" + first + ", no.such} : batch by 2\nsplit kind:Linear : batch by 2\n"
        + "place name:no.such : devices 1\nthis is no row\n");
    const Rebinding rebinding = rebind(before, after, rows);
    EXPECT_EQ(rebound(rows, rebinding).text(),
        "# above\nplace name:\"a b\" : devices 0  @gesture  # why\n"
        "off split name:\"a b\" : batch by 2\nsplit kind:Linear : batch by 2\n"
        "place name:no.such : devices 1\nthis is no row\n");
    EXPECT_EQ(rebinding.bound, 3);
    EXPECT_EQ(rebinding.rewritten, (std::vector<std::int32_t>{1, 2}));
    EXPECT_TRUE(rebinding.lost.empty());
}

TEST(Rebind, RowsOfWhatIsGoneAreNamed)
{
    const Graph forward = forwardModel("zoo:mlp");
    const SelectorIndex before = trainingIndexOf(forward);
    Changed changed = unchanged(forward);
    std::size_t gone = 0;
    while (gone < forward.operators.size() && !takeOut(changed, gone))
        ++gone;
    ASSERT_LT(gone, forward.operators.size());
    const std::string name = forward.operators[gone].name;
    const std::string other = forward.operators[gone == 0 ? 1 : 0].name;
    const TableDocument rows(
        "place name:" + name + " : devices 0\nplace set{" + name + ", " + other + "} : devices 1\n");
    const Rebinding rebinding = rebind(before, trainingIndexOf(changed.forward), rows);
    EXPECT_EQ(rebinding.gone, 1);
    EXPECT_EQ(rebinding.lost, (std::vector<std::int32_t>{0}));
    EXPECT_EQ(rebinding.fewer, (std::vector<std::int32_t>{1}));
    EXPECT_EQ(rebound(rows, rebinding).text(),
        "place name:" + name + " : devices 0\nplace name:" + other + " : devices 1\n");
}

TEST(MatchOperators, FollowsBackwardAndOptimizerOperatorsAndIsOneToOne)
{
    std::mt19937 random(7);
    const Graph forward = forwardModel(kModels[0]);
    Changed changed = unchanged(forward);
    rename(changed, 0.5, random);
    const SelectorIndex before = trainingIndexOf(forward);
    const SelectorIndex after = trainingIndexOf(changed.forward);
    const GraphMatch match = matchOperators(before, after);
    ASSERT_EQ(before.graph().operators.size(), after.graph().operators.size());
    for (std::size_t i = 0; i < match.after.size(); ++i) {
        ASSERT_TRUE(match.after[i].valid()) << before.graph().operators[i].name;
        EXPECT_EQ(match.after[i].index, static_cast<std::int32_t>(i));
        EXPECT_EQ(
            match.before[static_cast<std::size_t>(match.after[i].index)].index, static_cast<std::int32_t>(i));
    }
}

TEST(MatchOperators, AnotherModelHasNothingInCommonButNames)
{
    for (const char *one : kModels) {
        for (const char *other : {kModels[0], kModels[4]}) {
            if (one == other || one == kModels[5]) // a perceptron is what other models end with
                continue;
            SCOPED_TRACE(std::string(one) + " -> " + other);
            const SelectorIndex before = trainingIndexOf(forwardModel(one));
            const SelectorIndex after = trainingIndexOf(forwardModel(other));
            const GraphMatch match = matchOperators(before, after);
            for (std::size_t i = 0; i < before.forwardCount(); ++i) {
                if (match.after[i].valid()) {
                    EXPECT_EQ(before.graph().operators[i].name, after.graph().at(match.after[i]).name);
                }
            }
        }
    }
}

TEST(MatchOperators, StopsWhenAskedTo)
{
    const SelectorIndex before = trainingIndexOf(forwardModel(kModels[0]));
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(
        rebind(before, before, TableDocument("place all : devices 0\n"), stop.get_token()).edit.empty());
}

} // namespace planloom
