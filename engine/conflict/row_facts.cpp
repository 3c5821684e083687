#include "engine/conflict/row_facts.h"

#include "engine/plan/followed_split.h"
#include "engine/plan/part_counts.h"
#include "engine/plan/plan_draft.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

void append(std::string &key, std::int64_t number)
{
    key += std::to_string(number);
    key += ' ';
}

void append(std::string &key, const Split &split)
{
    append(key, static_cast<std::int64_t>(split.kind));
    append(key, split.dimension);
    append(key, split.parts);
    append(key, static_cast<std::int64_t>(split.sizes.size()));
    for (const std::int64_t size : split.sizes)
        append(key, size);
    key += split.axis + ";";
}

void append(std::string &key, const Allowed<Split> &allowed)
{
    append(key, allowed.isListed() ? 1 : 0);
    append(key, static_cast<std::int64_t>(allowed.members().size()));
    for (const Split &split : allowed.members())
        append(key, split);
}

/// Equal for meanings of one row that are equal: what differs between its operators is how they are cut.
std::string keyOf(const OperatorMeaning &meaning)
{
    std::string key;
    for (const AxisMeaning &axis : meaning.axes) {
        key += axis.axis + ":";
        append(key, axis.allowed);
    }
    key += "|";
    append(key, meaning.within.isListed() ? 1 : 0);
    for (const std::vector<Split> &splits : meaning.within.members()) {
        key += ",";
        for (const Split &split : splits)
            append(key, split);
    }
    key += "|";
    append(key, meaning.coshard);
    append(key, meaning.slices);
    append(key, meaning.attention ? static_cast<std::int64_t>(*meaning.attention) : -1);
    key += meaning.ring + "|";
    for (const PartsMeaning &parts : meaning.parts)
        key += std::to_string(parts.dimension) + " " + print(parts.bound) + ";";
    return key;
}

/// What of an operator decides how it can be cut.
std::string shapeKey(const RowSetting &setting, OperatorId id)
{
    const Operator &op = setting.graph().at(id);
    std::string key;
    append(key, static_cast<std::int64_t>(op.direction));
    append(key, static_cast<std::int64_t>(op.annotation.linearInputs.size()));
    append(key, setting.batchOf(id));
    append(key, setting.batch().oncePerStep[at(id)] ? 1 : 0);
    for (const Dimension &dimension : op.annotation.dimensions) {
        append(key, dimension.size);
        append(key, static_cast<std::int64_t>(dimension.mark));
    }
    return key;
}

class Reader
{
public:
    Reader(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
        : m_table(table)
    {
        ConstraintTable must = table;
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            Row &row = must.rows[i];
            row.enabled = row.enabled && row.preference == 0;
            if (row.enabled)
                m_facts.rows.push_back(static_cast<std::int32_t>(i));
        }
        m_facts.wrong.resize(table.rows.size());
        m_facts.operators.resize(table.rows.size());
        m_facts.plan = planMeaning(model, deviceCount, must);
        m_facts.setting = {model, deviceCount, m_facts.plan.mesh};
        for (const std::int32_t row : m_facts.rows) {
            if (hasSelector(rowAt(row).rule))
                continue;
            planMeaning(model, deviceCount, {.rows = {rowAt(row)}},
                [&](RowId, Error error) { refuse(row, std::move(error)); });
        }
    }

    RowFacts read()
    {
        m_said.resize(m_facts.setting.graph().operators.size());
        for (const std::int32_t row : m_facts.rows) {
            const Row &itself = rowAt(row);
            if (!hasSelector(itself.rule))
                continue;
            if (auto check = m_facts.setting.index().check(itself.selector); !check) {
                refuse(row, std::move(check).error());
                continue;
            }
            const auto selected = m_facts.setting.index().select(itself.selector);
            readRule(row, itself.rule, selected);
        }
        joinClasses();
        return std::move(m_facts);
    }

private:
    const Row &rowAt(std::int32_t row) const { return m_table.rows[at(row)]; }
    void refuse(std::int32_t row, Error error)
    {
        if (!m_facts.wrong[at(row)])
            m_facts.wrong[at(row)] = std::move(error);
    }

