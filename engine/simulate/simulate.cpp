#include "engine/simulate/simulate.h"

#include "engine/base/in_parallel.h"
#include "engine/simulate/compiled_program.h"
#include "engine/simulate/contention.h"
#include "engine/simulate/event_loop.h"
#include "engine/simulate/known_programs.h"
#include "engine/simulate/link_traffic.h"
#include "engine/simulate/symmetry.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::int64_t exposedOf(const std::array<std::vector<TraceRun>, kQueueCount> &queues)
{
    std::vector<Stretch> stretches;
    for (std::size_t q = 1; q < queues.size(); ++q)
        for (const TraceRun &run : queues[q])
            stretches.emplace_back(run.start, run.start + run.duration);
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> duration;
    for (const TraceRun &run : queues[static_cast<std::size_t>(QueueKind::Compute)]) {
        start.push_back(run.start);
        duration.push_back(run.duration);
    }
    return exposedTime(std::move(stretches), start, duration);
}

/// By QueueKind: what the queues of a class did, instruction by instruction.
using QueueTraces = std::array<QueueTrace, kQueueCount>;

/// Where the instructions of a class's trace stand in the program of one of its devices.
struct InstructionMap {
    struct Hidden {
        std::int32_t behind = 0; ///< Instruction of the trace.
        std::int32_t index = 0; ///< Of the store in the device's own program.
    };
    std::vector<std::vector<std::int32_t>> kept{}; ///< By segment and instruction of the trace.
    std::vector<std::vector<Hidden>> hidden{}; ///< By segment.
};

InstructionMap instructionMap(const DeviceProgram &program)
{
    InstructionMap map;
    for (const Segment &segment : program.segments) {
        const std::vector<std::int32_t> hidden = hiddenStores(segment);
        auto &kept = map.kept.emplace_back();
        auto &stores = map.hidden.emplace_back();
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(segment.instructions.size()); ++i) {
            if (stores.size() < hidden.size() && hidden[stores.size()] == i)
                stores.push_back({static_cast<std::int32_t>(kept.size()) - 1, i});
            else
                kept.push_back(i);
        }
    }
    return map;
}

std::size_t rowsOf(const QueueTraces &queues)
{
    std::size_t rows = 0;
    for (const QueueTrace &queue : queues)
        rows += queue.start.size();
    return rows;
}

/// A row of a device with hidden stores: one of its class's trace, or a store hidden behind it.
struct MappedRow {
    QueueKind queue{};
    bool hidden = false;
    std::int32_t instruction = 0; ///< In the device's own program.
    std::size_t row = 0; ///< In the trace of its queue.
};

std::vector<MappedRow> mappedRows(const QueueTraces &queues, const DeviceProgram &program)
{
    const InstructionMap map = instructionMap(program);
    std::vector<MappedRow> rows;
    for (std::size_t q = 0; q < queues.size(); ++q) {
        const auto kind = static_cast<QueueKind>(q);
        const QueueTrace &queue = queues[q];
        for (std::size_t row = 0; row < queue.start.size(); ++row) {
            const auto segment = static_cast<std::size_t>(queue.segment[row]);
            const std::int32_t instruction = queue.instruction[row];
            rows.push_back({kind, false, map.kept[segment][static_cast<std::size_t>(instruction)], row});
            for (const InstructionMap::Hidden &store : map.hidden[segment]) {
                if (store.behind == instruction)
                    rows.push_back({kind, true, store.index, row});
            }
        }
    }
    return rows;
}

