#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Makes scopes of the layers of a model whose names say nothing of modules.
///
/// Layers are stretches of forward operators that follow one another and are alike, operator by operator: in
/// kinds, attributes, types and what kinds of tensors they read.
///
///     embedding | norm attention add norm mlp add | norm attention add norm mlp add | norm head
///                 layer.0                           layer.1
///
/// The repetition that covers most operators counts first, then what is left before and behind it; a layer
/// has at least three operators and reads a weight. Where a repetition could begin at several operators, it
/// begins where the names of the weights read in each stretch agree on a numbered module ("h.0.ln_1.weight"
/// and "h.0.attn.c_attn.bias" on "h.0", which then is the scope's name), and of those where the fewest values
/// pass from stretch to stretch; the first of several. Without such names scopes are "layer.0", "layer.1",
/// ...
///
/// For graphs whose operators all lie in scope 0. O(operators + tensors), with a factor of at most 64.
void scopesFromStructure(Graph &graph);

} // namespace planloom
