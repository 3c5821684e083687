#include "engine/lowering/program/folded_from_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/lowering/program/folded_programs.h"

#include <nlohmann/json.hpp>

namespace planloom {

FoldedFromJson::FoldedFromJson(const PlanValue &document, ExecutionPlan &plan, std::size_t deviceCount)
    : m_document(document)
    , m_plan(plan)
    , m_programs(plan, deviceCount)
    , m_deviceCount(deviceCount)
    , m_left(kMostUnfolded)
{
}

void FoldedFromJson::read()
{
    for (const PlanValue &value : m_document.at("templates").numbered())
        m_templates.push_back(readTemplate(value));
    for (const PlanValue &value : m_document.at("forms").numbered())
        m_forms.push_back({value});
    const auto programs = m_document.at("programs").numbered();
    const auto firstPart = firstParts(m_plan, m_deviceCount);
    const auto devices = m_document.at("devices").numbered();
    for (std::size_t d = 0; d < devices.size(); ++d) {
        DeviceProgram device;
        device.buffers = buffersFrom(devices[d].at("buffers"));
        const std::int32_t program = devices[d].at("program").index(programs.size());
        readProgram(programs[at(program)], firstPart[d], device);
        m_plan.devices.push_back(std::move(device));
    }
}

FoldedFromJson::Template FoldedFromJson::readTemplate(const PlanValue &value) const
{
    Template result;
    result.known = value.at("known").integer(0, 1 << 24);
    result.made = value.at("new").integer(0, 1 << 24);
    result.tags = value.flag("tags", false);
    for (const PlanValue &own : value.at("instructions").numbered()) {
        result.instructions.push_back(m_programs.instruction(own, at(result.known + result.made)));
        if (result.instructions.back().kind == InstructionKind::Kernel)
            result.instructions.back().part = own.at("part").integer(-(1 << 20), 1 << 20);
        if (result.instructions.back().tag >= 0 && !result.tags)
            own.fail("the template has no tags", "/tag");
    }
    return result;
}

void FoldedFromJson::readEntries(const PlanValue &value)
{
    for (const PlanValue &item : value.numbered()) {
        if (item.json().is_array()) {
            spend(item, 1);
            const auto pair = item.ofSize(2, "[step, form]").integers(-(1 << 30), 1 << 30);
            if (pair[1] < 0 || at(pair[1]) >= m_forms.size())
                item.fail("expected one of " + std::to_string(m_forms.size()) + " forms");
            m_entries.push_back({pair[0], pair[1]});
            continue;
        }
        const PlanValue again = item.at("again");
        const auto pair = again.ofSize(2, "[first, count]").integers(0, kMostUnfolded);
        if (at(pair[0]) >= m_entries.size())
            again.fail("expected a buffer before it");
        spend(again, at(pair[1]));
        for (std::int32_t i = 0; i < pair[1]; ++i)
            m_entries.push_back(m_entries[at(pair[0] + i)]);
    }
}

const BufferInfo &FoldedFromJson::bufferOf(Form &form, TensorId tensor) const
{
    const Graph &graph = *m_plan.graph;
    if (!form.last || graph.at(form.last->tensor).type != graph.at(tensor).type)
        form.last = m_programs.buffer(form.value, tensor);
    form.last->tensor = tensor;
    return *form.last;
}

SharedVector<BufferInfo> FoldedFromJson::buffersFrom(const PlanValue &value)
{
    const std::size_t first = m_entries.size();
    readEntries(value);
    std::vector<BufferInfo> buffers;
    buffers.reserve(m_entries.size() - first);
    std::int64_t tensor = 0;
    for (std::size_t i = first; i < m_entries.size(); ++i) {
        tensor += m_entries[i].step;
        if (tensor < 0 || tensor >= static_cast<std::int64_t>(m_plan.graph->tensors.size()))
            value.fail("buffer " + std::to_string(i - first) + " has a tensor that is not there");
        const TensorId id{static_cast<std::int32_t>(tensor)};
        buffers.push_back(bufferOf(m_forms[at(m_entries[i].form)], id));
    }
    return buffers;
}

void FoldedFromJson::readProgram(
    const PlanValue &value, const std::vector<std::int32_t> &firstPart, DeviceProgram &device)
{
    Target target{firstPart, static_cast<std::int32_t>(device.buffers.size())};
    std::vector<Instruction> setup;
    for (const PlanValue &own : value.at("setup").numbered())
        call(own, target, setup);
    device.setup = std::move(setup);
    for (const PlanValue &own : value.at("segments").numbered()) {
        spend(own, 1);
        Segment segment = m_programs.segment(own);
        for (const PlanValue &each : own.at("calls").numbered())
            call(each, target, segment.instructions);
        device.segments.push_back(std::move(segment));
    }
    const PlanValue schedule = value.at("schedule");
    spend(schedule, schedule.items().size());
    device.schedule = m_programs.schedule(schedule, device);
}

void FoldedFromJson::call(const PlanValue &value, Target &target, std::vector<Instruction> &instructions)
{
    const auto numbers = value.integers(-1, 1 << 30);
    if (numbers.size() < 2 || numbers[0] < 0 || at(numbers[0]) >= m_templates.size())
        value.fail("expected one of " + std::to_string(m_templates.size()) + " templates, and an operator");
    const Template &called = m_templates[at(numbers[0])];
    if (numbers[1] >= static_cast<std::int32_t>(m_plan.graph->operators.size()))
        value.fail("expected an operator of the graph, or -1");
    const OperatorId op{numbers[1]};
    const std::size_t first = called.tags ? 3 : 2; // of the buffers
    if (numbers.size() != first + at(called.known))
        value.fail("expected " + std::to_string(first + at(called.known)) + " numbers");
    for (std::size_t i = first; i < numbers.size(); ++i)
        if (numbers[i] < 0 || numbers[i] >= target.bufferCount)
            value.fail("expected buffers of the device");
    if (called.tags && numbers[2] < 0)
        value.fail("expected a tag");
    if (called.made > target.bufferCount - target.next)
        value.fail("the device has no " + std::to_string(called.made) + " further buffers");
    spend(value, called.instructions.size());
    for (const Instruction &own : called.instructions) {
        Instruction &instruction = instructions.emplace_back(own);
        instruction.op = op;
        if (instruction.kind == InstructionKind::Kernel)
            instruction.part += op ? target.firstPart[at(op)] : 0;
        if (instruction.tag >= 0) {
            if (instruction.tag > (1 << 30) - numbers[2])
                value.fail("expected a tag up to 1073741824");
            instruction.tag += numbers[2];
        }
        for (const auto &[name, member, least] : kInstructionBuffers)
            for (std::int32_t &buffer : instruction.*member)
                if (buffer >= called.known)
                    buffer += target.next - called.known;
                else if (buffer >= 0)
                    buffer = numbers[first + at(buffer)];
        m_programs.requireKernel(value, instruction);
    }
    target.next += called.made;
}

void FoldedFromJson::spend(const PlanValue &value, std::size_t count)
{
    m_left -= static_cast<std::int64_t>(count);
    if (m_left < 0)
        value.fail("expected a plan of at most " + std::to_string(kMostUnfolded)
            + " buffers, instructions, segments and entries of schedules");
}

} // namespace planloom
