#include "engine/naming/plan_name.h"

#include "engine/base/words.h"
#include "engine/gesture/gesture.h"
#include "engine/plan/precision_rule.h"

#include <algorithm>
#include <set>

namespace planloom {

const char *titleOf(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Sequential:
        return "one micro-batch after another";
    case ScheduleKind::GPipe:
        return "GPipe";
    case ScheduleKind::OneFOneB:
        return "1F1B";
    case ScheduleKind::Interleaved:
        return "interleaved 1F1B";
    case ScheduleKind::CombinedOneFOneB:
        return "combined 1F1B";
    case ScheduleKind::ZeroBubbleH1:
        return "ZB-H1";
    case ScheduleKind::Chimera:
        return "Chimera";
    case ScheduleKind::Eager1F1B:
        return "eager 1F1B";
    case ScheduleKind::BreadthFirst:
        return "breadth-first";
    case ScheduleKind::OneFOneBPlus:
        return "1F1B+";
    case ScheduleKind::Recycling:
        return "3F1B";
    case ScheduleKind::Hanayo:
        return "Hanayo";
    case ScheduleKind::ZeroBubbleH2:
        return "ZB-H2";
    case ScheduleKind::ZeroBubbleV:
        return "ZB-V";
    case ScheduleKind::VHalf:
        return "V-Half";
    case ScheduleKind::VMin:
        return "V-Min";
    case ScheduleKind::DualPipe:
        return "DualPipe";
    case ScheduleKind::DualPipeV:
        return "DualPipeV";
    case ScheduleKind::Listed:
        return "an order of its own";
    }
    return "";
}

namespace {

std::string joined(const std::vector<std::string> &all, const char *between)
{
    std::string text;
    for (const std::string &each : all)
        text += (text.empty() ? "" : between) + each;
    return text;
}

/// Puts the words of a name together.
class NameWriter
{
public:
    NameWriter(const PlanShape &shape, const Plan &plan, const SelectorIndex &index)
        : m_shape(shape)
        , m_plan(plan)
        , m_index(index)
    {
    }

    PlanName write()
    {
        addPipeline();
        addDegrees();
        addSequence();
        if (m_short.empty())
            addUncut();
        addSharing();
        addMemory();
        addSteps();
        return {title(), sentence()};
    }

private:
    /// The same words in the sentence and, shorter, in the title.
    void add(std::string words, std::string brief)
    {
        m_words.push_back(std::move(words));
        if (!brief.empty())
            m_short.push_back(std::move(brief));
    }

    void addPipeline()
    {
        if (m_shape.stages < 2)
            return;
        const std::string schedule = titleOf(m_plan.schedule);
        const std::string stages = std::to_string(m_shape.stages);
        std::string words = schedule + " over " + stages + " stages";
        if (m_shape.ranks < 2)
            words += " on the same devices";
        else if (m_shape.ranks != m_shape.stages && m_shape.lanes == 1)
            words += m_shape.stages % m_shape.ranks == 0 && m_shape.spread.empty()
                ? " (" + std::to_string(m_shape.stages / m_shape.ranks) + " chunks on each of "
                    + std::to_string(m_shape.ranks) + " ranks)"
                : " on " + std::to_string(m_shape.ranks) + " ranks";
        add(words, schedule + " over " + stages);
        if (m_shape.lanes > 1)
            add("in " + std::to_string(m_shape.lanes) + " lanes with weights of their own",
                std::to_string(m_shape.lanes) + " lanes");
        if (m_shape.slices > 1)
            add("every sequence in " + std::to_string(m_shape.slices) + " slices",
                std::to_string(m_shape.slices) + " slices");
        if (!m_shape.spread.empty())
            add(named(m_shape.spread) + " interlaced over the devices of several stages", "interlaced");
    }

    void addDegrees()
    {
        const auto addDegree = [this](const char *words, const char *brief, std::int32_t degree) {
            if (degree > 1)
                add(words + std::to_string(degree), brief + std::to_string(degree));
        };
        addDegree("data parallel ", "data ", m_shape.data);
        if (m_shape.main.tensor > 1) {
            const std::string degree = std::to_string(m_shape.main.tensor);
            std::string words = "tensor parallel " + degree;
            if (m_shape.columns != m_shape.rows)
                words += m_shape.columns ? " (columns alone)" : " (rows alone)";
            if (m_shape.sequenceParallel)
                words += " with sequence parallelism";
            add(words, "tensor " + degree + (m_shape.sequenceParallel ? " + sequence" : ""));
        }
        addDegree("expert parallel ", "experts ", m_shape.main.experts);
        addDegree("spatial parallel ", "space ", m_shape.main.space);
    }

