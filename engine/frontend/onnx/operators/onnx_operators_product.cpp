#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_functions.h"

#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

Result<void> importMatMul(Context &context)
{
    return context.finish(OperatorKind::MatMul, {context.input(0), context.input(1)});
}

/// alpha * A' * B' + beta * C. A Linear where alpha and beta are 1, else a Linear with the steps around it.
Result<void> importGemm(Context &context)
{
    TRY(const double alpha, context.real("alpha", 1.0));
    TRY(const double beta, context.real("beta", 1.0));
    TRY(const std::int64_t transposeA, context.integer("transA", 0));
    TRY(const std::int64_t transposeB, context.integer("transB", 0));
    if (context.rank(0) != 2 || context.rank(1) != 2)
        return context.invalid("its factors have shapes " + toString(context.shape(0)) + " and "
            + toString(context.shape(1)) + ", where matrices were expected");
    TensorId a = context.input(0);
    if (transposeA != 0) {
        TRY(a,
            context.make(OperatorKind::Transpose, {a},
                attributesFrom({{"permutation", std::vector<std::int64_t>{1, 0}}}), {}, "transpose"));
    }
    const Shape shape{context.graph().typeOf(a).shape[0], context.shape(1)[transposeB != 0 ? 0 : 1]};
    TensorId bias = beta == 0 ? TensorId{} : context.input(2);
    const Attributes attributes = attributesFrom({{"transposed", std::int64_t{transposeB != 0 ? 1 : 0}}});
    if (alpha == 1.0 && (!bias || (beta == 1.0 && context.shape(2) == Shape{shape[1]}))) {
        std::vector<TensorId> inputs{a, context.input(1)};
        if (bias)
            inputs.push_back(bias);
        return context.finish(OperatorKind::Linear, std::move(inputs), attributes);
    }
    const DataType type = context.type(0).dataType;
    const bool last = alpha == 1.0 && !bias;
    TRY(TensorId y,
        context.make(OperatorKind::Linear, {a, context.input(1)}, attributes, {}, last ? "" : "product"));
    if (alpha != 1.0) {
        TRY(y,
            context.make(OperatorKind::Mul, {y, context.scalar(type, alpha)}, {}, {}, bias ? "alpha" : ""));
    }
    if (bias) {
        const Shape biasShape = context.graph().typeOf(bias).shape;
        const std::size_t rank = biasShape.size();
        bool fits = rank <= 2;
        for (std::size_t i = 0; fits && i < rank; ++i)
            fits = biasShape[i] == 1 || biasShape[i] == shape[2 - rank + i];
        if (!fits)
            return context.invalid("its third input has the shape " + toString(biasShape)
                + ", which does not broadcast to " + toString(shape));
        if (beta != 1.0) {
            TRY(bias, context.make(OperatorKind::Mul, {bias, context.scalar(type, beta)}, {}, {}, "beta"));
        }
        return context.finish(OperatorKind::Add, {y, bias});
    }
    return context.bind(0, y);
}

Result<void> importEinsum(Context &context)
{
    TRY(const std::string equation, context.text("equation", ""));
    return context.finish(emitEinsum(context, context.inputs(), equation));
}

} // namespace

const OnnxHandlers &onnxProductHandlers()
{
    static const OnnxHandlers kHandlers = {
        {"MatMul", needs<2, importMatMul>}, {"Gemm", needs<2, importGemm>}, {"Einsum", importEinsum}};
    return kHandlers;
}

} // namespace planloom
