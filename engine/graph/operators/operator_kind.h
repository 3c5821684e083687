#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace planloom {

/// What an operator computes; what else the graph room knows of a kind stands in its entry (kind_entry.h,
/// families/*.cpp). Inputs are listed as (a, b, [optional]), attributes as `name`; shapes in [ ].
///
/// Conventions that hold for every kind: axes are counted from 0 and never negative; optional inputs that are
/// absent are invalid TensorIds in their place; an output's shape is that of its `Tensor`, never re-derived
/// by a kernel, so that a kernel works alike on a whole operator and on one part of it.
enum class OperatorKind : std::uint8_t {
    // Element by element, (x) -> y.
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    Identity, ///< No gradient flows through it if `detached` is 1.
    IsInf,
    IsNaN,
    Log,
    Neg,
    Not,
    Reciprocal,
    Relu,
    Round,
    Sigmoid,
    Sign,
    Sin,
    Sinh,
    Softplus,
    Softsign,
    Sqrt,
    Tan,
    Tanh,
    Mish,
    HardSwish,
    Silu,
    Gelu, ///< `approximate` "none" (erf) or "tanh".
    Elu,
    Celu,
    LeakyRelu,
    ThresholdedRelu, ///< `alpha`.
    Selu, ///< `alpha`, `gamma`.
    HardSigmoid, ///< `alpha`, `beta`.
    Clip, ///< `min`, `max` (each may be missing).
    Cast, ///< to the data type of its output.
    Dropout, ///< `ratio`, `seed`. (x) -> y. Element i of the whole pTensor is kept iff draw(seed, i) >=
    ///< ratio.

    // Element by element with NumPy broadcasting, (a, b) -> y.
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Mod,
    Min,
    Max,
    And,
    Or,
    Xor,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    BitShift, ///< `direction` "LEFT" or "RIGHT".
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor, ///< Of integers.
    PRelu, ///< (x, slope)
    Where, ///< (condition, a, b)

    // Products.
    MatMul, ///< NumPy matmul (a, b).
    Linear, ///< (x [.. k], w, [bias [n]]) -> [.. n]; w is [n k] if `transposed` is 1, else [k n].
    Einsum, ///< `equation`, explicit ("ij,jk->ik"), no ellipsis.
    Conv, ///< (x [n c ..], w [o c/g ..], [bias]); `strides`, `pads` (begins, ends), `dilations`, `group`.
    ConvTranspose, ///< as Conv, w [c o/g ..], and `output_padding`.

    // Pooling over the dimensions after the first two.
    MaxPool, ///< `kernel_shape`, `strides`, `pads`, `dilations`, `ceil_mode`.
    AveragePool, ///< as MaxPool, and `count_include_pad`.
    LpPool, ///< as MaxPool, and `p`.

    // Normalisation.
    BatchMean, ///< (x [n c ..]) -> [c], over n, ..; -> [n g], if `groups` is g: sum / `count` (of the whole).
    BatchVariance, ///< (x, mean) -> the shape of mean: sum of (x - mean)^2 divided by `count`.
    BatchNormalize, ///< (x, mean, variance, scale, bias) -> y; `epsilon`, `groups`. All of an inference norm.
    InstanceNorm, ///< (x, scale, bias); `epsilon`.
    LayerNorm, ///< (x, [scale], [bias]); `axis` = first normalised dimension, `epsilon`.
    RmsNorm, ///< (x, [scale]); `axis`, `epsilon`.
    LocalResponseNorm, ///< `size`, `alpha`, `beta`, `bias`.
    Softmax,
    LogSoftmax, ///< `axis`.
    LpNormalize, ///< `axis`, `p`.

    // Losses. A mean is Div(CrossEntropy, CountValid), so that both split over the items exactly.
    CrossEntropy, ///< (logits [n c ..], labels [n ..], [class weights [c]]); `reduction` "sum" -> [], "none"
    ///< -> [n ..]; `ignore_index` if any.
    NegativeLogLikelihood, ///< as CrossEntropy with log-probabilities in place of logits.
    ClassStatistics, ///< (logits [n c ..], labels [n ..]) -> (log-sum-exp over c [n ..], logit of the label
    ///< [n ..]: 0 where the label is `ignore_index`). What a cross-entropy needs of the logits.
    ClassLoss, ///< (log-sum-exp [n ..], logit of the label [n ..], labels [n ..], [class weights [c]]) -> the
    ///< CrossEntropy of those; its attributes.
    CountValid, ///< (labels, [class weights]) -> []: float number (or weight) of labels other than
    ///< `ignore_index`.

    // Reductions over `axes`, `keepdims`.
    ReduceSum,
    ReduceMean, ///< sum divided by `count`, the number of elements averaged in the whole pTensor.
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceSumSquare,
    ArgMax,
    ArgMin, ///< `axis`, `keepdims`, `select_last_index`.

