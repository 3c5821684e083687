#pragma once

#include "engine/table/selector_index.h"
#include "engine/table/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A selector whose forward operators are exactly `operators` (forward, ascending, at least one): whole
/// layers as ranges, whole modules by path, the rest by name.
Selector stageSelector(const SelectorIndex &index, const std::vector<OperatorId> &operators);

/// Selectors by name for similar operators of several layers: "h.*.mlp.c_fc" where that names exactly some of
/// them, sets of names for the others. Together their forward operators are exactly `operators`.
std::vector<Selector> selectorsByName(const SelectorIndex &index, const std::vector<OperatorId> &operators);

/// A row of origin template.
Row templateRow(Selector selector, Rule rule, std::string note = {});

/// Operators that use no weight, directly or through others (masks, positions), and run forward, by index:
/// they belong where they are first used.
std::vector<bool> weightless(const SelectorIndex &index);

} // namespace planloom
