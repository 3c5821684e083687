// Rows that are put where a mask is true, and rows of a table that are joined bag by bag.
#include "engine/frontend/torch/aten/aten_formula.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <string>
#include <utility>

namespace planloom {

namespace {

using Made = AtenFormula::Made;

// --- masked_scatter ----------------------------------------------------------------------------------------

/// How many of the last dimensions of `shape` a mask does not tell apart, because it was broadcast to them.
/// @param mask  becomes the mask before that, with the rank of `shape`
Result<std::size_t> alikeDimensions(AtenContext &context, const Shape &shape, TensorId &mask)
{
    const Graph &graph = context.graph().written();
    for (OperatorId maker = context.graph().producerOf(mask);
         maker && graph.at(maker).kind == OperatorKind::Expand && context.shapeOf(mask) == shape;
         maker = context.graph().producerOf(mask))
        mask = graph.at(maker).inputs[0];
    Shape own = context.shapeOf(mask);
    own.insert(own.begin(), shape.size() - std::min(shape.size(), own.size()), 1);
    TRY(mask, context.reshape(mask, own, "mask"));
    std::size_t alike = 0;
    while (alike < own.size() && own[own.size() - 1 - alike] == 1)
        ++alike;
    return alike;
}

/// x where a mask is false, and where it is true the elements of a source, one after the other. Where the
/// mask is the same for all elements of a row, whole rows are picked, by how many are true before them.
Result<void> maskedScatter(AtenContext &context, AtenFormula &f)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(TensorId mask, context.tensor("mask"));
    TRY(TensorId source, context.tensor("source"));
    TRY(source, context.cast(source, context.typeOf(x).dataType));
    const Shape shape = context.broadcastShape({x, mask});
    TRY(x, f.expand(x, shape));
    TRY(std::size_t alike, alikeDimensions(context, shape, mask));
    const std::int64_t elements = elementCount(context.shapeOf(source));
    std::int64_t width = 1;
    for (std::size_t d = 0; d < alike; ++d)
        width *= shape[shape.size() - 1 - d];
    if (width < 1 || elements % width != 0) { // rows of the source would be cut
        width = 1;
        alike = 0;
    }
    if (elements == 0 || elementCount(shape) == 0)
        return f.finish(x);
    const Shape rows(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(alike));
    Shape ofMask = rows;
    ofMask.insert(ofMask.end(), alike, 1);
    TRY(const TensorId whole, f.expand(mask, ofMask));
    const auto ones = f.cast(f.reshape(whole, {elementCount(rows)}), DataType::Int64);
    const auto place =
        f.clip(f.sub(f.runningSum(ones, 0), 1.0), 0.0, static_cast<double>(elements / width - 1));
    TRY(const TensorId picked,
        f.gather(f.reshape(source, {elements / width, width}), f.reshape(place, rows), 0));
    return f.finish(f.where(whole, f.reshape(picked, shape), x));
}

// --- rows of a table ---------------------------------------------------------------------------------------

/// Gradients of a row are divided by how often it is read.
Made dividedByFrequency(AtenFormula &f, TensorId table, TensorId indices, TensorId rows)
{
    const DataType type = f.typeOf(rows).dataType;
    const std::int64_t n = elementCount(f.shapeOf(indices));
    TRY(const TensorId list, f.reshape(indices, {n}));
    const auto counts =
        f.scatterRows(f.filled({type, {f.shapeOf(table)[0]}}, 0), list, f.filled({type, {n}}, 1), "add");
    Shape shape = f.shapeOf(indices);
    shape.push_back(1);
    TRY(const TensorId frequency, f.reshape(f.gather(counts, list, 0), shape));
    TRY(const TensorId share, f.div(rows, frequency));
    return f.add(share, f.detached(f.sub(rows, share)));
}

/// A row of padding gets no gradient.
Result<void> atenEmbedding(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId table, context.tensor("weight"));
    TRY(const TensorId indices, context.tensor("indices"));
    TRY(const std::int64_t padding, context.integer("padding_idx", -1));
    TRY(const bool byFrequency, context.flag("scale_grad_by_freq", false));
    const Shape shape = context.shapeOf(table);
    if (shape.size() != 2)
        return context.invalid(
            "its table has the shape " + toString(shape) + ", where a matrix was expected");
    const std::int64_t row = padding < -1 ? padding + shape[0] : padding;
    Attributes attributes;
    if (row >= 0)
        attributes.set("padding_index", row);
    if (!byFrequency)
        return context.finish(OperatorKind::Embedding, {table, indices}, std::move(attributes));
    TRY(const TensorId rows, f.make(OperatorKind::Embedding, {table, indices}, std::move(attributes)));
    return f.finish(dividedByFrequency(f, table, indices, rows));
}

