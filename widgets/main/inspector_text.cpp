#include "widgets/main/inspector_text.h"

#include "engine/analyse/limits.h"
#include "engine/base/words.h"
#include "engine/design/explain/row_reasons.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/hardware/cost.h"
#include "engine/hardware/device_word.h"
#include "engine/hardware/framework.h"
#include "engine/naming/plan_name.h"
#include "widgets/common/format.h"
#include "widgets/design/row_sentences.h"
#include "widgets/inspector/kind_meanings.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

QString tr(const char *text)
{
    return QCoreApplication::translate("planloom::Inspector", text);
}

QString escaped(const std::string &text)
{
    return QString::fromStdString(text).toHtmlEscaped();
}

constexpr std::size_t kMostOfRow = 2000; ///< Letters of a row that is shown in full.

/// Rich text in sections of name and value.
class Sheet
{
public:
    explicit Sheet(const Palette &palette)
        : m_muted(palette.textMuted.name())
        , m_line(palette.grid.name())
        , m_accent(palette.accent.name())
        , m_error(palette.error.name())
    {
    }

    void title(const QString &text, const QString &under)
    {
        m_text += QStringLiteral("<p style='margin:0 0 2px 0; font-size:large; font-weight:600'>%1</p>"
                                 "<p style='margin:0 0 6px 0; color:%3'>%2</p>")
                      .arg(text, under, m_muted);
    }

    void section(const QString &name)
    {
        close();
        m_text += QStringLiteral("<p style='margin:10px 0 3px 0; font-weight:600; color:%2'>%1</p>"
                                 "<table cellspacing='0' cellpadding='2' width='100%'>")
                      .arg(name, m_accent);
        m_open = true;
    }

    void row(const QString &name, const QString &value)
    {
        m_text += QStringLiteral("<tr><td style='color:%3' width='92'>%1</td><td>%2</td></tr>")
                      .arg(name, value, m_muted);
    }

    void wide(const QString &value)
    {
        m_text += QStringLiteral("<tr><td colspan='2'>%1</td></tr>").arg(value);
    }

    QString mono(const QString &text) const { return QStringLiteral("<code>%1</code>").arg(text); }
    QString muted(const QString &text) const
    {
        return QStringLiteral("<span style='color:%2'>%1</span>").arg(text, m_muted);
    }
    QString wrong(const QString &text) const
    {
        return QStringLiteral("<span style='color:%2'>%1</span>").arg(text, m_error);
    }

    QString done()
    {
        close();
        return m_text;
    }

private:
    void close()
    {
        if (m_open)
            m_text += QStringLiteral("</table>");
        m_open = false;
    }

    QString m_text;
    QString m_muted;
    QString m_line;
    QString m_accent;
    QString m_error;
    bool m_open = false;
};

QString typeOf(const Graph &graph, TensorId id)
{
    return escaped(formatType(graph.at(id)));
}

/// @param storage  of what the operator reads and makes, where the plan keeps it in another type than the
/// model
void tensors(
    Sheet &sheet, const Graph &graph, const QString &name, const std::vector<TensorId> &ids, DataType storage)
{
    std::size_t slot = 0;
    for (const TensorId id : ids) {
        const QString label = ids.size() > 1 ? QStringLiteral("%1 %2").arg(name).arg(slot) : name;
        ++slot;
        if (!id.valid())
            continue;
        QString type = typeOf(graph, id);
        if (graph.at(id).type.dataType == DataType::Float32 && storage != DataType::Float32)
            type += tr(", in this plan %1").arg(escaped(nameOf(storage)));
        sheet.row(
            label, QStringLiteral("%1<br>%2").arg(type, sheet.muted(escaped(elided(graph.at(id).name, 44)))));
    }
}

/// What operators of the kind do, and this one's attributes.
void kindOf(Sheet &sheet, const Operator &op)
{
    sheet.section(tr("What it does"));
    if (const QString meaning = meaningOfKind(op.kind); !meaning.isEmpty())
        sheet.wide(meaning.toHtmlEscaped());
    for (const auto &[name, value] : op.attributes.all())
        sheet.row(sheet.mono(escaped(name)), attributeText(value).toHtmlEscaped());
}

