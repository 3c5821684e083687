#include "engine/conflict/looser_rows.h"

#include "engine/base/nearest_name.h"
#include "engine/binding/bound_table.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace planloom {

namespace {

constexpr std::size_t kMostOfDirection = 4;
constexpr std::size_t kMostDegrees = 8; ///< Likewise: of a degree few are in the space.
constexpr std::int32_t kMostSteps = 64; ///< Numbers that are looked at in one direction.

class Loosener
{
public:
    Loosener(const RowSetting &setting, std::int32_t microBatches, std::int32_t stageCount, const Row &row,
        const std::function<std::vector<std::int32_t>(Degree)> &valuesOf)
        : m_setting(setting)
        , m_microBatches(microBatches)
        , m_stageCount(stageCount)
        , m_row(row)
        , m_valuesOf(valuesOf)
    {
    }

    LooserRows find()
    {
        Row named = m_row; // with selectors that name something
        const bool meant = rename(named.selector);
        Selector *second = secondSelectorOf(named.rule);
        const bool meantToo = second && rename(*second);
        if (meant || meantToo)
            add(holding({std::move(named)}));
        std::visit([&](const auto &rule) { loosen(rule); }, m_row.rule);
        return std::move(m_result);
    }

private:
    /// Puts the nearest names of the model in the place of those that it does not have. @return whether any
    /// was
    bool rename(Selector &selector) const
    {
        bool changed = false;
        for (Selector &child : selector.children)
            changed = rename(child) || changed;
        if (!selector.children.empty() || m_setting.index().check(selector))
            return changed;
        std::vector<std::string_view> known;
        const Graph &graph = m_setting.graph();
        const auto fix = [&](std::string &name) {
            const auto nearest = nearestNames(name, known);
            if (!nearest.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
                name = nearest.front();
                changed = true;
            }
        };
        switch (selector.kind) {
        case SelectorKind::Name:
        case SelectorKind::Set:
            for (const Operator &op : graph.operators)
                known.push_back(op.name);
            if (selector.kind == SelectorKind::Set) {
                for (std::string &name : selector.names)
                    fix(name);
                break;
            }
            fix(selector.text);
            break;
        case SelectorKind::In:
            for (std::size_t scope = 0; scope < graph.scopes.size(); ++scope)
                known.push_back(m_setting.index().pathOf({static_cast<std::int32_t>(scope)}));
            fix(selector.text);
            break;
        case SelectorKind::Weight:
            for (const Tensor &tensor : graph.tensors)
                if (tensor.role == TensorRole::Weight)
                    known.push_back(tensor.name);
            fix(selector.text);
            break;
        case SelectorKind::Kind:
            for (const Operator &op : graph.operators)
                known.push_back(nameOf(op.kind));
            fix(selector.text);
            break;
        case SelectorKind::Layer: {
            const auto last = static_cast<std::int32_t>(m_setting.index().layers().scopes.size()) - 1;
            if (last < 0)
                break;
            selector.firstLayer = std::min(selector.firstLayer, last);
            selector.lastLayer = std::min(selector.lastLayer, last);
            changed = true;
            break;
        }
        default:
            break;
        }
        return changed;
    }

    /// Rules that can be loosened have an overload below.
    template<typename RuleType> void loosen(const RuleType &) { }

    Row with(Rule rule) const
    {
        Row changed = m_row;
        changed.rule = std::move(rule);
        return changed;
    }

    /// Could hold if nothing else were said.
    bool couldHold(const Row &row) const
    {
        if (hasSelector(row.rule))
            return boundAlone(m_setting, m_microBatches, row) > 0;
        bool holds = true;
        planMeaning(m_setting.model, m_setting.deviceCount, {.rows = {row}},
            [&](RowId, const Error &) { holds = false; });
        return holds;
    }

