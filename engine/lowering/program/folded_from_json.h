#pragma once

#include "engine/lowering/program/program_from_json.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// Writes out what devices do from the folded form of an execution plan's document (folded_programs.h).
class FoldedFromJson
{
public:
    /// @param plan  all but its devices, which are added to it; outlives this
    FoldedFromJson(const PlanValue &document, ExecutionPlan &plan, std::size_t deviceCount);

    /// O(what the document stands for), which is at most `kMostUnfolded`.
    void read();

private:
    struct Template {
        std::int32_t known = 0;
        std::int32_t made = 0;
        bool tags = false;
        std::vector<Instruction> instructions{};
    };
    /// Which buffers of the device that is written out come next.
    struct Target {
        const std::vector<std::int32_t> &firstPart;
        std::int32_t bufferCount = 0;
        std::int32_t next = 0;
    };
    /// A form, and the buffer that it last made: for the next tensor of the same type it need not be read
    /// again.
    struct Form {
        PlanValue value;
        std::optional<BufferInfo> last{};
    };
    struct Entry {
        std::int32_t step = 0;
        std::int32_t form = 0;
    };

    Template readTemplate(const PlanValue &value) const;
    void readEntries(const PlanValue &value);
    const BufferInfo &bufferOf(Form &form, TensorId tensor) const;
    SharedVector<BufferInfo> buffersFrom(const PlanValue &value);
    void readProgram(
        const PlanValue &value, const std::vector<std::int32_t> &firstPart, DeviceProgram &device);
    void call(const PlanValue &value, Target &target, std::vector<Instruction> &instructions);
    void spend(const PlanValue &value, std::size_t count);

    PlanValue m_document;
    ExecutionPlan &m_plan;
    ProgramFromJson m_programs;
    std::size_t m_deviceCount;
    std::vector<Template> m_templates{};
    std::vector<Form> m_forms{};
    std::vector<Entry> m_entries{}; ///< Buffers of all devices so far.
    std::int64_t m_left; ///< That may still be written out.
};

} // namespace planloom