    void readRule(std::int32_t row, const Rule &rule, const std::vector<OperatorId> &selected)
    {
        if (const auto *order = std::get_if<OpOrderRule>(&rule))
            return readOrder(row, *order, selected);
        if (const auto *alike = std::get_if<AlikeRule>(&rule))
            return readSides(row, *alike, selected);
        if (const auto *sharing = std::get_if<DeviceSharingRule>(&rule))
            return readSides(row, *sharing, selected);
        readEach(row, rule, selected);
    }

    template<typename RuleType>
    void readSides(std::int32_t row, const RuleType &rule, const std::vector<OperatorId> &selected)
    {
        const RowSetting &setting = m_facts.setting;
        if (auto check = setting.index().check(rule.second); !check)
            return refuse(row, std::move(check).error());
        auto sides = RuleMeaning<RuleType>::of(setting, rule, selected, m_facts.plan.microBatches);
        if (!sides)
            return refuse(row, std::move(sides).error());
        std::vector<OperatorId> both = sides->first;
        both.insert(both.end(), sides->second.begin(), sides->second.end());
        std::sort(both.begin(), both.end());
        both.erase(std::unique(both.begin(), both.end()), both.end());
        m_facts.operators[at(row)] = std::move(both);
    }

    void readEach(std::int32_t row, const Rule &rule, const std::vector<OperatorId> &selected)
    {
        // What differs between the operators of a row is how they are cut, or where they run, which is
        // shared.
        std::map<std::pair<const AllowedPlace *, std::string>, std::size_t> known;
        std::vector<SharedMeaning> meanings;
        std::vector<std::pair<OperatorId, std::size_t>> said;
        std::vector<OperatorId> acted;
        const auto read = [&](OperatorId op, Result<SharedMeaning> meaning) {
            acted.push_back(op);
            if (!meaning) {
                refuse(row, std::move(meaning).error());
            } else if (const SharedMeaning &its = *meaning; its) {
                const bool isLast = !said.empty() && meanings[said.back().second] == its;
                const std::size_t which = isLast
                    ? said.back().second
                    : known.try_emplace({its->place.get(), keyOf(*its)}, meanings.size()).first->second;
                if (which == meanings.size())
                    meanings.push_back(its);
                said.emplace_back(op, which);
            }
            return true;
        };
        auto asked = askEach(m_facts.setting, rule, selected, read);
        if (!asked)
            refuse(row, std::move(asked).error());
        m_facts.operators[at(row)] = std::move(acted);
        if (m_facts.wrong[at(row)]) // a row that is wrong somewhere says nothing
            return;
        for (const auto &[op, which] : said)
            m_said[at(op)].push_back({{row, meanings[which]}, which});
    }

    void readOrder(std::int32_t row, const OpOrderRule &rule, const std::vector<OperatorId> &selected)
    {
        if (auto check = m_facts.setting.index().check(rule.second); !check)
            return refuse(row, std::move(check).error());
        auto sides = RuleMeaning<OpOrderRule>::of(m_facts.setting, rule, selected, m_facts.plan.microBatches);
        if (!sides)
            return refuse(row, std::move(sides).error());
        if (sides->first.empty() || sides->second.empty())
            return;
        auto &both = m_facts.operators[at(row)];
        std::set_union(sides->first.begin(), sides->first.end(), sides->second.begin(), sides->second.end(),
            std::back_inserter(both));
        if (!rule.part.isAll() || !rule.secondPart.isAll())
            return;
        if (!sides->paired()) {
            m_facts.orders.push_back({row, std::move(sides->first), std::move(sides->second),
                rule.microBatchOffset, rule.microBatch});
            return;
        }
        for (std::size_t i = 0; i < sides->first.size(); ++i)
            m_facts.orders.push_back(
                {row, {sides->first[i]}, {sides->second[i]}, rule.microBatchOffset, rule.microBatch});
    }

    void joinClasses()
    {
        std::map<std::string, std::size_t> known;
        for (std::size_t o = 0; o < m_said.size(); ++o) {
            if (m_said[o].empty())
                continue;
            const OperatorId op{static_cast<std::int32_t>(o)};
            std::string key;
            for (const auto &[said, which] : m_said[o]) {
                append(key, said.row);
                append(key, static_cast<std::int64_t>(which));
            }
            key += shapeKey(m_facts.setting, op);
            const auto [found, isNew] = known.try_emplace(std::move(key), m_facts.classes.size());
            if (!isNew) {
                ++m_facts.classes[found->second].count;
                continue;
            }
            OperatorClass &made = m_facts.classes.emplace_back();
            made.op = op;
            for (auto &[said, which] : m_said[o])
                made.said.push_back(std::move(said));
        }
    }

