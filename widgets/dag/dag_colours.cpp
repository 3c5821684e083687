#include "widgets/dag/dag_colours.h"

#include "engine/base/ids.h"
#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace planloom {

namespace {

QString tr(const char *text)
{
    return QCoreApplication::translate("DagColours", text);
}

constexpr std::size_t kMostShares = 8;
constexpr std::size_t kMostLegend = 16;
constexpr int kScaleSteps = 8;

/// Counts how much of a box each key (device, stage, category) has.
class Tally
{
public:
    void add(std::int32_t key, double amount)
    {
        for (auto &[known, sum] : m_sums) {
            if (known == key) {
                sum += amount;
                return;
            }
        }
        m_sums.emplace_back(key, amount);
    }
    void add(const Tally &other)
    {
        for (const auto &[key, sum] : other.m_sums)
            add(key, sum);
    }
    template<typename ToColour> std::vector<ColourShare> shares(QRgb neutral, ToColour toColour) const
    {
        if (m_sums.empty())
            return {{neutral, 1, -1}};
        auto sorted = m_sums;
        double total = 0;
        for (const auto &entry : sorted)
            total += entry.second;
        // The largest first; equal ones by key, so that a row of devices reads in order.
        std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
            return std::abs(a.second - b.second) > 1e-9 * (a.second + b.second) ? a.second > b.second
                                                                                : a.first < b.first;
        });
        std::vector<ColourShare> result;
        for (std::size_t i = 0; i < std::min(sorted.size(), kMostShares); ++i)
            result.push_back(
                {toColour(sorted[i].first), static_cast<float>(sorted[i].second / total), sorted[i].first});
        float rest = 1;
        for (const auto &share : result)
            rest -= share.share;
        if (sorted.size() > kMostShares)
            result.push_back({neutral, std::max(rest, 0.0F), -1});
        return result;
    }
    const std::vector<std::pair<std::int32_t, double>> &sums() const { return m_sums; }

private:
    std::vector<std::pair<std::int32_t, double>> m_sums;
};

class Colouring
{
public:
    Colouring(const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts,
        ColourBy colourBy, const Palette &palette)
        : m_outline(outline)
        , m_visible(visible)
        , m_facts(facts)
        , m_colourBy(colourBy)
        , m_palette(palette)
        , m_plan(facts.plan && facts.plan->decisions.size() == outline.graph->operators.size()
                  ? facts.plan.get()
                  : nullptr)
    {
        if (m_plan != nullptr)
            m_decidedBy = planloom::decidedBy(*m_plan);
    }

    DagColours colours()
    {
        m_result.boxes.resize(m_visible.boxes.size());
        m_result.title = nameOf(m_colourBy);
        addBadges();
        if (hasScale(m_colourBy))
            byValue();
        else
            byKey();
        countDeviating();
        return std::move(m_result);
    }

private:
    const OutlineUnit &unitAt(std::int32_t place) const
    {
        return m_outline.units[at(m_visible.unitList[at(place)])];
    }

    void tallyUnit(Tally &tally, const OutlineUnit &unit) const
    {
        switch (m_colourBy) {
        case ColourBy::Device:
            if (m_plan != nullptr) {
                const auto &devices = m_plan->decisions[at(unit.op.index)].devices;
                for (const auto device : devices)
                    tally.add(device.index, 1.0 / static_cast<double>(devices.size()));
            }
            break;
        case ColourBy::Stage:
            if (m_plan != nullptr && m_plan->decisions[at(unit.op.index)].stage.valid())
                tally.add(m_plan->decisions[at(unit.op.index)].stage.index, 1);
            break;
        case ColourBy::Kind:
            tally.add(static_cast<std::int32_t>(categoryOf(m_outline.graph->at(unit.op).kind)), 1);
            break;
        case ColourBy::DecidedBy:
            if (m_plan != nullptr)
                tally.add(static_cast<std::int32_t>(m_decidedBy[at(unit.op.index)]), 1);
            break;
        case ColourBy::Difference:
            if (const auto found = m_facts.values.find(ColourBy::Difference);
                found != m_facts.values.end() && found->second.size() == m_outline.graph->operators.size())
                tally.add(static_cast<std::int32_t>(found->second[at(unit.op.index)]), 1);
            break;
        case ColourBy::Time:
        case ColourBy::Memory:
        case ColourBy::Communication:
        case ColourBy::Slack:
        case ColourBy::Error:
            break;
        }
    }

