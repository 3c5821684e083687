#include "engine/graph/annotation/annotation_builder.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace planloom {

AnnotationBuilder::AnnotationBuilder(const AnnotateCall &call, std::string_view reserved)
    : m_reserved(reserved)
{
    m_annotation.inputs.resize(call.inputs.size(), TensorTerms{{}, true});
    m_annotation.outputs.resize(call.outputs.size(), TensorTerms{{}, true});
    m_annotation.dimensions.reserve(8);
}

bool AnnotationBuilder::nameUsed(std::string_view name) const
{
    return std::any_of(m_annotation.dimensions.begin(), m_annotation.dimensions.end(),
        [name](const Dimension &dimension) { return dimension.name == name; });
}

std::int32_t AnnotationBuilder::add(std::string name, std::int64_t size, DimensionMark mark)
{
    m_annotation.dimensions.push_back(Dimension{.name = std::move(name), .size = size, .mark = mark});
    return static_cast<std::int32_t>(m_annotation.dimensions.size()) - 1;
}

std::int32_t AnnotationBuilder::fresh(std::int64_t size, DimensionMark mark)
{
    return size <= 1 ? literal(size) : add(freeName(), size, mark);
}

std::string AnnotationBuilder::freeName()
{
    for (;;) {
        std::string name(1, static_cast<char>('a' + m_nextLetter % 26));
        const bool reserved = m_nextLetter < 26 && m_reserved.find(name[0]) != std::string_view::npos;
        if (m_nextLetter >= 26)
            name += std::to_string(m_nextLetter / 26);
        ++m_nextLetter;
        if (!reserved && !nameUsed(name))
            return name;
    }
}

AnnotationBuilder::WindowTerms AnnotationBuilder::windows(
    std::string_view name, std::int64_t count, Window window)
{
    if (count < 2 || !isSane(window, count))
        return {Term{{literal(window.extent)}}, Term{{literal(count)}}};
    window.dimension = name.empty() ? fresh(count) : named(name, count);
    m_annotation.windows.push_back(window);
    return {Term{{window.dimension}, WindowReach::Windows}, Term{{window.dimension}}};
}

std::int32_t AnnotationBuilder::named(std::string_view name, std::int64_t size, DimensionMark mark)
{
    if (size <= 1)
        return literal(size);
    for (std::size_t i = 0; i < m_annotation.dimensions.size(); ++i) {
        if (m_annotation.dimensions[i].name == name)
            return static_cast<std::int32_t>(i);
    }
    return add(std::string(name), size, mark);
}

std::int32_t AnnotationBuilder::locked(std::string_view name, std::int64_t size, DimensionLock lock)
{
    const std::int32_t index = named(name, size, kFrozen);
    if (size > 1)
        m_annotation.dimensions[static_cast<std::size_t>(index)].lock = lock;
    return index;
}

std::int32_t AnnotationBuilder::literal(std::int64_t size)
{
    std::string name = std::to_string(size);
    for (std::size_t i = 0; i < m_annotation.dimensions.size(); ++i) {
        if (m_annotation.dimensions[i].name == name)
            return static_cast<std::int32_t>(i);
    }
    return add(std::move(name), size, DimensionMark::Frozen);
}

DimensionList AnnotationBuilder::freshAll(const Shape &shape, DimensionMark mark)
{
    DimensionList list;
    list.reserve(shape.size());
    for (const std::int64_t size : shape)
        list.push_back(fresh(size, mark));
    return list;
}

DimensionList AnnotationBuilder::literals(const Shape &shape)
{
    DimensionList list;
    list.reserve(shape.size());
    for (const std::int64_t size : shape)
        list.push_back(literal(size));
    return list;
}

DimensionList AnnotationBuilder::broadcast(const DimensionList &dimensions, const Shape &shape)
{
    DimensionList list;
    list.reserve(shape.size());
    const auto offset =
        static_cast<std::ptrdiff_t>(dimensions.size()) - static_cast<std::ptrdiff_t>(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::ptrdiff_t position = static_cast<std::ptrdiff_t>(i) + offset;
        if (position >= 0 && sizeOf(dimensions[static_cast<std::size_t>(position)]) == shape[i])
            list.push_back(dimensions[static_cast<std::size_t>(position)]);
        else
            list.push_back(literal(shape[i]));
    }
    return list;
}