    struct Saying {
        OperatorClass::Said said{};
        std::size_t which = 0; ///< Of the row's meanings.
    };

    const ConstraintTable &m_table;
    RowFacts m_facts{};
    std::vector<std::vector<Saying>> m_said{}; ///< By operator, in the order of rows.
};

/// The parts that rows cut an operator into, all together, can be where they are placed.
bool fits(const OperatorBinding &binding, const std::vector<ChosenSplit> &chosen)
{
    const Domain *domain = binding.allowed.place ? binding.allowed.place->preferred() : nullptr;
    if (!domain || chosen.empty() || binding.allowed.lanes)
        return true;
    const auto overAxis = [](const ChosenSplit &step) { return !step.split.axis.empty(); };
    if (domain->onMesh && std::any_of(chosen.begin(), chosen.end(), overAxis))
        return std::all_of(chosen.begin(), chosen.end(), [&](const ChosenSplit &step) {
            return step.split.axis.empty() || findAxis(domain->axes, step.split.axis) != nullptr;
        });
    std::int64_t parts = 1;
    for (const ChosenSplit &step : chosen)
        parts *= step.split.parts;
    return canDealOut(parts, static_cast<std::int64_t>(domain->devices.size()));
}

constexpr std::int32_t kMostListed = 64; ///< Devices that a place is tried with.

/// Splits over what rows leave free with which an operator keeps to the numbers of parts that they allow;
/// nothing if there are none.
std::optional<std::vector<Split>> partsThatHold(const RowSetting &setting, OperatorId op,
    const OperatorBinding &binding, const std::vector<ChosenSplit> &chosen, std::int32_t microBatches)
{
    if (binding.allowed.parts.empty() || binding.allowed.lanes)
        return std::vector<Split>{};
    std::vector<Split> taken;
    for (const ChosenSplit &step : chosen)
        taken.push_back(step.split);
    for (const Allowed<Split> *each : {&binding.allowed.coshard, &binding.allowed.slices})
        if (const Split *split = each->preferred(); split && split->parts > 1)
            taken.push_back(*split);
    const Operator &itself = setting.graph().at(op);
    const bool once = setting.batch().oncePerStep[at(op)];
    const auto found = [&](const std::vector<FreeAxis> &free) {
        return splitsKeepingTo(
            itself, binding.allowed.parts, taken, free, [&](const std::vector<Split> &splits) {
                return checkPartition(itself, {splits})
                    && leavesBatchWhole(itself, once ? -1 : setting.batchOf(op), microBatches, splits);
            });
    };
    const Domain *placed = binding.allowed.place ? binding.allowed.place->preferred() : nullptr;
    const Domain domain = placed ? *placed : everywhere(setting.mesh, setting.deviceCount);
    const auto isOverAxis = [](const ChosenSplit &step) { return !step.split.axis.empty(); };
    std::vector<FreeAxis> free;
    if (domain.onMesh && (chosen.empty() || std::any_of(chosen.begin(), chosen.end(), isOverAxis))) {
        for (const MeshAxis &axis : domain.axes)
            if (std::none_of(chosen.begin(), chosen.end(),
                    [&](const ChosenSplit &step) { return step.split.axis == axis.name; })) {
                const auto said = std::find_if(binding.allowed.axes.begin(), binding.allowed.axes.end(),
                    [&](const AxisMeaning &each) { return each.axis == axis.name; });
                free.push_back({{.kind = SplitKind::Replicate, .parts = axis.size, .axis = axis.name},
                    said == binding.allowed.axes.end() ? nullptr : &said->allowed});
            }
    } else if (chosen.empty()) {
        free = axesOfList(static_cast<std::int64_t>(distinct(domain.devices).size()));
    }
    auto splits = found(free);
    // What no row places may run where its producer does, on any number of devices.
    for (std::int64_t devices = 2;
         !splits && !placed && chosen.empty() && devices <= std::min(setting.deviceCount, kMostListed);
         ++devices)
        splits = found(axesOfList(devices));
    return splits;
}