    QRgb colourOfKey(std::int32_t key) const
    {
        switch (m_colourBy) {
        case ColourBy::Kind:
            return categoryColour(m_palette, static_cast<OperatorCategory>(key)).rgb();
        case ColourBy::Stage:
            return stageColour(m_palette, StageId{key}).rgb();
        case ColourBy::DecidedBy:
            return decidedByColour(m_palette, static_cast<DecidedBy>(key)).rgb();
        case ColourBy::Difference:
            return key == 0 ? m_palette.neutral.rgb() : categoricalColour(m_palette, key - 1).rgb();
        case ColourBy::Device:
        case ColourBy::Time:
        case ColourBy::Memory:
        case ColourBy::Communication:
        case ColourBy::Slack:
        case ColourBy::Error:
            break;
        }
        return deviceColour(m_palette, DeviceId{key}).rgb();
    }

    void byKey()
    {
        const std::size_t boxes = m_visible.boxes.size();
        std::vector<Tally> tallies(boxes);
        for (std::size_t box = boxes; box-- > 0;) { // children before their frames
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i)
                tallyUnit(tallies[box], unitAt(i));
            m_result.boxes[box].shares = tallies[box].shares(
                m_palette.neutral.rgb(), [this](std::int32_t key) { return colourOfKey(key); });
            if (m_visible.boxes[box].parent >= 0)
                tallies[at(m_visible.boxes[box].parent)].add(tallies[box]);
        }
        auto keys = tallies.empty() ? std::vector<std::pair<std::int32_t, double>>{} : tallies.front().sums();
        std::sort(keys.begin(), keys.end());
        for (std::size_t i = 0; i < std::min(keys.size(), kMostLegend); ++i)
            m_result.legend.push_back(
                {QColor::fromRgb(colourOfKey(keys[i].first)), wordFor(keys[i].first), keys[i].first});
        if (keys.size() > kMostLegend)
            m_result.legend.push_back({m_palette.neutral,
                tr("%1 more").arg(static_cast<qsizetype>(keys.size() - kMostLegend)), -1});
        if (keys.empty())
            m_result.legend.push_back({m_palette.neutral,
                m_colourBy == ColourBy::Difference ? tr("nothing to compare") : tr("no plan yet"), -1});
    }

    QString wordFor(std::int32_t key) const
    {
        if (m_colourBy == ColourBy::Kind)
            return nameOfCategory(static_cast<OperatorCategory>(key));
        if (m_colourBy == ColourBy::DecidedBy)
            return nameOfDecidedBy(static_cast<DecidedBy>(key));
        if (m_colourBy == ColourBy::Difference) {
            switch (static_cast<OperatorChange>(key)) {
            case OperatorChange::Same:
                return tr("same");
            case OperatorChange::Split:
                return tr("split differently");
            case OperatorChange::Placed:
                return tr("placed elsewhere");
            case OperatorChange::Ordered:
                return tr("ordered differently");
            case OperatorChange::Computed:
                return tr("computed differently");
            case OperatorChange::Both:
                return tr("several");
            }
        }
        return QString::number(key);
    }

    /// What a box's operators come to: the sum, the least or the mean of what is known.
    class Aggregate
    {
    public:
        void add(double value)
        {
            if (std::isnan(value))
                return;
            m_sum += value;
            m_least = std::min(m_least, value);
            ++m_count;
        }
        void add(const Aggregate &other)
        {
            m_sum += other.m_sum;
            m_least = std::min(m_least, other.m_least);
            m_count += other.m_count;
        }
        double value(ColourBy colourBy) const
        {
            if (m_count == 0)
                return std::numeric_limits<double>::quiet_NaN();
            return colourBy == ColourBy::Slack ? m_least
                : colourBy == ColourBy::Error  ? m_sum / m_count
                                               : m_sum;
        }

    private:
        double m_sum = 0;
        double m_least = std::numeric_limits<double>::infinity();
        std::int64_t m_count = 0;
    };

    void byValue()
    {
        const std::size_t boxes = m_visible.boxes.size();
        const auto values = valuesOf(*m_outline.graph, m_facts, m_colourBy);
        const bool known = !values.empty();
        const bool folded = m_colourBy != ColourBy::Memory; // backward operators' outputs are gradients
        std::vector<Aggregate> sums(boxes);
        double most = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t box = boxes; known && box-- > 0;) {
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i) {
                const auto &unit = unitAt(i);
                sums[box].add(values[at(unit.op.index)]);
                if (unit.backward.valid() && folded)
                    sums[box].add(values[at(unit.backward.index)]);
                for (const auto step : unit.optimizers) {
                    if (folded)
                        sums[box].add(values[at(step.index)]);
                }
            }
            if (m_visible.boxes[box].parent >= 0)
                sums[at(m_visible.boxes[box].parent)].add(sums[box]);
            const double value = sums[box].value(m_colourBy);
            if (!m_visible.boxes[box].frame && !std::isnan(value)) {
                most = std::max(most, value);
                least = std::min(least, value);
            }
        }
        // The root spreads the small ones: a few products dwarf everything else. Errors go by their
        // logarithm, from half to twice what was predicted; slack from none (critical) down to much.
        const auto shareOf = [&](double value) {
            switch (m_colourBy) {
            case ColourBy::Error:
                return std::clamp(0.5 + 0.5 * std::log2(std::max(1e-9, value)), 0.0, 1.0);
            case ColourBy::Slack:
                return most > 0 ? 1 - std::sqrt(std::clamp(value / most, 0.0, 1.0)) : 1.0;
            default:
                return std::sqrt(std::clamp(value / most, 0.0, 1.0));
            }
        };
        const bool any = std::isfinite(least) && (most > 0 || m_colourBy == ColourBy::Slack);
        for (std::size_t box = 0; box < boxes; ++box) {
            const double value = any ? sums[box].value(m_colourBy) : std::numeric_limits<double>::quiet_NaN();
            if (std::isnan(value)) {
                m_result.boxes[box].shares = {{m_palette.neutral.rgb(), 1, -1}};
                continue;
            }
            const double share = shareOf(value);
            m_result.boxes[box].shares = {{heatColour(m_palette, share).rgb(), 1,
                static_cast<std::int32_t>(std::lround(share * kScaleSteps))}};
            if (m_colourBy != ColourBy::Time)
                m_result.boxes[box].badge = valueText(m_colourBy, value);
        }
        if (!any) {
            m_result.legend.push_back({m_palette.neutral, emptyWords(), -1});
            return;
        }
        m_result.scale = true;
        for (int step = 0; step <= kScaleSteps; ++step) {
            const double share = static_cast<double>(step) / kScaleSteps;
            double value = most * share * share;
            if (m_colourBy == ColourBy::Error)
                value = std::exp2(2 * share - 1);
            else if (m_colourBy == ColourBy::Slack)
                value = most * (1 - share) * (1 - share);
            m_result.legend.push_back({heatColour(m_palette, share),
                step % kScaleSteps == 0 ? valueText(m_colourBy, value) : QString(), step});
        }
    }

    QString emptyWords() const
    {
        switch (m_colourBy) {
        case ColourBy::Error:
            return tr("no run yet");
        case ColourBy::Communication:
            return tr("no communication yet");
        case ColourBy::Slack:
            return tr("no timeline yet");
        default:
            return tr("no times yet");
        }
    }

    /// Of boxes that stand for copies: how many are planned unlike most of the others. A plan that treats the
    /// copies in halves or quarters has no odd ones out.
    void countDeviating()
    {
        if (m_plan == nullptr)
            return;
        for (std::size_t box = 0; box < m_visible.boxes.size(); ++box) {
            auto &colours = m_result.boxes[box];
            const auto &shown = m_visible.boxes[box];
            const auto &item = m_outline.at(shown.item);
            colours.copies = shown.copies;
            if (!shown.frame && m_visible.unitBegin[box] < m_visible.unitBegin[box + 1])
                colours.decidedBy = DecidedBy::Row;
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i)
                colours.decidedBy = std::min(colours.decidedBy, m_decidedBy[at(unitAt(i).op.index)]);
            if (shown.frame || item.kind != OutlineItem::Kind::Operator || shown.copies < 3)
                continue;
            const std::int32_t begin = m_visible.unitBegin[box];
            const std::int32_t end = m_visible.unitBegin[box + 1];
            const auto decision = [&](std::int32_t i) -> const OperatorDecision & {
                return m_plan->decisions[at(unitAt(i).op.index)];
            };
            const auto alike = [](const OperatorDecision &a, const OperatorDecision &b) {
                return a.partition == b.partition && a.devices == b.devices
                    && (a.recomputeGroup >= 0) == (b.recomputeGroup >= 0);
            };
            // The candidate that outvotes all others, if there is one (Boyer and Moore), and then its votes.
            std::int32_t candidate = begin;
            std::int32_t votes = 0;
            for (std::int32_t i = begin; i < end; ++i) {
                if (votes == 0)
                    candidate = i;
                votes += alike(decision(i), decision(candidate)) ? 1 : -1;
            }
            std::int32_t same = 0;
            for (std::int32_t i = begin; i < end; ++i)
                same += alike(decision(i), decision(candidate)) ? 1 : 0;
            const std::int32_t others = end - begin - same;
            if (others > 0 && others < same)
                colours.deviating = others;
        }
        for (std::size_t box = m_visible.boxes.size(); box-- > 1;) { // a stack says it of its parts
            auto &parent = m_result.boxes[at(m_visible.boxes[box].parent)];
            parent.deviating = std::max(parent.deviating, m_result.boxes[box].deviating);
        }
    }

    void addBadges()
    {
        if (m_plan == nullptr)
            return;
        std::vector<std::set<std::int32_t>> sets(m_visible.boxes.size());
        for (std::size_t box = sets.size(); box-- > 0;) {
            auto &own = sets[box];
            std::int32_t turns = 1; // the most of an operator
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i) {
                const auto &decision = m_plan->decisions[at(unitAt(i).op.index)];
                turns = std::max(turns, turnsOf(decision));
                for (const auto device : decision.devices)
                    if (m_colourBy != ColourBy::Stage)
                        own.insert(device.index);
                if (m_colourBy == ColourBy::Stage && decision.stage.valid())
                    own.insert(decision.stage.index);
            }
            if (!own.empty()) {
                const QString ranges =
                    QString::fromStdString(rangesOf(std::vector<std::int32_t>(own.begin(), own.end())));
                QString &badge = m_result.boxes[box].badge;
                badge = m_colourBy == ColourBy::Stage ? tr("stage %1").arg(ranges) : ranges;
                badge += turns > 1 ? tr(" · %1 turns").arg(turns) : QString();
            }
            if (m_visible.boxes[box].parent >= 0)
                sets[at(m_visible.boxes[box].parent)].insert(own.begin(), own.end());
        }
    }

    const DagOutline &m_outline;
    const VisibleGraph &m_visible;
    const OperatorFacts &m_facts;
    ColourBy m_colourBy;
    const Palette &m_palette;
    const Plan *m_plan;
    std::vector<DecidedBy> m_decidedBy; ///< By operator; empty without a plan.
    DagColours m_result{};
};

} // namespace

