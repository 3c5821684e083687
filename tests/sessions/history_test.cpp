#include "sessions/history.h"

#include "tests/sessions/history_walk.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

DesignState stateOf(const std::string &text, std::map<std::string, std::string> values = {})
{
    return {TableDocument(text), std::move(values)};
}

/// A history that keeps every state instead of changes, and finds its ways by looking everywhere.
class NaiveHistory
{
public:
    explicit NaiveHistory(DesignState root)
        : states{std::move(root)}
        , parents{0}
        , heads{0}
    {
    }

    StepId record(const DesignState &state)
    {
        if (heads[branch] != current)
            addBranch();
        states.push_back(state);
        parents.push_back(current);
        current = static_cast<StepId>(states.size()) - 1;
        heads[branch] = current;
        return current;
    }
    void undo() { current = parents[static_cast<std::size_t>(current)]; }
    void redo()
    {
        const std::vector<StepId> path = pathTo(heads[branch]);
        const auto here = std::find(path.begin(), path.end(), current);
        if (here + 1 != path.end())
            current = here[1];
    }
    void goTo(StepId id)
    {
        current = id;
        const auto holds = [&](std::size_t each) {
            const std::vector<StepId> path = pathTo(heads[each]);
            return std::find(path.begin(), path.end(), id) != path.end();
        };
        if (holds(branch))
            return;
        for (branch = 0; branch < heads.size() && heads[branch] != id; ++branch) { }
        if (branch < heads.size())
            return;
        for (branch = 0; !holds(branch); ++branch) { }
    }
    void addBranch()
    {
        heads.push_back(current);
        branch = heads.size() - 1;
    }
    void switchTo(std::size_t id)
    {
        branch = id;
        current = heads[id];
    }
    std::vector<StepId> pathTo(StepId id) const ///< With the root.
    {
        std::vector<StepId> path{id};
        while (path.back() != 0)
            path.push_back(parents[static_cast<std::size_t>(path.back())]);
        std::reverse(path.begin(), path.end());
        return path;
    }
    const DesignState &state() const { return states[static_cast<std::size_t>(current)]; }

    std::vector<DesignState> states;
    std::vector<StepId> parents;
    std::vector<StepId> heads;
    StepId current = 0;
    std::size_t branch = 0;
};

void expectSame(const History &history, const NaiveHistory &naive)
{
    ASSERT_EQ(history.current(), naive.current);
    ASSERT_EQ(history.branch(), static_cast<std::int32_t>(naive.branch));
    ASSERT_EQ(history.branches().size(), naive.heads.size());
    for (std::size_t i = 0; i < naive.heads.size(); ++i)
        ASSERT_EQ(history.branches()[i].head, naive.heads[i]);
    ASSERT_EQ(history.state().table.text(), naive.state().table.text());
    ASSERT_EQ(history.state(), naive.state());
    ASSERT_EQ(history.canUndo(), naive.current != 0);
    ASSERT_EQ(history.canRedo(), naive.heads[naive.branch] != naive.current);
}

TEST(History, UndoingAThousandEditsGivesTheFirstTableByteForByte)
{
    RandomEditor editor(1);
    const std::string first = editor.text(40);
    History history(stateOf(first, {{"devices", "4"}}));
    std::vector<std::string> texts{first};
    for (int edit = 0; edit < 1000; ++edit) {
        const auto recorded =
            history.record("edit " + std::to_string(edit), editor.change(history.state()), edit);
        ASSERT_TRUE(recorded) << describe(recorded.error());
        ASSERT_EQ(*recorded, edit + 1);
        texts.push_back(history.state().table.text());
    }
    for (int edit = 999; edit >= 0; --edit) {
        ASSERT_EQ(history.undoWords(), "edit " + std::to_string(edit));
        history.undo();
        ASSERT_EQ(history.state().table.text(), texts[static_cast<std::size_t>(edit)]);
    }
    EXPECT_FALSE(history.canUndo());
    EXPECT_EQ(history.undoWords(), "");
    EXPECT_EQ(history.state(), stateOf(first, {{"devices", "4"}}));
    for (int edit = 0; edit < 1000; ++edit) {
        ASSERT_EQ(history.redoWords(), "edit " + std::to_string(edit));
        history.redo();
        ASSERT_EQ(history.state().table.text(), texts[static_cast<std::size_t>(edit + 1)]);
    }
    EXPECT_FALSE(history.canRedo());
}