    // Moving elements.
    Reshape, ///< (x) -> the shape of its output. Also Flatten, Squeeze, Unsqueeze.
    Transpose, ///< `permutation`.
    Expand, ///< to the shape of its output.
    Tile, ///< `repeats`.
    Concat, ///< `axis`.
    Split, ///< `axis`, `sizes`.
    Slice, ///< `starts`, `steps`, one per dimension; extents are its output's.
    Pad, ///< `pads` (begins, ends), `mode` "constant" | "reflect" | "edge" | "wrap", `value`.
    Gather, ///< (x, indices); `axis`. With `groups`, `grouped`: indices are places (places.h), dimension
    ///< `grouped` of them and `axis` of x come in `groups` parts. Likewise GatherND and ScatterND, dimension
    ///< 0.
    Embedding, ///< (table [v e], indices) -> [.. e]; the row `padding_index`, if any, gets no gradient.
    GatherElements,
    GatherND, ///< `axis`; `batch_dims`.
    ScatterElements,
    ScatterND, ///< (x, indices, updates); `axis`, `reduction` "none" | "add" | "mul" | "max" | "min".
    OneHot, ///< (indices) `axis`, `depth`, `on`, `off`.
    TopK, ///< (x) -> (values, indices); `axis`, `k`, `largest`, `sorted`.
    NonZero, ///< (x [d.. e..]) -> [d.. r c]: places of what is not zero (places.h), of each of the first
    ///< `kept`
    ///< dimensions d by itself, as r indices of e.. in order; `capacity` c, in `groups` parts along dimension
    ///< `group_axis` of x.
    CumSum, ///< `axis`, `exclusive`, `reverse`.
    Trilu, ///< `upper`, `k`.
    Resize, ///< `mode`, `coordinate_transformation_mode`, `nearest_mode`, `cubic_coeff_a`, `antialias`,
    ///< `exclude_outside`, `scales`; sizes are its output's. Of "tf_crop_and_resize": `roi` (begins, ends),
    ///< `extrapolation_value`.
    GridSample, ///< (x [n c s..], grid [n o.. d]) -> [n c o..]: x at the places of the grid, whose d numbers
    ///< are in [-1, 1], the last dimension's first; `mode` "linear" | "nearest" | "cubic", `padding_mode`
    ///< "zeros" | "border" | "reflection", `align_corners`.
    DepthToSpace, ///< `blocksize`, `mode`.
    SpaceToDepth, ///< `blocksize`.
    ReverseSequence, ///< (x, lengths) `batch_axis`, `time_axis`.
    EyeLike, ///< `k`.
    Range, ///< () -> [n]: `start` + i * `delta`, i counted in the whole pTensor.
    Fill, ///< () -> `value` everywhere.

    // Composites.
    Rotary, ///< (x, cos, sin) -> y; `interleaved`. cos and sin broadcast against x.
    Attention, ///< (q [.. H s e], k [.. G t e], v [.. G t f], masks..) -> (y [.. H s f], log-sum-exp [.. H
    ///< s],
    ///< probabilities [.. H s t]): see engine/graph/operators/attention.h.
    Lstm,
    Gru,
    Rnn, ///< ONNX's inputs, outputs and attributes. Without W, X is what W has made of it: [time batch
    ///< directions gates*hidden], or batch first.

    // Optimizer steps; direction Optimizer. `learning_rate`, `weight_decay`, and as named.
    // `factor`, a scalar, multiplies the gradient first.
    SgdStep, ///< (weight, gradient, [momentum], [factor]) -> (weight, [momentum]); `momentum`.
    AdamWStep, ///< (weight, gradient, m, v, [factor]) -> (weight, m, v); `beta1`, `beta2`, `epsilon`.
    SquareSum, ///< (gradient) -> []: the sum of its squares, in Float32. Several make one tensor, the sum of
    ///< what each of them makes.
    ClipFactor, ///< (sum of squares []) -> []: min(1, `clip_norm` / (its root + 1e-6)).

    Custom, ///< What an operator file defines (operator_definition.h): `Attributes::definition()`.

    Unknown, ///< An operator Planloom can show, plan (whole) and simulate but not run; `onnx_type` is its
    ///< name.
};

constexpr int kOperatorKindCount = static_cast<int>(OperatorKind::Unknown) + 1;

/// Broad class of an operator: decides its colour, and which part of the hardware bounds it.
enum class OperatorCategory : std::uint8_t {
    Product, ///< Matrix units: matmul, linear, convolution, einsum.
    Attention, ///< Matrix units, over scores that need not be in memory.
    Normalization,
    Activation,
    Elementwise,
    Reduction,
    Movement,
    Loss,
    Recurrent,
    Optimizer,
    Other,
};

const char *nameOf(OperatorKind kind); ///< "LayerNorm"
const char *wordsOf(OperatorKind kind); ///< What sentences call operators of the kind: "layer norm".
std::optional<OperatorKind> operatorKindNamed(std::string_view name); ///< Case-sensitive inverse of nameOf.
OperatorCategory categoryOf(OperatorKind kind);

/// True for kinds computed element by element with NumPy broadcasting (unary, binary, ternary).
bool isElementwise(OperatorKind kind);

} // namespace planloom
