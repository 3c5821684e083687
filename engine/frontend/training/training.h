#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

namespace planloom {

/// How a training step updates its weights.
struct TrainingOptions {
    OperatorKind optimizer = OperatorKind::SgdStep; ///< SgdStep or AdamWStep.
    double learningRate = 1e-3; ///< At least 0.
    double momentum = 0; ///< SgdStep: in [0, 1); without it there is no optimizer state.
    double beta1 = 0.9; ///< AdamWStep: in [0, 1).
    double beta2 = 0.999; ///< AdamWStep: in [0, 1).
    double epsilon = 1e-8; ///< AdamWStep: above 0.
    double weightDecay = 0; ///< At least 0; decoupled in AdamWStep, added to the gradient in SgdStep.
    /// Above 0: gradients are scaled so that the norm over all of them is at most this. 0: they stay as they
    /// are.
    double clipNorm = 0;
};

/// The graph of a whole training step: `forward`, its backward pass (`appendBackward`) and one optimizer
/// operator per weight that has a gradient.
///
/// The optimizer operator of weight "w" is called "w.step" and lies in the scope of w's first user. It makes
/// "w.new" (role Weight, `of` = w) and the new states "w.momentum.new", or "w.m.new" and "w.v.new" (role
/// OptimizerState, `of` = w) from "w.momentum", or "w.m" and "w.v", which start as zeros. SgdStep without
/// momentum has two inputs and one output.
///
/// With `clipNorm`, gradients are clipped by their global norm, as PyTorch's clip_grad_norm_ does (Pascanu et
/// al., arXiv:1211.5063, section 3.2): an operator "w.square" per weight adds the squares of its gradient up,
/// all of them in the one tensor "clip.square"; "clip" makes the factor min(1, clipNorm / (norm + 1e-6)) of
/// it, "clip.factor", which every optimizer operator multiplies its gradient with. A weight that is used
/// several times has one gradient, which counts once.
///
/// @return NotSupported for a model without a loss; InvalidInput for options out of range; errors of
///   `appendBackward`
/// O(operators + tensors).
Result<Graph> buildTrainingStep(const Graph &forward, const TrainingOptions &options = {});

} // namespace planloom
