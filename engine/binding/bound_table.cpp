#include "engine/binding/bound_table.h"

#include "engine/base/words.h"
#include "engine/binding/alike.h"
#include "engine/binding/nothing_selected.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace planloom {

namespace {

/// The dimension that a row names as annotations do; empty where it names none, or otherwise.
std::string identifierIn(const Rule &rule)
{
    return std::visit(
        []<typename R>(const R &its) -> std::string {
            if constexpr (requires { its.steps.front().dimension; })
                return its.steps.empty() ? std::string{} : its.steps.front().dimension.name;
            else if constexpr (requires { its.dimension->name; })
                return its.dimension ? its.dimension->name : std::string{};
            else if constexpr (requires { its.dimension.name; })
                return its.dimension.name;
            else
                return {};
        },
        rule);
}

std::int32_t rowOf(const OperatorBinding &binding, Aspect aspect)
{
    switch (aspect) {
    case Aspect::Split:
        return binding.axisRows.empty() ? binding.withinRow : binding.axisRows.front();
    case Aspect::Place:
        return binding.placeRow;
    case Aspect::Coshard:
        return binding.coshardRow;
    case Aspect::Slices:
        return binding.sliceRow;
    case Aspect::Lanes:
        return binding.lanesRow;
    case Aspect::Stage:
        return binding.stageRow;
    case Aspect::Recompute:
        return binding.recomputeRow >= 0 ? binding.recomputeRow : binding.keepRow;
    case Aspect::Sharding:
        return binding.shardingRow;
    case Aspect::Precision:
        return binding.precisionRows.empty() ? -1 : binding.precisionRows.back();
    case Aspect::Attention:
        return binding.attentionRow;
    case Aspect::WeightVersions:
        return binding.weightVersionsRow;
    case Aspect::Parts:
        return !binding.partsRows.empty() ? binding.partsRows.back()
            : binding.splitRow() >= 0     ? binding.splitRow()
            : binding.coshardRow >= 0     ? binding.coshardRow
                                          : binding.sliceRow;
    case Aspect::Offload:
        return binding.offloadRow;
    }
    return -1;
}

/// The row to blame for a clash of splits: of the axis they disagree about, if there is one.
std::int32_t rowOfSplit(const OperatorBinding &binding, const OperatorMeaning &meaning)
{
    for (std::size_t i = 0; i < binding.allowed.axes.size(); ++i) {
        const AxisMeaning &mine = binding.allowed.axes[i];
        for (const AxisMeaning &theirs : meaning.axes) {
            if (theirs.axis == mine.axis && intersection(mine.allowed, theirs.allowed).isEmpty())
                return binding.axisRows[i];
        }
    }
    return rowOf(binding, Aspect::Split);
}

/// The row that gave another value to the setting that clashes.
std::int32_t rowOfPrecision(const OperatorBinding &binding, const OperatorMeaning &meaning)
{
    const auto setting = clashingSetting(*binding.allowed.precision, *meaning.precision);
    return binding.precisionRowOf[static_cast<std::size_t>(*setting)];
}

void joinSplits(OperatorBinding &binding, OperatorMeaning both, std::int32_t row)
{
    std::vector<std::int32_t> rows;
    for (const AxisMeaning &axis : both.axes) {
        const auto known = std::find_if(binding.allowed.axes.begin(), binding.allowed.axes.end(),
            [&](const AxisMeaning &each) { return each.axis == axis.axis; });
        rows.push_back(known == binding.allowed.axes.end()
                ? row
                : binding.axisRows[static_cast<std::size_t>(known - binding.allowed.axes.begin())]);
    }
    if (binding.withinRow < 0 && !both.within.isAnything())
        binding.withinRow = row;
    binding.axisRows = std::move(rows);
    binding.allowed.axes = std::move(both.axes);
    binding.allowed.within = std::move(both.within);
}

/// Operators that an order row speaks of.
template<typename Sides> std::int32_t countOf(const Sides &sides)
{
    std::vector<OperatorId> both;
    std::set_union(sides.first.begin(), sides.first.end(), sides.second.begin(), sides.second.end(),
        std::back_inserter(both));
    return static_cast<std::int32_t>(both.size());
}

class Binder
{
public:
    Binder(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
        : m_table(table)
    {
        m_bound.reports.assign(table.rows.size(), {});
        m_bound.bindings.assign(model.graph->operators.size(), {});
        m_bound.plan = planMeaning(model, deviceCount, table,
            [&](RowId row, Error error) { m_bound.fail(row.index, std::move(error)); });
        m_bound.setting = {model, deviceCount, m_bound.plan.mesh};
    }

    BoundTable run()
    {
        for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
            if (hasSelector(m_table.rows[i].rule))
                bindRow(static_cast<std::int32_t>(i));
            else if (const auto *degree = std::get_if<DegreeRule>(&m_table.rows[i].rule);
                     degree && m_table.rows[i].enabled)
                bindDegree(static_cast<std::int32_t>(i), *degree);
        }
        if (!m_bound.failed)
            joinAlikes(m_bound, m_table);
        return std::move(m_bound);
    }

private:
    void bindRow(std::int32_t row)
    {
        const Row &itself = m_table.rows[static_cast<std::size_t>(row)];
        RowReport &report = m_bound.reports[static_cast<std::size_t>(row)];
        const auto selected = m_bound.setting.index().select(itself.selector);
        report.selected = static_cast<std::int32_t>(selected.size());
        if (!itself.enabled)
            return;
        if (auto check = m_bound.setting.index().check(itself.selector); !check)
            return m_bound.fail(row, std::move(check).error(), "selector");
        report.bound =
            std::visit([&](const auto &rule) { return bindRule(row, rule, selected); }, itself.rule);
        if (report.bound == 0 && !report.error) {
            const Graph &graph = *m_bound.setting.model.graph;
            report.warning = selected.empty()
                ? whyNothingSelected(itself.selector, graph, m_bound.setting.index())
                : whyNothingBound(identifierIn(itself.rule), selected, graph);
        }
    }

