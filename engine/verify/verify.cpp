#include "engine/verify/verify.h"

#include "engine/base/ids.h"
#include "engine/verify/batch_rules.h"
#include "engine/verify/communication_rules.h"
#include "engine/verify/device_run.h"
#include "engine/verify/graph_rules.h"
#include "engine/verify/instruction_rules.h"
#include "engine/verify/step_record.h"
#include "engine/verify/structure_rules.h"
#include "engine/verify/type_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// Carries the step out on masks: every device in its own order, communication when all its members have
/// come.
class Interpreter
{
public:
    Interpreter(const ExecutionPlan &plan, std::stop_token stop)
        : m_plan(plan)
        , m_stop(std::move(stop))
        , m_spec(plan)
        , m_waiting(plan.devices.size(), false)
        , m_arrived(plan.groups.size(), 0)
    {
    }

    Result<VerifyReport> run();

private:
    using Devices = std::vector<std::int32_t>;

    bool fail(std::int32_t device, std::string reason, bool inSchedule = true);
    /// Fails if there is a reason to.
    bool passes(std::int32_t device, std::string reason, bool inSchedule = true)
    {
        return reason.empty() || fail(device, std::move(reason), inSchedule);
    }
    std::string checkAlone(DeviceRun &run);
    bool finish(std::int32_t device);
    bool advance(std::int32_t device, Devices &runnable);
    bool communicate(std::int32_t device, Devices &runnable);
    std::optional<Devices> pair(std::int32_t device);
    std::optional<Devices> group(std::int32_t device);
    bool checkMeeting(std::int32_t device, const Devices &members);
    bool checkEnd();

    const ExecutionPlan &m_plan;
    std::stop_token m_stop;
    Specification m_spec;
    std::optional<StepRecord> m_record{}; ///< Once the specification is known to make sense.
    std::vector<DeviceRun> m_devices{};
    std::vector<bool> m_waiting; ///< By device: at a communication that is not complete.
    std::vector<std::int32_t> m_arrived; ///< Per group: members that wait.
    /// Per (device, segment, instruction) of a communication's first member: device, segment, instruction and
    /// epoch of all its members when it was checked last.
    std::map<std::array<std::int32_t, 3>, std::vector<std::int32_t>> m_met{};
    VerifyReport m_report{};
    bool m_cancelled = false;
};

bool Interpreter::fail(std::int32_t device, std::string reason, bool inSchedule)
{
    if (m_report.failure)
        return false;
    VerifyFailure failure{.device = DeviceId{device}, .reason = std::move(reason)};
    if (inSchedule && m_devices[at(device)].current()) {
        const DeviceRun &run = m_devices[at(device)];
        failure.segment = run.segment();
        failure.microBatch = run.microBatch();
        failure.instruction = run.instruction();
    }
    m_report.failure = std::move(failure);
    return false;
}

/// Holds an instruction that no other device takes part in against the specification, and carries it out.
std::string Interpreter::checkAlone(DeviceRun &run)
{
    const Instruction &instruction = *run.current();
    const bool isKernel = instruction.kind == InstructionKind::Kernel;
    if (std::string reason = run.begin(); !reason.empty())
        return reason;
    if (!run.isKnown()) {
        const Side side = run.side();
        for (const auto check : {&checkLocal, &checkBufferTypes})
            if (std::string reason = check(m_plan, m_spec, side); !reason.empty())
                return reason;
        if (std::string reason = isKernel ? m_record->noteParts(side) : std::string{}; !reason.empty())
            return reason;
    }
    if (isKernel) {
        if (std::string reason = m_record->noteKernel(instruction, run.microBatch()); !reason.empty())
            return reason;
    } else if (instruction.kind == InstructionKind::Store) {
        const std::int32_t stored = instruction.inputs[0];
        if (std::string reason =
                m_record->noteStore(run.info(stored), run.microBatch(), run.isUpdated(stored));
            !reason.empty())
            return reason;
    }
    return run.apply();
}