/// A split along the identifier leaves parts of some output that are not summed.
bool combinesOtherwise(const Annotation &annotation, std::int32_t identifier)
{
    for (std::size_t slot = 0; slot < annotation.outputs.size(); ++slot)
        if (combinationOf(annotation, slot) != Combination::Sum
            && !mentions(annotation.outputs[slot], identifier))
            return true;
    return false;
}

void dimensions(Sheet &sheet, const OpenedModel &model, OperatorId id)
{
    const Operator &op = model.graph->at(id);
    sheet.section(tr("Dimensions"));
    sheet.wide(sheet.mono(escaped(toString(op.annotation))));
    if (!op.annotationProblem.empty())
        sheet.wide(sheet.wrong(tr("Kept whole: %1").arg(escaped(op.annotationProblem))));
    for (std::size_t i = 0; i < op.annotation.dimensions.size(); ++i) {
        const Dimension &dimension = op.annotation.dimensions[i];
        const std::string name = displayName(model.index->dimensions(), id, static_cast<std::int32_t>(i));
        const QString meaning = dimension.mark == DimensionMark::Frozen ? tr("%1, can't be split")
            : dimension.mark == DimensionMark::Reduce
            ? combinesOtherwise(op.annotation, static_cast<std::int32_t>(i))
                ? tr("%1, a split leaves parts to be combined")
                : tr("%1, a split leaves partial sums")
            : tr("%1, may be split");
        const QString label = sheet.mono(escaped(dimension.name));
        sheet.row(name.empty() ? label : tr("%1 %2").arg(label, escaped(name)), meaning.arg(dimension.size));
    }
}

/// The row that decides first, in a line, and the others; in full what they say at length.
void why(Sheet &sheet, const PlanUpdate &update, OperatorId id, bool isInFull)
{
    constexpr std::size_t kMostRows = 4;
    const std::string &why = update.plan->decisions[static_cast<std::size_t>(id.index)].why;
    const std::vector<RowReason> reasons = rowReasons(update, id);
    sheet.section(tr("Why?"));
    const std::size_t shown = isInFull ? reasons.size() : std::min(reasons.size(), kMostRows);
    bool hasMore = shown < reasons.size();
    for (std::size_t i = 0; i < shown; ++i) {
        const RowReason &reason = reasons[i];
        hasMore = hasMore || reason.isShortened;
        const QString words = sheet.mono(escaped(reason.words));
        sheet.row(tr("row %1").arg(reason.line + 1), i == 0 ? QStringLiteral("<b>%1</b>").arg(words) : words);
        if (isInFull && reason.isShortened)
            sheet.wide(sheet.muted(
                escaped(elided(update.rows[static_cast<std::size_t>(reason.row.index)].text, kMostOfRow))));
    }
    if (hasMore)
        sheet.row({},
            isInFull ? QStringLiteral("<a href=\"why:short\">%1</a>").arg(tr("Less"))
                : shown == reasons.size()
                ? QStringLiteral("<a href=\"why:full\">%1</a>").arg(tr("In full"))
                : QStringLiteral("<a href=\"why:full\">%1</a>")
                      .arg(tr("%1 more rows, in full").arg(reasons.size() - shown)));
    if (!why.empty())
        sheet.wide(escaped(withLineNumbers(why, update)));
    if (reasons.empty() && why.empty())
        sheet.wide(tr("No row speaks of it; the defaults decided."));
}