    /// @return how many operators it binds
    template<typename RuleType>
    std::int32_t bindRule(std::int32_t row, const RuleType &rule, const std::vector<OperatorId> &selected)
    {
        if constexpr (MeansOfOperators<RuleType>) {
            using Meaning = RuleMeaning<RuleType>;
            if (auto check = Meaning::check(m_bound.setting, rule); !check)
                return refuse(row, std::move(check).error());
            auto acted = Meaning::actsOn(m_bound.setting, rule, selected);
            if (!acted)
                return refuse(row, std::move(acted).error());
            noteBatchAxes(rule);
            std::int32_t bound = 0;
            std::optional<OperatorMeaning> same;
            for (const OperatorId op : *acted) {
                if (!Meaning::sameForAll || !same) {
                    auto meaning = Meaning::of(m_bound.setting, rule, op);
                    if (!meaning)
                        return refuse(row, std::move(meaning).error(), bound);
                    same = *std::move(meaning);
                }
                if (!same)
                    continue;
                ++bound;
                if (!joinRow(op, *same, row))
                    return bound;
            }
            return bound;
        } else {
            (void)row;
            (void)rule;
            (void)selected;
            return 0;
        }
    }

    /// Kinds that look at all that is selected.
    template<typename RuleType>
    requires MeansOfSelections<RuleType> std::int32_t bindRule(
        std::int32_t row, const RuleType &rule, const std::vector<OperatorId> &selected)
    {
        using Meaning = RuleMeaning<RuleType>;
        if (auto check = Meaning::check(m_bound.setting, rule); !check)
            return refuse(row, std::move(check).error());
        auto acted = Meaning::actsOn(m_bound.setting, rule, selected);
        if (!acted)
            return refuse(row, std::move(acted).error());
        const std::vector<OperatorMeaning> meanings = Meaning::ofEach(m_bound.setting, rule, *acted);
        for (std::size_t i = 0; i < acted->size(); ++i)
            if (!joinRow((*acted)[i], meanings[i], row))
                return static_cast<std::int32_t>(i) + 1;
        return static_cast<std::int32_t>(acted->size());
    }

    /// Of parts along a dimension, whoever has it.
    void bindDegree(std::int32_t row, const DegreeRule &rule)
    {
        if (rule.degree != Degree::Sequence && rule.degree != Degree::Expert)
            return;
        const DimensionMeaning meant =
            rule.degree == Degree::Sequence ? DimensionMeaning::Sequence : DimensionMeaning::Expert;
        const PartsRule parts{
            DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = meant, .name = {}}, rule.bound};
        m_bound.reports[static_cast<std::size_t>(row)].bound =
            bindRule(row, parts, m_bound.setting.index().select(selectDirection(Direction::Forward)));
    }

    std::int32_t bindRule(std::int32_t row, const AlikeRule &rule, const std::vector<OperatorId> &selected)
    {
        return bindPairs(row, rule, selected, m_bound.alikes);
    }

    std::int32_t bindRule(
        std::int32_t row, const DeviceSharingRule &rule, const std::vector<OperatorId> &selected)
    {
        if (auto check = m_bound.setting.index().check(rule.second); !check)
            return refuse(row, std::move(check).error());
        auto sides =
            RuleMeaning<DeviceSharingRule>::of(m_bound.setting, rule, selected, m_bound.plan.microBatches);
        if (!sides)
            return refuse(row, std::move(sides).error());
        const std::int32_t bound = countOf(*sides);
        if (bound > 0)
            m_bound.sharings.push_back({row, rule.apart, *std::move(sides)});
        return bound;
    }

