#include "sessions/mend_history.h"

#include "engine/base/words.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace planloom {

namespace {

/// Finds out which steps can be kept.
class Mender
{
public:
    explicit Mender(StoredHistory &stored)
        : m_stored(stored)
    {
        std::vector<HistoryStep> &steps = m_stored.steps;
        std::stable_sort(steps.begin(), steps.end(),
            [](const HistoryStep &left, const HistoryStep &right) { return left.id < right.id; });
        steps.erase(
            std::unique(steps.begin(), steps.end(),
                [](const HistoryStep &left, const HistoryStep &right) { return left.id == right.id; }),
            steps.end());
        steps.erase(steps.begin(),
            std::find_if(steps.begin(), steps.end(), [](const HistoryStep &step) { return step.id > 0; }));
        m_isKept.resize(steps.size());
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].parent >= 0 && steps[i].parent < steps[i].id)
                m_children[steps[i].parent].push_back(i);
        }
    }

    void keepWhatFits()
    {
        keepBelow(0, m_stored.root);
        for (auto &[id, state] : m_stored.states) {
            const std::size_t place = find(id);
            if (place == m_stored.steps.size() || m_isKept[place])
                continue;
            HistoryStep &step = m_stored.steps[place];
            step.parent = 0;
            step.change = difference(m_stored.root, state);
            m_isKept[place] = true;
            ++m_joints;
            keepBelow(id, state);
        }
    }

    /// The kept step that `id` is, or that came before it. What came before a step that is missing is not
    /// known: then it is the last kept one with a smaller id, which it mostly is.
    StepId keptBefore(StepId id) const
    {
        while (id > 0) {
            const std::size_t place = find(id);
            if (place == m_stored.steps.size()) {
                const auto after = std::lower_bound(m_stored.steps.begin(), m_stored.steps.end(), id,
                    [](const HistoryStep &step, StepId wanted) { return step.id < wanted; });
                id = after == m_stored.steps.begin() ? 0 : std::prev(after)->id;
                continue;
            }
            if (m_isKept[place])
                return id;
            const StepId parent = m_stored.steps[place].parent;
            id = parent < id ? parent : 0;
        }
        return 0;
    }

    bool isKept(std::size_t place) const { return m_isKept[place]; }
    std::size_t joints() const { return m_joints; }

private:
    std::size_t find(StepId id) const
    {
        const auto &steps = m_stored.steps;
        const auto place = std::lower_bound(steps.begin(), steps.end(), id,
            [](const HistoryStep &step, StepId wanted) { return step.id < wanted; });
        return place != steps.end() && place->id == id ? static_cast<std::size_t>(place - steps.begin())
                                                       : steps.size();
    }

    /// Tries all that follows `top`, whose state is `state`: down the tree and up again.
    void keepBelow(StepId top, DesignState state)
    {
        struct Frame {
            std::size_t place = 0; ///< Of the step; unused for the first.
            StepId id = 0;
            std::size_t next = 0; ///< Child to try.
        };
        std::vector<Frame> way{{0, top, 0}};
        while (!way.empty()) {
            Frame &frame = way.back();
            const auto children = m_children.find(frame.id);
            if (children != m_children.end() && frame.next < children->second.size()) {
                const std::size_t place = children->second[frame.next++];
                if (m_isKept[place] || !apply(state, m_stored.steps[place].change))
                    continue;
                m_isKept[place] = true;
                way.push_back({place, m_stored.steps[place].id, 0});
                continue;
            }
            if (way.size() > 1 && !apply(state, inverse(m_stored.steps[frame.place].change)))
                return; // cannot be: it applied before
            way.pop_back();
        }
    }

    StoredHistory &m_stored;
    std::map<StepId, std::vector<std::size_t>> m_children{}; ///< Places of steps, by the id of their parent.
    std::vector<bool> m_isKept{};
    std::size_t m_joints = 0;
};

} // namespace