void decision(Sheet &sheet, const PlanUpdate &update, OperatorId id, bool isInFull)
{
    const Graph &graph = *update.plan->graph;
    const Operator &op = graph.at(id);
    const OperatorDecision &decision = update.plan->decisions[static_cast<std::size_t>(id.index)];
    sheet.section(tr("Decision"));
    const std::string partition = toString(op.annotation, decision.partition);
    sheet.row(tr("op-trans"), partition.empty() ? tr("whole") : sheet.mono(escaped(partition)));
    const std::set<DeviceId> devices(decision.devices.begin(), decision.devices.end());
    sheet.row(tr("op-assign"),
        QStringLiteral("%1 %2 (%3)")
            .arg(escaped(deviceWord(update.cluster)),
                escaped(rangesOf(std::vector(devices.begin(), devices.end()), kFewRuns)),
                decision.devices.size() == 1 ? tr("1 part") : tr("%1 parts").arg(decision.devices.size())));
    if (decision.stage.valid() && update.plan->stageCount > 1)
        sheet.row(tr("Stage"), QString::number(decision.stage.index));
    if (decision.recomputeGroup >= 0)
        sheet.row(
            tr("Recompute"), tr("outputs are dropped and made again, group %1").arg(decision.recomputeGroup));
    if (decision.splitBackward && op.direction != Direction::Optimizer)
        sheet.row(tr("Backward pass"), tr("gradients of weights in a pass of their own"));
    if (decision.weightVersions > 1)
        sheet.row(tr("Weight versions"),
            tr("%1 kept, the oldest read: gradients are %2 updates old")
                .arg(decision.weightVersions)
                .arg(decision.weightVersions - 1));
    if (decision.offloaded)
        sheet.row(tr("Offload"),
            op.direction == Direction::Optimizer ? tr("states wait in host memory")
                                                 : tr("what the backward pass reads waits in host memory"));
    if (decision.coshardRegion >= 0)
        sheet.row(tr("Coshard"),
            tr("region %1, whose parts take %2 turns").arg(decision.coshardRegion).arg(turnsOf(decision)));
    if (decision.ringSplit >= 0)
        sheet.row(tr("Ring"),
            tr("keys and values go round %1 devices, a part in each turn")
                .arg(decision.partition.splits.back().parts));
    if (laneCount(decision.partition) > 1)
        sheet.row(tr("Lanes"),
            tr("%1, each with a copy of the weights and its share of every micro-batch")
                .arg(laneCount(decision.partition)));
    if (sliceCount(decision.partition) > 1)
        sheet.row(tr("Slices"),
            tr("%1, which run through the stages one behind another").arg(sliceCount(decision.partition)));
    sheet.row(tr("Precision"), escaped(toString(decision.precision)));
    if (op.kind == OperatorKind::Attention)
        sheet.row(tr("Probabilities"),
            decision.attention == AttentionMode::Plain ? tr("in memory, kept for the backward pass")
                                                       : tr("never in memory"));
    why(sheet, update, id, isInFull);
}

/// Bytes that an operator's outputs take, whole.
Bytes bytesOf(const Graph &graph, const std::vector<TensorId> &ids)
{
    Bytes bytes;
    for (const TensorId id : ids) {
        if (id.valid())
            bytes.count += elementCount(graph.at(id).type.shape) * sizeOf(graph.at(id).type.dataType);
    }
    return bytes;
}

void cost(Sheet &sheet, const Graph &graph, const PlanUpdate *update, OperatorId id)
{
    const Operator &op = graph.at(id);
    const Work work = workOf(graph, op);
    sheet.section(tr("Cost"));
    sheet.row(tr("Work"), tr("%1FLOP, whole batch").arg(escaped(formatQuantity(work.flops))));
    std::vector<TensorId> weights;
    for (const TensorId input : op.inputs) {
        if (input.valid() && graph.at(input).role == TensorRole::Weight)
            weights.push_back(input);
    }
    if (!weights.empty())
        sheet.row(tr("Weights"), escaped(formatBytes(bytesOf(graph, weights))));
    sheet.row(tr("Outputs"), escaped(formatBytes(bytesOf(graph, op.outputs))));
    if (!update || update->operatorNanoseconds.size() != graph.operators.size())
        return;
    const auto time = [&](OperatorId one) {
        const auto nanoseconds = update->operatorNanoseconds[static_cast<std::size_t>(one.index)];
        const auto &placed = update->plan->decisions[static_cast<std::size_t>(one.index)].devices;
        const std::set<DeviceId> devices(placed.begin(), placed.end());
        const double each = static_cast<double>(nanoseconds) * 1e-9
            / static_cast<double>(std::max<std::size_t>(devices.size(), 1));
        return tr("%1 a step on each device").arg(escaped(formatSeconds(each)));
    };
    sheet.row(tr("Time"), time(id));
    if (op.mirror.valid()) {
        sheet.row(graph.at(op.mirror).direction == Direction::Backward ? tr("Backward") : tr("Forward"),
            time(op.mirror));
    }
}

