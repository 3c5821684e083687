#include "engine/interop/torch/program_writer.h"

#include "engine/graph/operators/storage_types.h"
#include "engine/interop/torch/python_text.h"

#include <algorithm>
#include <utility>

namespace planloom {

ProgramWriter::ProgramWriter(const ProgramContext &context, std::int32_t device)
    : m_context(context)
    , m_plan(context.plan)
    , m_device(device)
    , m_program(m_plan.devices[static_cast<std::size_t>(device)])
    , m_blocks(blocksOf(m_program))
    , m_names(m_plan, device, m_blocks)
    , m_gradientFactor(m_plan.updates / lossScaleOf(*m_plan.graph, m_plan.precisions))
    , m_memory(m_program.buffers.size())
{
}

Result<ProgramText> ProgramWriter::run()
{
    findArriving();
    TRY_VOID(setup());
    for (const ProgramBlock &block : m_blocks)
        TRY_VOID(this->block(block));
    schedule();
    m_made.module = std::move(m_text);
    return std::move(m_made);
}

void ProgramWriter::findArriving()
{
    for (const Segment &segment : m_program.segments)
        for (const Instruction &instruction : segment.instructions)
            if (isCommunication(instruction.kind) || isHostCopy(instruction.kind))
                for (const std::int32_t out : instruction.outputs)
                    if (out >= 0)
                        memory(out).arriving = true;
}

Result<void> ProgramWriter::setup()
{
    m_lines = {};
    std::string body;
    std::swap(body, m_text);
    m_names.beginBlock();
    for (const Instruction &instruction : m_program.setup) {
        TRY_VOID(load(instruction));
    }
    std::swap(body, m_text);
    function("setup", "What this rank keeps: its parts of weights, optimizer states and constants.", body);
    return {};
}

Result<void> ProgramWriter::block(const ProgramBlock &block)
{
    const Segment &segment = m_program.segments[static_cast<std::size_t>(block.segment)];
    m_lines = {};
    m_segment = block.segment;
    m_there.clear();
    m_scope = {};
    std::string body;
    std::swap(body, m_text);
    m_names.beginBlock();
    for (std::int32_t i = block.begin; i < block.end; ++i) {
        m_index = i;
        TRY_VOID(instruction(segment.instructions[static_cast<std::size_t>(i)]));
    }
    std::swap(body, m_text);
    function(block.name, block.words, body);
    return {};
}

void ProgramWriter::noteLine(std::size_t begin)
{
    auto line = std::count(m_text.begin(), m_text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    while (m_text.compare(begin, 6, "    # ") == 0) {
        begin = m_text.find('\n', begin) + 1;
        ++line;
    }
    m_lines.push_back(static_cast<std::int32_t>(line));
}

void ProgramWriter::function(const std::string &name, const std::string &words, const std::string &body)
{
    const bool takesMicroBatch = name != "setup";
    m_text += "\n\ndef " + name + (takesMicroBatch ? "(run, m):\n" : "(run):\n");
    if (!words.empty())
        m_text += "    \"\"\"" + words + "\"\"\"\n";
    std::vector<std::string> letters;
    std::vector<std::string> values;
    for (const auto &[letter, value] :
        {std::pair{"w", "run.weights"}, std::pair{"s", "run.sums"}, std::pair{"rank", "run.rank"}}) {
        const bool marks = std::string_view(letter) == "rank" && body.find('\1') != std::string::npos;
        if (!marks && !usesName(body, letter))
            continue;
        letters.emplace_back(letter);
        values.emplace_back(value);
    }
    if (!letters.empty())
        m_text += "    " + joinedBy(letters) + " = " + joinedBy(values) + "\n";
    const auto first = static_cast<std::int32_t>(std::count(m_text.begin(), m_text.end(), '\n'));
    for (std::int32_t &line : m_lines)
        line += first + 1;
    m_text += body.empty() ? "    pass\n" : body;
    m_made.lines.emplace_back(name, std::move(m_lines));
}

void ProgramWriter::schedule()
{
    m_text += "\n\ndef step(run):\n    \"\"\"One training step: the blocks of this rank, in the order of "
              "the plan.\"\"\"\n"
              "    m = run.micro_batches\n";
    for (const auto &[block, microBatch] : blockRuns(m_program, m_blocks))
        m_text += "    " + m_blocks[static_cast<std::size_t>(block)].name + "(run, m["
            + std::to_string(microBatch) + "])\n";
}

Result<void> ProgramWriter::instruction(const Instruction &instruction)
{
    scopeComment(instruction);
    m_behind =
        isCommunication(instruction.kind) ? m_context.rows.behind(instruction, m_device) : std::string{};
    switch (instruction.kind) {
    case InstructionKind::Load:
        return load(instruction);
    case InstructionKind::Kernel:
        return m_plan.graph->at(instruction.op).direction == Direction::Optimizer ? optimizer(instruction)
                                                                                  : kernel(instruction);
    case InstructionKind::Accumulate:
        accumulate(instruction);
        return {};
    case InstructionKind::Select:
    case InstructionKind::ValueSelect:
        return select(instruction);
    case InstructionKind::Concat:
        return concat(instruction);
    case InstructionKind::Sum:
    case InstructionKind::Weigh:
    case InstructionKind::Merge:
        combine(instruction);
        return {};
    case InstructionKind::Update:
    case InstructionKind::Cast:
        passOn(instruction);
        return {};
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
        hostCopy(instruction);
        return {};
    case InstructionKind::Store:
        store(instruction);
        return {};
    case InstructionKind::Send:
    case InstructionKind::Recv:
        message(instruction);
        return {};
    default:
        return collective(instruction);
    }
}

void ProgramWriter::scopeComment(const Instruction &instruction)
{
    if (!instruction.op.valid())
        return;
    const ScopeId scope = m_plan.graph->at(instruction.op).scope;
    if (scope == m_scope)
        return;
    m_scope = scope;
    const std::string path = pathOf(*m_plan.graph, scope);
    if (!m_text.empty())
        m_text += "\n";
    if (!path.empty())
        m_text += "    # " + path + "\n";
}

std::string ProgramWriter::read(std::int32_t buffer)
{
    const std::string name = m_names.expressionOf(buffer);
    if (memory(buffer).arriving && m_there.insert(buffer).second)
        m_text += "    " + name + " = wait(" + name + ")\n";
    return name;
}

bool ProgramWriter::diesIn(const Instruction &instruction, std::int32_t buffer) const
{
    return !info(buffer).persistent
        && std::find(instruction.deaths.begin(), instruction.deaths.end(), buffer)
        != instruction.deaths.end();
}

bool ProgramWriter::isLeft(const Instruction &instruction, std::int32_t buffer)
{
    return diesIn(instruction, buffer) && memory(buffer).own
        && std::count(instruction.inputs.begin(), instruction.inputs.end(), buffer) == 1;
}

void ProgramWriter::noteView(
    const Instruction &instruction, std::int32_t output, std::int32_t input, bool alone)
{
    const bool left = alone && diesIn(instruction, input);
    memory(output).own = left && memory(input).own;
    if (!left)
        memory(input).own = false;
}

/// What dies in an instruction, by name. The names are free from then on.
std::vector<std::string> ProgramWriter::release(const Instruction &instruction, const BufferList &outputs)
{
    std::vector<std::string> dying;
    for (const std::int32_t buffer : instruction.deaths)
        if (buffer >= 0 && !info(buffer).persistent
            && std::find(outputs.begin(), outputs.end(), buffer) == outputs.end()) {
            dying.push_back(m_names.expressionOf(buffer));
            m_names.bury(buffer);
        }
    return dying;
}

std::string ProgramWriter::target(const Instruction &instruction, std::int32_t output)
{
    if (output < 0)
        return "_";
    if (std::find(instruction.inputs.begin(), instruction.inputs.end(), output) == instruction.inputs.end())
        m_names.bear(output, instruction.op);
    m_there.erase(output);
    return m_names.expressionOf(output);
}

void ProgramWriter::write(
    const std::string &target, const std::string &value, std::int32_t output, bool comments)
{
    std::string comment = comments && output >= 0 ? layoutOf(output) : std::string{};
    if (!m_behind.empty())
        comment += (comment.empty() ? "" : "; ") + std::exchange(m_behind, {});
    if (target.empty())
        m_text += pythonLines(value, comment);
    else if (output >= 0 && info(output).persistent && !memory(output).arriving)
        m_text += pythonLines(target + ".copy_(" + value + ")", comment);
    else
        m_text += pythonLines(target + " = " + value, comment);
}

/// Frees what died, unless what was made has its name, and what was made for nobody.
void ProgramWriter::finish(const Instruction &instruction, std::vector<std::string> dying,
    const std::vector<std::string> &targets, const BufferList &outputs)
{
    std::erase_if(dying, [&](const std::string &name) {
        return std::find(targets.begin(), targets.end(), name) != targets.end();
    });
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] >= 0 && diesIn(instruction, outputs[i])) {
            dying.push_back(targets[i]);
            m_names.bury(outputs[i]);
        }
    if (!dying.empty())
        m_text += pythonLines("del " + joinedBy(dying), {});
}

