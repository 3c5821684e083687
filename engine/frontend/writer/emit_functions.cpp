#include "engine/frontend/writer/emit_functions.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace planloom {

namespace {

/// The equation with explicit output and without ellipsis, whose dimensions get letters of their own.
Result<std::string> explicitEquation(
    const NodeWriter &writer, std::string equation, const std::vector<TensorId> &inputs)
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
    const Error malformed = writer.invalid("its equation '" + equation + "' does not fit its inputs");
    if (terms.size() != inputs.size())
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
        const auto rank = writer.shapeOf(inputs[i]).size();
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

/// Places of `extent` elements in [-1, 1]: their middles, or from border to border where `aligned`.
std::vector<double> placesAlong(std::int64_t extent, bool aligned)
{
    std::vector<double> places;
    const auto size = static_cast<double>(extent);
    for (std::int64_t i = 0; i < extent; ++i) {
        const auto at = static_cast<double>(i);
        places.push_back(aligned ? (extent > 1 ? 2 * at / (size - 1) - 1 : 0.0) : (2 * at + 1) / size - 1);
    }
    return places;
}

/// The places of an image's elements as rows (.., y, x, 1), [elements dimensions + 1].
TensorData placesOfImage(const TensorType &type, const Shape &image, bool aligned)
{
    const auto rank = static_cast<std::int64_t>(image.size());
    TensorData places = filledTensor(type, Number::ofReal(1));
    std::vector<std::vector<double>> along;
    for (const std::int64_t extent : image)
        along.push_back(placesAlong(extent, aligned));
    for (std::int64_t p = 0; p < type.shape[0]; ++p) {
        std::int64_t rest = p;
        for (std::int64_t d = rank; d-- > 0;) {
            const std::int64_t extent = image[static_cast<std::size_t>(d)];
            writeNumber(type.dataType, places.bytes.data(),
                static_cast<std::size_t>(p * (rank + 1) + (rank - 1 - d)),
                Number::ofReal(along[static_cast<std::size_t>(d)][static_cast<std::size_t>(rest % extent)]));
            rest /= extent;
        }
    }
    return places;
}

} // namespace

Result<TensorId> emitEinsum(
    NodeWriter &writer, const std::vector<TensorId> &inputs, const std::string &written)
{
    TRY_VOID(writer.require(inputs.empty() ? std::vector<TensorId>(1) : inputs));
    TRY(const std::string equation, explicitEquation(writer, written, inputs));
    return writer.make(OperatorKind::Einsum, inputs, attributesFrom({{"equation", equation}}));
}

Result<TensorId> emitDropout(NodeWriter &writer, TensorId x, double ratio, bool trains)
{
    const auto &chosen = writer.graph().options().dropoutRatio;
    if (trains && chosen)
        ratio = *chosen;
    if (!(ratio >= 0 && ratio < 1))
        return writer.invalid(
            "its ratio is " + std::to_string(ratio) + ", where at least 0 and less than 1 was expected");
    if (!trains || ratio == 0)
        return x;
    return writer.make(
        OperatorKind::Dropout, {x}, attributesFrom({{"ratio", ratio}, {"seed", writer.graph().nextSeed()}}));
}

Result<TensorId> emitBitwiseNot(NodeWriter &writer, TensorId x)
{
    const TensorType type{writer.typeOf(x).dataType, {}};
    if (isFloating(type.dataType) || type.dataType == DataType::Bool)
        return writer.invalid(
            std::string("its input is ") + nameOf(type.dataType) + ", where integers were expected");
    const TensorId ones = writer.graph().addConstant(
        std::make_shared<const TensorData>(filledTensor(type, Number::ofInteger(-1))));
    return writer.make(OperatorKind::BitwiseXor, {x, ones});
}

Result<TensorId> emitAffineGrid(
    NodeWriter &writer, TensorId theta, const std::vector<std::int64_t> &size, bool aligned)
{
    const TensorType given = writer.typeOf(theta);
    const DataType type = given.dataType;
    if (size.size() < 3 || size.size() > 5 || !isFloating(type)
        || std::any_of(size.begin(), size.end(), [](std::int64_t extent) { return extent < 1; }))
        return writer.invalid("its size is " + toString(size) + ", where [n c ..] was expected");
    const Shape image(size.begin() + 2, size.end());
    const auto rank = static_cast<std::int64_t>(image.size());
    const auto count = checkedElementCount(image);
    const Shape expected{size[0], rank, rank + 1};
    if (!count || given.shape != expected)
        return writer.invalid("its theta has the shape " + toString(given.shape) + ", where "
            + toString(expected) + " was expected");
    const TensorType base{type, {*count, rank + 1}};
    if (!writer.graph().constants().take(base))
        return writer.unsupported("its grid is too large to be made at import");
    const TensorId known =
        writer.graph().addConstant(std::make_shared<const TensorData>(placesOfImage(base, image, aligned)));
    TRY(const TensorId turned,
        writer.make(OperatorKind::Transpose, {theta},
            attributesFrom({{"permutation", std::vector<std::int64_t>{0, 2, 1}}}), {}, "turned"));
    TRY(const TensorId grid, writer.make(OperatorKind::MatMul, {known, turned}, {}, {}, "places"));
    Shape shape{size[0]};
    shape.insert(shape.end(), image.begin(), image.end());
    shape.push_back(rank);
    return writer.make(OperatorKind::Reshape, {grid}, {}, TensorType{type, std::move(shape)});
}

Result<TensorId> emitReduction(NodeWriter &writer, OperatorKind kind, TensorId x,
    const std::vector<std::int64_t> &axes, bool keeps, std::string_view suffix)
{
    Attributes attributes = attributesFrom({{"axes", axes}, {"keepdims", std::int64_t{keeps ? 1 : 0}}});
    if (kind == OperatorKind::ReduceMean) {
        std::int64_t count = 1;
        for (const std::int64_t axis : axes)
            count *= writer.shapeOf(x)[static_cast<std::size_t>(axis)];
        attributes.set("count", count);
    }
    return writer.make(kind, {x}, std::move(attributes), {}, suffix);
}

} // namespace planloom