/// What of it lies in the memory of the device that has most of it.
void memory(Sheet &sheet, const ExecutionPlan &plan, const Operator &op)
{
    const auto most = [&plan](const std::vector<TensorId> &tensors) {
        const std::set<TensorId> wanted(tensors.begin(), tensors.end());
        Bytes most;
        for (const DeviceProgram &program : plan.devices) {
            Bytes here;
            for (const BufferInfo &buffer : program.buffers) {
                if (buffer.tensor.valid() && wanted.count(buffer.tensor) != 0)
                    here.count += sizeOf(buffer).count;
            }
            most.count = std::max(most.count, here.count);
        }
        return most;
    };
    std::vector<TensorId> weights;
    for (const TensorId input : op.inputs) {
        if (input.valid() && plan.graph->at(input).role == TensorRole::Weight)
            weights.push_back(input);
    }
    sheet.section(tr("Memory on a device"));
    if (!weights.empty())
        sheet.row(tr("Weights"), escaped(formatBytes(most(weights))));
    sheet.row(tr("Outputs"),
        plan.microBatches > 1
            ? tr("%1 for each micro-batch in flight").arg(escaped(formatBytes(most(op.outputs))))
            : escaped(formatBytes(most(op.outputs))));
}

/// Where the figures come from that time is made of.
void origins(Sheet &sheet, const Graph &graph, const Operator &op, const Precision &precision,
    const DeviceModel &device)
{
    const auto say = [&sheet](const QString &name, const QString &value, const std::string &source) {
        sheet.row(name,
            source.empty() ? value : QStringLiteral("%1<br>%2").arg(value, sheet.muted(escaped(source))));
    };
    const auto percent = [](double share) { return QString::number(100 * share, 'f', 0) + QLatin1Char('%'); };
    const OperatorCategory category = categoryOf(op.kind);
    const bool product = category == OperatorCategory::Product || category == OperatorCategory::Attention
        || category == OperatorCategory::Recurrent;
    const DataType type = arithmeticOf(graph, op, precision);
    const Sourced &rate =
        product || type == DataType::Float64 ? matrixRateOf(device, type) : device.float32Flops;
    sheet.section(tr("Where the time comes from"));
    sheet.wide(
        tr("The longer of computing and of moving bytes, and a launch, on %1:").arg(escaped(device.name)));
    say(tr("Computing"), tr("%1FLOP/s").arg(escaped(formatQuantity(rate.value))), rate.source);
    const auto kind = category == OperatorCategory::Attention ? KernelRate::Attention : KernelRate::Product;
    if (const Sourced &reached = efficiencyOf(device, kind, type); product)
        say(tr("of which"), tr("%1 are reached").arg(percent(reached.value)), reached.source);
    say(tr("Moving"),
        tr("%1/s").arg(escaped(formatBytes(Bytes{static_cast<std::int64_t>(device.memoryBandwidth.value)}))),
        device.memoryBandwidth.source);
    say(tr("of which"), tr("%1 are reached").arg(percent(device.memoryEfficiency.value)),
        device.memoryEfficiency.source);
    say(tr("Launch"), escaped(formatSeconds(device.launchLatency.value)), device.launchLatency.source);
    if (device.hostMemory.value > 0)
        say(tr("Host memory"), escaped(formatBytes({static_cast<std::int64_t>(device.hostMemory.value)})),
            device.hostMemory.source);
}

