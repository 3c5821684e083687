#pragma once

#include "engine/kernels/products/convolution.h"

namespace planloom {

// A convolution and its gradients by those of oneDNN, which keep channels in blocks: faster than products of
// unfolded windows where several images have windows of several elements each. Images are cut into pieces
// (`forEachPiece`) by shapes alone. False where others are faster, oneDNN cannot do it, or the build does not
// have it: then the output is not made.

/// y = w * x
bool convolveWithOneDnn(const Convolution &conv, const float *x, const float *w, float *y);
/// dx, of all windows of dy
bool convolveDataWithOneDnn(const Convolution &conv, const float *dy, const float *w, float *dx);
/// dw
bool convolveWeightsWithOneDnn(const Convolution &conv, const float *x, const float *dy, float *dw);

} // namespace planloom
