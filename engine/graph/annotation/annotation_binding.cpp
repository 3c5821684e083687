#include "engine/graph/annotation/annotation_parser.h"

#include <algorithm>
#include <utility>

namespace planloom {

void AnnotationParser::leaveOut(const std::vector<bool> &absent)
{
    for (std::size_t i = 0; i < m_inputs.size() && i < absent.size(); ++i) {
        if (!absent[i])
            continue;
        m_inputs[i].opaque = true;
        m_inputs[i].terms.clear();
    }
}

Result<std::optional<Shape>> AnnotationParser::shapeOf(const WrittenTensor &tensor)
{
    Shape shape;
    for (const WrittenTerm &term : tensor.terms) {
        if (term.ellipsis) {
            if (!m_ellipsis)
                return fail(term.position, "'*' stands for nothing: no input has it");
            for (const std::int32_t identifier : *m_ellipsis)
                shape.push_back(dimension(identifier).size);
            continue;
        }
        std::int64_t extent = 1;
        for (const Atom &atom : term.atoms) {
            const Dimension &factor = dimension(atom.dimension);
            if (factor.size == kUnknown)
                return fail(atom.position, "nothing determines the size of '" + factor.name + "'",
                    "say it in a line: where " + factor.name + " = ...");
            if (__builtin_mul_overflow(extent, factor.size, &extent))
                return fail(term.position, "'" + describe(term) + "' is too large");
        }
        shape.push_back(extent);
    }
    if (tensor.terms.size() == 1 && !tensor.terms[0].ellipsis && tensor.terms[0].atoms.size() == 1
        && dimension(tensor.terms[0].atoms[0].dimension).name == "1")
        shape.clear();
    return std::optional(shape);
}

Result<void> AnnotationParser::expandSide(
    std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes)
{
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        WrittenTensor &tensor = tensors[i];
        const Shape &shape = shapes[i];
        if (tensor.opaque)
            continue;
        const auto star = std::find_if(
            tensor.terms.begin(), tensor.terms.end(), [](const WrittenTerm &term) { return term.ellipsis; });
        if (star != tensor.terms.end()) {
            if (tensor.terms.size() - 1 > shape.size())
                return rankMismatch(tensor, shape);
            const std::size_t count = shape.size() + 1 - tensor.terms.size();
            if (!m_ellipsis)
                m_ellipsis = makeEllipsis(count);
            if (m_ellipsis->size() != count) {
                return fail(star->position,
                    "'*' stands for " + std::to_string(m_ellipsis->size()) + " dimensions elsewhere and for "
                        + std::to_string(count) + " here");
            }
            const std::size_t position = star->position;
            auto at = tensor.terms.erase(star);
            for (const std::int32_t identifier : *m_ellipsis) {
                WrittenTerm term;
                term.position = position;
                term.atoms = {{identifier, position}};
                at = std::next(tensor.terms.insert(at, term));
            }
        } else if (shape.empty() && tensor.terms.size() == 1 && tensor.terms[0].atoms.size() == 1
            && dimension(tensor.terms[0].atoms[0].dimension).name == "1") {
            tensor.terms.clear();
        }
        if (tensor.terms.size() != shape.size())
            return rankMismatch(tensor, shape);
    }
    return {};
}

Error AnnotationParser::rankMismatch(const WrittenTensor &tensor, const Shape &shape) const
{
    return fail(tensor.position,
        "expected a tensor of " + std::to_string(tensor.terms.size()) + " dimensions, found shape "
            + toString(shape));
}

std::vector<std::int32_t> AnnotationParser::makeEllipsis(std::size_t count)
{
    std::vector<std::int32_t> identifiers;
    for (int i = 0; identifiers.size() < count; ++i) {
        std::string name(1, static_cast<char>('a' + i % 26));
        if (i >= 26)
            name += std::to_string(i / 26);
        if (findDimension(m_result, name))
            continue;
        identifiers.push_back(dimensionNamed(name));
        dimension(identifiers.back()).mark = *m_ellipsisMark;
    }
    return identifiers;
}

Result<void> AnnotationParser::bindSizes(const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
{
    bool progress = true;
    while (std::exchange(progress, false)) {
        TRY_VOID(bindSide(m_inputs, inputs, progress));
        TRY_VOID(bindSide(m_outputs, outputs, progress));
    }
    for (const std::vector<WrittenTensor> *side : {&m_inputs, &m_outputs}) {
        for (const WrittenTensor &tensor : *side) {
            for (const WrittenTerm &term : tensor.terms) {
                for (const Atom &atom : term.atoms) {
                    const Dimension &unbound = dimension(atom.dimension);
                    if (unbound.size == kUnknown) {
                        return fail(atom.position, "nothing determines the size of '" + unbound.name + "'",
                            "write one factor of the compound as a number");
                    }
                }
            }
        }
    }
    for (const Window &window : m_result.windows) {
        const Dimension &counted = dimension(window.dimension);
        if (!isSane(window, counted.size))
            return fail(0, "the windows of '" + counted.name + "' do not fit their elements");
    }
    return {};
}

Result<void> AnnotationParser::bindSide(
    const std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes, bool &progress)
{
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        for (std::size_t j = 0; j < tensors[i].terms.size(); ++j)
            TRY_VOID(bindTerm(tensors[i].terms[j], shapes[i][j], progress));
    }
    return {};
}

