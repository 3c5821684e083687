#include "engine/lowering/program/folded_programs.h"

#include "engine/lowering/program/execution_plan_words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

namespace planloom {

namespace {

using nlohmann::json;

/// Everything that two things are told apart by, as numbers.
using Traits = std::vector<std::int64_t>;

struct TraitsHash {
    std::size_t operator()(const Traits &traits) const
    {
        std::uint64_t hash = traits.size();
        for (const std::int64_t trait : traits) {
            hash = (hash ^ static_cast<std::uint64_t>(trait)) * 0x9e3779b97f4a7c15U;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

/// Numbers what differs, and keeps the text of each.
class NumberedTexts
{
public:
    /// @param write  () -> the text, asked for what is new
    template<typename Write> std::int32_t numberOf(const Traits &traits, const Write &write)
    {
        const auto [found, isNew] =
            m_numbers.try_emplace(traits, static_cast<std::int32_t>(m_numbers.size()));
        if (isNew) {
            m_text += m_text.empty() ? "" : ",";
            m_text += write();
        }
        return found->second;
    }
    const std::string &text() const { return m_text; }

private:
    std::unordered_map<Traits, std::int32_t, TraitsHash> m_numbers{};
    std::string m_text{};
};

template<typename List> void addList(Traits &traits, const List &list)
{
    traits.push_back(static_cast<std::int64_t>(list.size()));
    traits.insert(traits.end(), list.begin(), list.end());
}

void addInstruction(Traits &traits, const Instruction &instruction)
{
    std::int64_t flags = 0;
    for (const auto &[name, member] : kInstructionFlags)
        flags = flags * 2 + (instruction.*member ? 1 : 0);
    traits.insert(traits.end(),
        {static_cast<std::int64_t>(instruction.kind), instruction.part, flags, instruction.group,
            instruction.peer.index, instruction.tag, instruction.dimension, instruction.gatherDimension,
            static_cast<std::int64_t>(instruction.combination),
            instruction.queue ? static_cast<std::int64_t>(*instruction.queue) : -1});
    for (const auto &[name, member, least] : kInstructionBuffers)
        addList(traits, instruction.*member);
}

/// All but the tensor; the type as that of a tensor of type `tensorType` is said.
Traits traitsOf(const BufferInfo &buffer, DataType tensorType)
{
    Traits traits;
    for (const Range &range : buffer.index.ranges)
        traits.insert(traits.end(), {range.begin, range.end});
    traits.push_back(std::numeric_limits<std::int64_t>::min()); // ends the box
    traits.insert(traits.end(),
        {buffer.dataType == tensorType ? -1 : static_cast<std::int64_t>(buffer.dataType),
            static_cast<std::int64_t>(buffer.memory), buffer.valuePart.index, buffer.valuePart.count,
            buffer.unweighed, buffer.perMicroBatch, buffer.persistent,
            static_cast<std::int64_t>(buffer.place), static_cast<std::int64_t>(buffer.share), buffer.versions,
            buffer.staleness});
    if (buffer.share == UnitShare::Shard)
        traits.insert(traits.end(), {buffer.shardDimension, buffer.shardEnd});
    addList(traits, buffer.summands);
    return traits;
}

/// Writes buffers of device after device as steps and forms, and what was there before as where it was.
class FoldedBuffers
{
public:
    explicit FoldedBuffers(const ExecutionPlan &plan)
        : m_plan(plan)
    {
    }

    /// O(buffers): what is found again is passed over.
    std::string listOf(const DeviceProgram &program)
    {
        const std::size_t first = m_entries.size();
        std::int32_t tensor = 0;
        for (const BufferInfo &buffer : program.buffers) {
            m_entries.push_back({buffer.tensor.index - tensor, formOf(buffer)});
            tensor = buffer.tensor.index;
        }
        std::string text;
        for (std::size_t i = first; i < m_entries.size();) {
            text += i == first ? "" : ",";
            const auto [from, count] = foundAgain(i);
            if (count > 0)
                text += "{\"again\":[" + std::to_string(from) + ',' + std::to_string(count) + "]}";
            else
                text +=
                    '[' + std::to_string(m_entries[i].step) + ',' + std::to_string(m_entries[i].form) + ']';
            for (const std::size_t end = i + std::max<std::size_t>(count, 1); i < end; ++i)
                if (i + kLeastAgain <= m_entries.size())
                    m_places[hashAt(i)] = i;
        }
        return text;
    }

    const std::string &forms() const { return m_forms.text(); }

private:
    struct Entry {
        std::int32_t step = 0;
        std::int32_t form = 0;
        friend bool operator==(const Entry &, const Entry &) = default;
    };
    static constexpr std::size_t kLeastAgain = 4; ///< Fewer are as short when they are written.

    std::int32_t formOf(const BufferInfo &buffer)
    {
        const DataType tensorType = m_plan.graph->at(buffer.tensor).type.dataType;
        return m_forms.numberOf(traitsOf(buffer, tensorType), [&] {
            json form = bufferToJson(m_plan, buffer);
            form.erase("tensor");
            return textOfJson(form);
        });
    }

    std::uint64_t hashAt(std::size_t place) const
    {
        std::uint64_t hash = 0;
        for (std::size_t i = place; i < place + kLeastAgain; ++i) {
            hash = (hash ^ static_cast<std::uint32_t>(m_entries[i].step)) * 0x9e3779b97f4a7c15U;
            hash = (hash ^ static_cast<std::uint32_t>(m_entries[i].form)) * 0xc2b2ae3d27d4eb4fU;
            hash ^= hash >> 29;
        }
        return hash;
    }

    /// The last place from which on the same entries stood before `place`, and how many.
    std::pair<std::size_t, std::size_t> foundAgain(std::size_t place) const
    {
        if (place + kLeastAgain > m_entries.size())
            return {};
        const auto found = m_places.find(hashAt(place));
        if (found == m_places.end())
            return {};
        std::size_t count = 0;
        while (
            place + count < m_entries.size() && m_entries[found->second + count] == m_entries[place + count])
            ++count;
        return count < kLeastAgain ? std::pair<std::size_t, std::size_t>{} : std::pair(found->second, count);
    }

    const ExecutionPlan &m_plan;
    NumberedTexts m_forms{};
    std::vector<Entry> m_entries{}; ///< Of all devices so far.
    std::unordered_map<std::uint64_t, std::size_t> m_places{}; ///< By hash, the last such one.
};

/// The buffers of a run of instructions by their place in its template.
class BufferPlaces
{
public:
    explicit BufferPlaces(std::size_t bufferCount)
        : m_place(bufferCount, -1)
    {
    }

    /// Afterwards `known` are those that `instructions` name and that are not new.
    void take(std::span<const Instruction> instructions)
    {
        for (const std::int32_t buffer : m_named)
            m_place[at(buffer)] = -1;
        m_named.clear();
        m_known.clear();
        for (const Instruction &instruction : instructions)
            for (const auto &[name, member, least] : kInstructionBuffers)
                for (const std::int32_t buffer : instruction.*member)
                    if (buffer >= 0 && m_place[at(buffer)] < 0) {
                        m_place[at(buffer)] = 0;
                        m_named.push_back(buffer);
                    }
        m_newCount = 0;
        while (at(m_next + m_newCount) < m_place.size() && m_place[at(m_next + m_newCount)] == 0)
            ++m_newCount;
        const auto isNew = [&](std::int32_t buffer) {
            return buffer >= m_next && buffer < m_next + m_newCount;
        };
        for (const std::int32_t buffer : m_named)
            if (!isNew(buffer)) {
                m_place[at(buffer)] = static_cast<std::int32_t>(m_known.size());
                m_known.push_back(buffer);
            }
        for (std::int32_t i = 0; i < m_newCount; ++i)
            m_place[at(m_next + i)] = static_cast<std::int32_t>(m_known.size()) + i;
        m_next += m_newCount;
    }

    const std::vector<std::int32_t> &known() const { return m_known; }
    std::int32_t newCount() const { return m_newCount; }
    std::int32_t of(std::int32_t buffer) const { return buffer < 0 ? buffer : m_place[at(buffer)]; }

private:
    std::vector<std::int32_t> m_place; ///< By buffer; -1 where the run does not name it.
    std::vector<std::int32_t> m_named{}; ///< In the order of the run.
    std::vector<std::int32_t> m_known{};
    std::int32_t m_next = 0; ///< The first that no run has made.
    std::int32_t m_newCount = 0;
};

/// The calls of one device after the other.
class FoldedCalls
{
public:
    /// @return calls, with commas between them. O(instructions)
    std::string callsOf(std::span<const Instruction> instructions, BufferPlaces &places,
        const std::vector<std::int32_t> &firstPart)
    {
        std::string text;
        for (std::size_t begin = 0, end = 0; begin < instructions.size(); begin = end) {
            const OperatorId op = instructions[begin].op;
            while (end < instructions.size() && instructions[end].op == op)
                ++end;
            const auto run = instructions.subspan(begin, end - begin);
            places.take(run);
            const std::int32_t tag = leastTag(run);
            text += begin == 0 ? "[" : ",[";
            text += std::to_string(templateOf(run, places, op ? firstPart[at(op)] : 0, tag));
            text += ',' + std::to_string(op.index);
            if (tag >= 0)
                text += ',' + std::to_string(tag);
            for (const std::int32_t buffer : places.known())
                text += ',' + std::to_string(buffer);
            text += ']';
        }
        return text;
    }

    const std::string &templates() const { return m_templates.text(); }

private:
    static std::int32_t leastTag(std::span<const Instruction> run)
    {
        std::int32_t least = -1;
        for (const Instruction &instruction : run)
            if (instruction.tag >= 0 && (least < 0 || instruction.tag < least))
                least = instruction.tag;
        return least;
    }

    std::int32_t templateOf(std::span<const Instruction> run, const BufferPlaces &places,
        std::int32_t firstPart, std::int32_t tag)
    {
        m_run.assign(run.begin(), run.end());
        m_traits = {static_cast<std::int64_t>(places.known().size()), places.newCount(), tag >= 0 ? 1 : 0};
        for (Instruction &instruction : m_run) {
            instruction.op = {};
            instruction.part = instruction.kind == InstructionKind::Kernel ? instruction.part - firstPart : 0;
            if (instruction.tag >= 0)
                instruction.tag -= tag;
            for (const auto &[name, member, least] : kInstructionBuffers)
                for (std::int32_t &buffer : instruction.*member)
                    buffer = places.of(buffer);
            addInstruction(m_traits, instruction);
        }
        return m_templates.numberOf(m_traits, [&] {
            json object{{"known", places.known().size()}, {"new", places.newCount()}};
            if (tag >= 0)
                object["tags"] = true;
            json &instructions = object["instructions"] = json::array();
            for (const Instruction &instruction : m_run)
                instructions.push_back(instructionToJson(instruction));
            return textOfJson(object);
        });
    }

    NumberedTexts m_templates{};
    std::vector<Instruction> m_run{}; ///< As its template has it.
    Traits m_traits{};
};

std::string programText(
    const DeviceProgram &program, FoldedCalls &calls, const std::vector<std::int32_t> &firstPart)
{
    BufferPlaces places(program.buffers.size());
    std::string text = "{\"setup\":[" + calls.callsOf(program.setup, places, firstPart) + "],\"segments\":[";
    for (const Segment &segment : program.segments) {
        text += text.back() == '[' ? "" : ",";
        text += textOfJson(segmentToJson(segment));
        text.pop_back(); // the brace that ends it
        text += ",\"calls\":[" + calls.callsOf(segment.instructions, places, firstPart) + "]}";
    }
    return text + "],\"schedule\":" + textOfJson(scheduleToJson(program)) + '}';
}

} // namespace

std::vector<std::vector<std::int32_t>> firstParts(const ExecutionPlan &plan, std::size_t deviceCount)
{
    std::vector<std::vector<std::int32_t>> first(
        deviceCount, std::vector<std::int32_t>(plan.placement.size(), 0));
    for (std::size_t o = 0; o < plan.placement.size(); ++o)
        for (std::size_t part = plan.placement[o].size(); part-- > 0;)
            first[at(plan.placement[o][part])][o] = static_cast<std::int32_t>(part);
    return first;
}

std::string foldedPrograms(const ExecutionPlan &plan)
{
    const auto firstPart = firstParts(plan, plan.devices.size());
    FoldedCalls calls;
    FoldedBuffers buffers(plan);
    std::unordered_map<std::string, std::size_t> programs;
    std::string programTexts;
    std::string deviceTexts;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceProgram &device = plan.devices[d];
        std::string text = programText(device, calls, firstPart[d]);
        const auto [program, isNew] = programs.try_emplace(std::move(text), programs.size());
        if (isNew)
            programTexts += (programTexts.empty() ? "" : ",") + program->first;
        deviceTexts += d == 0 ? "" : ",";
        deviceTexts += "{\"program\":" + std::to_string(program->second) + ",\"buffers\":["
            + buffers.listOf(device) + "]}";
    }
    return ",\"templates\":[" + calls.templates() + "],\"forms\":[" + buffers.forms() + "],\"programs\":["
        + programTexts + "],\"devices\":[" + deviceTexts + ']';
}

} // namespace planloom