/// The table with rows that are read scaled down to a norm, where theirs is larger: no part of derivatives.
Result<void> embeddingRenorm(AtenContext &context, AtenFormula &f)
{
    constexpr double kEpsilon = 1e-7; // PyTorch's
    TRY(const TensorId table, context.tensor("self"));
    TRY(const TensorId indices, context.tensor("indices"));
    TRY(const double most, context.real("max_norm", 1));
    TRY(const double p, context.real("norm_type", 2));
    if (p != 1 && p != 2)
        return context.keepUnknown("rows of a table are scaled by their first and second norms alone");
    const DataType type = context.typeOf(table).dataType;
    const std::int64_t n = elementCount(context.shapeOf(indices));
    const auto zeros = f.filled({type, {context.shapeOf(table)[0], 1}}, 0);
    const auto list = f.reshape(f.cast(indices, DataType::Int64), {n});
    const auto read = f.scatterRows(zeros, list, f.filled({type, {n, 1}}, 1), "max");
    TRY(const TensorId norm,
        f.reduce(p == 2 ? OperatorKind::ReduceL2 : OperatorKind::ReduceL1, table, {1}, true));
    const auto large = f.both(f.greater(norm, most), f.greater(read, 0.0));
    const auto scaled = f.mul(table, f.where(large, f.div(most, f.add(norm, kEpsilon)), 1.0));
    return f.finish(f.add(table, f.detached(f.sub(scaled, table))));
}

// --- embedding_bag -----------------------------------------------------------------------------------------

constexpr std::int64_t kMeanOfBag = 1; ///< Of argument "mode".
constexpr std::int64_t kMaxOfBag = 2;

struct Bags {
    TensorId table{};
    TensorId indices{}; ///< [n], or [bags length] where all bags are as long.
    TensorId weights{}; ///< Of the indices' shape; invalid if there are none.
    TensorId owner{}; ///< [n]: the bag of each index; invalid of bags as long.
    std::int64_t count = 0;
    std::int64_t mode = 0;
    std::int64_t padding = -1; ///< The row that counts for nothing; negative if there is none.
};

/// The number of indices in each of `count` bags, where offsets are known and all are as long; 0 if not.
std::int64_t lengthOfAll(AtenContext &context, TensorId offsets, std::int64_t count, std::int64_t indices)
{
    if (count < 1 || indices % count != 0)
        return 0;
    const std::int64_t length = indices / count;
    if (const OperatorId maker = context.graph().producerOf(offsets)) { // a range too long to be folded
        const Operator &range = context.graph().written().at(maker);
        const bool equal = range.kind == OperatorKind::Range && range.attributes.integer("start") == 0
            && range.attributes.integer("delta", 1) == length;
        return equal ? length : 0;
    }
    const auto values = context.graph().isKnown(offsets) ? context.graph().valuesOf(offsets) : nullptr;
    if (!values)
        return 0;
    const auto begins = integersOf(*values);
    for (std::size_t b = 0; b < begins.size(); ++b) {
        if (begins[b] != static_cast<std::int64_t>(b) * length)
            return 0;
    }
    return length;
}

/// For each of n indices, how many bags begin at or before it, less one.
Made ownersOf(AtenFormula &f, const AtenTerm &offsets, std::int64_t n)
{
    TRY(const TensorId begins, f.cast(offsets, DataType::Int64));
    const auto ones = f.filled({DataType::Int64, f.shapeOf(begins)}, 1);
    // One place more, where empty bags at the end begin.
    const auto begun = f.scatterRows(f.filled({DataType::Int64, {n + 1}}, 0), begins, ones, "add");
    return f.sub(f.slice(f.runningSum(begun, 0), 0, 0, n), 1.0);
}

Result<Bags> bagsOf(AtenContext &context)
{
    AtenFormula f(context);
    Bags bags;
    TRY(bags.table, context.tensor("weight"));
    TRY(bags.indices, context.tensor("indices"));
    TRY(bags.weights, context.optionalTensor("per_sample_weights"));
    TRY(bags.mode, context.integer("mode", 0));
    TRY(const std::int64_t padding, context.integer("padding_idx", -1));
    TRY(const bool last, context.flag("include_last_offset", false));
    TRY(TensorId offsets, context.tensor("offsets"));
    TRY(bags.indices, context.cast(bags.indices, DataType::Int64));
    if (context.rankOf(bags.table) != 2 || context.rankOf(bags.indices) != 1 || context.rankOf(offsets) != 1)
        return context.invalid("its table, indices and offsets have the shapes "
            + toString(context.shapeOf(bags.table)) + ", " + toString(context.shapeOf(bags.indices)) + ", "
            + toString(context.shapeOf(offsets)));
    // PyTorch counts a negative row from the end in embedding_bag.padding_idx, and takes -1 for none
    // elsewhere.
    const bool fromEnd = context.target().ends_with(".padding_idx") && context.given("padding_idx");
    bags.padding = padding < 0 && fromEnd ? padding + context.shapeOf(bags.table)[0] : padding;
    bags.count = context.shapeOf(offsets)[0] - (last ? 1 : 0);
    const std::int64_t n = context.shapeOf(bags.indices)[0];
    const std::int64_t length = last ? 0 : lengthOfAll(context, offsets, bags.count, n);
    if (length > 0) {
        TRY(bags.indices, f.reshape(bags.indices, {bags.count, length}));
        if (bags.weights) {
            TRY(bags.weights, f.reshape(bags.weights, {bags.count, length}));
        }
        return bags;
    }
    TRY(bags.owner, ownersOf(f, last ? f.slice(offsets, 0, 0, bags.count) : Made(offsets), n));
    return bags;
}

