#pragma once

#include "engine/graph/graph.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/partition/mesh.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// The rows of the table that a plan is of, and which of them its communication follows from.
class PlanRows
{
public:
    /// From what the plan says of its origin; no rows where it says nothing.
    explicit PlanRows(const ExecutionPlan &plan);

    /// Lines of a list of them, numbered from 1: "   2  split all : batch over dp".
    const std::string &list() const { return m_list; }
    /// "row 2", "rows 2, 6": of a communication of `device`, the rows that cut the operators it is between
    /// along the axes of the mesh that it goes along, that share states out, or that place stages. Empty
    /// where no row speaks of them.
    std::string behind(const Instruction &instruction, std::int32_t device) const;

private:
    struct OfOperator {
        std::vector<std::pair<std::string, std::int32_t>> splits{}; ///< (axis, row); no axis for all.
        std::int32_t sharing = -1; ///< Of weights and their states.
        std::int32_t place = -1;
    };
    std::set<std::string> axesOf(const Instruction &instruction) const;
    std::set<OperatorId> operatorsOf(const Instruction &instruction, std::int32_t device) const;

    const ExecutionPlan &m_plan;
    Uses m_uses{};
    std::string m_list{};
    std::vector<MeshAxis> m_mesh{};
    std::vector<OfOperator> m_of{}; ///< By operator.
};

} // namespace planloom
