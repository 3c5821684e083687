#include "sessions/history.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace planloom {

namespace {

/// Sets or removes `name`.
void put(std::map<std::string, std::string> &values, const std::string &name,
    const std::optional<std::string> &value)
{
    if (value)
        values[name] = *value;
    else
        values.erase(name);
}

bool holds(const std::map<std::string, std::string> &values, const std::string &name,
    const std::optional<std::string> &value)
{
    const auto found = values.find(name);
    return value ? found != values.end() && found->second == *value : found == values.end();
}

std::size_t linesOf(const TableEdit &edit)
{
    std::size_t lines = 0;
    for (const TableSplice &splice : edit.splices)
        lines += splice.removed.size() + splice.inserted.size();
    return lines;
}

/// The values' changes one after the other, as one.
std::vector<ValueChange> joinedValues(
    const std::vector<ValueChange> &first, const std::vector<ValueChange> &second)
{
    std::map<std::string, ValueChange> byName;
    for (const auto *changes : {&first, &second}) {
        for (const ValueChange &change : *changes) {
            const auto [place, isNew] = byName.emplace(change.name, change);
            if (!isNew)
                place->second.after = change.after;
        }
    }
    std::vector<ValueChange> result;
    for (auto &[name, change] : byName) {
        if (change.before != change.after)
            result.push_back(std::move(change));
    }
    return result;
}

Error misfit(const std::string &message)
{
    return {ErrorCode::InvalidInput, "the history does not fit together: " + message};
}

std::string stepName(StepId id)
{
    return "step " + std::to_string(id);
}

} // namespace

DesignChange difference(const DesignState &before, const DesignState &after)
{
    DesignChange change{difference(before.table, after.table), {}};
    auto old = before.values.begin();
    auto now = after.values.begin();
    while (old != before.values.end() || now != after.values.end()) {
        const bool onlyOld =
            now == after.values.end() || (old != before.values.end() && old->first < now->first);
        const bool onlyNew =
            old == before.values.end() || (now != after.values.end() && now->first < old->first);
        if (onlyOld) {
            change.values.push_back({old->first, old->second, std::nullopt});
            ++old;
        } else if (onlyNew) {
            change.values.push_back({now->first, std::nullopt, now->second});
            ++now;
        } else {
            if (old->second != now->second)
                change.values.push_back({old->first, old->second, now->second});
            ++old;
            ++now;
        }
    }
    return change;
}

DesignChange inverse(const DesignChange &change)
{
    DesignChange result{inverse(change.table), {}};
    result.values.reserve(change.values.size());
    for (auto value = change.values.rbegin(); value != change.values.rend(); ++value)
        result.values.push_back({value->name, value->after, value->before});
    return result;
}

Result<void> apply(DesignState &state, const DesignChange &change)
{
    const auto takeBack = [&](std::size_t count) {
        for (; count > 0; --count)
            put(state.values, change.values[count - 1].name, change.values[count - 1].before);
    };
    for (std::size_t i = 0; i < change.values.size(); ++i) {
        const ValueChange &value = change.values[i];
        if (!holds(state.values, value.name, value.before)) {
            takeBack(i);
            return Error{ErrorCode::InvalidInput,
                "the value \"" + value.name + "\" is not what the change starts from"};
        }
        put(state.values, value.name, value.after);
    }
    if (!change.table.empty()) {
        if (auto applied = state.table.apply(change.table); !applied) {
            takeBack(change.values.size());
            return applied;
        }
    }
    return {};
}

History::History()
    : History(DesignState{})
{
}

History::History(DesignState root)
    : m_root(std::move(root))
    , m_state(m_root)
    , m_branches{{0, "main", 0}}
{
}

const HistoryStep *History::find(StepId id) const
{
    return id < 1 || id > static_cast<StepId>(m_steps.size()) ? nullptr
                                                              : &m_steps[static_cast<std::size_t>(id - 1)];
}