QString oneOperator(
    const Palette &palette, const OpenedModel &model, const PlanUpdate *update, OperatorId id, bool isInFull)
{
    const Graph &graph = *model.graph;
    const Operator &op = graph.at(id);
    Sheet sheet(palette);
    sheet.title(escaped(elided(shortName(graph, op), 36)),
        QStringLiteral("%1 · %2<br>%3")
            .arg(escaped(typeNameOf(op)), nameOfDirection(op.direction).toHtmlEscaped(),
                escaped(elided(op.name, 48))));
    if (update && update->plan)
        decision(sheet, *update, id, isInFull);
    dimensions(sheet, model, id);
    sheet.section(tr("Tensors"));
    const DataType storage = update && update->plan
        ? update->plan->decisions[static_cast<std::size_t>(id.index)].precision.storage
        : DataType::Float32;
    tensors(sheet, graph, tr("Input"), op.inputs, storage);
    tensors(sheet, graph, tr("Output"), op.outputs, storage);
    kindOf(sheet, op);
    cost(sheet, graph, update, id);
    if (update && update->scene && update->scene->plan)
        memory(sheet, *update->scene->plan, op);
    if (update && update->plan && !update->cluster.device.name.empty()) {
        const OperatorDecision &decided = update->plan->decisions[static_cast<std::size_t>(id.index)];
        const DeviceId device = decided.devices.empty() ? DeviceId{0} : decided.devices.front();
        origins(sheet, graph, op, decided.precision,
            update->cluster.deviceAt(update->plan->units.deviceOf(0, device)));
    }
    if (op.sources.size() > 1) {
        sheet.section(tr("Made from %1 nodes of the file").arg(op.sources.size()));
        for (const SourceNode &node : op.sources)
            sheet.row(escaped(node.type), sheet.muted(escaped(elided(node.name, 40))));
    }
    return sheet.done();
}

QString severalOperators(const Palette &palette, const OpenedModel &model, const PlanUpdate *update,
    const std::vector<OperatorId> &selected)
{
    const Graph &graph = *model.graph;
    Sheet sheet(palette);
    std::map<std::string, std::int64_t> kinds;
    std::map<DeviceId, std::int64_t> devices;
    std::int64_t nanoseconds = 0;
    double flops = 0;
    for (const OperatorId id : selected) {
        const Operator &op = graph.at(id);
        ++kinds[typeNameOf(op)];
        flops += workOf(graph, op).flops;
        if (!update || !update->plan)
            continue;
        for (const DeviceId device : update->plan->decisions[static_cast<std::size_t>(id.index)].devices)
            ++devices[device];
        if (update->operatorNanoseconds.size() == graph.operators.size())
            nanoseconds += update->operatorNanoseconds[static_cast<std::size_t>(id.index)];
    }
    sheet.title(tr("%1 operators").arg(escaped(formatCount(static_cast<std::int64_t>(selected.size())))),
        tr("selected"));
    sheet.section(tr("Together"));
    sheet.row(tr("Work"), tr("%1FLOP, whole batch").arg(escaped(formatQuantity(flops))));
    if (update && update->plan) {
        sheet.row(tr("Time"), tr("%1 a step, all devices").arg(escaped(formatNanoseconds(nanoseconds))));
        std::vector<DeviceId> used;
        for (const auto &[device, count] : devices)
            used.push_back(device);
        sheet.row(tr("Devices"),
            QStringLiteral("%1 %2").arg(
                escaped(deviceWord(update->cluster)), escaped(rangesOf(used, kFewRuns))));
    }
    sheet.section(tr("Kinds"));
    for (const auto &[kind, count] : kinds)
        sheet.row(escaped(kind), escaped(formatCount(count)));
    return sheet.done();
}

/// What the simulation takes for granted, and what of it can be changed.
void assumptions(Sheet &sheet, const Cluster &cluster)
{
    sheet.section(tr("Simulated With"));
    sheet.row(tr("Framework"),
        cluster.framework.empty()
            ? tr("none: kernels take what timings of them say")
            : escaped(cluster.framework + ": " + meaningOfFramework(cluster.framework)));
    const bool one = cluster.communicationQueues == CommunicationQueues::One;
    sheet.row(tr("Queues"),
        one ? tr("compute; one for all communication; copies to and from the host")
            : tr("compute; collectives inside blocks; gradients and weights; transfers between stages, "
                 "forward "
                 "and backward; copies to and from the host"));
    sheet.row({},
        QStringLiteral("<a href=\"queues:%1\">%2</a>")
            .arg(one ? QStringLiteral("own") : QStringLiteral("one"),
                one ? tr("Give each its own queue") : tr("Let all communication share one queue")));
    sheet.row(tr("Order"), tr("each queue runs what it is given in order, all side by side"));
    sheet.row(tr("Transfers"), tr("sends and receives wait for each other, as do members of a collective"));
    sheet.row({},
        cluster.blockingSends ? tr("a device computes nothing while it sends to another stage")
                              : tr("a device computes while it sends and receives"));
    sheet.row({},
        QStringLiteral("<a href=\"sends:%1\">%2</a>")
            .arg(cluster.blockingSends ? QStringLiteral("beside") : QStringLiteral("blocking"),
                cluster.blockingSends ? tr("Let sends run beside computation")
                                      : tr("Let sends block computation")));
    sheet.row(tr("Links"), tr("what is sent at the same time shares their bandwidth"));
}

