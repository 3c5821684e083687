#pragma once

// Private to the graph room: how the text of an annotation is read, and bound to shapes.

#include "engine/graph/annotation/annotation.h"
#include "engine/graph/annotation/window_text.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

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

/// Reads the text, then binds it to shapes. One use per annotation.
class AnnotationParser
{
public:
    static constexpr std::int64_t kUnknown = -1; ///< The size of an identifier that nothing binds yet.

    explicit AnnotationParser(std::string_view text)
        : m_text(text)
    {
    }

    Result<Annotation> parse(
        const std::vector<Shape> &inputs, const std::vector<Shape> &outputs, const std::vector<bool> &absent);
    Result<std::vector<std::string>> identifiers(std::size_t inputs, std::size_t outputs);
    Result<std::vector<std::optional<Shape>>> inputShapes(std::size_t inputs, std::size_t outputs,
        const std::map<std::string, std::int64_t> &sizes, const Shape &star);
    Result<AnnotatedShapes> shapes(const std::vector<Shape> &inputs, const std::vector<bool> &absent,
        std::size_t outputs,
        const std::function<Result<void>(std::map<std::string, std::int64_t> &)> &complete);

private:
    Result<void> readText(std::size_t inputs, std::size_t outputs);
    void leaveOut(const std::vector<bool> &absent);

    /// Of an output, from the sizes of its identifiers. A lone "1" is a scalar.
    Result<std::optional<Shape>> shapeOf(const WrittenTensor &tensor);
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

    Result<void> readSide(std::vector<WrittenTensor> &tensors, bool isInput);

    /// What stands before the colon of an output: "max: n".
    Combination readCombination();
    Result<WrittenTensor> readTensor();
    Result<WrittenTerm> readTerm();

    /// What stands in square brackets behind a dimension: what a part that has windows has of it.
    Result<WindowReach> readReach();
    Result<DimensionMark> readMark();
    Result<Atom> readAtom();
    Dimension &dimension(std::int32_t index) { return m_result.dimensions[static_cast<std::size_t>(index)]; }

    std::int32_t dimensionNamed(const std::string &name);
    Result<void> matchCount(
        const std::vector<WrittenTensor> &tensors, std::size_t count, const char *what) const;

    /// Replaces every '*' by identifiers, and "1" by nothing where the tensor is a scalar.
    Result<void> expandSide(std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes);
    Error rankMismatch(const WrittenTensor &tensor, const Shape &shape) const;

    /// Fresh identifiers a, b, c ... that the text does not use.
    std::vector<std::int32_t> makeEllipsis(std::size_t count);

    /// Solves the equations "product of factors = extent", each of which can give one unknown factor.
    Result<void> bindSizes(const std::vector<Shape> &inputs, const std::vector<Shape> &outputs);
    Result<void> bindSide(
        const std::vector<WrittenTensor> &tensors, const std::vector<Shape> &shapes, bool &progress);
    Result<void> bindTerm(const WrittenTerm &term, std::int64_t extent, bool &progress);
    std::string describe(const WrittenTerm &term);
    Annotation build();

    /// Numbers the identifiers in the order in which they appear, whatever '*' and scalars did to it.
    static void renumber(Annotation &annotation);
    std::string_view m_text;
    std::size_t m_at = 0;
    std::vector<WrittenTensor> m_inputs;
    std::vector<WrittenTensor> m_outputs;
    std::optional<DimensionMark> m_ellipsisMark;
    std::optional<std::vector<std::int32_t>> m_ellipsis;
    Annotation m_result; ///< Only `dimensions` are filled until `build`.
};

} // namespace planloom