bool History::holds(StepId id) const
{
    return id == kRootStep || find(id);
}

const StepFigures *History::figuresOf(StepId id) const
{
    const HistoryStep *step = find(id);
    const std::optional<StepFigures> &figures = step ? step->figures : m_rootFigures;
    return holds(id) && figures ? &*figures : nullptr;
}

namespace {

/// Id of the parent; 0 for the root and its children.
StepId parentOf(const std::vector<HistoryStep> &steps, StepId id)
{
    return id < 1 ? 0 : steps[static_cast<std::size_t>(id - 1)].parent;
}

/// True if `id` is `head` or before it.
bool leadsTo(const std::vector<HistoryStep> &steps, StepId id, StepId head)
{
    while (head > id) // parents have smaller ids
        head = parentOf(steps, head);
    return head == id;
}

/// The step after `from` on the way to `head`, which lies behind it.
StepId nextTowards(const std::vector<HistoryStep> &steps, StepId from, StepId head)
{
    while (parentOf(steps, head) != from)
        head = parentOf(steps, head);
    return head;
}

/// Takes `state` from step `from` to step `to`.
void travel(const std::vector<HistoryStep> &steps, DesignState &state, StepId from, StepId to)
{
    std::vector<StepId> down;
    const auto carryOut = [&](const DesignChange &change) {
        [[maybe_unused]] const auto applied = apply(state, change);
        assert(applied); // `record`, `amend` and `restore` let nothing else in
    };
    while (from != to) {
        if (from > to) {
            carryOut(inverse(steps[static_cast<std::size_t>(from - 1)].change));
            from = parentOf(steps, from);
        } else {
            down.push_back(to);
            to = parentOf(steps, to);
        }
    }
    for (auto step = down.rbegin(); step != down.rend(); ++step)
        carryOut(steps[static_cast<std::size_t>(*step - 1)].change);
}

std::string freeName(const std::vector<Branch> &branches, const std::string &wish)
{
    const auto isTaken = [&](const std::string &name) {
        return std::any_of(
            branches.begin(), branches.end(), [&](const Branch &branch) { return branch.name == name; });
    };
    if (!wish.empty() && !isTaken(wish))
        return wish;
    const std::string stem = wish.empty() ? "branch" : wish;
    for (std::size_t number = wish.empty() ? branches.size() + 1 : 2;; ++number) {
        const std::string name = stem + " " + std::to_string(number);
        if (!isTaken(name))
            return name;
    }
}

} // namespace

Result<StepId> History::record(std::string words, DesignChange change, std::int64_t created)
{
    TRY_VOID(apply(m_state, change));
    if (m_branches[static_cast<std::size_t>(m_branch)].head != m_current)
        addBranch({});
    const StepId id = static_cast<StepId>(m_steps.size()) + 1;
    m_steps.push_back({id, m_current, std::move(words), created, std::move(change), std::nullopt});
    m_current = id;
    m_branches[static_cast<std::size_t>(m_branch)].head = id;
    return id;
}

Result<bool> History::amend(std::string words, const DesignChange &change)
{
    if (m_current == 0 || m_branches[static_cast<std::size_t>(m_branch)].head != m_current)
        return false;
    for (const Branch &branch : m_branches) {
        if (branch.id != m_branch && branch.head == m_current)
            return false;
    }
    for (const auto &[name, id] : m_names) {
        if (id == m_current)
            return false;
    }
    if (std::any_of(m_steps.begin() + static_cast<std::ptrdiff_t>(m_current), m_steps.end(),
            [&](const HistoryStep &step) { return step.parent == m_current; }))
        return false;
    HistoryStep &step = m_steps[static_cast<std::size_t>(m_current - 1)];
    DesignState before = m_state;
    TRY_VOID(apply(m_state, change));
    if (!change.table.empty()) {
        // One splice says it most shortly, unless the two edits lie far apart.
        [[maybe_unused]] const auto undone = before.table.apply(inverse(step.change.table));
        assert(undone);
        TableEdit chain = joined(step.change.table, change.table);
        TableEdit single = difference(before.table, m_state.table);
        step.change.table = linesOf(chain) < linesOf(single) ? std::move(chain) : std::move(single);
    }
    step.change.values = joinedValues(step.change.values, change.values);
    step.words = std::move(words);
    step.figures.reset(); // they were of another plan
    return true;
}