/// Spells the traces of classes out for every device. Column by column, so that each is written on a thread
/// of its own: they are long, and what they wait for is memory.
class SpanWriter
{
public:
    SpanWriter(const ExecutionPlan &plan, const Symmetry &symmetry, const std::vector<QueueTraces> &traces)
        : m_symmetry(symmetry)
        , m_traces(traces)
        , m_mapped(plan.devices.size())
    {
        m_begin.push_back(0);
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            if (symmetry.hidesStores[d])
                m_mapped[d] = mappedRows(traceOf(d), plan.devices[d]);
            const std::size_t rows = symmetry.hidesStores[d] ? m_mapped[d].size() : rowsOf(traceOf(d));
            m_begin.push_back(m_begin.back() + rows);
        }
    }

    const std::vector<std::size_t> &deviceBegin() const { return m_begin; }

    void write(SpanColumns &spans) const
    {
        const std::array<std::function<void()>, 7> columns{
            [&] {
                spans.device.reserve(m_begin.back());
                for (std::size_t d = 0; d < m_mapped.size(); ++d)
                    spans.device.resize(m_begin[d + 1], static_cast<std::int32_t>(d));
            },
            [&] { writeQueues(spans.queue); },
            [&] { writeColumn(spans.segment, &QueueTrace::segment); },
            [&] {
                writeColumn(spans.instruction, &QueueTrace::instruction,
                    [](const MappedRow &row, const QueueTrace &) { return row.instruction; });
            },
            [&] { writeColumn(spans.microBatch, &QueueTrace::microBatch); },
            [&] {
                writeColumn(
                    spans.start, &QueueTrace::start, [](const MappedRow &row, const QueueTrace &queue) {
                        return queue.start[row.row] + (row.hidden ? queue.duration[row.row] : 0);
                    });
            },
            [&] {
                writeColumn(
                    spans.duration, &QueueTrace::duration, [](const MappedRow &row, const QueueTrace &queue) {
                        return row.hidden ? 0 : queue.duration[row.row];
                    });
            },
        };
        const std::size_t least = m_begin.back() < kFewRows ? columns.size() : 1;
        inParallel(columns.size(), least, [&columns](std::size_t begin, std::size_t end) {
            for (std::size_t column = begin; column < end; ++column)
                columns[column]();
        });
    }

private:
    static constexpr std::size_t kFewRows = 10'000; ///< Not worth other threads.

    const QueueTraces &traceOf(std::size_t device) const
    {
        return m_traces[static_cast<std::size_t>(m_symmetry.deviceClass[device])];
    }

    void writeQueues(std::vector<QueueKind> &column) const
    {
        column.reserve(m_begin.back());
        for (std::size_t d = 0; d < m_mapped.size(); ++d) {
            for (const MappedRow &row : m_mapped[d])
                column.push_back(row.queue);
            if (m_symmetry.hidesStores[d])
                continue;
            const QueueTraces &queues = traceOf(d);
            for (std::size_t q = 0; q < queues.size(); ++q)
                column.resize(column.size() + queues[q].start.size(), static_cast<QueueKind>(q));
        }
    }

    /// @param mapped  the value of a row of a device with hidden stores
    template<typename T, typename Mapped>
    void writeColumn(std::vector<T> &column, std::vector<T> QueueTrace::*values, const Mapped &mapped) const
    {
        column.reserve(m_begin.back());
        for (std::size_t d = 0; d < m_mapped.size(); ++d) {
            const QueueTraces &queues = traceOf(d);
            for (const MappedRow &row : m_mapped[d])
                column.push_back(mapped(row, queues[static_cast<std::size_t>(row.queue)]));
            if (m_symmetry.hidesStores[d])
                continue;
            for (const QueueTrace &queue : queues)
                column.insert(column.end(), (queue.*values).begin(), (queue.*values).end());
        }
    }

    template<typename T> void writeColumn(std::vector<T> &column, std::vector<T> QueueTrace::*values) const
    {
        writeColumn(column, values,
            [values](const MappedRow &row, const QueueTrace &queue) { return (queue.*values)[row.row]; });
    }

    const Symmetry &m_symmetry;
    const std::vector<QueueTraces> &m_traces;
    std::vector<std::vector<MappedRow>> m_mapped; ///< By device; empty without hidden stores.
    std::vector<std::size_t> m_begin{}; ///< By device, and one more.
};

/// What one device class sends, by kind, channel slot and size.
using ClassTraffic = std::map<std::tuple<InstructionKind, std::int32_t, std::int64_t>, std::int64_t>;

ClassTraffic trafficOfClass(const CompiledProgram &program)
{
    ClassTraffic traffic;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
        const CompiledInstruction &instruction = program.instructions[i];
        if (instruction.channel >= 0 && instruction.kind != InstructionKind::Recv && program.runs[i] > 0)
            traffic[{instruction.kind, instruction.slot, instruction.bytes}] += program.runs[i];
    }
    return traffic;
}