/// Whether a row that is not among `which` may have an operator cut in ways that it is not cut by itself.
bool mayBeHelped(const OperatorClass &operators, const std::vector<std::size_t> &which)
{
    for (std::size_t i = 0; i < operators.said.size(); ++i) {
        const OperatorMeaning &meaning = *operators.said[i].meaning;
        const bool helps = meaning.place || meaning.splits() || !meaning.coshard.isAnything()
            || !meaning.slices.isAnything() || meaning.lanes;
        if (helps && std::find(which.begin(), which.end(), i) == which.end())
            return true;
    }
    return false;
}

} // namespace

RowFacts factsOf(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    return Reader(model, deviceCount, table).read();
}

bool needsMesh(const Rule &rule)
{
    if (const auto *split = std::get_if<OpTransRule>(&rule))
        return std::any_of(split->steps.begin(), split->steps.end(),
            [](const SplitStep &step) { return !step.axis.empty(); });
    if (const auto *place = std::get_if<OpAssignRule>(&rule))
        return place->devices.empty();
    if (const auto *lanes = std::get_if<LanesRule>(&rule))
        return !lanes->axis.empty();
    if (const auto *sharding = std::get_if<OptimizerShardingRule>(&rule))
        return !sharding->axis.empty();
    if (const auto *layout = std::get_if<LayoutRule>(&rule))
        return !layout->axis.empty();
    return std::holds_alternative<RingRule>(rule) || std::holds_alternative<SpreadRule>(rule);
}

bool dependsOnMesh(const Rule &rule)
{
    return needsMesh(rule) || std::holds_alternative<PartsRule>(rule);
}

bool needsMicroBatches(const Rule &rule)
{
    if (const auto *order = std::get_if<OpOrderRule>(&rule))
        return order->microBatch >= 0 || order->microBatchOffset != 0;
    if (const auto *order = std::get_if<CommunicateRule>(&rule))
        return order->microBatch >= 0 || order->microBatchOffset != 0;
    return std::holds_alternative<InterleaveRule>(rule) || std::holds_alternative<WeightVersionsRule>(rule);
}

bool namesStage(const Rule &rule)
{
    if (const auto *inFlight = std::get_if<InFlightRule>(&rule))
        return inFlight->stage >= 0;
    if (const auto *interleave = std::get_if<InterleaveRule>(&rule))
        return interleave->stage >= 0;
    return false;
}

bool canHold(const RowSetting &setting, const OperatorClass &operators, const std::vector<std::size_t> &which,
    std::int32_t microBatches)
{
    OperatorBinding binding;
    for (const std::size_t i : which) {
        const OperatorClass::Said &said = operators.said[i];
        if (join(binding, *said.meaning, said.row, setting.mesh))
            return false;
    }
    const Operator &op = setting.graph().at(operators.op);
    const auto chosen = chosenSplits(op, binding);
    if (!fits(binding, chosen))
        return false;
    Partition cut;
    const auto asBound = mayBeHelped(operators, which)
        ? std::optional<std::vector<Split>>(std::in_place)
        : partsThatHold(setting, operators.op, binding, chosen, microBatches);
    if (!asBound)
        return false;
    if (const Split *slices = binding.allowed.slices.preferred(); slices && slices->parts > 1)
        cut.splits.push_back(*slices);
    for (const ChosenSplit &step : chosen)
        cut.splits.push_back(step.split);
    cut.splits.insert(cut.splits.end(), asBound->begin(), asBound->end());
    if (const Split *coshard = binding.allowed.coshard.preferred(); coshard && coshard->parts > 1)
        cut.splits.push_back(*coshard);
    if (!checkPartition(op, cut))
        return false;
    const std::int32_t batch = setting.batchOf(operators.op);
    if (microBatches <= 1 || batch < 0 || setting.batch().oncePerStep[at(operators.op)])
        return true;
    const std::int64_t parts = partsAlong(cut.splits, batch);
    return parts == 1
        || (parts > 0
            && op.annotation.dimensions[static_cast<std::size_t>(batch)].size % (microBatches * parts) == 0);
}

} // namespace planloom