bool History::canUndo() const
{
    return m_current != 0;
}

bool History::canRedo() const
{
    return m_branches[static_cast<std::size_t>(m_branch)].head != m_current;
}

std::string History::undoWords() const
{
    const HistoryStep *step = find(m_current);
    return step ? step->words : std::string{};
}

std::string History::redoWords() const
{
    if (!canRedo())
        return {};
    return find(nextTowards(m_steps, m_current, m_branches[static_cast<std::size_t>(m_branch)].head))->words;
}

void History::undo()
{
    if (!canUndo())
        return;
    const StepId target = parentOf(m_steps, m_current);
    travel(m_steps, m_state, m_current, target);
    m_current = target;
}

void History::redo()
{
    if (!canRedo())
        return;
    const StepId target =
        nextTowards(m_steps, m_current, m_branches[static_cast<std::size_t>(m_branch)].head);
    travel(m_steps, m_state, m_current, target);
    m_current = target;
}

Result<void> History::goTo(StepId id)
{
    if (!holds(id))
        return Error{ErrorCode::NotFound, "the history has no " + stepName(id)};
    travel(m_steps, m_state, m_current, id);
    m_current = id;
    if (leadsTo(m_steps, id, m_branches[static_cast<std::size_t>(m_branch)].head))
        return {};
    const auto ending = std::find_if(
        m_branches.begin(), m_branches.end(), [&](const Branch &branch) { return branch.head == id; });
    const auto holding = ending != m_branches.end()
        ? ending
        : std::find_if(m_branches.begin(), m_branches.end(),
            [&](const Branch &branch) { return leadsTo(m_steps, id, branch.head); });
    assert(holding != m_branches.end());
    m_branch = holding->id;
    return {};
}

std::vector<StepId> History::pathTo(StepId id) const
{
    std::vector<StepId> path;
    for (; find(id); id = parentOf(m_steps, id))
        path.push_back(id);
    std::reverse(path.begin(), path.end());
    return path;
}

Result<DesignState> History::stateAt(StepId id) const
{
    if (id == 0)
        return m_root;
    if (!find(id))
        return Error{ErrorCode::NotFound, "the history has no " + stepName(id)};
    DesignState state = m_state;
    travel(m_steps, state, m_current, id);
    return state;
}

std::int32_t History::addBranch(std::string name)
{
    const auto id = static_cast<std::int32_t>(m_branches.size());
    m_branches.push_back({id, freeName(m_branches, name), m_current});
    m_branch = id;
    return id;
}

Result<void> History::switchBranch(std::int32_t id)
{
    if (id < 0 || id >= static_cast<std::int32_t>(m_branches.size()))
        return Error{ErrorCode::NotFound, "the history has no branch " + std::to_string(id)};
    const StepId head = m_branches[static_cast<std::size_t>(id)].head;
    travel(m_steps, m_state, m_current, head);
    m_current = head;
    m_branch = id;
    return {};
}

Result<void> History::renameBranch(std::int32_t id, std::string name)
{
    if (id < 0 || id >= static_cast<std::int32_t>(m_branches.size()))
        return Error{ErrorCode::NotFound, "the history has no branch " + std::to_string(id)};
    if (name.empty())
        return Error{ErrorCode::InvalidInput, "a branch needs a name", "give it one"};
    for (const Branch &branch : m_branches) {
        if (branch.id != id && branch.name == name) {
            return Error{
                ErrorCode::InvalidInput, "there is already a branch \"" + name + "\"", "choose another name"};
        }
    }
    m_branches[static_cast<std::size_t>(id)].name = std::move(name);
    return {};
}

