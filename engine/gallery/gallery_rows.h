#pragma once

#include "engine/table/row_setting.h"
#include "engine/table/selector_index.h"
#include "engine/table/table.h"

#include <functional>
#include <string>
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

/// The row; of one that cuts vocabularies by meaning, where they do not divide, with the sizes of rounded
/// shares: a row for each size.
/// @param sizeOf  devices along an axis
std::vector<Row> withUnevenParts(
    const Model &model, Row row, const std::function<std::int32_t(const std::string &)> &sizeOf);

/// Adds a row for the forward operators of `among` that `takes` says can take it, but for those that are
/// passed by: one for the whole `among` if all of them can.
/// @return whether any can
bool appendWhere(const SelectorIndex &index, const Selector &among, const Rule &rule,
    const std::function<bool(OperatorId)> &passedBy, const std::function<bool(OperatorId)> &takes,
    ConstraintTable &table);

/// A split of all that has a dimension with one meaning, over a mesh axis.
class MeaningSplit
{
public:
    MeaningSplit(const RowSetting &setting, DimensionMeaning meaning, std::string axis);

    const SplitStep &step() const { return m_step; }
    const RowSetting &setting() const { return m_setting; }
    /// The operator has no such dimension.
    bool isWithout(OperatorId op) const;
    /// It has one, and the axis divides it.
    bool divides(OperatorId op) const;

private:
    const RowSetting &m_setting;
    SplitStep m_step{};
};

/// Rows for all operators of `among` that `split` divides. @return whether there are any
bool appendMeaningSplit(const MeaningSplit &split, const Selector &among, ConstraintTable &table);

/// Operators that use no weight, directly or through others (masks, positions), and run forward, by index:
/// they belong where they are first used.
std::vector<bool> weightless(const SelectorIndex &index);

} // namespace planloom
