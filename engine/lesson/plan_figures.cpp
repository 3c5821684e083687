#include "engine/lesson/plan_figures.h"

#include "engine/analyse/limits.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/naming/plan_name.h"
#include "engine/runtime/machine/throughput.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

FigureValue amount(FigureUnit unit, double number)
{
    return {.unit = unit, .number = number};
}

template<typename Number> FigureValue time(Number nanoseconds)
{
    return amount(FigureUnit::Time, static_cast<double>(nanoseconds));
}

template<typename Number> FigureValue count(Number number)
{
    return amount(FigureUnit::Count, static_cast<double>(number));
}

template<typename Number> FigureValue bytes(Number number)
{
    return amount(FigureUnit::Bytes, static_cast<double>(number));
}

FigureValue yes(bool holds)
{
    return amount(FigureUnit::Truth, holds ? 1 : 0);
}

FigureValue word(std::string text)
{
    return {.unit = FigureUnit::Word, .word = std::move(text)};
}

Error missing(std::string message)
{
    return {ErrorCode::NotFound, std::move(message), {}, {}};
}

/// Bytes of one kind, as lessons name them: together they are the peak.
std::int64_t bytesOf(const RankMemory &rank, Figure kind)
{
    const auto held = [&rank](std::initializer_list<HeldAs> all) {
        std::int64_t sum = 0;
        for (const HeldAs each : all)
            sum += rank.held[static_cast<std::size_t>(each)];
        return sum;
    };
    switch (kind) {
    case Figure::Parameters:
        return held({HeldAs::Parameters});
    case Figure::Gradients:
        return held({HeldAs::Gradients});
    case Figure::States:
        return held({HeldAs::MainParameters, HeldAs::OptimizerStates});
    case Figure::Activations:
        return held({HeldAs::SavedActivations, HeldAs::Logits, HeldAs::OtherActivations, HeldAs::Inputs});
    case Figure::Workspace:
        return held({HeldAs::Workspaces});
    case Figure::Buffers:
        return held({HeldAs::CommunicationBuffers});
    default:
        return rank.peak;
    }
}

/// What all queues but that of compute run, and of it what runs while something is computed: nanoseconds, on
/// the average of the devices.
std::pair<double, double> communicationOf(const Timeline &timeline)
{
    const SpanColumns &spans = timeline.spans;
    const std::size_t devices = timeline.busy.size();
    std::int64_t all = 0;
    std::int64_t hidden = 0;
    for (std::size_t device = 0; device < devices; ++device) {
        const auto [first, last] = rowsOf(timeline, device, QueueKind::Compute);
        const std::span starts(spans.start.data() + first, last - first);
        const std::span durations(spans.duration.data() + first, last - first);
        for (int queue = 1; queue < kQueueCount; ++queue) {
            const auto [from, to] = rowsOf(timeline, device, static_cast<QueueKind>(queue));
            std::vector<Stretch> stretches;
            std::int64_t length = 0;
            for (std::size_t span = from; span < to; ++span) {
                stretches.emplace_back(spans.start[span], spans.start[span] + spans.duration[span]);
                length += spans.duration[span];
            }
            all += length;
            hidden += length - exposedTime(std::move(stretches), starts, durations);
        }
    }
    const auto average = [devices](std::int64_t sum) {
        return devices > 0 ? static_cast<double>(sum) / static_cast<double>(devices) : 0;
    };
    return {average(all), average(hidden)};
}

bool hasStage(const DeviceProgram &program, std::int32_t stage)
{
    return std::any_of(program.segments.begin(), program.segments.end(),
        [stage](const Segment &segment) { return isPass(segment.kind) && segment.stage.index == stage; });
}

} // namespace

PlanFigures::PlanFigures(PlanAnswerSnapshot answer, std::optional<LessonRun> run)
    : m_answer(std::move(answer))
    , m_run(run)
{
}