    /// Smaller numbers than `value`, then larger ones, from `least` to `most`.
    void numbers(std::int64_t value, std::int64_t least, std::int64_t most,
        const std::function<Rule(std::int32_t)> &rule)
    {
        for (const int step : {-1, 1}) {
            std::vector<Row> rows;
            std::int64_t number = step < 0 ? std::min(value - 1, most) : std::max(value + 1, least);
            for (int i = 0; i < kMostSteps && number >= least && number <= most; ++i, number += step) {
                Row changed = with(rule(static_cast<std::int32_t>(number)));
                if (!couldHold(changed))
                    continue;
                rows.push_back(std::move(changed));
                if (rows.size() >= kMostOfDirection)
                    break;
            }
            add(std::move(rows));
        }
    }

    void add(std::vector<Row> rows)
    {
        if (!rows.empty())
            m_result.directions.push_back(std::move(rows));
    }

    /// Other axes of the mesh in place of `axis`, those with a like name first.
    void axes(const std::string &axis, const std::vector<std::string> &taken,
        const std::function<Rule(const std::string &)> &rule)
    {
        std::vector<std::string_view> names;
        for (const MeshAxis &each : m_setting.mesh)
            if (each.name != axis && std::find(taken.begin(), taken.end(), each.name) == taken.end())
                names.push_back(each.name);
        std::vector<Row> rows;
        for (const std::string &name : nearestNames(axis, names, kMostOfDirection))
            if (Row changed = with(rule(name)); couldHold(changed))
                rows.push_back(std::move(changed));
        add(std::move(rows));
    }

    void loosen(const OpTransRule &rule)
    {
        std::vector<std::string> taken;
        for (const SplitStep &step : rule.steps)
            taken.push_back(step.axis);
        for (std::size_t i = 0; i < rule.steps.size(); ++i) {
            const SplitStep &step = rule.steps[i];
            const auto changed = [&](auto change) {
                OpTransRule other = rule;
                change(other.steps[i]);
                return Rule(std::move(other));
            };
            if (!step.axis.empty() && step.parts > 0)
                add(holding({with(changed([](SplitStep &other) { other.parts = 0; }))}));
            if (step.parts > 0 && step.sizes.empty())
                numbers(step.parts, 2, std::int64_t{step.parts} * 16, [&](std::int32_t parts) {
                    return changed([&](SplitStep &other) { other.parts = parts; });
                });
            if (!step.axis.empty())
                axes(step.axis, taken, [&](const std::string &axis) {
                    return changed([&](SplitStep &other) { other.axis = axis; });
                });
        }
    }

    std::vector<Row> holding(std::vector<Row> rows) const
    {
        std::erase_if(rows, [&](const Row &row) { return !couldHold(row); });
        return rows;
    }

    void loosen(const MeshRule &rule)
    {
        for (std::size_t i = 0; i < rule.axes.size(); ++i)
            numbers(rule.axes[i].size, 1, m_setting.deviceCount, [&](std::int32_t size) {
                MeshRule other = rule;
                other.axes[i].size = size;
                return Rule(std::move(other));
            });
    }

    void loosen(const MicroBatchesRule &rule)
    {
        numbers(rule.count, 1, std::int64_t{rule.count} * 16, [&](std::int32_t count) {
            MicroBatchesRule other = rule;
            other.count = count;
            if (other.updateEvery > 0 && count % other.updateEvery != 0)
                other.updateEvery = std::gcd(other.updateEvery, count);
            return Rule(other);
        });
    }

    void loosen(const StageRule &rule)
    {
        numbers(rule.index, 0, std::max(m_stageCount, rule.index + 1), [&](std::int32_t stage) {
            return Rule(StageRule{stage, std::max(rule.count, stage + 1) * (rule.count > 0 ? 1 : 0)});
        });
        if (rule.count > 0)
            add(holding({with(StageRule{rule.index, 0})}));
    }

