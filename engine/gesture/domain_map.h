#pragma once

#include "engine/gesture/row_edits.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Where every forward operator runs, by place rows and the default rule (default_rule.h).
struct DomainMap {
    std::vector<Domain> domains{}; ///< 0: where operators without any placement run.
    std::vector<std::int32_t> number{}; ///< By operator; -1 for others than forward ones.

    const Domain &of(OperatorId op) const
    {
        return domains[static_cast<std::size_t>(number[static_cast<std::size_t>(op.index)])];
    }
};

/// @param edits  changes of rows that count as made; null for the document as it is
/// O(place rows x operators) at most; rows that name operators cost their names.
DomainMap domainMap(const GestureContext &context, RowEdits *edits = nullptr);

/// Takes operators out of split rows over axes along which they run no more once `edits` are made, and of
/// those whose parts could not be dealt out. For edits that give choices back.
void fitFollowers(const GestureContext &context, RowEdits &edits);

/// Takes operators that are to run in `domain` out of split rows over axes along which they will not run.
/// @return why the parts that are left can't be dealt out to its devices
std::optional<Error> fitSplits(const GestureContext &context, RowEdits &edits,
    const std::vector<OperatorId> &operators, const Domain &domain, bool dropUndealt = false);

} // namespace planloom
