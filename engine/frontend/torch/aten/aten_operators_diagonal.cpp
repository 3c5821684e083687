// Diagonals of matrices: taken, and filled.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

using Axes = AtenFormula::Axes;

/// The elements of a diagonal of two dimensions, as the last one.
Result<TensorId> diagonalOf(
    AtenContext &context, TensorId x, std::int64_t offset, std::int64_t rows, std::int64_t columns)
{
    AtenFormula f(context);
    Axes order;
    Shape shape;
    for (std::int64_t d = 0; d < context.rankOf(x); ++d) {
        if (d != rows && d != columns) {
            order.push_back(d);
            shape.push_back(context.shapeOf(x)[axisIndex(d)]);
        }
    }
    const std::int64_t height = context.shapeOf(x)[axisIndex(rows)];
    const std::int64_t width = context.shapeOf(x)[axisIndex(columns)];
    order.insert(order.end(), {rows, columns});
    shape.push_back(height * width);
    Axes places;
    for (std::int64_t i = 0; i < height; ++i) {
        if (i + offset >= 0 && i + offset < width)
            places.push_back(i * width + i + offset);
    }
    const auto count = static_cast<std::int64_t>(places.size());
    const auto list = f.reshape(f.permute(x, order), shape);
    return f.gather(
        list, f.integers(std::move(places), {count}), static_cast<std::int64_t>(shape.size()) - 1);
}

Result<void> atenDiagonal(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t offset, context.integer("offset", 0));
    TRY(const std::int64_t rows, context.dimension("dim1", context.rankOf(x), 0));
    TRY(const std::int64_t columns, context.dimension("dim2", context.rankOf(x), 1));
    if (rows == columns || context.rankOf(x) < 2)
        return context.invalid("a diagonal is of two dimensions");
    TRY(const TensorId y, diagonalOf(context, x, offset, rows, columns));
    return context.bind(0, y);
}

Result<void> atenTrace(AtenContext &context, AtenFormula &f, TensorId x)
{
    if (context.rankOf(x) != 2)
        return context.invalid("a trace is of a matrix, not of " + toString(context.shapeOf(x)));
    return f.finish(f.sum(diagonalOf(context, x, 0, 0, 1), {0}));
}

/// The last dimension as a diagonal of two new ones, among zeros: picks of it with a zero behind it.
Result<void> finishEmbedded(
    AtenContext &context, TensorId x, std::int64_t offset, std::int64_t rows, std::int64_t columns)
{
    AtenFormula f(context);
    const std::int64_t rank = context.rankOf(x) + 1;
    const std::int64_t count = context.shapeOf(x).back();
    const std::int64_t size = count + std::abs(offset);
    Axes places(axisIndex(size * size), count);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = i + std::max<std::int64_t>(0, -offset);
        places[axisIndex(row * size + row + offset)] = i;
    }
    const auto padded = f.pad(x, rank - 2, 0, 1, 0);
    const auto square = f.gather(padded, f.integers(std::move(places), {size, size}), rank - 2);
    Axes order(axisIndex(rank));
    std::int64_t next = 0;
    for (std::int64_t d = 0; d < rank; ++d)
        order[axisIndex(d)] = d == rows ? rank - 2 : d == columns ? rank - 1 : next++;
    return f.finish(f.permute(square, order));
}

Result<void> diagonalEmbedding(AtenContext &context, TensorId x)
{
    const std::int64_t rank = context.rankOf(x) + 1;
    TRY(const std::int64_t offset, context.integer("offset", 0));
    TRY(const std::int64_t rows, context.dimension("dim1", rank, -2));
    TRY(const std::int64_t columns, context.dimension("dim2", rank, -1));
    if (rank < 2 || rows == columns)
        return context.invalid("a diagonal is of two dimensions");
    return finishEmbedded(context, x, offset, rows, columns);
}

/// The diagonal of a matrix, or a matrix with this diagonal.
Result<void> atenDiag(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t offset, context.integer("diagonal", 0));
    if (context.rankOf(x) == 1)
        return finishEmbedded(context, x, offset, 0, 1);
    if (context.rankOf(x) != 2)
        return context.invalid("a diagonal is of two dimensions");
    TRY(const TensorId y, diagonalOf(context, x, offset, 0, 1));
    return context.bind(0, y);
}

/// Matrices along the diagonal of one, among zeros; a vector is a row.
Result<void> blockDiagonal(AtenContext &context, AtenFormula &f)
{
    TRY(const auto blocks, context.tensors("tensors"));
    std::vector<Shape> shapes;
    std::int64_t columns = 0;
    for (const TensorId block : blocks) {
        Shape shape = context.shapeOf(block);
        if (shape.size() > 2)
            return context.invalid("a block is a matrix, not of " + toString(shape));
        shape.insert(shape.begin(), 2 - shape.size(), 1);
        columns += shape[1];
        shapes.push_back(std::move(shape));
    }
    std::vector<AtenTerm> rows;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::int64_t own = shapes[i][1];
        rows.emplace_back(f.pad(f.reshape(blocks[i], shapes[i]), 1, before, columns - before - own, 0));
        before += own;
    }
    return f.finish(f.concat(rows, 0));
}

} // namespace

const AtenHandlers &atenDiagonalHandlers()
{
    static const AtenHandlers kHandlers = {{"diagonal", ofSelf<atenDiagonal>},
        {"diagonal_copy", ofSelf<atenDiagonal>}, {"trace", ofSelf<atenTrace>},
        {"diag_embed", ofSelf<diagonalEmbedding>}, {"diag", ofSelf<atenDiag>},
        {"block_diag", formula<blockDiagonal>}};
    return kHandlers;
}

} // namespace planloom