    /// A bound that allows more: by one step of doubling or halving, or the numbers beside it.
    void loosen(const PartsRule &rule)
    {
        loosenBound(rule.bound, [&](CountBound bound) { return Rule(PartsRule{rule.dimension, bound}); });
    }
    void loosen(const DegreeRule &rule)
    {
        const auto changed = [&](CountBound bound) {
            return Rule(DegreeRule{rule.degree, std::move(bound)});
        };
        std::vector<std::int32_t> values;
        if (m_valuesOf)
            values = m_valuesOf(rule.degree);
        if (values.empty())
            return loosenBound(rule.bound, changed);
        std::vector<Row> fewer;
        std::vector<Row> more;
        for (const std::int32_t value : values) {
            if (value < rule.bound.values.front() && rule.bound.kind != CountBound::Kind::AtMost)
                fewer.insert(fewer.begin(), with(changed(reaching(rule.bound, value))));
            if (value > rule.bound.values.back() && rule.bound.kind != CountBound::Kind::AtLeast)
                more.push_back(with(changed(reaching(rule.bound, value))));
        }
        for (std::vector<Row> *direction : {&fewer, &more}) {
            direction->resize(std::min(direction->size(), kMostDegrees));
            add(holding(std::move(*direction)));
        }
    }
    /// A bound that allows `value`, too; in place of the number where it is exactly one.
    static CountBound reaching(CountBound bound, std::int32_t value)
    {
        if (bound.values.size() == 1)
            bound.values = {value};
        else
            bound.values.insert(std::lower_bound(bound.values.begin(), bound.values.end(), value), value);
        return bound;
    }
    void loosenBound(const CountBound &bound, const std::function<Rule(CountBound)> &rule)
    {
        std::vector<Row> rows;
        if (bound.kind == CountBound::Kind::OneOf) {
            CountBound less = bound; // with half and double of what it has
            CountBound more = bound;
            less.values.insert(less.values.begin(), std::max(bound.values.front() / 2, 1));
            more.values.push_back(bound.values.back() * 2);
            less.values.erase(std::unique(less.values.begin(), less.values.end()), less.values.end());
            for (CountBound &each : std::vector<CountBound>{less, more})
                if (each != bound)
                    rows.push_back(with(rule(std::move(each))));
        } else {
            for (std::size_t i = 0; i < kMostOfDirection; ++i) {
                CountBound other = bound;
                std::int32_t &value = other.values.front();
                value = bound.kind == CountBound::Kind::AtMost ? value << (i + 1) : value >> (i + 1);
                if (value < 1)
                    break;
                rows.push_back(with(rule(std::move(other))));
            }
        }
        add(holding(std::move(rows)));
    }

    void loosen(const SpreadRule &rule)
    {
        axes(rule.axis, {}, [&](const std::string &axis) { return Rule(SpreadRule{axis, rule.by}); });
    }

    void loosen(const OpAssignRule &rule)
    {
        if (!rule.devices.empty()) {
            // The first of them, or further ones that it does not have yet.
            std::vector<DeviceId> known = rule.devices;
            for (std::int32_t d = 0; d < m_setting.deviceCount; ++d)
                if (std::find(known.begin(), known.end(), DeviceId{d}) == known.end())
                    known.push_back({d});
            std::erase_if(known, [&](DeviceId device) { return device.index >= m_setting.deviceCount; });
            numbers(static_cast<std::int64_t>(rule.devices.size()), 1,
                static_cast<std::int64_t>(known.size()), [&](std::int32_t count) {
                    return Rule(OpAssignRule{.devices = {known.begin(), known.begin() + count}});
                });
            return;
        }
        for (std::size_t i = 0; i < rule.coordinates.size(); ++i) {
            const AxisCoordinate &coordinate = rule.coordinates[i];
            const auto changed = [&](auto change) {
                OpAssignRule other = rule;
                change(other.coordinates[i]);
                return Rule(std::move(other));
            };
            if (const MeshAxis *axis = findAxis(m_setting.mesh, coordinate.axis))
                numbers(coordinate.index, 0, axis->size - 1, [&](std::int32_t index) {
                    return changed([&](AxisCoordinate &other) { other.index = index; });
                });
            OpAssignRule everywhere = rule; // along this axis
            everywhere.coordinates.erase(everywhere.coordinates.begin() + static_cast<std::ptrdiff_t>(i));
            add(holding({with(std::move(everywhere))}));
            if (!findAxis(m_setting.mesh, coordinate.axis))
                axes(coordinate.axis, {}, [&](const std::string &axis) {
                    return changed([&](AxisCoordinate &other) { other.axis = axis; });
                });
        }
    }

