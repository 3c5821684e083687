#pragma once

#include "engine/base/result.h"
#include "engine/design/models/opened_model.h"
#include "engine/graph/dimensions/input_dimension.h"
#include "engine/table/table_document.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace planloom {

// Rows about the model itself: sizes of its inputs (`dim batch = 64`), room for what data choose
// (`capacity all = 1.25x`), recurrences as steps (`unroll all`). The model has to be opened with them before
// anything can be planned.

/// True for a row of these kinds.
bool isModelRow(const Rule &rule);

/// The options with which the rows of `table` that are on want their model, whatever it is: of each dimension
/// and each room the first row goes before what `options` says.
ModelOptions withRows(ModelOptions options, const TableDocument &table);

/// The same for a model that has been opened before: names of one dimension are joined, and rows that it
/// cannot follow are left out (they are errors of their plan).
ModelOptions withRows(ModelOptions options, const TableDocument &table, const Graph &known);

/// The same where nothing but its inputs' dimensions is known: rows about single operators are left out.
ModelOptions withRows(
    ModelOptions options, const TableDocument &table, const std::vector<InputDimension> &known);

/// The options without what a row of these kinds has chosen in them, of a model that was opened with them.
ModelOptions withoutRow(ModelOptions options, const Rule &rule, const Graph &known);

/// The options with a size from `shapes` for every dimension that `source.options` leaves open.
/// @param shapes  of arrays for the model's inputs, by input
/// @return InvalidInput if two arrays want different sizes of one dimension; as `openDimensions`
Result<ModelOptions> withArrays(const ModelSource &source, const std::map<std::string, Shape> &shapes);

/// What the file has under the names of `shapes` and the model stores, though neither the file nor one beside
/// it has values of it: inputs of a file, or weights without values, that an importer took as stored.
std::set<std::string> storedWithoutValues(
    const OpenedModel &model, const std::map<std::string, Shape> &shapes);

/// Rows that give dimensions these sizes: those that are there are changed (the first of each dimension,
/// switched on), others come behind all rows. Empty if nothing changes.
TableEdit sizeRows(const TableDocument &document, const std::map<std::string, std::int64_t> &sizes,
    const std::vector<InputDimension> &known);

/// The rows of `document` about the model alone: they stay when one plan takes the place of another.
TableDocument modelRows(const TableDocument &document);

} // namespace planloom