QString wholeModel(const Palette &palette, const OpenedModel &model, const PlanUpdate *update)
{
    const Graph &graph = *model.graph;
    Sheet sheet(palette);
    sheet.title(escaped(elided(model.name, 36)), tr("Nothing is selected: the model as a whole"));
    sheet.section(tr("Model"));
    sheet.wide(sheet.muted(escaped(elided(model.source.source, 120))));
    sheet.row(tr("Operators"),
        tr("%1 forward, %2 in the step")
            .arg(escaped(formatCount(model.forwardOperators)),
                escaped(formatCount(static_cast<std::int64_t>(graph.operators.size())))));
    sheet.row(tr("Parameters"), escaped(formatQuantity(static_cast<double>(model.parameters))));
    for (const TensorId input : graph.inputs)
        sheet.row(tr("Input"),
            QStringLiteral("%1<br>%2").arg(typeOf(graph, input), sheet.muted(escaped(graph.at(input).name))));
    if (!model.remark.empty())
        sheet.row(tr("Training"), escaped(model.remark));
    if (update && update->scene) {
        const TimelineSummary &summary = update->summary;
        const MemoryUse use = memoryUse(summary, update->cluster, update->scene->plan->units);
        sheet.section(tr("Plan"));
        sheet.wide(escaped(planNameOf(*update->plan, model).sentence));
        sheet.row(tr("Step"), escaped(formatSeconds(summary.stepSeconds)));
        sheet.row(tr("Peak memory"),
            QStringLiteral("%1 / %2").arg(escaped(formatBytes(use.peak)), escaped(formatBytes(use.memory))));
        sheet.row(tr("Bubble"), QStringLiteral("%1%").arg(100 * summary.bubble, 0, 'f', 1));
        sheet.row(tr("Sent"), tr("%1 a step, all devices").arg(escaped(formatBytes(summary.sent))));
        sheet.row(tr("Micro-batches"), QString::number(update->plan->microBatches));
        sheet.row(tr("Stages"), QString::number(update->plan->stageCount));
        if (const ScaleUnits &units = update->plan->units; !units.isOne())
            sheet.row(tr("Units"),
                tr("%1 alike, of %2 devices each").arg(units.count).arg(update->plan->deviceCount));
        assumptions(sheet, update->cluster);
    }
    if (!graph.notes.empty()) {
        sheet.section(tr("Notes of the import"));
        for (const std::string &note : graph.notes)
            sheet.wide(escaped(note));
    }
    return sheet.done();
}

} // namespace

QString inspectorText(const Palette &palette, const OpenedModel &model, const PlanUpdate *update,
    const std::vector<OperatorId> &selected, bool isInFull)
{
    std::vector<OperatorId> known;
    for (const OperatorId id : selected) {
        if (static_cast<std::size_t>(id.index) < model.graph->operators.size())
            known.push_back(id);
    }
    // A box of the DAG stands for an operator with what is folded into it: that is one operator to a person.
    const bool one = !known.empty() && std::all_of(known.begin() + 1, known.end(), [&](OperatorId id) {
        const Operator &op = model.graph->at(id);
        return op.direction != Direction::Forward
            && (op.mirror == known.front() || op.direction == Direction::Optimizer);
    });
    if (one && model.graph->at(known.front()).direction == Direction::Forward)
        known.resize(1);
    if (known.empty())
        return wholeModel(palette, model, update);
    if (known.size() == 1)
        return oneOperator(palette, model, update, known.front(), isInFull);
    return severalOperators(palette, model, update, known);
}

} // namespace planloom
