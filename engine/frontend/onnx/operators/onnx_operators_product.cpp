#include "engine/frontend/onnx/onnx_operators.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Handler = Result<void> (*)(Context &);

Result<void> importMatMul(Context &context)
{
    TRY_VOID(context.require(2));
    return context.finish(OperatorKind::MatMul, {context.input(0), context.input(1)});
}

/// alpha * A' * B' + beta * C. A Linear where alpha and beta are 1, else a Linear with the steps around it.
Result<void> importGemm(Context &context)
{
    TRY_VOID(context.require(2));
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
    const Shape shape{context.builder().typeOf(a).shape[0], context.shape(1)[transposeB != 0 ? 0 : 1]};
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
        const Shape biasShape = context.builder().typeOf(bias).shape;
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

/// The equation with explicit output and without ellipsis, whose dimensions get letters of their own.
Result<std::string> explicitEquation(Context &context, std::string equation)
{
    equation.erase(std::remove_if(equation.begin(), equation.end(),
                       [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }),
        equation.end());
    const std::size_t arrow = equation.find("->");
    const bool hasOutput = arrow != std::string::npos;
    std::string output = hasOutput ? equation.substr(arrow + 2) : std::string{};
    std::vector<std::string> terms(1);
    for (const char c : equation.substr(0, arrow)) {
        if (c == ',')
            terms.emplace_back();
        else
            terms.back() += c;
    }
    const Error malformed = context.invalid("its equation '" + equation + "' does not fit its inputs");
    if (terms.size() != context.inputCount())
        return malformed;
    std::array<int, 256> uses{};
    for (const char c : equation)
        ++uses[static_cast<unsigned char>(c)];
    std::string free;
    for (const char c : std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")) {
        if (uses[static_cast<unsigned char>(c)] == 0)
            free += c;
    }
    std::size_t widest = 0;
    std::vector<std::size_t> widths(terms.size(), 0);
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const std::size_t dots = terms[i].find("...");
        const std::size_t letters = terms[i].size() - (dots == std::string::npos ? 0 : 3);
        const auto rank = static_cast<std::size_t>(context.rank(i));
        if (dots == std::string::npos ? letters != rank : letters > rank)
            return malformed;
        widths[i] = rank - letters;
        widest = std::max(widest, widths[i]);
    }
    if (widest > free.size())
        return malformed;
    const auto expand = [&](std::string &term, std::size_t width) {
        if (const std::size_t dots = term.find("..."); dots != std::string::npos)
            term.replace(dots, 3, free.substr(widest - width, width));
    };
    if (!hasOutput) { // letters that occur once, in alphabetical order, after the ellipsis
        output = widest > 0 ? "..." : "";
        for (int c = 0; c < 256; ++c) {
            if (uses[static_cast<std::size_t>(c)] == 1 && std::isalpha(c) != 0)
                output += static_cast<char>(c);
        }
    }
    std::string result;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        expand(terms[i], widths[i]);
        result += (i == 0 ? "" : ",") + terms[i];
    }
    expand(output, widest);
    result += "->" + output;
    for (const char c : result) {
        if (std::isalpha(static_cast<unsigned char>(c)) == 0 && c != ',' && c != '-' && c != '>')
            return malformed;
    }
    return result;
}

Result<void> importEinsum(Context &context)
{
    TRY_VOID(context.require(std::max<std::size_t>(1, context.inputCount())));
    TRY(const std::string written, context.text("equation", ""));
    TRY(const std::string equation, explicitEquation(context, written));
    return context.finish(OperatorKind::Einsum, context.inputs(), attributesFrom({{"equation", equation}}));
}

} // namespace

OnnxHandler findProductHandler(std::string_view type)
{
    static const std::map<std::string, Handler, std::less<>> kHandlers = {
        {"MatMul", importMatMul}, {"Gemm", importGemm}, {"Einsum", importEinsum}};
    const auto found = kHandlers.find(type);
    return found == kHandlers.end() ? nullptr : found->second;
}

} // namespace planloom
