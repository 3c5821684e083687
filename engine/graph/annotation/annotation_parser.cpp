#include "engine/graph/annotation/annotation_parser.h"

#include "engine/base/text.h"

#include <utility>

namespace planloom {

namespace {

bool isNameStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

} // namespace

Result<Annotation> AnnotationParser::parse(
    const std::vector<Shape> &inputs, const std::vector<Shape> &outputs, const std::vector<bool> &absent)
{
    TRY_VOID(readText(inputs.size(), outputs.size()));
    leaveOut(absent);
    TRY_VOID(expandSide(m_inputs, inputs));
    TRY_VOID(expandSide(m_outputs, outputs));
    TRY_VOID(bindSizes(inputs, outputs));
    return build();
}

Result<std::vector<std::string>> AnnotationParser::identifiers(std::size_t inputs, std::size_t outputs)
{
    TRY_VOID(readText(inputs, outputs));
    std::vector<std::string> names;
    for (const Dimension &dimension : m_result.dimensions)
        if (!isDigit(dimension.name.front()))
            names.push_back(dimension.name);
    return names;
}

Result<std::vector<std::optional<Shape>>> AnnotationParser::inputShapes(std::size_t inputs,
    std::size_t outputs, const std::map<std::string, std::int64_t> &sizes, const Shape &star)
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

Result<AnnotatedShapes> AnnotationParser::shapes(const std::vector<Shape> &inputs,
    const std::vector<bool> &absent, std::size_t outputs,
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

Result<void> AnnotationParser::readText(std::size_t inputs, std::size_t outputs)
{
    TRY_VOID(readSide(m_inputs, true));
    TRY_VOID(readSide(m_outputs, false));
    if (const auto fault = readWindows(m_text, m_at, m_result))
        return fail(fault->position, fault->message);
    TRY_VOID(matchCount(m_inputs, inputs, "inputs"));
    return matchCount(m_outputs, outputs, "outputs");
}

Result<void> AnnotationParser::readSide(std::vector<WrittenTensor> &tensors, bool isInput)
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

Combination AnnotationParser::readCombination()
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

Result<WrittenTensor> AnnotationParser::readTensor()
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

Result<WrittenTerm> AnnotationParser::readTerm()
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

Result<WindowReach> AnnotationParser::readReach()
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

Result<DimensionMark> AnnotationParser::readMark()
{
    DimensionMark mark = DimensionMark::Spatial;
    if (m_at < m_text.size() && (m_text[m_at] == '+' || m_text[m_at] == '^'))
        mark = m_text[m_at++] == '+' ? DimensionMark::Reduce : DimensionMark::Frozen;
    if (m_at < m_text.size() && std::string_view(" \t\n,()-[;").find(m_text[m_at]) == std::string_view::npos)
        return fail(m_at, std::string("unexpected '") + m_text[m_at] + "'");
    return mark;
}

Result<Atom> AnnotationParser::readAtom()
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
    while (
        m_at < m_text.size() && (isNameStart(m_text[m_at]) || isDigit(m_text[m_at]) || m_text[m_at] == '\''))
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

std::int32_t AnnotationParser::dimensionNamed(const std::string &name)
{
    if (const auto known = findDimension(m_result, name))
        return *known;
    m_result.dimensions.push_back({name, kUnknown, DimensionMark::Spatial});
    return static_cast<std::int32_t>(m_result.dimensions.size()) - 1;
}

Result<void> AnnotationParser::matchCount(
    const std::vector<WrittenTensor> &tensors, std::size_t count, const char *what) const
{
    if (tensors.size() == count)
        return {};
    return fail(0,
        "has " + std::to_string(tensors.size()) + ' ' + what + ", but the operator has "
            + std::to_string(count));
}

Result<Annotation> parseAnnotation(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<Shape> &outputs, const std::vector<bool> &absent)
{
    return AnnotationParser(text).parse(inputs, outputs, absent);
}

Result<std::vector<std::string>> identifiersOf(std::string_view text, std::size_t inputs, std::size_t outputs)
{
    return AnnotationParser(text).identifiers(inputs, outputs);
}

Result<std::vector<std::optional<Shape>>> annotatedInputs(std::string_view text, std::size_t inputs,
    std::size_t outputs, const std::map<std::string, std::int64_t> &sizes, const Shape &star)
{
    return AnnotationParser(text).inputShapes(inputs, outputs, sizes, star);
}

Result<AnnotatedShapes> annotatedShapes(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<bool> &absent, std::size_t outputs,
    const std::function<Result<void>(std::map<std::string, std::int64_t> &)> &complete)
{
    return AnnotationParser(text).shapes(inputs, absent, outputs, complete);
}

} // namespace planloom