bool Interpreter::finish(std::int32_t device)
{
    if (!passes(device, m_devices[at(device)].finish()))
        return false;
    ++m_report.instructions;
    return true;
}

/// Runs a device until it waits or ends.
bool Interpreter::advance(std::int32_t device, Devices &runnable)
{
    DeviceRun &run = m_devices[at(device)];
    while (const Instruction *instruction = run.current()) {
        if ((m_report.instructions & 0xfff) == 0 && m_stop.stop_requested()) {
            m_cancelled = true;
            return false;
        }
        if (isCommunication(instruction->kind))
            return communicate(device, runnable);
        if (!passes(device, checkAlone(run)) || !finish(device))
            return false;
    }
    return true;
}

/// Sender and receiver, once both have come; nothing before, or if they do not belong together.
std::optional<Interpreter::Devices> Interpreter::pair(std::int32_t device)
{
    const DeviceRun &run = m_devices[at(device)];
    const Instruction &instruction = *run.current();
    m_waiting[at(device)] = true;
    const std::int32_t peer = instruction.peer.index;
    if (!m_waiting[at(peer)])
        return std::nullopt;
    const DeviceRun &there = m_devices[at(peer)];
    const Instruction &other = *there.current();
    const bool isSend = instruction.kind == InstructionKind::Send;
    if (other.kind != (isSend ? InstructionKind::Recv : InstructionKind::Send) || other.peer.index != device)
        return std::nullopt; // it waits for somebody else; if nobody comes, that is a deadlock
    if (other.tag != instruction.tag || there.microBatch() != run.microBatch()) {
        fail(device,
            "send and receive between devices " + std::to_string(device) + " and " + std::to_string(peer)
                + " do not belong together");
        return std::nullopt;
    }
    return isSend ? Devices{device, peer} : Devices{peer, device};
}

/// The members of a collective, once all have come; nothing before, or if one is at something else.
std::optional<Interpreter::Devices> Interpreter::group(std::int32_t device)
{
    const DeviceRun &run = m_devices[at(device)];
    const Instruction &instruction = *run.current();
    const std::string name = nameOf(instruction.kind);
    const auto &group = m_plan.groups[at(instruction.group)];
    if (std::find(group.begin(), group.end(), DeviceId{device}) == group.end()) {
        fail(device, "device " + std::to_string(device) + " is not in the group of its " + name);
        return std::nullopt;
    }
    m_waiting[at(device)] = true;
    std::int32_t &arrived = m_arrived[at(instruction.group)];
    if (++arrived < static_cast<std::int32_t>(group.size()))
        return std::nullopt;
    arrived = 0;
    Devices members;
    for (const DeviceId member : group) {
        const DeviceRun &there = m_devices[at(member)];
        const Instruction *other = there.current();
        members.push_back(member.index);
        if (!m_waiting[at(member)] || !other || other->kind != instruction.kind
            || other->group != instruction.group)
            fail(device, name + " finds device " + std::to_string(member.index) + " at something else");
        else if (there.microBatch() != run.microBatch())
            fail(device, name + " mixes micro-batches");
    }
    return m_report.failure ? std::nullopt : std::optional(std::move(members));
}

/// Holds an instruction of `device` that it carries out with others against the specification.
bool Interpreter::checkMeeting(std::int32_t device, const Devices &members)
{
    const Instruction &instruction = *m_devices[at(device)].current();
    // Ends in different queues wait behind other things than each other's, and where a queue has a
    // communicator of its own they never meet.
    for (const std::int32_t member : members)
        if (const QueueKind queue = queueOf(*m_devices[at(member)].current()); queue != queueOf(instruction))
            return fail(device,
                std::string(nameOf(instruction.kind)) + " waits in the " + nameOf(queueOf(instruction))
                    + " queue, the other end, on device " + std::to_string(member) + ", in the "
                    + nameOf(queue) + " queue");
    // What one member's instruction is worth depends on those it meets: the same ones need no second check.
    std::vector<std::int32_t> meeting;
    for (const std::int32_t member : members) {
        const DeviceRun &there = m_devices[at(member)];
        if (!passes(member, there.begin()))
            return false;
        meeting.insert(meeting.end(), {member, there.segment(), there.instruction(), there.epoch()});
    }
    std::vector<std::int32_t> &met = m_met[{meeting[0], meeting[1], meeting[2]}];
    if (met == meeting)
        return true;
    met = std::move(meeting);
    std::vector<Side> sides;
    for (const std::int32_t member : members)
        sides.push_back(m_devices[at(member)].side());
    return passes(device, checkCommunication(m_plan, m_spec, sides))
        && passes(device, checkSentTypes(m_plan, m_spec, sides));
}