    void addSequence()
    {
        if (m_shape.main.sequence < 2)
            return;
        const std::string degree = std::to_string(m_shape.main.sequence);
        std::vector<std::string> how;
        if (m_shape.ring > 1)
            how.push_back(m_shape.byHeads > 1 ? "ring of " + std::to_string(m_shape.ring) : "ring");
        if (m_shape.byHeads > 1)
            how.push_back(m_shape.ring > 1 ? "heads over " + std::to_string(m_shape.byHeads) : "by heads");
        if (m_shape.axial)
            how.emplace_back("axial");
        if (how.empty())
            how.emplace_back("gathered");
        if (m_shape.zigzag)
            how.emplace_back("zigzag");
        add("context parallel " + degree + " (" + joined(how, ", ") + ")", "context " + degree);
    }

    void addUncut()
    {
        const std::int32_t used = m_shape.devices - m_shape.idle;
        if (used == 1)
            return add("a single device", "a single device");
        const std::string devices = std::to_string(used) + " devices";
        add(m_shape.main.copies == used ? "the same on " + devices : "operators spread over " + devices,
            m_shape.main.copies == used ? "the same on " + devices : "spread over " + devices);
    }

    void addSharing()
    {
        const std::vector<UpdateSharing> &all = m_shape.sharing;
        if (all.empty() || all.front().stage == 0)
            return;
        const bool isEvery = all.size() == 1;
        for (const UpdateSharing &each : all) {
            if (each.stage == 0) {
                add(counted(each.weights, "weight") + " updated whole", {});
                continue;
            }
            const std::string zero =
                "ZeRO-" + std::to_string(each.stage) + " on " + std::to_string(each.parts);
            // One way for all that is worth it needs no numbers.
            const bool isOnly = isEvery || (all.size() == 2 && all.back().stage == 0);
            add(isOnly ? zero : zero + " of " + counted(each.weights, "weight"), zero);
        }
    }

    /// "layers 0-3", "h.*.attn (12 operators)"; what no selector says short is named by kind, "Gather and
    /// Linear (6 operators)", or by layers, "60 operators of layers 0-3".
    std::string named(const std::vector<OperatorId> &operators) const
    {
        constexpr std::size_t kMostKinds = 2;
        const std::string number = counted(static_cast<std::int64_t>(operators.size()), "operator");
        const std::string text = wordsFor(m_index, operators);
        if (text != number)
            return text;
        std::set<std::string> kinds;
        std::set<std::int32_t> layers;
        for (const OperatorId op : operators) {
            kinds.insert(typeNameOf(m_plan.graph->at(op)));
            layers.insert(m_index.layerOf(op));
        }
        if (kinds.size() <= kMostKinds)
            return joined({kinds.begin(), kinds.end()}, " and ") + " (" + number + ")";
        if (*layers.begin() < 0)
            return text;
        return text + (layers.size() == 1 ? " of layer " : " of layers ")
            + rangesOf(std::vector<std::int32_t>(layers.begin(), layers.end()), kFewRuns);
    }

    void addRecomputation()
    {
        if (m_shape.recomputed.empty())
            return;
        std::set<std::int32_t> whole;
        std::set<std::int32_t> some;
        std::vector<std::int32_t> found(m_index.layers().scopes.size(), 0);
        for (const OperatorId op : m_shape.recomputed)
            if (const std::int32_t layer = m_index.layerOf(op); layer >= 0)
                ++found[at(layer)];
        for (std::size_t layer = 0; layer < found.size(); ++layer)
            if (found[layer] > 0)
                (found[layer] == m_index.forwardInLayer(static_cast<std::int32_t>(layer)) ? whole : some)
                    .insert(static_cast<std::int32_t>(layer));
        if (!whole.empty() && some.empty())
            return whole.size() == found.size()
                ? add("full recomputation", "recomputation")
                : add("recomputation of layers "
                        + rangesOf(std::vector<std::int32_t>(whole.begin(), whole.end()), kFewRuns),
                    "recomputation");
        add("recomputation of " + named(m_shape.recomputed), "recomputation");
    }

    void addMemory()
    {
        addRecomputation();
        if (!m_shape.inTurns.empty()) {
            std::vector<std::string> turns;
            for (const std::int32_t each : m_shape.turns)
                turns.push_back(std::to_string(each));
            add("coshard of " + named(m_shape.inTurns) + " in " + joined(turns, " and ") + " turns",
                "coshard");
        }
        if (!m_shape.offloaded.empty())
            add("activations of " + named(m_shape.offloaded) + " in host memory", "offload");
        if (m_shape.offloadsStates)
            add("optimizer states in host memory", "offload");
    }