Term AnnotationBuilder::compound(const DimensionList &factors)
{
    Term term;
    for (const std::int32_t factor : factors) {
        if (sizeOf(factor) != 1)
            term.factors.push_back(factor);
    }
    if (term.factors.empty())
        term.factors.push_back(literal(1));
    return term;
}

std::vector<Term> termsOf(const DimensionList &dimensions)
{
    std::vector<Term> terms;
    terms.reserve(dimensions.size());
    for (const std::int32_t dimension : dimensions)
        terms.push_back(Term{{dimension}});
    return terms;
}

void AnnotationBuilder::input(std::size_t slot, const DimensionList &dimensions)
{
    input(slot, termsOf(dimensions));
}

void AnnotationBuilder::input(std::size_t slot, std::vector<Term> terms)
{
    assert(slot < m_annotation.inputs.size());
    m_annotation.inputs[slot] = TensorTerms{std::move(terms), false};
}

void AnnotationBuilder::output(std::size_t slot, const DimensionList &dimensions)
{
    output(slot, termsOf(dimensions));
}

void AnnotationBuilder::output(std::size_t slot, std::vector<Term> terms)
{
    assert(slot < m_annotation.outputs.size());
    m_annotation.outputs[slot] = TensorTerms{std::move(terms), false};
}

Annotation AnnotationBuilder::finish(const AnnotateCall &call, std::string &problem)
{
    std::vector<std::int32_t> position(m_annotation.dimensions.size(), -1);
    std::vector<Dimension> ordered;
    ordered.reserve(position.size());
    const auto extentOf = [this](std::int32_t identifier) {
        const Window *window = findWindow(m_annotation, identifier);
        return window ? window->extent : 0;
    };
    const auto adopt = [&](TensorTerms &tensor, const Shape &shape, const char *side, std::size_t slot) {
        if (tensor.opaque)
            return;
        bool fits = tensor.terms.size() == shape.size();
        for (std::size_t i = 0; i < tensor.terms.size(); ++i) {
            std::int64_t product = 1;
            for (std::int32_t &factor : tensor.terms[i].factors) {
                const auto index = static_cast<std::size_t>(factor);
                std::int64_t size = m_annotation.dimensions[index].size;
                if (tensor.terms[i].reach != WindowReach::Own && tensor.terms[i].reach != WindowReach::Met)
                    size = extentOf(factor);
                fits = !__builtin_mul_overflow(product, size, &product) && fits;
                if (position[index] < 0) {
                    position[index] = static_cast<std::int32_t>(ordered.size());
                    ordered.push_back(std::move(m_annotation.dimensions[index]));
                    m_annotation.dimensions[index].size = ordered.back().size;
                }
                factor = position[index];
            }
            fits = fits && product == shape[i];
        }
        if (!fits && problem.empty()) {
            problem = std::string(nameOf(call.kind)) + "'s " + side + " " + std::to_string(slot)
                + " has shape " + toString(shape) + ", which does not fit its other tensors";
        }
    };
    for (std::size_t slot = 0; slot < m_annotation.inputs.size(); ++slot)
        adopt(m_annotation.inputs[slot], call.in(slot), "input", slot);
    for (std::size_t slot = 0; slot < m_annotation.outputs.size(); ++slot)
        adopt(m_annotation.outputs[slot], call.out(slot), "output", slot);
    m_annotation.dimensions = std::move(ordered);
    for (Window &window : m_annotation.windows)
        window.dimension = position[static_cast<std::size_t>(window.dimension)];
    std::sort(m_annotation.windows.begin(), m_annotation.windows.end(),
        [](const Window &a, const Window &b) { return a.dimension < b.dimension; });
    return std::move(m_annotation);
}

} // namespace planloom