MendedHistory mendHistory(StoredHistory stored)
{
    auto whole = History::restore(
        stored.root, stored.steps, stored.branches, stored.names, stored.current, stored.branch);
    if (whole)
        return {*std::move(whole), {}, {}};

    MendedHistory mended;
    mended.losses.push_back(whole.error().message);
    Mender mender(stored);
    mender.keepWhatFits();

    std::map<StepId, StepId> newIds{{0, 0}};
    std::vector<HistoryStep> steps;
    std::string firstLost;
    std::size_t lost = 0;
    for (std::size_t i = 0; i < stored.steps.size(); ++i) {
        HistoryStep &step = stored.steps[i];
        if (!mender.isKept(i)) {
            if (lost++ == 0)
                firstLost = step.words;
            continue;
        }
        mended.storedIds.push_back(step.id);
        newIds[step.id] = static_cast<StepId>(steps.size()) + 1;
        steps.push_back(step);
        steps.back().id = newIds[step.id];
        steps.back().parent = newIds.at(step.parent); // kept before its children
    }
    if (lost > 0)
        mended.losses.push_back(counted(static_cast<std::int64_t>(lost), "step")
            + " of the history had to be left out, the first being \"" + firstLost + "\"");
    if (mender.joints() > 0) {
        mended.losses.push_back("what came before "
            + counted(static_cast<std::int64_t>(mender.joints()), "step")
            + " is lost; there the history goes on from the state as a whole");
    }

    std::vector<Branch> branches;
    std::vector<bool> isOnBranch(steps.size() + 1);
    const auto cover = [&](StepId head) {
        for (StepId id = head; id != 0 && !isOnBranch[static_cast<std::size_t>(id)];
             id = steps[static_cast<std::size_t>(id - 1)].parent)
            isOnBranch[static_cast<std::size_t>(id)] = true;
    };
    std::size_t moved = 0;
    for (const Branch &branch : stored.branches) {
        const StepId head = mender.keptBefore(branch.head);
        moved += head == branch.head ? 0 : 1;
        branches.push_back({static_cast<std::int32_t>(branches.size()), branch.name, newIds.at(head)});
        cover(branches.back().head);
    }
    if (moved > 0)
        mended.losses.push_back(
            counted(static_cast<std::int64_t>(moved), "branch") + " ended at a step that is lost");
    if (branches.empty()) {
        branches.push_back({0, "main", static_cast<StepId>(steps.size())});
        cover(branches.back().head);
        mended.losses.push_back("its branches are lost");
    }
    for (auto id = static_cast<StepId>(steps.size()); id > 0; --id) { // ends first
        if (isOnBranch[static_cast<std::size_t>(id)])
            continue;
        const auto number = static_cast<std::int32_t>(branches.size());
        branches.push_back({number, "recovered " + std::to_string(number), id});
        cover(id);
    }
    std::map<std::string, StepId> names;
    for (const auto &[name, id] : stored.names) {
        const auto found = newIds.find(id);
        if (id > 0 && found != newIds.end())
            names[name] = found->second;
        else
            mended.losses.push_back("the step named \"" + name + "\" is lost");
    }
    const StepId kept = mender.keptBefore(stored.current);
    StepId current = newIds.at(kept);
    if (kept != stored.current || (current == 0 && stored.current != 0)) {
        current = current == 0 ? static_cast<StepId>(steps.size()) : current;
        mended.losses.push_back("the step it stood at is lost; it now stands at "
            + (current == 0 ? std::string("the first state")
                            : "\"" + steps[static_cast<std::size_t>(current - 1)].words + "\""));
    }
    const auto leads = [&](const Branch &branch) {
        StepId id = branch.head;
        while (id > current)
            id = steps[static_cast<std::size_t>(id - 1)].parent;
        return id == current;
    };
    std::int32_t branch = stored.branch;
    if (branch < 0 || branch >= static_cast<std::int32_t>(branches.size())
        || !leads(branches[static_cast<std::size_t>(branch)]))
        branch = std::find_if(branches.begin(), branches.end(), leads)->id; // every step is on one
    auto history = History::restore(
        stored.root, std::move(steps), std::move(branches), std::move(names), current, branch);
    if (history) {
        mended.history = *std::move(history);
    } else {
        mended.losses.push_back("nothing but the first state is left: " + history.error().message);
        mended.history = History(std::move(stored.root));
        mended.storedIds.clear();
    }
    return mended;
}

} // namespace planloom