Result<void> AnnotationParser::bindTerm(const WrittenTerm &term, std::int64_t extent, bool &progress)
{
    if (term.reach != WindowReach::Own && term.reach != WindowReach::Met) {
        const Window *window =
            term.atoms.size() == 1 ? findWindow(m_result, term.atoms[0].dimension) : nullptr;
        if (!window || window->extent != extent) {
            return fail(term.position,
                "'" + describe(term) + "' does not count windows over " + std::to_string(extent)
                    + " elements");
        }
        return {};
    }
    std::int64_t known = 1;
    std::int32_t unknown = -1;
    int unknowns = 0;
    for (const Atom &atom : term.atoms) {
        if (dimension(atom.dimension).size == kUnknown) {
            unknown = atom.dimension;
            ++unknowns;
        } else if (__builtin_mul_overflow(known, dimension(atom.dimension).size, &known)) {
            return fail(term.position, "'" + describe(term) + "' is too large");
        }
    }
    if (unknowns > 1)
        return {};
    if (unknowns == 0) {
        if (known == extent)
            return {};
        return fail(term.position,
            "'" + describe(term) + "' is " + std::to_string(known) + ", but the tensor has "
                + std::to_string(extent));
    }
    if (known == 0 || extent % known != 0) {
        return fail(term.position,
            "'" + describe(term) + "' does not fit: " + std::to_string(extent) + " is not a multiple of "
                + std::to_string(known));
    }
    dimension(unknown).size = extent / known;
    progress = true;
    return {};
}

std::string AnnotationParser::describe(const WrittenTerm &term)
{
    std::string text;
    for (const Atom &atom : term.atoms)
        text += (text.empty() ? "" : " ") + dimension(atom.dimension).name;
    return text;
}

Annotation AnnotationParser::build()
{
    Annotation &result = m_result;
    // Only the outermost factor of a dimension can be cut into boxes, and an identifier that stands twice
    // in one tensor would cut out its diagonal: both are frozen everywhere.
    std::vector<std::int32_t> lastTensor(result.dimensions.size(), -1);
    std::int32_t tensorNumber = 0;
    const auto collect = [&](const std::vector<WrittenTensor> &written, std::vector<TensorTerms> &tensors) {
        for (const WrittenTensor &tensor : written) {
            TensorTerms terms;
            terms.opaque = tensor.opaque;
            for (const WrittenTerm &term : tensor.terms) {
                Term factors;
                bool behindFirst = false;
                for (const Atom &atom : term.atoms) {
                    Dimension &identifier = dimension(atom.dimension);
                    std::int32_t &last = lastTensor[static_cast<std::size_t>(atom.dimension)];
                    if (behindFirst || last == tensorNumber)
                        identifier.mark = DimensionMark::Frozen;
                    if (identifier.size != 1)
                        behindFirst = true;
                    last = tensorNumber;
                    factors.factors.push_back(atom.dimension);
                }
                factors.reach = term.reach;
                terms.terms.push_back(std::move(factors));
            }
            tensors.push_back(std::move(terms));
            ++tensorNumber;
        }
    };
    collect(m_inputs, result.inputs);
    collect(m_outputs, result.outputs);
    for (std::size_t slot = 0; slot < m_outputs.size(); ++slot) {
        if (m_outputs[slot].combination == Combination::Sum)
            continue;
        result.combinations.resize(m_outputs.size(), Combination::Sum);
        result.combinations[slot] = m_outputs[slot].combination;
    }
    renumber(result);
    return std::move(result);
}

void AnnotationParser::renumber(Annotation &annotation)
{
    std::vector<std::int32_t> number(annotation.dimensions.size(), -1);
    std::vector<Dimension> ordered;
    for (std::vector<TensorTerms> *side : {&annotation.inputs, &annotation.outputs}) {
        for (TensorTerms &tensor : *side) {
            for (Term &term : tensor.terms) {
                for (std::int32_t &factor : term.factors) {
                    std::int32_t &given = number[static_cast<std::size_t>(factor)];
                    if (given < 0) {
                        given = static_cast<std::int32_t>(ordered.size());
                        ordered.push_back(std::move(annotation.dimensions[static_cast<std::size_t>(factor)]));
                    }
                    factor = given;
                }
            }
        }
    }
    annotation.dimensions = std::move(ordered);
    for (Window &window : annotation.windows)
        window.dimension = number[static_cast<std::size_t>(window.dimension)];
    std::sort(annotation.windows.begin(), annotation.windows.end(),
        [](const Window &a, const Window &b) { return a.dimension < b.dimension; });
}

} // namespace planloom
