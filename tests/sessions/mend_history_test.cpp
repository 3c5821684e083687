#include "sessions/mend_history.h"

#include "tests/sessions/session_fixture.h"

#include <algorithm>

namespace planloom {
namespace {

StoredHistory stored(const History &history)
{
    return {history.root(), history.steps(), {}, history.branches(), history.names(), history.current(),
        history.branch()};
}

/// 1 to 4 on "main", 5 and 6 from 2 on "branch 2", where it stands.
History tree()
{
    History history({TableDocument("one\n"), {}});
    const auto add = [&](const std::string &line) {
        EXPECT_TRUE(history.record("add " + line, {insertText(history.state().table, 1, line), {}}, 1));
    };
    for (const char *line : {"a", "b", "c", "d"})
        add(line);
    EXPECT_TRUE(history.goTo(2));
    for (const char *line : {"e", "f"})
        add(line);
    return history;
}

std::vector<std::string> words(const History &history)
{
    std::vector<std::string> result;
    for (const HistoryStep &step : history.steps())
        result.push_back(std::to_string(step.parent) + " " + step.words);
    return result;
}

TEST(MendHistory, LeavesASoundOneAsItIs)
{
    const History history = tree();
    const MendedHistory mended = mendHistory(stored(history));
    EXPECT_TRUE(mended.losses.empty());
    EXPECT_TRUE(mended.storedIds.empty());
    expectSame(mended.history, history);
}

TEST(MendHistory, KeepsTheOtherBranchOfALostStep)
{
    StoredHistory broken = stored(tree());
    broken.steps.erase(broken.steps.begin() + 2); // 3, which 4 follows
    broken.names = {{"kept", 6}, {"lost", 4}};
    const MendedHistory mended = mendHistory(broken);
    EXPECT_EQ(words(mended.history), (std::vector<std::string>{"0 add a", "1 add b", "2 add e", "3 add f"}));
    EXPECT_EQ(mended.storedIds, (std::vector<StepId>{1, 2, 5, 6}));
    EXPECT_EQ(mended.history.state(), tree().state());
    EXPECT_EQ(mended.history.branches(), (std::vector<Branch>{{0, "main", 2}, {1, "branch 2", 4}}));
    EXPECT_EQ(mended.history.names(), (std::map<std::string, StepId>{{"kept", 4}}));
    const auto says = [&](const std::string &part) {
        return std::any_of(mended.losses.begin(), mended.losses.end(),
            [&](const std::string &loss) { return loss.find(part) != std::string::npos; });
    };
    EXPECT_TRUE(says("step 3 is missing"));
    EXPECT_TRUE(says("1 step of the history had to be left out, the first being \"add d\""));
    EXPECT_TRUE(says("\"lost\""));
    EXPECT_TRUE(says("1 branch ended"));
}

TEST(MendHistory, GoesOnFromAWholeStateBehindTheDamage)
{
    const History history = tree();
    StoredHistory broken = stored(history);
    broken.steps.erase(broken.steps.begin()); // 1: nothing is reachable any more
    const MendedHistory without = mendHistory(broken);
    EXPECT_TRUE(without.history.steps().empty());
    EXPECT_EQ(without.history.state(), history.root());
    broken.states[5] = *history.stateAt(5);
    const MendedHistory mended = mendHistory(broken);
    EXPECT_EQ(words(mended.history), (std::vector<std::string>{"0 add e", "1 add f"}));
    EXPECT_EQ(mended.history.state(), history.state());
    EXPECT_EQ(*mended.history.stateAt(1), *history.stateAt(5));
}

TEST(MendHistory, MakesSomethingOfAnyHistory)
{
    RandomEditor editor(8);
    for (int trial = 0; trial < 300; ++trial) {
        StoredHistory broken = stored(tree());
        for (std::size_t change = 0; change <= editor.below(4); ++change) {
            if (broken.steps.empty())
                break;
            HistoryStep &step = broken.steps[editor.below(broken.steps.size())];
            switch (editor.below(8)) {
            case 0:
                step.parent = static_cast<StepId>(editor.below(12)) - 3;
                break;
            case 1:
                step.id = static_cast<StepId>(editor.below(12)) - 3;
                break;
            case 2:
                step.change.table.splices = {{static_cast<std::int32_t>(editor.below(9)), {"no"}, {"x"}}};
                break;
            case 3:
                broken.current = static_cast<StepId>(editor.below(12)) - 3;
                break;
            case 4:
                broken.branch = static_cast<std::int32_t>(editor.below(5)) - 2;
                break;
            case 5:
                broken.branches.resize(editor.below(3));
                break;
            case 6:
                broken.steps.erase(
                    broken.steps.begin() + static_cast<std::ptrdiff_t>(editor.below(broken.steps.size())));
                break;
            default:
                std::reverse(broken.steps.begin(), broken.steps.end());
                break;
            }
        }
        const MendedHistory mended = mendHistory(broken);
        const History &history = mended.history;
        const auto restored = History::restore(history.root(), history.steps(), history.branches(),
            history.names(), history.current(), history.branch());
        ASSERT_TRUE(restored) << describe(restored.error());
        if (!mended.losses.empty()) {
            for (const std::string &loss : mended.losses)
                EXPECT_FALSE(loss.empty());
        }
        EXPECT_TRUE(mended.storedIds.empty() || mended.storedIds.size() == history.steps().size());
    }
}

} // namespace
} // namespace planloom
