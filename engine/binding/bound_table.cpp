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
    return binding.axisRows.empty() ? binding.withinRow : binding.axisRows.front();
}

/// The row that gave another value to the setting that clashes.
std::int32_t rowOfPrecision(const OperatorBinding &binding, const OperatorMeaning &meaning)
{
    const auto setting = clashingSetting(*binding.allowed.precision, *meaning.precision);
    return binding.precisionRowOf[static_cast<std::size_t>(*setting)];
}

/// The row that spoke before of an aspect that clashes.
std::int32_t clashingRow(const OperatorBinding &binding, const OperatorMeaning &meaning, Aspect aspect)
{
    if (aspect == Aspect::Split)
        return rowOfSplit(binding, meaning);
    if (aspect == Aspect::Precision)
        return rowOfPrecision(binding, meaning);
    if (aspect != Aspect::Parts)
        return binding.rowOf(aspect);
    // Who asked for a number of parts, or who made one.
    return firstRow({binding.partsRows.empty() ? -1 : binding.partsRows.back(), binding.splitRow(),
        binding.rowOf(Aspect::Coshard), binding.rowOf(Aspect::Slices)});
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
std::int32_t countOf(const RuleSides &sides)
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
        report.bound = std::visit(
            [&]<typename RuleType>(const RuleType &rule) {
                if constexpr (HasSecondSelector<RuleType>)
                    return bindPairs(row, rule, selected);
                else
                    return bindEach(row, itself.rule, selected);
            },
            itself.rule);
        if (report.bound == 0 && !report.error) {
            const Graph &graph = *m_bound.setting.model.graph;
            report.warning = selected.empty()
                ? whyNothingSelected(itself.selector, graph, m_bound.setting.index())
                : whyNothingBound(identifierIn(itself.rule), selected, graph);
        }
    }

    /// @return how many operators it binds
    std::int32_t bindEach(std::int32_t row, const Rule &rule, const std::vector<OperatorId> &selected)
    {
        std::int32_t bound = 0;
        auto asked = askEach(
            m_bound.setting, rule, selected, [&](OperatorId op, const Result<SharedMeaning> &meaning) {
                if (!meaning)
                    m_bound.fail(row, meaning.error());
                if (!meaning || !*meaning)
                    return meaning.has_value();
                ++bound;
                return joinRow(op, **meaning, row);
            });
        if (!asked)
            m_bound.fail(row, std::move(asked).error());
        else if (const auto *split = std::get_if<OpTransRule>(&rule))
            noteBatchAxes(*split);
        return bound;
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
            bindEach(row, parts, m_bound.setting.index().select(selectDirection(Direction::Forward)));
    }

    auto &boundBy(const AlikeRule &) { return m_bound.alikes; }
    auto &boundBy(const OpOrderRule &) { return m_bound.orders; }
    auto &boundBy(const CommunicateRule &) { return m_bound.communications; }
    auto &boundBy(const DeviceSharingRule &) { return m_bound.sharings; }

    /// A row about two selections.
    template<typename RuleType>
    std::int32_t bindPairs(std::int32_t row, const RuleType &rule, const std::vector<OperatorId> &selected)
    {
        if (auto check = m_bound.setting.index().check(rule.second); !check)
            return refuse(row, std::move(check).error());
        auto sides = RuleMeaning<RuleType>::of(m_bound.setting, rule, selected, m_bound.plan.microBatches);
        if (!sides)
            return refuse(row, std::move(sides).error());
        const std::int32_t bound = countOf(*sides);
        if (bound == 0)
            return 0;
        auto &made = boundBy(rule).emplace_back();
        made.row = row;
        made.sides = *std::move(sides);
        if constexpr (std::is_same_v<RuleType, DeviceSharingRule>)
            made.apart = rule.apart;
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

    void noteBatchAxes(const OpTransRule &rule)
    {
        for (const SplitStep &step : rule.steps) {
            if (isBatch(step) && !step.axis.empty())
                m_bound.batchAxes.push_back(step.axis);
        }
    }

    std::int32_t refuse(std::int32_t row, Error error)
    {
        m_bound.fail(row, std::move(error));
        return 0;
    }

    const ConstraintTable &m_table;
    BoundTable m_bound{};
};

} // namespace

std::optional<RowClash> join(OperatorBinding &binding, const OperatorMeaning &meaning, std::int32_t row,
    const std::vector<MeshAxis> &mesh)
{
    OperatorMeaning &now = binding.allowed;
    if (const auto aspect = clashOf(now, meaning))
        return RowClash{*aspect, clashingRow(binding, meaning, *aspect)};
    if (meaning.splits())
        joinSplits(binding, *composedSplits(now, meaning, mesh), row);
    for (const PartsMeaning &parts : meaning.parts)
        if (std::find(now.parts.begin(), now.parts.end(), parts) == now.parts.end()) {
            now.parts.push_back(parts);
            binding.partsRows.push_back(row);
        }
    if (meaning.precision) {
        for (int setting = 0; setting < kPrecisionSettingCount; ++setting)
            if (sets(*meaning.precision, setting) && (!now.precision || !sets(*now.precision, setting)))
                binding.precisionRowOf[static_cast<std::size_t>(setting)] = row;
        binding.precisionRows.push_back(row);
    }
    anyAspect([&](const auto &entry) {
        if (speaks(meaning.*entry.value)) {
            now.*entry.value = *both(now.*entry.value, meaning.*entry.value);
            binding.rows[static_cast<std::size_t>(entry.aspect)] = row;
        }
        return false;
    });
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
            } else {
                std::int32_t bound = 0;
                bool isRight = true;
                const auto asked = askEach(
                    setting, row.rule, selected, [&](OperatorId, const Result<SharedMeaning> &meaning) {
                        isRight = meaning.has_value();
                        bound += isRight && *meaning ? 1 : 0;
                        return isRight;
                    });
                return asked && isRight ? bound : 0;
            }
        },
        row.rule);
}

BoundTable bindTable(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    return Binder(model, deviceCount, table).run();
}

} // namespace planloom