    std::int32_t bindRule(std::int32_t row, const OpOrderRule &rule, const std::vector<OperatorId> &selected)
    {
        return bindPairs(row, rule, selected, m_bound.orders);
    }

    std::int32_t bindRule(
        std::int32_t row, const CommunicateRule &rule, const std::vector<OperatorId> &selected)
    {
        return bindPairs(row, rule, selected, m_bound.communications);
    }

    /// A row about two selections.
    template<typename RuleType, typename Bound>
    std::int32_t bindPairs(std::int32_t row, const RuleType &rule, const std::vector<OperatorId> &selected,
        std::vector<Bound> &all)
    {
        if (auto check = m_bound.setting.index().check(rule.second); !check)
            return refuse(row, std::move(check).error());
        auto sides = RuleMeaning<RuleType>::of(m_bound.setting, rule, selected, m_bound.plan.microBatches);
        if (!sides)
            return refuse(row, std::move(sides).error());
        const std::int32_t bound = countOf(*sides);
        if (bound > 0)
            all.push_back({row, *std::move(sides)});
        return bound;
    }

    /// False where the row cannot hold with another.
    bool joinRow(OperatorId op, const OperatorMeaning &meaning, std::int32_t row)
    {
        const auto clash =
            join(m_bound.bindings[static_cast<std::size_t>(op.index)], meaning, row, m_bound.setting.mesh);
        if (!clash)
            return true;
        m_bound.failBoth(m_table, row, clash->other,
            std::string(clashWords(clash->aspect)) + " operator '" + m_bound.setting.graph().at(op).name
                + "'",
            "switch one of the rows off, or narrow its selector");
        return false;
    }

    template<typename RuleType> void noteBatchAxes(const RuleType &rule)
    {
        if constexpr (std::is_same_v<RuleType, OpTransRule>) {
            for (const SplitStep &step : rule.steps) {
                if (isBatch(step) && !step.axis.empty())
                    m_bound.batchAxes.push_back(step.axis);
            }
        }
    }

    std::int32_t refuse(std::int32_t row, Error error, std::int32_t bound = 0)
    {
        m_bound.fail(row, std::move(error));
        return bound;
    }

    const ConstraintTable &m_table;
    BoundTable m_bound{};
};

} // namespace

const char *clashWords(Aspect aspect)
{
    switch (aspect) {
    case Aspect::Split:
        return "split in different ways";
    case Aspect::Place:
        return "place in different ways";
    case Aspect::Coshard:
        return "cut, or keep, in different ways";
    case Aspect::Slices:
        return "cut into different slices";
    case Aspect::Lanes:
        return "give different lanes to";
    case Aspect::Stage:
        return "give different stages to";
    case Aspect::Recompute:
        return "recompute";
    case Aspect::Sharding:
        return "shard differently";
    case Aspect::Precision:
        return "give different precisions to";
    case Aspect::Attention:
        return "compute attention differently in";
    case Aspect::WeightVersions:
        return "keep different numbers of weight versions of";
    case Aspect::Offload:
        return "offload, or keep on their devices,";
    case Aspect::Parts:
        return "ask for different numbers of parts of";
    }
    return "";
}