TEST(History, WalksAsAModelThatKeepsEveryState)
{
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        RandomEditor editor(seed);
        History history(stateOf(editor.text(6)));
        NaiveHistory naive(history.root());
        for (int move = 0; move < 300; ++move) {
            const std::size_t kind = editor.below(12);
            if (kind < 5) {
                const DesignChange change = editor.change(history.state());
                DesignState after = naive.state();
                ASSERT_TRUE(apply(after, change));
                const auto recorded = history.record("edit", change, move);
                ASSERT_TRUE(recorded) << describe(recorded.error());
                ASSERT_EQ(*recorded, naive.record(after));
            } else if (kind < 7) {
                history.undo();
                naive.undo();
            } else if (kind < 9) {
                history.redo();
                naive.redo();
            } else if (kind < 10) {
                const auto target = static_cast<StepId>(editor.below(naive.states.size()));
                ASSERT_TRUE(history.goTo(target));
                naive.goTo(target);
            } else if (kind < 11) {
                const std::size_t target = editor.below(naive.heads.size());
                ASSERT_TRUE(history.switchBranch(static_cast<std::int32_t>(target)));
                naive.switchTo(target);
            } else {
                history.addBranch({});
                naive.addBranch();
            }
            ASSERT_NO_FATAL_FAILURE(expectSame(history, naive));
        }
        for (std::size_t id = 0; id < naive.states.size(); ++id) {
            const auto state = history.stateAt(static_cast<StepId>(id));
            ASSERT_TRUE(state);
            ASSERT_EQ(*state, naive.states[id]);
            std::vector<StepId> path = naive.pathTo(static_cast<StepId>(id));
            path.erase(path.begin());
            ASSERT_EQ(history.pathTo(static_cast<StepId>(id)), path);
        }
        const auto restored = History::restore(history.root(), history.steps(), history.branches(),
            history.names(), history.current(), history.branch());
        ASSERT_TRUE(restored) << describe(restored.error());
        ASSERT_NO_FATAL_FAILURE(expectSame(*restored, naive));
        ASSERT_EQ(restored->steps(), history.steps());
        ASSERT_EQ(restored->branches(), history.branches());
    }
}

TEST(History, DifferenceIsWhatApplyCarriesOut)
{
    RandomEditor editor(5);
    for (int trial = 0; trial < 200; ++trial) {
        const DesignState before = stateOf(editor.text(editor.below(6)), {{"a", "1"}, {"b", "2"}});
        const DesignState after =
            stateOf(editor.text(editor.below(6)), {{"b", std::to_string(editor.below(4))}, {"c", "3"}});
        const DesignChange change = difference(before, after);
        DesignState state = before;
        ASSERT_TRUE(apply(state, change));
        ASSERT_EQ(state, after);
        ASSERT_TRUE(apply(state, inverse(change)));
        ASSERT_EQ(state, before);
        EXPECT_EQ(inverse(inverse(change)), change);
    }
    EXPECT_TRUE(difference(stateOf("a\n"), stateOf("a\n")).empty());
}

