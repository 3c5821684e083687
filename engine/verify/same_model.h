#pragma once

#include "engine/graph/graph.h"

#include <string>

namespace planloom {

/// Whether two graphs are the same model: tensors by name, type, shape in files and role; operators by name,
/// kind, direction, attributes, slots and annotation, in the same order. A plan carries its graph; this holds
/// it against the model it claims to be of.
/// @return the first difference as a sentence; empty if there is none
/// O(operators + tensors).
std::string differenceOf(const Graph &plan, const Graph &model);

} // namespace planloom