    void loosen(const CoshardRule &rule) { loosenParts(rule); }
    void loosen(const SliceRule &rule) { loosenParts(rule); }
    template<typename RuleType> void loosenParts(const RuleType &rule)
    {
        numbers(rule.parts, 2, std::int64_t{rule.parts} * 16, [&](std::int32_t parts) {
            RuleType other = rule;
            other.parts = parts;
            return Rule(std::move(other));
        });
    }

    void loosen(const LanesRule &rule)
    {
        if (rule.axis.empty())
            numbers(rule.count, 2, m_setting.deviceCount,
                [](std::int32_t count) { return Rule(LanesRule{.count = count}); });
        else
            axes(rule.axis, {}, [](const std::string &axis) { return Rule(LanesRule{.axis = axis}); });
    }

    void loosen(const RingRule &rule)
    {
        axes(rule.axis, {}, [](const std::string &axis) { return Rule(RingRule{axis}); });
    }

    void loosen(const OptimizerShardingRule &rule)
    {
        const auto changed = [&](auto change) {
            OptimizerShardingRule other = rule;
            change(other);
            return Rule(std::move(other));
        };
        if (!rule.axis.empty()) {
            axes(rule.axis, {}, [&](const std::string &axis) {
                return changed([&](OptimizerShardingRule &other) {
                    other.axis = axis;
                    std::erase(other.moreAxes, axis);
                });
            });
            for (const std::string &axis : rule.moreAxes)
                add(holding({with(Rule(withoutAxis(rule, axis)))}));
            add(holding({with(changed([](OptimizerShardingRule &other) {
                other.axis.clear();
                other.moreAxes.clear();
            }))}));
        }
        if (rule.parts > 0)
            numbers(rule.parts, 2, m_setting.deviceCount, [&](std::int32_t parts) {
                return changed([&](OptimizerShardingRule &other) { other.parts = parts; });
            });
    }

    void loosen(const InFlightRule &rule)
    {
        if (rule.stage >= m_stageCount)
            numbers(rule.stage, 0, m_stageCount - 1, [&](std::int32_t stage) {
                return Rule(InFlightRule{rule.count, stage});
            });
    }

    /// Later, of another micro-batch, or the other way round.
    void loosen(const OpOrderRule &rule)
    {
        if (rule.microBatch >= 0) {
            numbers(rule.microBatch, 0, m_microBatches - 1, [&](std::int32_t microBatch) {
                OpOrderRule other = rule;
                other.microBatch = microBatch;
                return Rule(std::move(other));
            });
        }
        if (rule.microBatchOffset + 1 < m_microBatches) {
            OpOrderRule later = rule;
            ++later.microBatchOffset;
            add(holding({with(std::move(later))}));
        }
        Row turned = m_row;
        auto &other = std::get<OpOrderRule>(turned.rule);
        std::swap(turned.selector, other.second);
        std::swap(other.part, other.secondPart);
        other.microBatchOffset = -rule.microBatchOffset;
        if (rule.microBatch >= 0)
            other.microBatch = rule.microBatch + rule.microBatchOffset;
        add(holding({std::move(turned)}));
    }

    const RowSetting &m_setting;
    std::int32_t m_microBatches = 1;
    std::int32_t m_stageCount = 1;
    const Row &m_row;
    const std::function<std::vector<std::int32_t>(Degree)> &m_valuesOf;
    LooserRows m_result{};
};

} // namespace

LooserRows looserRows(const RowSetting &setting, std::int32_t microBatches, std::int32_t stageCount,
    const Row &row, const std::function<std::vector<std::int32_t>(Degree)> &valuesOf)
{
    return Loosener(setting, microBatches, stageCount, row, valuesOf).find();
}

} // namespace planloom