std::optional<RowClash> join(OperatorBinding &binding, const OperatorMeaning &meaning, std::int32_t row,
    const std::vector<MeshAxis> &mesh)
{
    OperatorMeaning &now = binding.allowed;
    if (const auto aspect = clashOf(now, meaning)) {
        const std::int32_t other = *aspect == Aspect::Split ? rowOfSplit(binding, meaning)
            : *aspect == Aspect::Precision                  ? rowOfPrecision(binding, meaning)
                                                            : rowOf(binding, *aspect);
        return RowClash{*aspect, other};
    }
    if (meaning.splits())
        joinSplits(binding, *composedSplits(now, meaning, mesh), row);
    if (meaning.place) {
        now.place = intersection(now.place, meaning.place);
        binding.placeRow = row;
    }
    if (!meaning.coshard.isAnything()) {
        now.coshard = intersection(now.coshard, meaning.coshard);
        now.coshardKeeps = meaning.coshardKeeps;
        binding.coshardRow = row;
    }
    if (!meaning.slices.isAnything()) {
        now.slices = intersection(now.slices, meaning.slices);
        binding.sliceRow = row;
    }
    if (meaning.lanes) {
        now.lanes = meaning.lanes;
        binding.lanesRow = row;
    }
    if (!meaning.stage.isAnything()) {
        now.stage = intersection(now.stage, meaning.stage);
        binding.stageRow = row;
    }
    for (const PartsMeaning &parts : meaning.parts)
        if (std::find(now.parts.begin(), now.parts.end(), parts) == now.parts.end()) {
            now.parts.push_back(parts);
            binding.partsRows.push_back(row);
        }
    if (meaning.follows) {
        now.follows = true;
        binding.followRow = row;
    }
    if (meaning.keepsOutputs) {
        now.keepsOutputs = true;
        binding.keepRow = row;
    }
    if (meaning.recompute) {
        now.recompute = meaning.recompute;
        binding.recomputeRow = row;
    }
    if (meaning.sharding) {
        now.sharding = meaning.sharding;
        binding.shardingRow = row;
    }
    if (meaning.precision) {
        for (int setting = 0; setting < kPrecisionSettingCount; ++setting)
            if (sets(*meaning.precision, setting) && (!now.precision || !sets(*now.precision, setting)))
                binding.precisionRowOf[static_cast<std::size_t>(setting)] = row;
        now.precision = now.precision ? joined(*now.precision, *meaning.precision) : meaning.precision;
        binding.precisionRows.push_back(row);
    }
    if (meaning.attention) {
        now.attention = meaning.attention;
        binding.attentionRow = row;
    }
    if (meaning.weightVersions) {
        now.weightVersions = meaning.weightVersions;
        binding.weightVersionsRow = row;
    }
    if (meaning.splitBackward) {
        now.splitBackward = true;
        binding.splitBackwardRow = row;
    }
    if (!meaning.ring.empty()) {
        now.ring = meaning.ring;
        binding.ringRow = row;
    }
    if (meaning.offloaded || meaning.staysOnDevice) {
        now.offloaded = meaning.offloaded;
        now.staysOnDevice = meaning.staysOnDevice;
        binding.offloadRow = row;
    }
    return std::nullopt;
}

void BoundTable::fail(std::int32_t row, Error error, const char *field)
{
    assert(row >= 0 && static_cast<std::size_t>(row) < reports.size());
    failed = true;
    RowReport &report = reports[static_cast<std::size_t>(row)];
    if (report.error)
        return;
    error.code = ErrorCode::InvalidInput;
    error.where = placeOf(RowId{row}, field);
    report.error = std::move(error);
}

void BoundTable::fail(std::int32_t row, std::string message, std::string advice, const char *field)
{
    fail(row, Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), ""}, field);
}

void BoundTable::failBoth(const ConstraintTable &table, std::int32_t row, std::int32_t other,
    const std::string &what, const std::string &advice)
{
    const auto message = [&](std::int32_t with) {
        return "this row and " + rowWords(with) + " ('"
            + print(table.rows[static_cast<std::size_t>(with)]).substr(0, 120) + "') " + what;
    };
    for (const auto &[one, another] : {std::pair{row, other}, std::pair{other, row}}) {
        const bool isNew = !reports[static_cast<std::size_t>(one)].error;
        fail(one, message(another), advice);
        if (isNew)
            reports[static_cast<std::size_t>(one)].error->code = ErrorCode::Conflict;
    }
}

std::int32_t boundAlone(const RowSetting &setting, std::int32_t microBatches, const Row &row)
{
    if (!hasSelector(row.rule) || !setting.index().check(row.selector))
        return 0;
    const auto selected = setting.index().select(row.selector);
    if (const Selector *second = secondSelectorOf(row.rule); second && !setting.index().check(*second))
        return 0;
    return std::visit(
        [&]<typename RuleType>(const RuleType &rule) -> std::int32_t {
            if constexpr (HasSecondSelector<RuleType>) {
                const auto sides = RuleMeaning<RuleType>::of(setting, rule, selected, microBatches);
                return sides ? countOf(*sides) : 0;
            } else if constexpr (MeansOfSelections<RuleType>) {
                const auto acted = RuleMeaning<RuleType>::actsOn(setting, rule, selected);
                return acted && RuleMeaning<RuleType>::check(setting, rule)
                    ? static_cast<std::int32_t>(acted->size())
                    : 0;
            } else if constexpr (MeansOfOperators<RuleType>) {
                using Meaning = RuleMeaning<RuleType>;
                const auto acted = Meaning::actsOn(setting, rule, selected);
                if (!acted || !Meaning::check(setting, rule))
                    return 0;
                std::int32_t bound = 0;
                for (const OperatorId op : *acted) {
                    if (Meaning::sameForAll)
                        return static_cast<std::int32_t>(acted->size());
                    const auto meaning = Meaning::of(setting, rule, op);
                    if (!meaning)
                        return 0;
                    bound += meaning->has_value() ? 1 : 0;
                }
                return bound;
            } else {
                return 0;
            }
        },
        row.rule);
}

BoundTable bindTable(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    return Binder(model, deviceCount, table).run();
}

} // namespace planloom
