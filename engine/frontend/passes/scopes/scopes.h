#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Makes `Graph::scopes` and every `Operator::scope` from the names of the nodes that operators came from,
/// then marks copies (`findCopies`).
///
/// "/transformer/h.3/attn/c_attn/Gemm" lies in transformer > h.3 > attn > c_attn; a fused operator in the
/// longest module path that its nodes share; a backward or optimizer operator where its forward or its
/// weight's first user lies. Operators without such names lie in scope 0. A module of a single node makes no
/// scope: c_attn above is an operator of attn if it is all of its module. Where no name says a path,
/// repeated stretches of operators are scopes (`scopesFromStructure`). Scopes stand in order of first
/// appearance, parents before children. O(total length of the names).
void buildScopes(Graph &graph);

/// Sets `Scope::copyClass`: scopes whose forward operators (those of their inner scopes included) have, in
/// order, the same kinds, attributes but for seeds, shapes, inner wiring and tree of inner scopes share a
/// class.
///
/// Found by hash, confirmed by comparison. Classes are numbered in order of first appearance; a scope without
/// operators, without a copy, or the model itself has -1. O(operators x depth of the tree).
void findCopies(Graph &graph);

} // namespace planloom
