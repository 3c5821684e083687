#include "engine/graph/annotation/annotation.h"

#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/annotation/window_text.h"

#include <algorithm>

namespace planloom {

bool isLiteral(const Dimension &dimension)
{
    return !dimension.name.empty() && dimension.name.front() >= '0' && dimension.name.front() <= '9';
}

namespace {

/// Appends "k+" to `text`.
void append(std::string &text, const Dimension &dimension)
{
    text += dimension.name;
    if (dimension.mark == DimensionMark::Reduce)
        text += '+';
    else if (dimension.mark == DimensionMark::Frozen && !isLiteral(dimension))
        text += '^';
}

void append(std::string &text, const Annotation &annotation, const TensorTerms &terms)
{
    if (terms.opaque) {
        text += '?';
        return;
    }
    if (terms.terms.empty()) { // a scalar
        text += '1';
        return;
    }
    bool first = true;
    for (const Term &term : terms.terms) {
        if (!first)
            text += ' ';
        first = false;
        const bool compound = term.factors.size() > 1;
        if (compound)
            text += '(';
        for (std::size_t i = 0; i < term.factors.size(); ++i) {
            if (i > 0)
                text += ' ';
            append(text, annotation.dimensions[static_cast<std::size_t>(term.factors[i])]);
        }
        if (term.factors.empty())
            text += '1';
        if (compound)
            text += ')';
        if (term.reach != WindowReach::Own)
            text += '[' + std::string(nameOf(term.reach)) + ']';
    }
}

void append(std::string &text, const Annotation &annotation, const std::vector<TensorTerms> &tensors,
    const std::vector<Combination> &combinations = {})
{
    for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
        if (slot > 0)
            text += ", ";
        if (slot < combinations.size() && combinations[slot] != Combination::Sum)
            text += std::string(nameOf(combinations[slot])) + ": ";
        append(text, annotation, tensors[slot]);
    }
}

/// Adds the literal terms of `shapes` to `annotation`.
std::vector<TensorTerms> literalTerms(Annotation &annotation, const std::vector<Shape> &shapes)
{
    std::vector<TensorTerms> tensors;
    tensors.reserve(shapes.size());
    for (const Shape &shape : shapes) {
        TensorTerms terms;
        for (const std::int64_t extent : shape) {
            const std::string name = std::to_string(extent);
            auto index = findDimension(annotation, name);
            if (!index) {
                index = static_cast<std::int32_t>(annotation.dimensions.size());
                annotation.dimensions.push_back({name, extent, DimensionMark::Frozen});
            }
            terms.terms.push_back({{*index}});
        }
        tensors.push_back(std::move(terms));
    }
    return tensors;
}

} // namespace

Annotation wholeAnnotation(const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
{
    Annotation annotation;
    annotation.inputs = literalTerms(annotation, inputs);
    annotation.outputs = literalTerms(annotation, outputs);
    return annotation;
}

Annotation withoutWindows(const Annotation &annotation)
{
    Annotation made = annotation;
    made.dimensions.clear();
    made.windows.clear();
    const auto keep = [&](const Dimension &dimension) {
        if (const auto known = findDimension(made, dimension.name))
            return *known;
        made.dimensions.push_back(dimension);
        return static_cast<std::int32_t>(made.dimensions.size()) - 1;
    };
    const auto convert = [&](Term &term) {
        for (std::int32_t &factor : term.factors) {
            const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(factor)];
            const Window *window = findWindow(annotation, factor);
            const bool counts = term.reach == WindowReach::Own || term.reach == WindowReach::Met;
            const std::int64_t size = window && !counts ? window->extent : dimension.size;
            factor = keep(window ? Dimension{std::to_string(size), size, DimensionMark::Frozen} : dimension);
        }
        term.reach = WindowReach::Own;
    };
    for (std::vector<TensorTerms> *side : {&made.inputs, &made.outputs}) {
        for (TensorTerms &tensor : *side) {
            for (Term &term : tensor.terms)
                convert(term);
        }
    }
    return made;
}

std::string toString(const Annotation &annotation)
{
    std::string text;
    append(text, annotation, annotation.inputs);
    text += text.empty() ? "->" : " ->";
    if (!annotation.outputs.empty())
        text += ' ';
    append(text, annotation, annotation.outputs, annotation.combinations);
    appendWindows(text, annotation);
    return text;
}

std::string toString(const Annotation &annotation, const TensorTerms &terms)
{
    std::string text;
    append(text, annotation, terms);
    return text;
}

Combination combinationOf(const Annotation &annotation, std::size_t slot)
{
    return slot < annotation.combinations.size() ? annotation.combinations[slot] : Combination::Sum;
}

std::optional<std::int32_t> findDimension(const Annotation &annotation, std::string_view name)
{
    for (std::size_t i = 0; i < annotation.dimensions.size(); ++i) {
        if (annotation.dimensions[i].name == name)
            return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
}

bool mentions(const TensorTerms &terms, std::int32_t dimension)
{
    for (const Term &term : terms.terms) {
        if (std::find(term.factors.begin(), term.factors.end(), dimension) != term.factors.end())
            return true;
    }
    return false;
}

std::int32_t weightsOf(const Annotation &annotation, std::size_t slot)
{
    if (combinationOf(annotation, slot) != Combination::Weighted)
        return -1;
    const auto &found = annotation.combinations;
    const auto weights = std::find(found.begin(), found.end(), Combination::LogSumExp);
    return weights == found.end() ? -1 : static_cast<std::int32_t>(weights - found.begin());
}

bool isLargestOver(const Annotation &annotation, std::int32_t dimension)
{
    for (std::size_t slot = 0; slot < annotation.outputs.size(); ++slot)
        if (combinationOf(annotation, slot) == Combination::Max
            && !mentions(annotation.outputs[slot], dimension))
            return true;
    return false;
}

std::optional<std::int32_t> splittableFactor(const Annotation &annotation, const Term &term)
{
    for (const std::int32_t factor : term.factors) {
        const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(factor)];
        if (dimension.size == 1)
            continue;
        if (dimension.mark == DimensionMark::Frozen)
            return std::nullopt;
        return factor;
    }
    return std::nullopt;
}

std::optional<std::int32_t> disjointFactor(const Annotation &annotation, const Term &term)
{
    const auto factor = splittableFactor(annotation, term);
    return factor && findWindow(annotation, *factor) ? std::nullopt : factor;
}

const Window *findWindow(const Annotation &annotation, std::int32_t dimension)
{
    for (const Window &window : annotation.windows) {
        if (window.dimension == dimension)
            return &window;
    }
    return nullptr;
}

std::vector<std::int32_t> splittableDimensions(const Annotation &annotation)
{
    std::vector<std::int32_t> splittable;
    for (std::size_t i = 0; i < annotation.dimensions.size(); ++i) {
        if (annotation.dimensions[i].mark != DimensionMark::Frozen && annotation.dimensions[i].size > 1)
            splittable.push_back(static_cast<std::int32_t>(i));
    }
    return splittable;
}

} // namespace planloom