    void addSteps()
    {
        if (m_plan.microBatches > 1)
            add(counted(m_plan.microBatches, "micro-batch"), {});
        if (m_plan.updates > 1)
            add(counted(m_plan.updates, "update") + " a step", {});
        if (m_shape.versions > 1)
            add("asynchronous with up to " + std::to_string(m_shape.versions) + " versions of weights",
                "asynchronous");
        if (!m_shape.trains)
            add("forward pass alone", {});
        if (const std::string precision = precisionSummary(m_plan); !isUsualPrecision())
            add(precision, {});
        if (m_shape.idle > 0)
            add(std::to_string(m_shape.idle) + " of " + counted(m_shape.devices, "device") + " idle", {});
    }

    /// One of the formats that whole models are trained in.
    bool isUsualPrecision() const
    {
        std::vector<Precision> all;
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i)
            if (m_plan.graph->operators[i].direction == Direction::Forward
                && std::find(all.begin(), all.end(), m_plan.decisions[i].precision) == all.end())
                all.push_back(m_plan.decisions[i].precision);
        return all.empty()
            || (all.size() == 1
                && (all.front() == precisionOf(PrecisionPreset::Float32)
                    || all.front() == precisionOf(PrecisionPreset::BFloat16)));
    }

    std::string exceptionWords(const PlanException &one) const
    {
        std::string text = named(one.operators) + " ";
        if (!one.devices.empty() && one.cut.data * one.cut.tensor * one.cut.sequence * one.cut.space == 1)
            return text + "apart on " + devicesText(one.devices);
        text += toString(one.cut, m_plan.units.count, one.hasProducts);
        return one.devices.empty() ? text : text + " on " + devicesText(one.devices);
    }

    static std::string devicesText(std::vector<DeviceId> devices)
    {
        std::sort(devices.begin(), devices.end());
        return (devices.size() == 1 ? "device " : "devices ") + rangesOf(devices, kFewRuns);
    }

    std::string sentence() const
    {
        constexpr std::size_t kMostExceptions = 2;
        std::string text = joined(m_words, ", ");
        std::vector<std::string> others;
        const std::size_t told = std::min(kMostExceptions, m_shape.exceptions.size());
        for (std::size_t i = 0; i < told; ++i)
            others.push_back(exceptionWords(m_shape.exceptions[i]));
        if (const std::size_t more = m_shape.exceptions.size() - told; more > 0)
            others.push_back("and " + std::to_string(more) + " more" + untold(told));
        if (m_shape.rowsOfOrder > 0)
            others.push_back("and " + counted(m_shape.rowsOfOrder, "row") + " of its own");
        return others.empty() ? text : text + "; " + joined(others, ", ");
    }

    /// Degrees that only what is not told has: no plan hides one behind a number of groups.
    std::string untold(std::size_t told) const
    {
        OperatorCut most;
        OperatorCut shown = m_shape.main;
        for (std::size_t i = 0; i < m_shape.exceptions.size(); ++i) {
            OperatorCut &into = i < told ? shown : most;
            const OperatorCut &cut = m_shape.exceptions[i].cut;
            into.data = std::max(into.data, cut.data);
            into.tensor = std::max(into.tensor, cut.tensor);
            into.sequence = std::max(into.sequence, cut.sequence);
            into.space = std::max(into.space, cut.space);
            into.copies = std::max(into.copies, cut.copies);
        }
        const auto only = [](std::int32_t &degree, std::int32_t known) {
            if (degree <= known)
                degree = 1;
        };
        only(most.data, shown.data);
        only(most.tensor, shown.tensor);
        only(most.sequence, shown.sequence);
        only(most.space, shown.space);
        only(most.copies, shown.copies);
        const std::string text = toString(most, most.data > 1 ? m_plan.units.count : 1);
        return text == "whole" ? std::string{} : " (up to " + text + ")";
    }

    std::string title() const
    {
        constexpr const char *kCut = ", ...";
        std::string text;
        for (const std::string &each : m_short) {
            const std::string longer = text.empty() ? each : text + ", " + each;
            if (longer.size() + std::string(kCut).size() > kLongestPlanTitle)
                return text + kCut;
            text = longer;
        }
        return text;
    }

    const PlanShape &m_shape;
    const Plan &m_plan;
    const SelectorIndex &m_index;
    std::vector<std::string> m_words{};
    std::vector<std::string> m_short{};
};

} // namespace

PlanName nameOf(const PlanShape &shape, const Plan &plan, const SelectorIndex &index)
{
    return NameWriter(shape, plan, index).write();
}

PlanName planNameOf(const Plan &plan, const Model &model)
{
    if (plan.graph == model.graph)
        return nameOf(shapeOf(plan, *model.index), plan, *model.index);
    const SelectorIndex index(plan.graph);
    return nameOf(shapeOf(plan, index), plan, index);
}

} // namespace planloom