/// The rows of one device: its class's traffic under its own names.
void appendTraffic(
    std::vector<Traffic> &rows, const ClassTraffic &traffic, const Symmetry &symmetry, std::int32_t device)
{
    std::map<std::tuple<InstructionKind, std::int32_t, std::int32_t>, std::pair<std::int64_t, std::int64_t>>
        sums;
    for (const auto &[key, count] : traffic) {
        const auto &[kind, slot, bytes] = key;
        const auto channelIndex =
            symmetry.slots[static_cast<std::size_t>(device)][static_cast<std::size_t>(slot)];
        const Channel &channel = symmetry.channels[static_cast<std::size_t>(channelIndex)];
        std::int32_t position = 0;
        while (channel.members[static_cast<std::size_t>(position)].device != device)
            ++position;
        const Bytes sent = ringBytesSent(*collectiveOf(kind), Bytes{bytes}, channel.shape.ranks, position);
        const std::int32_t peer = channel.tag < 0 ? -1 : channel.members[1].device;
        auto &[sumBytes, sumCount] = sums[{kind, channel.group, peer}];
        sumBytes += sent.count * count;
        sumCount += count;
    }
    for (const auto &[key, sum] : sums) {
        const auto &[kind, group, peer] = key;
        rows.push_back({kind, group, DeviceId{device}, DeviceId{peer}, Bytes{sum.first}, sum.second});
    }
}

/// Compiles the programs of all classes that are not known yet, in halves on two threads: each remembers
/// durations for itself, and classes repeat one another's.
void compileUnknown(
    const ExecutionPlan &plan, const CostModel &costs, const Symmetry &symmetry, KnownPrograms &known)
{
    std::vector<std::int32_t> unknown; // devices
    for (const std::int32_t device : symmetry.representative)
        if (!known.devices[static_cast<std::size_t>(device)].compiled)
            unknown.push_back(device);
    const std::size_t half = (unknown.size() + 1) / 2;
    std::vector<CompiledProgram> programs(unknown.size());
    std::array<std::vector<CommunicationLoad>, 2> loadsOf;
    inParallel(
        loadsOf.size(), unknown.size() < 4 ? loadsOf.size() : 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t h = first; h < last; ++h) {
                ProgramCompiler compiler(plan, costs);
                for (std::size_t i = h * half; i < std::min(unknown.size(), (h + 1) * half); ++i)
                    programs[i] = compiler.compile(symmetry, unknown[i]);
                loadsOf[h] = compiler.loads();
            }
        });
    for (std::size_t i = 0; i < unknown.size(); ++i) {
        const std::size_t before = known.loads.size() + (i < half ? 0 : loadsOf[0].size());
        for (CompiledInstruction &instruction : programs[i].instructions)
            if (instruction.load >= 0)
                instruction.load += static_cast<std::int32_t>(before);
        known.devices[static_cast<std::size_t>(unknown[i])].compiled =
            std::make_shared<const CompiledProgram>(std::move(programs[i]));
    }
    for (const auto &loads : loadsOf)
        known.loads.insert(known.loads.end(), loads.begin(), loads.end());
}

/// The programs of all classes, in the plan's order.
std::vector<CompiledProgram> programsOf(
    const ExecutionPlan &plan, const Symmetry &symmetry, const KnownPrograms &known)
{
    std::vector<CompiledProgram> programs;
    programs.reserve(symmetry.representative.size());
    for (const std::int32_t device : symmetry.representative) {
        programs.push_back(*known.devices[static_cast<std::size_t>(device)].compiled);
        addSchedule(programs.back(), plan, symmetry, device);
    }
    return programs;
}