TEST(History, AChangeThatDoesNotFitChangesNothing)
{
    DesignState state = stateOf("mesh dp=2\n", {{"devices", "4"}});
    const DesignState before = state;
    DesignChange wrongTable;
    wrongTable.table.splices = {{0, {"mesh dp=4"}, {"mesh dp=8"}}};
    wrongTable.values = {{"devices", "4", "8"}, {"cluster", std::nullopt, "pc"}};
    EXPECT_EQ(apply(state, wrongTable).error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(state, before);
    DesignChange wrongValue;
    wrongValue.values = {{"cluster", std::nullopt, "pc"}, {"devices", "3", "8"}};
    EXPECT_EQ(apply(state, wrongValue).error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(state, before);
    History history(before);
    EXPECT_FALSE(history.record("no", wrongTable, 0));
    EXPECT_FALSE(history.record("no", wrongValue, 0));
    EXPECT_TRUE(history.steps().empty());
    EXPECT_EQ(history.state(), before);
}

TEST(History, AnEditBehindTheHeadBeginsABranchAndLosesNothing)
{
    History history(stateOf("one\n"));
    ASSERT_TRUE(history.record("add two", {insertText(history.state().table, 1, "two"), {}}, 1));
    ASSERT_TRUE(history.record("add three", {insertText(history.state().table, 2, "three"), {}}, 2));
    history.undo();
    ASSERT_TRUE(history.record("add four", {insertText(history.state().table, 2, "four"), {}}, 3));
    EXPECT_EQ(history.branches(), (std::vector<Branch>{{0, "main", 2}, {1, "branch 2", 3}}));
    EXPECT_EQ(history.branch(), 1);
    EXPECT_EQ(history.state().table.text(), "one\ntwo\nfour\n");
    ASSERT_TRUE(history.switchBranch(0));
    EXPECT_EQ(history.state().table.text(), "one\ntwo\nthree\n");
    ASSERT_TRUE(history.goTo(1));
    EXPECT_EQ(history.branch(), 0);
    EXPECT_EQ(history.redoWords(), "add three");
    ASSERT_TRUE(history.goTo(3));
    EXPECT_EQ(history.branch(), 1);
    EXPECT_EQ(history.pathTo(3), (std::vector<StepId>{1, 3}));
    EXPECT_EQ(history.goTo(4).error().code, ErrorCode::NotFound);
    EXPECT_EQ(history.goTo(-1).error().code, ErrorCode::NotFound);
    EXPECT_EQ(history.stateAt(9).error().code, ErrorCode::NotFound);
    EXPECT_EQ(history.switchBranch(2).error().code, ErrorCode::NotFound);
    EXPECT_EQ(history.current(), 3);
}

TEST(History, AmendingDownToAnEmptyTableLosesNothing)
{
    // Typed without a line end, then removed: the step says nothing any more, and what follows must fit its
    // parent.
    History history(stateOf(""));
    ASSERT_TRUE(history.record("type", {difference(history.state().table, TableDocument("# a")), {}}, 1));
    ASSERT_TRUE(*history.amend("remove", {removeLines(history.state().table, {0}), {}}));
    ASSERT_TRUE(history.record("type again", {insertText(history.state().table, 0, "# b"), {}}, 2));
    const std::string last = history.state().table.text();
    history.undo();
    EXPECT_EQ(history.state().table.text(), "");
    history.undo();
    history.redo();
    history.redo();
    EXPECT_EQ(history.state().table.text(), last);
    const auto restored =
        History::restore(history.root(), history.steps(), history.branches(), {}, history.current(), 0);
    ASSERT_TRUE(restored) << describe(restored.error());
    EXPECT_EQ(restored->state().table.text(), last);
}

TEST(History, FiguresAreOfAnyStepTheRootToo)
{
    History history;
    ASSERT_TRUE(history.record("edit", {{}, {{"v", std::nullopt, "1"}}}, 1));
    for (const StepId step : {kRootStep, StepId{1}}) {
        EXPECT_TRUE(history.holds(step));
        EXPECT_EQ(history.figuresOf(step), nullptr);
        history.setFigures(step, {0.5 + static_cast<double>(step), 3, true});
        ASSERT_NE(history.figuresOf(step), nullptr);
        EXPECT_EQ(*history.figuresOf(step), (StepFigures{0.5 + static_cast<double>(step), 3, true}));
    }
    for (const StepId step : {StepId{-1}, StepId{2}}) {
        EXPECT_FALSE(history.holds(step));
        history.setFigures(step, {});
        EXPECT_EQ(history.figuresOf(step), nullptr);
    }
}

TEST(History, AmendJoinsIntoTheLastStep)
{
    History history(stateOf("one\ntwo\nthree\n", {{"devices", "1"}}));
    const auto nothing = history.amend("x", {});
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing); // there is no step yet
    const auto press = [&](const std::string &line, const std::string &devices) {
        DesignState after = history.state();
        after.values["devices"] = devices;
        return DesignChange{replaceLine(after.table, 1, line), difference(history.state(), after).values};
    };
    ASSERT_TRUE(history.record("to 2", press("two 2", "2"), 7));
    history.setFigures(1, {0.5, 10, true});
    const auto amended = history.amend("to 3", press("two 3", "3"));
    ASSERT_TRUE(amended) << describe(amended.error());
    EXPECT_TRUE(*amended);
    const DesignChange expected{{{{1, {"two"}, {"two 3"}}}}, {{"devices", "1", "3"}}};
    EXPECT_EQ(history.steps(), (std::vector<HistoryStep>{{1, 0, "to 3", 7, expected, std::nullopt}}));
    EXPECT_EQ(history.state(), stateOf("one\ntwo 3\nthree\n", {{"devices", "3"}}));
    EXPECT_EQ(history.amend("no", press("x", "2")).has_value(), true);
    DesignChange wrong;
    wrong.values = {{"devices", "9", "1"}};
    EXPECT_EQ(history.amend("no", wrong).error().code, ErrorCode::InvalidInput);
    history.undo();
    EXPECT_EQ(history.state(), history.root());
    history.redo();
    EXPECT_EQ(history.state().values.at("devices"), "2");
}

TEST(History, AmendLeavesWhatOthersHoldOnTo)
{
    const auto refuses = [](History &history) {
        const auto steps = history.steps();
        const auto amended = history.amend("more", {insertText(history.state().table, 0, "more"), {}});
        return amended && !*amended && history.steps() == steps;
    };
    const auto begun = [] {
        History history(stateOf("one\n"));
        EXPECT_TRUE(history.record("a", {insertText(history.state().table, 0, "a"), {}}, 1));
        return history;
    };
    History named = begun();
    named.setName("best", 1);
    EXPECT_TRUE(refuses(named));
    named.removeName("best");
    EXPECT_FALSE(refuses(named));

    History undone = begun();
    undone.undo();
    EXPECT_TRUE(refuses(undone));

    History branched = begun();
    branched.addBranch("other");
    EXPECT_TRUE(refuses(branched)); // "main" ends here as well
    ASSERT_TRUE(branched.record("b", {insertText(branched.state().table, 0, "b"), {}}, 2));
    ASSERT_TRUE(branched.switchBranch(0));
    EXPECT_TRUE(refuses(branched)); // "other" goes on from here

    History behind = begun();
    ASSERT_TRUE(behind.record("b", {insertText(behind.state().table, 0, "b"), {}}, 2));
    behind.undo();
    EXPECT_TRUE(refuses(behind));
}

TEST(History, NamesAndBranchNamesAreUnique)
{
    History history;
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(history.record("edit", {{}, {{"v" + std::to_string(i), std::nullopt, "1"}}}, i));
    history.setName("best", 1);
    history.setName("best", 3);
    history.setName("first", 1);
    history.setName("nowhere", 9);
    history.setName("first", kRootStep); // takes none, and takes none away
    EXPECT_EQ(history.names(), (std::map<std::string, StepId>{{"best", 3}, {"first", 1}}));
    history.removeName("first");
    EXPECT_EQ(history.names(), (std::map<std::string, StepId>{{"best", 3}}));
    EXPECT_EQ(history.addBranch("main"), 1);
    EXPECT_EQ(history.addBranch(""), 2);
    EXPECT_EQ(history.branches()[1].name, "main 2");
    EXPECT_EQ(history.branches()[2].name, "branch 3");
    EXPECT_EQ(history.renameBranch(2, "main").error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(history.renameBranch(2, "").error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(history.renameBranch(7, "x").error().code, ErrorCode::NotFound);
    ASSERT_TRUE(history.renameBranch(2, "pipeline first"));
    ASSERT_TRUE(history.renameBranch(2, "pipeline first"));
    EXPECT_EQ(history.branches()[2].name, "pipeline first");
}

TEST(History, RestoreNamesTheFirstThingThatDoesNotFit)
{
    const DesignState root = stateOf("one\n");
    const auto step = [](StepId id, StepId parent, const std::string &name) {
        return HistoryStep{id, parent, "set " + name, 0, {{}, {{name, std::nullopt, "1"}}}, std::nullopt};
    };
    const std::vector<HistoryStep> steps{step(1, 0, "a"), step(2, 1, "b"), step(3, 1, "c")};
    const std::vector<Branch> branches{{0, "main", 2}, {1, "branch 2", 3}};
    const auto messageOf = [&](std::vector<HistoryStep> s, std::vector<Branch> b,
                               std::map<std::string, StepId> names, StepId current, std::int32_t branch) {
        const auto restored =
            History::restore(root, std::move(s), std::move(b), std::move(names), current, branch);
        return restored ? std::string("ok") : restored.error().message;
    };
    EXPECT_EQ(messageOf(steps, branches, {{"x", 2}}, 3, 1), "ok");
    EXPECT_EQ(messageOf({}, {}, {}, 0, 0), "ok");
    const auto expect = [](const std::string &message, const std::string &part) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    };
    expect(messageOf({steps[0], steps[2]}, branches, {}, 0, 0), "step 2 is missing");
    expect(messageOf({steps[0], step(2, 2, "b")}, branches, {}, 0, 0), "step 2 follows step 2");
    expect(messageOf({steps[0], step(2, 3, "b"), steps[2]}, branches, {}, 0, 0), "step 2 follows step 3");
    expect(messageOf({step(1, -4, "a")}, {{0, "main", 1}}, {}, 0, 0), "step 1 follows");
    expect(messageOf({steps[0], step(2, 1, "a"), steps[2]}, branches, {}, 0, 0), "step 2 (set a)");
    expect(messageOf(steps, {{0, "main", 2}}, {}, 0, 0), "step 3 is on no branch");
    expect(messageOf(steps, {{0, "main", 2}, {1, "x", 4}}, {}, 0, 0), "\"x\" ends at a step that is missing");
    expect(messageOf(steps, {{0, "main", 2}, {2, "x", 3}}, {}, 0, 0), "branch 1 is missing");
    expect(messageOf(steps, branches, {{"best", 4}}, 0, 0), "\"best\"");
    expect(messageOf(steps, branches, {}, 3, 0), "not on its current branch");
    expect(messageOf(steps, branches, {}, 7, 0), "current step");
    expect(messageOf(steps, branches, {}, 0, 2), "current branch is missing");
}

} // namespace
} // namespace planloom
