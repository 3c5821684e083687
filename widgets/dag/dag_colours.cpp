#include "widgets/dag/dag_colours.h"

#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace planloom {

namespace {

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

QString tr(const char *text)
{
    return QCoreApplication::translate("DagColours", text);
}

constexpr std::size_t kMostShares = 8;
constexpr std::size_t kMostLegend = 16;

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
            return {{neutral, 1}};
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
            result.push_back({toColour(sorted[i].first), static_cast<float>(sorted[i].second / total)});
        float rest = 1;
        for (const auto &share : result)
            rest -= share.share;
        if (sorted.size() > kMostShares)
            result.push_back({neutral, std::max(rest, 0.0F)});
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
    }

    DagColours colours()
    {
        m_result.boxes.resize(m_visible.boxes.size());
        m_result.title = nameOf(m_colourBy);
        addBadges();
        if (m_colourBy == ColourBy::Time)
            byTime();
        else
            byKey();
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
        case ColourBy::Time:
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
        case ColourBy::Device:
        case ColourBy::Time:
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
            m_result.legend.push_back({QColor::fromRgb(colourOfKey(keys[i].first)), wordFor(keys[i].first)});
        if (keys.size() > kMostLegend)
            m_result.legend.push_back(
                {m_palette.neutral, tr("%1 more").arg(static_cast<qsizetype>(keys.size() - kMostLegend))});
        if (keys.empty())
            m_result.legend.push_back({m_palette.neutral, tr("no plan yet")});
    }

    QString wordFor(std::int32_t key) const
    {
        if (m_colourBy == ColourBy::Kind)
            return nameOfCategory(static_cast<OperatorCategory>(key));
        return QString::number(key);
    }

    void byTime()
    {
        const std::size_t boxes = m_visible.boxes.size();
        std::vector<double> sums(boxes, 0);
        const bool known = m_facts.seconds.size() == m_outline.graph->operators.size();
        double most = 0;
        for (std::size_t box = boxes; known && box-- > 0;) {
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i) {
                const auto &unit = unitAt(i);
                sums[box] += m_facts.seconds[at(unit.op.index)];
                if (unit.backward.valid())
                    sums[box] += m_facts.seconds[at(unit.backward.index)];
                for (const auto step : unit.optimizers)
                    sums[box] += m_facts.seconds[at(step.index)];
            }
            if (m_visible.boxes[box].parent >= 0)
                sums[at(m_visible.boxes[box].parent)] += sums[box];
            if (!m_visible.boxes[box].frame)
                most = std::max(most, sums[box]);
        }
        for (std::size_t box = 0; box < boxes; ++box) {
            // The root spreads the small ones: a few products dwarf everything else.
            const double share = most > 0 ? std::sqrt(std::min(1.0, sums[box] / most)) : 0;
            const QColor colour = most > 0 ? heatColour(m_palette, share) : m_palette.neutral;
            m_result.boxes[box].shares = {{colour.rgb(), 1}};
        }
        if (most <= 0) {
            m_result.legend.push_back({m_palette.neutral, tr("no times yet")});
            return;
        }
        m_result.scale = true;
        for (int step = 0; step <= 8; ++step) {
            const double share = step / 8.0;
            m_result.legend.push_back({heatColour(m_palette, share),
                step % 8 == 0 ? QString::fromStdString(formatSeconds(most * share * share)) : QString()});
        }
    }

    void addBadges()
    {
        if (m_plan == nullptr)
            return;
        const std::size_t boxes = m_visible.boxes.size();
        std::vector<std::set<std::int32_t>> sets(boxes);
        for (std::size_t box = boxes; box-- > 0;) {
            auto &own = sets[box];
            for (std::int32_t i = m_visible.unitBegin[box]; i < m_visible.unitBegin[box + 1]; ++i) {
                const auto &decision = m_plan->decisions[at(unitAt(i).op.index)];
                if (m_colourBy == ColourBy::Stage) {
                    if (decision.stage.valid())
                        own.insert(decision.stage.index);
                } else {
                    for (const auto device : decision.devices)
                        own.insert(device.index);
                }
            }
            if (!own.empty()) {
                const QString ranges = rangesOf({own.begin(), own.end()});
                m_result.boxes[box].badge =
                    m_colourBy == ColourBy::Stage ? tr("stage %1").arg(ranges) : ranges;
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
    }
    return {};
}

QString rangesOf(std::vector<std::int32_t> indices)
{
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    QString text;
    for (std::size_t i = 0; i < indices.size();) {
        std::size_t last = i;
        while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1)
            ++last;
        if (!text.isEmpty())
            text += QStringLiteral(", ");
        text += QString::number(indices[i]);
        if (last == i + 1)
            text += QStringLiteral(", ") + QString::number(indices[last]);
        else if (last > i)
            text += QStringLiteral("–") + QString::number(indices[last]);
        i = last + 1;
    }
    return text;
}

std::vector<std::int32_t> devicesOf(const Plan &plan, OperatorId op)
{
    std::vector<std::int32_t> result;
    if (!op.valid() || at(op.index) >= plan.decisions.size())
        return result;
    for (const auto device : plan.decisions[at(op.index)].devices)
        result.push_back(device.index);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

DagColours coloursOf(const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts,
    ColourBy colourBy, const Palette &palette)
{
    return Colouring(outline, visible, facts, colourBy, palette).colours();
}

} // namespace planloom