Result<FigureValue> PlanFigures::valueOf(const FigureName &name)
{
    switch (name.figure) {
    case Figure::Step:
    case Figure::Compute:
    case Figure::ExposedCommunication:
    case Figure::Idle:
    case Figure::Recompute:
    case Figure::Optimizer:
    case Figure::Other:
    case Figure::Communication:
    case Figure::HiddenCommunication:
    case Figure::Bubble:
    case Figure::TokensPerSecond:
        return ofStep(name);
    case Figure::Busy:
    case Figure::Waits:
        return ofDevice(name);
    case Figure::Peak:
    case Figure::Parameters:
    case Figure::Gradients:
    case Figure::States:
    case Figure::Activations:
    case Figure::Workspace:
    case Figure::Buffers:
        return ofMemory(name);
    case Figure::Sent:
    case Figure::Messages:
        return ofTraffic(name);
    case Figure::Stages:
    case Figure::MicroBatches:
    case Figure::DataParallel:
    case Figure::TensorParallel:
    case Figure::ContextParallel:
    case Figure::ExpertParallel:
    case Figure::Zero:
    case Figure::Recomputed:
    case Figure::Offloaded:
    case Figure::InTurns:
        return ofShape(name);
    case Figure::InFlight:
    case Figure::WarmUp:
    case Figure::Period:
    case Figure::Steady:
        return ofPipeline(name);
    case Figure::Parts:
    case Figure::Devices:
        return ofSelection(name);
    case Figure::Memory:
    case Figure::Rows:
    case Figure::Weights:
    case Figure::Conflicts:
        return ofRows(name);
    case Figure::Bound:
    case Figure::Gap:
    case Figure::Measured:
    case Figure::Run:
        return ofRun(name);
    case Figure::Schedule:
    case Figure::Name:
    case Figure::LargestPart:
    case Figure::LargestKind:
        return ofWords(name);
    default:
        return ofTruth(name);
    }
}

Result<void> PlanFigures::needPlan() const
{
    if (m_answer->plan)
        return {};
    if (const auto error = m_answer->firstError())
        return Error{ErrorCode::NotFound, "there is no plan: " + error->message, error->advice, error->where};
    return missing("there is no plan yet");
}

Result<void> PlanFigures::needTimes() const
{
    TRY_VOID(needPlan());
    if (!m_answer->isTimed() || !m_answer->execution)
        return missing(m_answer->error ? m_answer->error->message : "the plan is not simulated yet");
    return {};
}

Result<void> PlanFigures::needSpans() const
{
    TRY_VOID(needTimes());
    return m_answer->timeline ? Result<void>{} : missing("the plan is not simulated yet");
}

Result<std::size_t> PlanFigures::localOf(std::int32_t device) const
{
    const Plan &plan = *m_answer->plan;
    for (std::int32_t local = 0; local < plan.deviceCount; ++local)
        for (std::int32_t unit = 0; unit < plan.units.count; ++unit)
            if (plan.units.deviceOf(unit, DeviceId{local}).index == device)
                return static_cast<std::size_t>(local);
    return missing("there is no device " + std::to_string(device));
}

Result<FigureValue> PlanFigures::ofStep(const FigureName &name)
{
    TRY_VOID(needTimes());
    const TimelineSummary &summary = m_answer->summary;
    if (name.figure == Figure::Bubble)
        return amount(FigureUnit::Share, summary.bubble);
    if (name.figure == Figure::TokensPerSecond) {
        const std::int64_t tokens = stepWorkOf(*m_answer->execution).tokens;
        if (tokens == 0 || summary.stepSeconds <= 0)
            return missing("the model looks up no tokens");
        return count(static_cast<double>(tokens) / summary.stepSeconds);
    }
    if (name.figure == Figure::Step)
        return m_answer->timeline ? time(m_answer->timeline->step.count())
                                  : amount(FigureUnit::Time, summary.stepSeconds * 1e9);
    TRY_VOID(needSpans());
    if (name.figure == Figure::Communication || name.figure == Figure::HiddenCommunication) {
        if (!m_communication)
            m_communication = communicationOf(*m_answer->timeline);
        return time(name.figure == Figure::Communication ? m_communication->first : m_communication->second);
    }
    if (!m_parts)
        m_parts = partsOf(*m_answer->execution, *m_answer->timeline);
    // The figures are in the order of the parts.
    return time(
        (*m_parts)[static_cast<StepPart>(static_cast<int>(name.figure) - static_cast<int>(Figure::Compute))]);
}

Result<FigureValue> PlanFigures::ofDevice(const FigureName &name)
{
    TRY_VOID(needSpans());
    TRY(const std::size_t device, localOf(name.index));
    const Timeline &timeline = *m_answer->timeline;
    const std::int64_t busy = timeline.busy[device].count();
    return time(name.figure == Figure::Busy ? busy : timeline.step.count() - busy);
}