/// What is computed beside collectives is slowed down as the devices of `unit` say: they hold all channels
/// that devices have inside a node, or of a group over slower links as many as these can feed, one at least.
void slowBesideCollectives(
    std::vector<CompiledProgram> &programs, const Symmetry &symmetry, const Cluster &unit)
{
    for (std::size_t c = 0; c < programs.size(); ++c) {
        const std::int32_t device = symmetry.representative[c];
        const double left = unit.deviceAt(DeviceId{device}).besideCollectives.value;
        if (left <= 0 || left >= 1)
            continue;
        for (CompiledInstruction &instruction : programs[c].instructions) {
            if (instruction.channel < 0 || instruction.paired)
                continue;
            const GroupShape &shape =
                symmetry.channels[at(symmetry.slots[at(device)][at(instruction.slot)])].shape;
            if (shape.ranks < 2)
                continue;
            const Interconnect links = jointLinks(unit, shape.classes);
            const double least = links.intraChannels.value > 0 ? 1 / links.intraChannels.value : 1;
            const double share =
                std::clamp(busBandwidth(links, shape) / links.intraBandwidth.value, least, 1.0);
            instruction.speedBeside = 1 - (1 - left) * share;
            programs[c].slowsBesideCollectives = true;
        }
    }
}

/// All communication in one queue: that of collectives inside blocks.
void shareOneQueue(std::vector<CompiledProgram> &programs)
{
    for (CompiledProgram &program : programs) {
        for (CompiledInstruction &instruction : program.instructions)
            if (instruction.queue == QueueKind::Data || isBetweenStages(instruction.queue))
                instruction.queue = QueueKind::Tensor;
        for (const QueueKind queue : {QueueKind::Data, QueueKind::Pipeline, QueueKind::PipelineBack})
            program.counts[static_cast<std::size_t>(QueueKind::Tensor)] +=
                std::exchange(program.counts[static_cast<std::size_t>(queue)], 0);
    }
}

/// Sends wait for what is computed before them, and what is computed behind them waits for them.
void blockOnSends(std::vector<CompiledProgram> &programs)
{
    for (CompiledProgram &program : programs)
        for (CompiledInstruction &instruction : program.instructions)
            if (isBetweenStages(instruction.queue) && instruction.inputBegin < instruction.outputBegin)
                instruction.waits = instruction.blocks = true; // as `sendsToStage` says of instructions
}

/// Runs `each` for every class of devices, side by side.
template<typename Each> void forEachClass(std::size_t classes, const Each &each)
{
    inParallel(classes, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t c = begin; c < end; ++c)
            each(c);
    });
}

Result<void> check(const ExecutionPlan &plan, const Cluster &cluster)
{
    if (!plan.graph)
        return Error{ErrorCode::InvalidInput, "the execution plan has no graph", {}, "plan"};
    if (plan.microBatches < 1)
        return Error{ErrorCode::InvalidInput, "the execution plan has no micro-batches", {}, "plan"};
    if (plan.updates < 1 || plan.updates > plan.microBatches)
        return Error{ErrorCode::InvalidInput,
            "the execution plan updates " + std::to_string(plan.updates) + " times, expected 1 to "
                + std::to_string(plan.microBatches),
            {}, "plan"};
    const std::size_t devices = plan.devices.size() * static_cast<std::size_t>(plan.units.count);
    if (devices > static_cast<std::size_t>(cluster.deviceCount))
        return Error{ErrorCode::InvalidInput,
            "the plan is for " + std::to_string(devices) + " devices, the cluster has "
                + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster:" + cluster.name};
    return {};
}

/// All of a timeline but its spans. @param withCurves  of memory, not their peaks alone
void addFigures(Timeline &timeline, const ExecutionPlan &plan, const Symmetry &symmetry,
    const std::vector<CompiledProgram> &programs, std::vector<DeviceTrace> &traces, bool withCurves)
{
    const std::size_t classes = programs.size();
    std::vector<MemoryCurve> curves(classes);
    std::vector<Bytes> hostPeaks(classes);
    std::vector<Nanoseconds> busy(classes), exposed(classes);
    std::vector<ClassTraffic> traffic(classes);
    forEachClass(classes, [&](std::size_t c) {
        curves[c] = memoryCurve(traces[c].memory, withCurves);
        hostPeaks[c] = memoryCurve(std::move(traces[c].hostMemory), false).peak;
        for (const TraceRun &run : traces[c].queues[static_cast<std::size_t>(QueueKind::Compute)])
            busy[c] += Nanoseconds{run.duration};
        exposed[c] = Nanoseconds{exposedOf(traces[c].queues)};
        traffic[c] = trafficOfClass(programs[c]);
    });
    for (const DeviceTrace &trace : traces)
        timeline.step = std::max(timeline.step, Nanoseconds{trace.end});
    timeline.units = plan.units.count;
    timeline.symmetryClass = symmetry.deviceClass;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const auto c = static_cast<std::size_t>(symmetry.deviceClass[d]);
        timeline.memory.push_back(curves[c]);
        timeline.hostPeak.push_back(hostPeaks[c]);
        timeline.busy.push_back(busy[c]);
        timeline.exposedCommunication.push_back(exposed[c]);
        appendTraffic(timeline.traffic, traffic[c], symmetry, static_cast<std::int32_t>(d));
    }
}