QString nameOf(ColourBy colourBy)
{
    switch (colourBy) {
    case ColourBy::Device:
        return tr("Device");
    case ColourBy::Stage:
        return tr("Stage");
    case ColourBy::Kind:
        return tr("Kind");
    case ColourBy::Time:
        return tr("Time");
    case ColourBy::Memory:
        return tr("Memory");
    case ColourBy::Communication:
        return tr("Communication");
    case ColourBy::Slack:
        return tr("Slack");
    case ColourBy::DecidedBy:
        return tr("Decided by");
    case ColourBy::Error:
        return tr("Error");
    case ColourBy::Difference:
        return tr("Difference");
    }
    return {};
}

bool hasScale(ColourBy colourBy)
{
    switch (colourBy) {
    case ColourBy::Time:
    case ColourBy::Memory:
    case ColourBy::Communication:
    case ColourBy::Slack:
    case ColourBy::Error:
        return true;
    case ColourBy::Device:
    case ColourBy::Stage:
    case ColourBy::Kind:
    case ColourBy::DecidedBy:
    case ColourBy::Difference:
        break;
    }
    return false;
}

QString valueText(ColourBy colourBy, double value)
{
    switch (colourBy) {
    case ColourBy::Memory:
    case ColourBy::Communication:
        return QString::fromStdString(formatBytes(Bytes{static_cast<std::int64_t>(value)}));
    case ColourBy::Error:
        return QStringLiteral("%1×").arg(value, 0, 'f', 2);
    default:
        return QString::fromStdString(formatSeconds(value));
    }
}

std::vector<double> valuesOf(const Graph &graph, const OperatorFacts &facts, ColourBy colourBy)
{
    const auto given = facts.values.find(colourBy);
    if (given != facts.values.end() && given->second.size() == graph.operators.size())
        return given->second;
    if (colourBy == ColourBy::Time && facts.seconds.size() == graph.operators.size())
        return facts.seconds;
    if (colourBy != ColourBy::Memory)
        return {};
    std::vector<double> bytes(graph.operators.size(), 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const auto output : graph.operators[i].outputs) {
            if (output.valid()) {
                const auto &type = graph.at(output).type;
                bytes[i] += static_cast<double>(elementCount(type.shape) * sizeOf(type.dataType));
            }
        }
    }
    return bytes;
}

DagColours coloursOf(const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts,
    ColourBy colourBy, const Palette &palette)
{
    return Colouring(outline, visible, facts, colourBy, palette).colours();
}

} // namespace planloom
