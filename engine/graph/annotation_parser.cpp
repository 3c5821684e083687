#include "engine/base/text.h"
#include "engine/graph/annotation.h"
#include "engine/graph/window_text.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kUnknown = -1;

/// One identifier or literal as written.
struct Atom {
    std::int32_t dimension = -1; ///< Index into the parsed dimensions; -1 for '*'.
    std::size_t position = 0; ///< Byte of the text where it starts.
};

/// One dimension as written: an atom, or several in brackets.
struct WrittenTerm {
    std::vector<Atom> atoms{};
    WindowReach reach = WindowReach::Own;
    bool ellipsis = false; ///< '*', alone in its term.
    std::size_t position = 0;
};

struct WrittenTensor {
    std::vector<WrittenTerm> terms{};
    bool opaque = false;
    Combination combination = Combination::Sum;
    std::size_t position = 0;
};

bool isNameStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Reads the text, then binds it to shapes. One use per annotation.
class Parser
{
public:
    explicit Parser(std::string_view text)
        : m_text(text)
    {
    }

    Result<Annotation> parse(
        const std::vector<Shape> &inputs, const std::vector<Shape> &outputs, const std::vector<bool> &absent)
    {
        TRY_VOID(readText(inputs.size(), outputs.size()));
        leaveOut(absent);
        TRY_VOID(expandSide(m_inputs, inputs));
        TRY_VOID(expandSide(m_outputs, outputs));
        TRY_VOID(bindSizes(inputs, outputs));
        return build();
    }

    Result<std::vector<std::string>> identifiers(std::size_t inputs, std::size_t outputs)
    {
        TRY_VOID(readText(inputs, outputs));
        std::vector<std::string> names;
        for (const Dimension &dimension : m_result.dimensions)
            if (!isDigit(dimension.name.front()))
                names.push_back(dimension.name);
        return names;
    }

    Result<std::vector<std::optional<Shape>>> inputShapes(std::size_t inputs, std::size_t outputs,
        const std::map<std::string, std::int64_t> &sizes, const Shape &star)
    {
        TRY_VOID(readText(inputs, outputs));
        for (Dimension &dimension : m_result.dimensions)
            if (const auto known = sizes.find(dimension.name); known != sizes.end())
                dimension.size = known->second;
        if (m_ellipsisMark) {
            m_ellipsis = makeEllipsis(star.size());
            for (std::size_t i = 0; i < star.size(); ++i)
                dimension((*m_ellipsis)[i]).size = star[i];
        }
        std::vector<std::optional<Shape>> shapes;
        for (const WrittenTensor &tensor : m_inputs) {
            shapes.emplace_back();
            if (!tensor.opaque) {
                TRY(shapes.back(), shapeOf(tensor));
            }
        }
        return shapes;
    }

    Result<AnnotatedShapes> shapes(const std::vector<Shape> &inputs, const std::vector<bool> &absent,
        std::size_t outputs,
        const std::function<Result<void>(std::map<std::string, std::int64_t> &)> &complete)
    {
        TRY_VOID(readText(inputs.size(), outputs));
        leaveOut(absent);
        TRY_VOID(expandSide(m_inputs, inputs));
        for (bool progress = true; std::exchange(progress, false);)
            TRY_VOID(bindSide(m_inputs, inputs, progress));
        AnnotatedShapes result;
        for (const Dimension &dimension : m_result.dimensions)
            if (dimension.size != kUnknown && !isDigit(dimension.name.front()))
                result.sizes.emplace(dimension.name, dimension.size);
        TRY_VOID(complete(result.sizes));
        for (const auto &[name, size] : result.sizes)
            if (const auto known = findDimension(m_result, name))
                dimension(*known).size = size;
        for (bool progress = true; std::exchange(progress, false);)
            TRY_VOID(bindSide(m_inputs, inputs, progress));
        for (WrittenTensor &tensor : m_outputs) {
            result.outputs.emplace_back();
            if (!tensor.opaque) {
                TRY(result.outputs.back(), shapeOf(tensor));
            }
        }
        return result;
    }

private:
    Result<void> readText(std::size_t inputs, std::size_t outputs)
    {
        TRY_VOID(readSide(m_inputs, true));
        TRY_VOID(readSide(m_outputs, false));
        if (const auto fault = readWindows(m_text, m_at, m_result))
            return fail(fault->position, fault->message);
        TRY_VOID(matchCount(m_inputs, inputs, "inputs"));
        return matchCount(m_outputs, outputs, "outputs");
    }