void History::setName(const std::string &name, StepId id)
{
    if (find(id))
        m_names[name] = id;
}

void History::removeName(const std::string &name)
{
    m_names.erase(name);
}

void History::setFigures(StepId id, const StepFigures &figures)
{
    if (id == kRootStep)
        m_rootFigures = figures;
    else if (find(id))
        m_steps[static_cast<std::size_t>(id - 1)].figures = figures;
}

Result<History> History::restore(DesignState root, std::vector<HistoryStep> steps,
    std::vector<Branch> branches, std::map<std::string, StepId> names, StepId current, std::int32_t branch)
{
    const auto count = static_cast<StepId>(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepId id = static_cast<StepId>(i) + 1;
        if (steps[i].id != id)
            return misfit(stepName(id) + " is missing");
        if (steps[i].parent < 0 || steps[i].parent >= id)
            return misfit(
                stepName(id) + " follows " + stepName(steps[i].parent) + ", which is not before it");
    }
    if (branches.empty())
        branches.push_back({0, "main", count == 0 ? 0 : -1});
    std::vector<bool> isOnBranch(steps.size() + 1);
    for (std::size_t i = 0; i < branches.size(); ++i) {
        const Branch &each = branches[i];
        if (each.id != static_cast<std::int32_t>(i))
            return misfit("branch " + std::to_string(i) + " is missing");
        if (each.head < 0 || each.head > count)
            return misfit("the branch \"" + each.name + "\" ends at a step that is missing");
        for (StepId id = each.head; id != 0 && !isOnBranch[static_cast<std::size_t>(id)];
             id = parentOf(steps, id))
            isOnBranch[static_cast<std::size_t>(id)] = true;
    }
    for (StepId id = 1; id <= count; ++id) {
        if (!isOnBranch[static_cast<std::size_t>(id)])
            return misfit(stepName(id) + " is on no branch");
    }
    for (const auto &[name, id] : names) {
        if (id < 1 || id > count)
            return misfit("the name \"" + name + "\" is of a step that is missing");
    }
    if (branch < 0 || branch >= static_cast<std::int32_t>(branches.size()))
        return misfit("its current branch is missing");
    if (current < 0 || current > count
        || !leadsTo(steps, current, branches[static_cast<std::size_t>(branch)].head))
        return misfit("its current step is not on its current branch");

    // Every change is tried once: down the tree and up again, children in order.
    History history(std::move(root));
    std::vector<std::vector<StepId>> children(steps.size() + 1);
    for (const HistoryStep &step : steps)
        children[static_cast<std::size_t>(step.parent)].push_back(step.id);
    DesignState state = history.m_root;
    std::vector<std::size_t> next(steps.size() + 1, 0);
    for (StepId at = 0;;) {
        const auto place = static_cast<std::size_t>(at);
        if (next[place] < children[place].size()) {
            at = children[place][next[place]++];
            const HistoryStep &step = steps[static_cast<std::size_t>(at - 1)];
            if (auto applied = apply(state, step.change); !applied)
                return misfit(stepName(at) + " (" + step.words + "): " + applied.error().message);
            if (at == current)
                history.m_state = state;
        } else if (at == 0) {
            break;
        } else {
            const HistoryStep &step = steps[static_cast<std::size_t>(at - 1)];
            if (auto undone = apply(state, inverse(step.change)); !undone)
                return misfit(
                    stepName(at) + " (" + step.words + ") cannot be undone: " + undone.error().message);
            at = step.parent;
        }
    }
    if (!(state == history.m_root))
        return misfit("undoing everything does not lead back to the first state");
    history.m_steps = std::move(steps);
    history.m_branches = std::move(branches);
    history.m_names = std::move(names);
    history.m_current = current;
    history.m_branch = branch;
    return history;
}

} // namespace planloom