/// `device` has come to a communication; carries it out if it is the last to come.
bool Interpreter::communicate(std::int32_t device, Devices &runnable)
{
    const Instruction &instruction = *m_devices[at(device)].current();
    const bool isPair =
        instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
    const auto members = isPair   ? pair(device)
        : instruction.acrossUnits ? Devices{device} // the others stand at the same place of the same program
                                  : group(device);
    if (!members)
        return !m_report.failure;
    if (!checkMeeting(device, *members))
        return false;
    for (const std::int32_t member : *members) {
        m_waiting[at(member)] = false;
        if (!finish(member))
            return false;
        runnable.push_back(member);
    }
    return true;
}

bool Interpreter::checkEnd()
{
    if ((m_report.failure = m_record->checkRan()))
        return false;
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(m_devices.size()); ++d)
        if (!passes(d, m_devices[at(d)].checkEnd(), false))
            return false;
    return passes(-1, m_record->checkStored(), false);
}

Result<VerifyReport> Interpreter::run()
{
    m_report.microBatches = m_plan.microBatches;
    m_report.wholeBatches = m_plan.batch.wholeBatches;
    if (!passes(-1, m_spec.problem(), false))
        return m_report;
    m_record.emplace(m_plan, m_spec);
    const auto devices = static_cast<std::int32_t>(m_plan.devices.size());
    for (std::int32_t d = 0; d < devices; ++d)
        m_devices.emplace_back(m_plan, m_spec, d);
    Devices runnable;
    for (std::int32_t d = devices; d-- > 0;) {
        if (!passes(d, m_devices[at(d)].setUp(), false))
            return m_report;
        runnable.push_back(d);
    }
    while (!runnable.empty()) {
        const std::int32_t device = runnable.back();
        runnable.pop_back();
        if (!advance(device, runnable)) {
            if (m_cancelled)
                return cancelled("verification was stopped");
            return m_report;
        }
    }
    for (std::int32_t d = 0; d < devices; ++d)
        if (const Instruction *instruction = m_devices[at(d)].current()) {
            fail(d, std::string(nameOf(instruction->kind)) + " waits for ever: the devices' orders deadlock");
            return m_report;
        }
    checkEnd();
    return m_report;
}

} // namespace

Result<VerifyReport> verify(const ExecutionPlan &plan, std::stop_token stop)
{
    const auto notItsGraph = [](std::string what) {
        return Error{ErrorCode::InvalidInput, "the plan does not belong to its graph: " + std::move(what),
            "solve the model again", "plan"};
    };
    if (!plan.graph)
        return notItsGraph("it has none");
    const std::size_t operators = plan.graph->operators.size();
    if (plan.partitions.size() != operators || plan.placement.size() != operators || plan.devices.empty()
        || plan.microBatches < 1 || (!plan.precisions.empty() && plan.precisions.size() != operators))
        return notItsGraph("it has decisions for " + std::to_string(plan.partitions.size()) + " of "
            + std::to_string(operators) + " operators");
    VerifyReport report;
    for (const auto &check : {+[](const ExecutionPlan &p) { return checkGraph(*p.graph); }, &checkBatch})
        if (std::string reason = check(plan); !reason.empty()) {
            report.failure = VerifyFailure{.reason = std::move(reason)};
            return report;
        }
    report.failure = checkStructure(plan);
    if (report.failure)
        return report;
    return Interpreter(plan, std::move(stop)).run();
}

} // namespace planloom
