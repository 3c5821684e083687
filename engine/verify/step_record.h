#pragma once

#include "engine/verify/content.h"
#include "engine/verify/value_parts.h"
#include "engine/verify/verify.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// What a step has done, on all devices together: which parts of operators ran, and what reached the host.
///
/// Members that note return why that may not be; empty if it may.
class StepRecord
{
public:
    StepRecord(const ExecutionPlan &plan, const Specification &specification);

    /// What a kernel, which was found right otherwise, reads of values that its operator divides. Once for
    /// the same contents is enough.
    std::string noteParts(const Side &side);
    std::string noteKernel(const Instruction &instruction, std::int32_t microBatch);
    /// What a buffer has reaches the host. @param updated  it holds what an update made
    std::string noteStore(const BufferInfo &buffer, std::int32_t microBatch, bool updated);

    /// At the end: that divided values add up, and that every part has run.
    std::optional<VerifyFailure> checkRan() const;
    /// At the end: that outputs have reached the host whole.
    std::string checkStored() const;

private:
    const ExecutionPlan &m_plan;
    const Graph &m_graph;
    const Specification &m_specification;
    std::vector<bool> m_ofWeights; ///< By tensor.
    ValueParts m_valueParts{};
    /// Per operator: [part x micro-batch] outputs it has made, a bit each; all of them if it makes none.
    std::vector<std::vector<std::uint64_t>> m_ran{};
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<IndexMask>>
        m_stored{}; ///< (tensor, micro-batch)
};

} // namespace planloom