Result<const RankMemory *> PlanFigures::rankOf(const FigureName &name)
{
    if (!m_ranks)
        m_ranks = memoryOfRanks(*m_answer->execution, *m_answer->timeline, m_answer->cluster);
    const RankMemory *fullest = nullptr;
    for (const RankMemory &rank : *m_ranks) {
        if (name.index >= 0 && !name.ofStage && rank.rank.index != name.index)
            continue;
        if (name.ofStage) {
            const auto local = localOf(rank.rank.index);
            if (!local || !hasStage(m_answer->execution->devices[*local], name.index))
                continue;
        }
        if (!fullest || rank.peak > fullest->peak)
            fullest = &rank;
    }
    if (!fullest)
        return missing(
            std::string("there is no ") + (name.ofStage ? "stage " : "device ") + std::to_string(name.index));
    return fullest;
}

Result<FigureValue> PlanFigures::ofMemory(const FigureName &name)
{
    TRY_VOID(needSpans());
    TRY(const RankMemory *rank, rankOf(name));
    return bytes(bytesOf(*rank, name.figure));
}

Result<FigureValue> PlanFigures::ofTraffic(const FigureName &name) const
{
    TRY_VOID(needTimes());
    const bool isSent = name.figure == Figure::Sent;
    std::int64_t sum = 0;
    for (const KindTraffic &each : m_answer->summary.kinds)
        if (name.text.empty() || name.text == nameOf(each.kind))
            sum += isSent ? each.bytes.count : each.count;
    return isSent ? bytes(sum) : count(sum);
}

const SelectorIndex &PlanFigures::index()
{
    if (!m_index)
        m_index = m_answer->model && m_answer->model->graph == m_answer->plan->graph
            ? m_answer->model->index
            : std::make_shared<const SelectorIndex>(m_answer->plan->graph);
    return *m_index;
}

Result<FigureValue> PlanFigures::ofShape(const FigureName &name)
{
    TRY_VOID(needPlan());
    if (!m_shape)
        m_shape = shapeOf(*m_answer->plan, index());
    switch (name.figure) {
    case Figure::Stages:
        return count(m_shape->stages);
    case Figure::MicroBatches:
        return count(m_answer->plan->microBatches);
    case Figure::DataParallel:
        return count(m_shape->data);
    case Figure::TensorParallel:
        return count(m_shape->main.tensor);
    case Figure::ContextParallel:
        return count(m_shape->main.sequence);
    case Figure::ExpertParallel:
        return count(m_shape->main.experts);
    case Figure::Zero:
        return count(m_shape->sharing.empty() ? 0 : m_shape->sharing.front().stage);
    case Figure::Recomputed:
        return count(m_shape->recomputed.size());
    case Figure::Offloaded:
        return count(m_shape->offloaded.size());
    default:
        return count(m_shape->inTurns.size());
    }
}

Result<FigureValue> PlanFigures::ofPipeline(const FigureName &name)
{
    if (name.figure == Figure::InFlight) {
        TRY_VOID(needPlan());
        if (!m_answer->execution)
            return missing("the plan is not lowered yet");
        if (!m_inFlight)
            m_inFlight = mostInFlight(*m_answer->execution);
        const auto stage = static_cast<std::size_t>(name.index);
        if (stage >= m_inFlight->size())
            return missing("there is no stage " + std::to_string(name.index));
        return count((*m_inFlight)[stage]);
    }
    TRY_VOID(needSpans());
    if (!m_steady)
        m_steady = steadyStateOf(*m_answer->execution, *m_answer->timeline);
    if (!*m_steady)
        return missing("there is no stage that runs both ways");
    const SteadyState &steady = **m_steady;
    if (name.figure == Figure::Steady)
        return time(std::max<std::int64_t>(steady.steadyEnd - steady.steadyBegin, 0));
    if (name.figure == Figure::Period)
        return steady.period > 0 ? Result<FigureValue>(time(steady.period))
                                 : missing("nothing repeats in the pipeline");
    for (const StagePhases &stage : steady.stages)
        if (stage.stage.index == name.index)
            return count(stage.warmUp);
    return missing("there is no stage " + std::to_string(name.index) + " that runs both ways");
}

