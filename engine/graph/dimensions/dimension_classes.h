#pragma once

#include "engine/base/ids.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What a dimension is in the model, in the field's words.
enum class DimensionMeaning : std::uint8_t {
    Unknown,
    Batch, ///< Samples.
    Sequence, ///< Tokens, residues, patches: what attention compares, or what a recurrence steps over.
    Heads, ///< Of an attention; also its key-value heads.
    HeadSize, ///< Of one head, of queries, keys or values.
    Hidden, ///< The model's width: what is normalised, embedded, or carried along residuals.
    FeedForward, ///< Between two products by weights that begin and end in Hidden.
    /// Several of the above side by side, made by one product (query, key and value); where they have a
    /// dimension of their own, which of them.
    Projection,
    Vocabulary, ///< Rows of the embedding of tokens, and what their logits run over.
    Classes, ///< What another classifier's logits run over.
    Positions, ///< Rows of an embedding of something other than tokens (places, distances, segments).
    Expert, ///< Of a mixture: a product's weights have one set for each.
    Channels, ///< Of a convolution.
    Height,
    Width,
    Depth, ///< Of an image or volume.
    Window, ///< The place within a window, block or chunk that another dimension was cut into.
    Features, ///< An input's or output's own, none of the above.
};

constexpr int kDimensionMeaningCount = static_cast<int>(DimensionMeaning::Features) + 1;

const char *nameOf(DimensionMeaning meaning); ///< "feed-forward": what a row says, and what is shown.
std::optional<DimensionMeaning> dimensionMeaningNamed(std::string_view name); ///< None for "unknown".

using DimensionClassId = Id<struct DimensionClassTag>; ///< Index into `DimensionClasses::classes`.

/// One dimension of the model: identifiers and dimensions of tensors that hold the same elements in the same
/// order, so that cutting them alike takes no communication.
struct DimensionClass {
    DimensionMeaning meaning = DimensionMeaning::Unknown;
    std::int64_t extent = 0;
    /// Classes whose product it is, outermost first: (batch sequence), (heads head-size). Empty for most.
    std::vector<DimensionClassId> factors{};
    std::int32_t operators = 0; ///< Forward operators with an identifier of this class.
    /// Only a piece of a longer one has given it its meaning (a sequence without its last token).
    bool piece = false;
    std::string name{}; ///< "heads", "key sequence", "(batch sequence)"; empty where nothing is known.
};

/// What every identifier and every dimension of a tensor is.
struct DimensionClasses {
    std::vector<DimensionClass> classes{}; ///< In the order of their first tensor or operator.
    /// Per operator and identifier of its annotation. Invalid for literals, which stand for places that have
    /// nothing but their size in common.
    std::vector<std::vector<DimensionClassId>> ofOperator{};
    /// Per tensor and dimension. Invalid for dimensions of size 1 or 0.
    std::vector<std::vector<DimensionClassId>> ofTensor{};

    const DimensionClass &at(DimensionClassId id) const
    {
        return classes[static_cast<std::size_t>(id.index)];
    }
};

/// Finds the dimensions of the model and what they mean.
///
/// **Classes.** Operators are followed in order; every dimension of a tensor has one class, which may be a
/// product.
/// 1. An identifier is of the class of the first input dimension that it names; further ones are joined with
/// it.
/// 2. A Reshape multiplies and divides classes: `b s (h d)` to `b s h d` makes the class of the projection a
///    product of two, and back again is that class. Where extents do not divide, new classes begin.
/// 3. *Two identifiers of one operator are never one class*, whatever joins them elsewhere: the queries' and
///    the keys' sequence of self-attention come from one dimension of one tensor, but a cut of one is not a
///    cut of the other. The dimension that comes second begins a class of its own there (K in Q K^T), which
///    ends where its like is met again (V in A V). The two are *kin*: same meaning, different class.
/// 4. Literals keep their class through operators that keep their places (a convolution with stride 1); where
///    a piece is taken or put together (Slice, Split, Concat, Pad, strides), the piece is kin of the whole.
/// 5. Backward operators have the classes of their forward, gradients and optimizer states those of what they
///    belong to.
///
/// **Meaning**, the first rule that speaks of a class (or of its kin) decides:
/// 1. Batch: dimension of the inputs that `analyseBatch` cuts.
/// 2. A product of two activations whose result reaches a Softmax along one of its dimensions makes scores:
///    what it sums over is HeadSize, the Softmax's dimension and that of the other input are Sequence; so is
///    the HeadSize of the values that the result weighs. What both inputs and the result have is Heads if it
///    stands beside a HeadSize in a product (or in a weight), unless it is the Batch. An Attention says the
///    same of its dimensions; which of them is Heads, if nothing else does.
/// 3. Expert: what a product's activation, weight and result all have; what a Softmax or TopK over the result
/// of
///    a product by a weight chooses among.
/// 4. Vocabulary: rows of the embedding that a model input indexes, of the extent of the loss's classes (the
///    longest, where the model has no such loss); Classes: those of any other loss. Positions: rows of other
///    embeddings.
/// 5. Sequence: what indexes the Vocabulary beside the Batch, time of a recurrence; Hidden: the last
/// dimension of
///    LayerNorm and RmsNorm, the columns of an embedding, the state of a recurrence.
/// 6. Depth, Height, Width and Channels of convolutions, pools and batch normalisation.
/// 7. What queries, keys and scores all have, but is neither Batch nor Heads (the other axis of axial
/// attention),
///    is Sequence; so is a product of Height and Width (an image as tokens).
/// 8. FeedForward: made by products by weights that sum over Hidden, and summed over by ones that make
/// Hidden.
///    Other such ones are Hidden (a perceptron's). Projection: what Heads or FeedForward are pieces of, or
///    lie in behind something else, or what a Linear in parts counts them by.
/// 9. The first factor of a Batch, Heads, Sequence, Height, Width or Depth has the same meaning, if it has
/// none:
///    cutting the product is cutting its first factor. What Height, Width, Depth and Sequence are divided
///    into inside is Window.
/// 10. What remains of the dimensions that products by weights sum over or make is Features.
///
/// Near-linear: joining walks the smaller of two classes to see that rule 3 holds, and remembers where it
/// doesn't. GPT-3 175B with its training step (6,171 operators) takes 15 ms, AlphaFold's Evoformer (21,784)
/// 95 ms, unoptimised
/// (-O1). Deterministic, pure, thread-safe.
DimensionClasses analyseDimensions(const Graph &graph);

/// The class with this meaning that a cut of `id` cuts (itself or its first factor, and so on); none if it
/// doesn't.
DimensionClassId leadingWith(const DimensionClasses &classes, DimensionClassId id, DimensionMeaning meaning);

/// The identifier by which an operator is cut along `meaning`, and of how many the model has there.
struct MeantDimension {
    std::int32_t identifier = -1; ///< -1: the operator has none that may be cut.
    std::int64_t extent = 0; ///< Of the class that has the meaning: 16 heads, while the identifier has 1024.
    bool frozen = false; ///< It has one, but needs it whole.
    bool piece = false; ///< As `DimensionClass::piece`.
};

/// Of several identifiers with one meaning, the outermost of the first output that has one, then of the
/// inputs: the query's sequence rather than the key's in scores, rows before columns in a pair of both.
MeantDimension findMeant(
    const DimensionClasses &classes, const Graph &graph, OperatorId op, DimensionMeaning meaning);

/// What to show beside identifier `identifier` of an operator: "heads", "key sequence", "(batch sequence)";
/// empty where nothing is known.
std::string displayName(const DimensionClasses &classes, OperatorId op, std::int32_t identifier);

} // namespace planloom