/// Rows [.. e] joined with those of their bag, [bags e]; of `width` 1 for what has no dimension e.
Made joinedBags(AtenFormula &f, const Bags &bags, const Made &rows, const char *reduction, double neutral)
{
    TRY(const TensorId x, rows);
    if (!bags.owner)
        return f.reduce(
            std::string(reduction) == "max" ? OperatorKind::ReduceMax : OperatorKind::ReduceSum, x, {1});
    const TensorType type{f.typeOf(x).dataType, {bags.count, f.shapeOf(x).back()}};
    return f.scatterRows(f.filled(type, neutral), bags.owner, x, reduction);
}

/// The largest of each column of a bag; 0 of bags without rows. The gradient is that of the first of equal
/// rows, by a column of places.
Made largestOfBags(AtenFormula &f, const Bags &bags, TensorId rows, TensorId kept)
{
    constexpr double kLeast = -3e38; // below all numbers that a table has
    const DataType type = f.typeOf(rows).dataType;
    const double least = type == DataType::Float16 ? -65504.0 : kLeast;
    const auto masked = kept ? f.where(f.unsqueeze(kept, f.rankOf(kept)), rows, least) : Made(rows);
    if (!bags.owner) {
        const auto place = f.placeOf(OperatorKind::ArgMax, f.detached(masked), 1);
        const Shape shape{f.shapeOf(rows)[0], f.shapeOf(rows)[2]};
        TRY(const TensorId largest, f.reshape(f.pick(masked, place, 1), shape));
        return f.where(f.greater(largest, least), largest, 0.0);
    }
    TRY(const TensorId largest, joinedBags(f, bags, masked, "max", least));
    return f.where(f.greater(largest, least), largest, 0.0);
}

Result<void> embeddingBag(AtenContext &context, AtenFormula &f)
{
    TRY(const Bags bags, bagsOf(context));
    for (std::size_t slot = 1; slot < context.resultCount(); ++slot) {
        if (context.wants(slot))
            return context.unsupported("the lists beside the sums are used, which Planloom does not make",
                "use torch.nn.functional.embedding_bag");
    }
    TRY(const bool byFrequency, context.flag("scale_grad_by_freq", false));
    const DataType type = context.typeOf(bags.table).dataType;
    TRY(TensorId rows, f.make(OperatorKind::Embedding, {bags.table, bags.indices}));
    if (byFrequency) {
        TRY(rows, dividedByFrequency(f, bags.table, bags.indices, rows));
    }
    TensorId kept;
    if (bags.padding >= 0) {
        TRY(kept, f.of(OperatorKind::Not, f.equal(bags.indices, static_cast<double>(bags.padding))));
    }
    if (bags.mode == kMaxOfBag)
        return f.finish(largestOfBags(f, bags, rows, kept));
    const Shape column = [&] {
        Shape shape = context.shapeOf(bags.indices);
        shape.push_back(1);
        return shape;
    }();
    AtenTerm factor = 1.0;
    if (kept) {
        factor = f.cast(f.reshape(kept, column), type);
        TRY(rows, f.mul(rows, factor));
    }
    if (bags.weights) {
        TRY(rows, f.mul(rows, f.reshape(bags.weights, column)));
    }
    const auto sums = joinedBags(f, bags, rows, "add", 0);
    if (bags.mode != kMeanOfBag)
        return f.finish(sums);
    const auto ones = kept ? AtenFormula::tensorOf(factor) : f.filled({type, column}, 1);
    return f.finish(f.div(sums, f.clip(joinedBags(f, bags, ones, "add", 0), 1.0)));
}

} // namespace

const AtenHandlers &atenBagHandlers()
{
    static const AtenHandlers kHandlers = {{"masked_scatter", formula<maskedScatter>},
        {"embedding", formula<atenEmbedding>}, {"embedding_renorm", formula<embeddingRenorm>},
        {"embedding_bag", formula<embeddingBag>}, {"_embedding_bag", formula<embeddingBag>},
        {"_embedding_bag_forward_only", formula<embeddingBag>}};
    return kHandlers;
}

} // namespace planloom