/// The curves of memory, where figures went ahead of them.
void addCurves(Timeline &timeline, const Symmetry &symmetry, std::vector<DeviceTrace> &traces)
{
    std::vector<MemoryCurve> curves(traces.size());
    forEachClass(traces.size(), [&](std::size_t c) { curves[c] = memoryCurve(traces[c].memory, true); });
    for (std::size_t d = 0; d < timeline.memory.size(); ++d)
        timeline.memory[d] = curves[static_cast<std::size_t>(symmetry.deviceClass[d])];
}

void addSpans(Timeline &timeline, const ExecutionPlan &plan, const Symmetry &symmetry,
    const std::vector<DeviceTrace> &traces)
{
    std::vector<QueueTraces> spelled(traces.size());
    forEachClass(traces.size(), [&](std::size_t c) {
        std::transform(traces[c].queues.begin(), traces[c].queues.end(), spelled[c].begin(), spelledOut);
    });
    const SpanWriter writer(plan, symmetry, spelled);
    timeline.deviceBegin = writer.deviceBegin();
    writer.write(timeline.spans);
}

} // namespace

Result<Timeline> simulate(
    const ExecutionPlan &plan, const Cluster &cluster, const SimulateOptions &options, std::stop_token stop)
{
    return simulate(plan, cluster, costModelOf(cluster), options, std::move(stop));
}

Result<Timeline> simulate(const ExecutionPlan &plan, const Cluster &cluster, const CostModel &costs,
    const SimulateOptions &options, std::stop_token stop)
{
    TRY_VOID(check(plan, cluster));
    const Cluster unit = unitOf(cluster, plan.units);
    const bool isKnown = options.programs && *options.programs && isOf(**options.programs, plan);
    KnownPrograms known = isKnown ? **options.programs : nothingKnown(plan);
    TRY(const Symmetry symmetry, findSymmetry(plan, unit, options.mergeSymmetric, &known.readings));
    if (stop.stop_requested())
        return cancelled("the simulation was stopped");
    compileUnknown(plan, costs, symmetry, known);
    std::vector<CompiledProgram> programs = programsOf(plan, symmetry, known);
    const std::vector<CommunicationLoad> loads = known.loads;
    if (options.programs)
        *options.programs = std::make_shared<const KnownPrograms>(std::move(known));
    slowBesideCollectives(programs, symmetry, unit);
    if (cluster.blockingSends)
        blockOnSends(programs);
    if (cluster.communicationQueues == CommunicationQueues::One)
        shareOneQueue(programs);
    const MeetingPlaces places = meetingPlaces(symmetry, plan.microBatches);
    MeetingDurations durations;
    if (options.sharedLinks && !loads.empty())
        durations =
            contendedDurations(programs, places, LinkMap(unit, symmetry), loads, plan.microBatches, stop);
    TRY(std::vector<DeviceTrace> traces,
        runPrograms(programs, symmetry, places, plan.microBatches, durations, options.chains, stop));

    Timeline timeline;
    timeline.blockingSends = cluster.blockingSends;
    addFigures(timeline, plan, symmetry, programs, traces, options.spans && !options.onFigures);
    timeline.links = levelTraffic(timeline.traffic, plan, cluster);
    if (options.onFigures)
        options.onFigures(timeline);
    if (stop.stop_requested())
        return cancelled("the simulation was stopped");
    if (options.spans && options.onFigures)
        addCurves(timeline, symmetry, traces);
    if (options.spans)
        addSpans(timeline, plan, symmetry, traces);
    else
        timeline.deviceBegin.assign(plan.devices.size() + 1, 0);
    return timeline;
}

} // namespace planloom