void ProgramWriter::assign(
    const Instruction &instruction, const std::string &value, const BufferList &outputs, bool comments)
{
    std::vector<std::string> dying = release(instruction, outputs);
    std::vector<std::string> targets;
    std::int32_t first = -1;
    for (const std::int32_t output : outputs) {
        targets.push_back(target(instruction, output));
        first = first < 0 ? output : first;
    }
    const std::size_t begin = m_text.size();
    write(joinedBy(targets), value, first, comments);
    noteLine(begin);
    finish(instruction, std::move(dying), targets, outputs);
}

void ProgramWriter::assignEach(
    const Instruction &instruction, const std::vector<std::string> &values, const BufferList &outputs)
{
    std::vector<std::string> targets;
    const std::size_t begin = m_text.size();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        targets.push_back(target(instruction, outputs[i])); // none has the name of what others are made of
        write(targets.back(), values[i], outputs[i], true);
    }
    noteLine(begin);
    finish(instruction, release(instruction, outputs), targets, outputs);
}

std::string ProgramWriter::layoutOf(std::int32_t buffer) const
{
    const BufferInfo &of = info(buffer);
    const Shape &whole = tensor(buffer).type.shape;
    const auto &classes = m_context.dimensions.ofTensor;
    std::vector<std::string> dimensions;
    for (std::size_t d = 0; d < whole.size(); ++d) {
        const std::int64_t own = of.index.ranges[d].size();
        std::string text = std::to_string(own);
        if (own != whole[d])
            text += "/" + std::to_string(whole[d]);
        const auto t = static_cast<std::size_t>(of.tensor.index);
        if (t < classes.size() && d < classes[t].size() && classes[t][d].valid()) {
            const std::string &name = m_context.dimensions.at(classes[t][d]).name;
            if (!name.empty())
                text = name + " " + text;
        }
        dimensions.push_back(text);
    }
    std::string text = "[" + joinedBy(dimensions) + "]";
    if (of.dataType != tensor(buffer).type.dataType)
        text += std::string(" ") + nameOf(of.dataType);
    return text + (of.summands.empty() ? "" : " partial");
}

std::string combinationOption(Combination combination)
{
    return combination == Combination::Sum ? "" : std::string(", op=") + pythonText(nameOf(combination));
}

Result<ProgramText> programText(const ProgramContext &context, std::int32_t device)
{
    return ProgramWriter(context, device).run();
}

} // namespace planloom