Result<FigureValue> PlanFigures::ofSelection(const FigureName &name)
{
    TRY_VOID(needPlan());
    if (name.text.empty())
        return count(m_answer->deviceCount);
    TRY(const Selector selector, parseSelector(name.text));
    const Plan &plan = *m_answer->plan;
    const std::vector<OperatorId> selected = actedOn(*plan.graph, index().select(selector));
    if (selected.empty())
        return missing("no operator is " + name.text);
    std::size_t parts = 0;
    std::set<DeviceId> devices;
    for (const OperatorId op : selected) {
        const OperatorDecision &decision = plan.decisions[static_cast<std::size_t>(op.index)];
        parts = std::max(parts, decision.devices.size());
        devices.insert(decision.devices.begin(), decision.devices.end());
    }
    return name.figure == Figure::Parts ? count(parts)
                                        : count(devices.size() * static_cast<std::size_t>(plan.units.count));
}

Result<FigureValue> PlanFigures::ofRows(const FigureName &name) const
{
    if (name.figure == Figure::Weights)
        return count(m_answer->model ? m_answer->model->parameters : 0);
    if (name.figure == Figure::Conflicts)
        return count(m_answer->conflicts.size());
    if (name.figure == Figure::Memory)
        return bytes(leastMemory(m_answer->cluster));
    const ConstraintTable table = m_answer->table.table();
    return count(std::count_if(table.rows.begin(), table.rows.end(),
        [&name](const Row &row) { return row.enabled && print(row).find(name.text) != std::string::npos; }));
}

Result<FigureValue> PlanFigures::ofRun(const FigureName &name) const
{
    if (name.figure == Figure::Measured || name.figure == Figure::Run) {
        if (!m_run)
            return missing("the plan has not run yet");
        return name.figure == Figure::Run ? yes(m_run->isEqual)
                                          : amount(FigureUnit::Time, m_run->stepSeconds * 1e9);
    }
    if (!m_answer->search)
        return missing("nothing was searched: there is no bound");
    return name.figure == Figure::Bound ? amount(FigureUnit::Time, m_answer->search->bound * 1e9)
                                        : amount(FigureUnit::Share, m_answer->search->gap());
}

Result<FigureValue> PlanFigures::ofWords(const FigureName &name)
{
    TRY_VOID(needPlan());
    if (name.figure == Figure::Schedule)
        return word(nameOf(m_answer->plan->schedule));
    if (name.figure == Figure::Name) {
        TRY_VOID(ofShape({.figure = Figure::Stages}));
        return word(nameOf(*m_shape, *m_answer->plan, index()).title);
    }
    const Figure first = name.figure == Figure::LargestPart ? Figure::Compute : Figure::Parameters;
    const std::vector<std::string_view> words = wordsOf(name.figure); // in the order of the figures
    std::size_t largest = 0;
    double most = -1;
    for (std::size_t each = 0; each < words.size(); ++each) {
        const auto figure = static_cast<Figure>(static_cast<std::size_t>(first) + each);
        TRY(const FigureValue value, valueOf({.figure = figure}));
        if (value.number > most) {
            most = value.number;
            largest = each;
        }
    }
    return word(std::string(words[largest]));
}

Result<FigureValue> PlanFigures::ofTruth(const FigureName &name)
{
    if (name.figure == Figure::Planned)
        return yes(m_answer->plan != nullptr);
    if (name.figure == Figure::Verified) {
        if (m_answer->plan && !m_answer->verdict && !m_answer->firstError())
            return missing("the plan is not verified yet");
        return yes(m_answer->verdict && m_answer->verdict->ok());
    }
    if (name.figure == Figure::Fits) {
        TRY_VOID(needTimes());
        const ScaleUnits &units = m_answer->plan->units;
        return yes(memoryUse(m_answer->summary, m_answer->cluster, units).over == 0
            && !hostOverflow(m_answer->summary, m_answer->cluster, units)
            && m_answer->brokenLimitCount() == 0);
    }
    TRY_VOID(ofShape({.figure = Figure::Stages}));
    switch (name.figure) {
    case Figure::SequenceParallel:
        return yes(m_shape->sequenceParallel);
    case Figure::Zigzag:
        return yes(m_shape->zigzag);
    case Figure::Ring:
        return yes(m_shape->ring > 1);
    default:
        return yes(m_shape->byHeads > 1);
    }
}

} // namespace planloom
