#include "engine/interop/torch/plan_rows.h"

#include "engine/binding/bound_table.h"
#include "engine/interop/torch/python_text.h"
#include "engine/table/domain.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace planloom {

PlanRows::PlanRows(const ExecutionPlan &plan)
    : m_plan(plan)
{
    const auto found = plan.origin.find("rows");
    if (found == plan.origin.end())
        return;
    const auto table = parseTable(found->second);
    if (!table)
        return;
    std::int32_t anywhere = -1; // the last row that shares layers out
    for (std::size_t row = 0; row < table->rows.size(); ++row) {
        std::string number = std::to_string(row + 1);
        number.insert(0, 4 - std::min<std::size_t>(number.size(), 3), ' ');
        m_list += number + "  " + print(table->rows[row]) + "\n";
        const Rule &rule = table->rows[row].rule;
        if (table->rows[row].enabled
            && (std::holds_alternative<SpreadRule>(rule) || std::holds_alternative<LayoutRule>(rule)))
            anywhere = static_cast<std::int32_t>(row);
    }
    const auto devices = static_cast<std::int32_t>(plan.devices.size()) * plan.units.count;
    const BoundTable bound = bindTable(Model(plan.graph), devices, *table);
    m_uses = usesOf(*plan.graph);
    m_mesh = bound.setting.mesh;
    const auto &operators = plan.graph->operators;
    m_of.resize(operators.size());
    for (std::size_t i = 0; i < std::min(operators.size(), bound.bindings.size()); ++i) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const bool mirrors = operators[i].direction == Direction::Backward && operators[i].mirror.valid();
        const OperatorId own = mirrors ? operators[i].mirror : id;
        const OperatorBinding &binding = bound.of(own);
        OfOperator &of = m_of[i];
        for (std::size_t k = 0; k < binding.axisRows.size(); ++k)
            of.splits.emplace_back(binding.allowed.axes[k].axis, binding.axisRows[k]);
        for (const std::int32_t row :
            {binding.withinRow, binding.rowOf(Aspect::Ring), bound.alikeOf(own).row})
            if (row >= 0)
                of.splits.emplace_back("", row);
        of.sharing = bound.of(id).rowOf(Aspect::Sharding);
        of.place = firstRow({binding.rowOf(Aspect::Place), binding.rowOf(Aspect::Stage), anywhere});
    }
}

std::set<std::string> PlanRows::axesOf(const Instruction &instruction) const
{
    const auto rankOf = [&](std::int32_t local, std::int32_t unit) {
        const std::int32_t inner = m_plan.units.inner;
        return DeviceId{local / inner * inner * m_plan.units.count + unit * inner + local % inner};
    };
    std::vector<DeviceId> members;
    if (instruction.acrossUnits)
        members = {rankOf(0, 0), rankOf(0, 1)};
    else if (instruction.group >= 0)
        for (const DeviceId device : m_plan.groups[static_cast<std::size_t>(instruction.group)])
            members.push_back(rankOf(device.index, 0));
    std::set<std::string> axes;
    const auto first = members.empty() ? std::nullopt : coordinatesOf(m_mesh, members[0]);
    for (const DeviceId member : members)
        if (const auto other = coordinatesOf(m_mesh, member); first && other)
            for (std::size_t a = 0; a < m_mesh.size(); ++a)
                if ((*first)[a] != (*other)[a])
                    axes.insert(m_mesh[a].name);
    return axes;
}

/// What it serves, what makes what it sends, and of a weight's gradient or update, who reads the weight.
std::set<OperatorId> PlanRows::operatorsOf(const Instruction &instruction, std::int32_t device) const
{
    const auto &buffers = m_plan.devices[static_cast<std::size_t>(device)].buffers;
    std::set<OperatorId> operators{instruction.op};
    for (const BufferList *const list : {&instruction.inputs, &instruction.outputs})
        for (const std::int32_t buffer : *list)
            if (buffer >= 0) {
                const auto tensor =
                    static_cast<std::size_t>(buffers[static_cast<std::size_t>(buffer)].tensor.index);
                operators.insert(m_uses.producers[tensor].begin(), m_uses.producers[tensor].end());
            }
    const Operator &op = m_plan.graph->at(instruction.op);
    if (op.direction == Direction::Optimizer && !op.inputs.empty() && op.inputs[0].valid()) {
        const auto &readers = m_uses.consumers[static_cast<std::size_t>(op.inputs[0].index)];
        operators.insert(readers.begin(), readers.end());
    }
    return operators;
}

std::string PlanRows::behind(const Instruction &instruction, std::int32_t device) const
{
    if (m_of.empty() || !instruction.op.valid())
        return {};
    const bool between =
        instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
    const std::set<std::string> axes = axesOf(instruction);
    std::set<std::int32_t> rows;
    for (const OperatorId op : operatorsOf(instruction, device)) {
        const OfOperator &of = m_of[static_cast<std::size_t>(op.index)];
        if (between) {
            rows.insert(of.place);
            continue;
        }
        for (const auto &[axis, row] : of.splits)
            if (axis.empty() || axes.contains(axis))
                rows.insert(row);
        if (queueOf(instruction) == QueueKind::Data)
            rows.insert(of.sharing);
    }
    rows.erase(-1);
    std::vector<std::string> numbers;
    for (const std::int32_t row : rows)
        numbers.push_back(std::to_string(row + 1));
    return numbers.empty() ? std::string{} : (numbers.size() == 1 ? "row " : "rows ") + joinedBy(numbers);
}

} // namespace planloom