    void leaveOut(const std::vector<bool> &absent)
    {
        for (std::size_t i = 0; i < m_inputs.size() && i < absent.size(); ++i) {
            if (!absent[i])
                continue;
            m_inputs[i].opaque = true;
            m_inputs[i].terms.clear();
        }
    }

    /// Of an output, from the sizes of its identifiers. A lone "1" is a scalar.
    Result<std::optional<Shape>> shapeOf(const WrittenTensor &tensor)
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

    Error fail(std::size_t position, std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, "annotation '" + std::string(m_text) + "': " + std::move(message),
            std::move(advice), "position:" + std::to_string(position)};
    }

    void skipSpaces()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n'))
            ++m_at;
    }

    bool atWindows() const { return m_at < m_text.size() && m_text[m_at] == ';'; }
    bool atArrow() const { return m_text.substr(m_at, 2) == "->"; }

    Result<void> readSide(std::vector<WrittenTensor> &tensors, bool isInput)
    {
        skipSpaces();
        const auto atEnd = [&] { return isInput ? atArrow() : m_at == m_text.size() || atWindows(); };
        if (!atEnd()) {
            while (true) {
                const Combination combination = isInput ? Combination::Sum : readCombination();
                TRY(WrittenTensor tensor, readTensor());
                tensor.combination = combination;
                tensors.push_back(std::move(tensor));
                if (m_at == m_text.size() || m_text[m_at] != ',')
                    break;
                ++m_at;
            }
            if (!atEnd()) {
                return m_at == m_text.size() ? fail(m_at, "expected '->' and the outputs, found the end")
                                             : fail(m_at, std::string("unexpected '") + m_text[m_at] + "'");
            }
        }
        if (isInput)
            m_at += 2;
        return {};
    }

    /// What stands before the colon of an output: "max: n".
    Combination readCombination()
    {
        skipSpaces();
        for (int i = 0; i < kCombinationCount; ++i) {
            const auto combination = static_cast<Combination>(i);
            const std::string prefix = std::string(nameOf(combination)) + ':';
            if (m_text.substr(m_at, prefix.size()) != prefix)
                continue;
            m_at += prefix.size();
            return combination;
        }
        return Combination::Sum;
    }

    Result<WrittenTensor> readTensor()
    {
        skipSpaces();
        WrittenTensor tensor;
        tensor.position = m_at;
        if (m_at < m_text.size() && m_text[m_at] == '?') {
            tensor.opaque = true;
            ++m_at;
            skipSpaces();
            return tensor;
        }
        bool ellipsis = false;
        while (m_at < m_text.size() && m_text[m_at] != ',' && !atArrow() && !atWindows()) {
            TRY(WrittenTerm term, readTerm());
            TRY(term.reach, readReach());
            if (term.ellipsis && std::exchange(ellipsis, true))
                return fail(term.position, "'*' stands twice in one tensor");
            tensor.terms.push_back(std::move(term));
            skipSpaces();
        }
        if (tensor.terms.empty())
            return fail(tensor.position, "expected a tensor's dimensions", "write '1' for a scalar");
        return tensor;
    }

    Result<WrittenTerm> readTerm()
    {
        WrittenTerm term;
        term.position = m_at;
        if (m_text[m_at] == '*') {
            ++m_at;
            TRY(const auto mark, readMark());
            if (m_ellipsisMark && *m_ellipsisMark != mark)
                return fail(term.position, "'*' has different marks");
            m_ellipsisMark = mark;
            term.ellipsis = true;
            return term;
        }
        if (m_text[m_at] != '(') {
            TRY(const Atom atom, readAtom());
            term.atoms.push_back(atom);
            return term;
        }
        ++m_at;
        skipSpaces();
        while (m_at < m_text.size() && m_text[m_at] != ')' && m_text[m_at] != ',' && !atArrow()) {
            TRY(const Atom atom, readAtom());
            term.atoms.push_back(atom);
            skipSpaces();
        }
        if (m_at == m_text.size() || m_text[m_at] != ')')
            return fail(term.position, "this bracket is not closed");
        if (term.atoms.empty())
            return fail(term.position, "these brackets are empty");
        ++m_at;
        return term;
    }

    /// What stands in square brackets behind a dimension: what a part that has windows has of it.
    Result<WindowReach> readReach()
    {
        if (m_at == m_text.size() || m_text[m_at] != '[')
            return WindowReach::Own;
        const std::size_t end = std::min(m_text.find(']', m_at), m_text.size());
        const std::string_view word = m_text.substr(m_at + 1, end - std::min(m_at + 1, end));
        for (int i = 1; i < kReachCount; ++i) {
            if (end < m_text.size() && word == nameOf(static_cast<WindowReach>(i))) {
                m_at = end + 1;
                return static_cast<WindowReach>(i);
            }
        }
        return fail(m_at, "expected [windows], [share], [met], [around] or [covered]");
    }

    Result<DimensionMark> readMark()
    {
        DimensionMark mark = DimensionMark::Spatial;
        if (m_at < m_text.size() && (m_text[m_at] == '+' || m_text[m_at] == '^'))
            mark = m_text[m_at++] == '+' ? DimensionMark::Reduce : DimensionMark::Frozen;
        if (m_at < m_text.size()
            && std::string_view(" \t\n,()-[;").find(m_text[m_at]) == std::string_view::npos)
            return fail(m_at, std::string("unexpected '") + m_text[m_at] + "'");
        return mark;
    }

    Result<Atom> readAtom()
    {
        Atom atom;
        atom.position = m_at;
        const char start = m_text[m_at];
        if (isDigit(start)) {
            std::int64_t size = 0;
            for (; m_at < m_text.size() && isDigit(m_text[m_at]); ++m_at) {
                size = size * 10 + (m_text[m_at] - '0');
                if (size > std::int64_t{1} << 48)
                    return fail(atom.position, "this size is too large");
            }
            TRY(const auto mark, readMark());
            if (mark == DimensionMark::Reduce)
                return fail(atom.position, "a literal size cannot be split, so it takes no '+'");
            atom.dimension = dimensionNamed(std::to_string(size));
            dimension(atom.dimension).size = size;
            dimension(atom.dimension).mark = DimensionMark::Frozen;
            return atom;
        }
        if (!isNameStart(start)) {
            return fail(m_at,
                std::string("expected an identifier, a size, '*', '?' or a bracket, found '") + start + "'");
        }
        while (m_at < m_text.size()
            && (isNameStart(m_text[m_at]) || isDigit(m_text[m_at]) || m_text[m_at] == '\''))
            ++m_at;
        const std::string name(m_text.substr(atom.position, m_at - atom.position));
        TRY(const auto mark, readMark());
        const auto known = findDimension(m_result, name);
        atom.dimension = dimensionNamed(name);
        if (!known)
            dimension(atom.dimension).mark = mark;
        else if (dimension(atom.dimension).mark != mark)
            return fail(
                atom.position, "identifier '" + name + "' has different marks", "mark it alike everywhere");
        return atom;
    }

    Dimension &dimension(std::int32_t index) { return m_result.dimensions[static_cast<std::size_t>(index)]; }

    std::int32_t dimensionNamed(const std::string &name)
    {
        if (const auto known = findDimension(m_result, name))
            return *known;
        m_result.dimensions.push_back({name, kUnknown, DimensionMark::Spatial});
        return static_cast<std::int32_t>(m_result.dimensions.size()) - 1;
    }

    Result<void> matchCount(
        const std::vector<WrittenTensor> &tensors, std::size_t count, const char *what) const
    {
        if (tensors.size() == count)
            return {};
        return fail(0,
            "has " + std::to_string(tensors.size()) + ' ' + what + ", but the operator has "
                + std::to_string(count));
    }

    /// Replaces every '*' by identifiers, and "1" by nothing where the tensor is a scalar.
    Result<void> expandSide(std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes)
    {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            WrittenTensor &tensor = tensors[i];
            const Shape &shape = shapes[i];
            if (tensor.opaque)
                continue;
            const auto star = std::find_if(tensor.terms.begin(), tensor.terms.end(),
                [](const WrittenTerm &term) { return term.ellipsis; });
            if (star != tensor.terms.end()) {
                if (tensor.terms.size() - 1 > shape.size())
                    return rankMismatch(tensor, shape);
                const std::size_t count = shape.size() + 1 - tensor.terms.size();
                if (!m_ellipsis)
                    m_ellipsis = makeEllipsis(count);
                if (m_ellipsis->size() != count) {
                    return fail(star->position,
                        "'*' stands for " + std::to_string(m_ellipsis->size())
                            + " dimensions elsewhere and for " + std::to_string(count) + " here");
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

    Error rankMismatch(const WrittenTensor &tensor, const Shape &shape) const
    {
        return fail(tensor.position,
            "expected a tensor of " + std::to_string(tensor.terms.size()) + " dimensions, found shape "
                + toString(shape));
    }

    /// Fresh identifiers a, b, c ... that the text does not use.
    std::vector<std::int32_t> makeEllipsis(std::size_t count)
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

    /// Solves the equations "product of factors = extent", each of which can give one unknown factor.
    Result<void> bindSizes(const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
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
                            return fail(atom.position,
                                "nothing determines the size of '" + unbound.name + "'",
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

    Result<void> bindSide(
        const std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes, bool &progress)
    {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            for (std::size_t j = 0; j < tensors[i].terms.size(); ++j)
                TRY_VOID(bindTerm(tensors[i].terms[j], shapes[i][j], progress));
        }
        return {};
    }

    Result<void> bindTerm(const WrittenTerm &term, std::int64_t extent, bool &progress)
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

    std::string describe(const WrittenTerm &term)
    {
        std::string text;
        for (const Atom &atom : term.atoms)
            text += (text.empty() ? "" : " ") + dimension(atom.dimension).name;
        return text;
    }

    Annotation build()
    {
        Annotation &result = m_result;
        // Only the outermost factor of a dimension can be cut into boxes, and an identifier that stands twice
        // in one tensor would cut out its diagonal: both are frozen everywhere.
        std::vector<std::int32_t> lastTensor(result.dimensions.size(), -1);
        std::int32_t tensorNumber = 0;
        const auto collect = [&](const std::vector<WrittenTensor> &written,
                                 std::vector<TensorTerms> &tensors) {
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

    /// Numbers the identifiers in the order in which they appear, whatever '*' and scalars did to it.
    static void renumber(Annotation &annotation)
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
                            ordered.push_back(
                                std::move(annotation.dimensions[static_cast<std::size_t>(factor)]));
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

    std::string_view m_text;
    std::size_t m_at = 0;
    std::vector<WrittenTensor> m_inputs;
    std::vector<WrittenTensor> m_outputs;
    std::optional<DimensionMark> m_ellipsisMark;
    std::optional<std::vector<std::int32_t>> m_ellipsis;
    Annotation m_result; ///< Only `dimensions` are filled until `build`.
};

} // namespace

Result<Annotation> parseAnnotation(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<Shape> &outputs, const std::vector<bool> &absent)
{
    return Parser(text).parse(inputs, outputs, absent);
}

Result<std::vector<std::string>> identifiersOf(std::string_view text, std::size_t inputs, std::size_t outputs)
{
    return Parser(text).identifiers(inputs, outputs);
}

Result<std::vector<std::optional<Shape>>> annotatedInputs(std::string_view text, std::size_t inputs,
    std::size_t outputs, const std::map<std::string, std::int64_t> &sizes, const Shape &star)
{
    return Parser(text).inputShapes(inputs, outputs, sizes, star);
}

Result<AnnotatedShapes> annotatedShapes(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<bool> &absent, std::size_t outputs,
    const std::function<Result<void>(std::map<std::string, std::int64_t> &)> &complete)
{
    return Parser(text).shapes(inputs, absent, outputs, complete);
}

} // namespace planloom
