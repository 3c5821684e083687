#pragma once

#include "engine/base/result.h"
#include "engine/graph/annotation/combination.h"
#include "engine/graph/annotation/dimension_lock.h"
#include "engine/graph/operators/window.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What splitting an operator along a dimension does (nnScaler's marks; OSDI '24, section 3.2).
enum class DimensionMark : std::uint8_t {
    Spatial, ///< "m": every tensor that has it is cut; outputs without it are the same in every part.
    Reduce, ///< "k+": every tensor that has it is cut; outputs without it come in parts to be combined.
    Frozen, ///< "k^", or a literal size: may not be split.
};

/// One identifier of an annotation.
struct Dimension {
    std::string name{}; ///< An identifier, or the decimal size of a literal.
    std::int64_t size = 0; ///< In the whole operator.
    DimensionMark mark = DimensionMark::Spatial;
    DimensionLock lock = DimensionLock::Whole; ///< Why it may not be split, where it is Frozen.

    /// Whether they may be split alike; the reason is for people, and the text form does not say it.
    friend bool operator==(const Dimension &a, const Dimension &b)
    {
        return a.name == b.name && a.size == b.size && a.mark == b.mark;
    }
};

/// One dimension of a tensor as the product of identifiers (indices into `Annotation::dimensions`), outermost
/// first: "(b s)". Only the first factor of size other than 1 may be split, so that a part stays a box.
struct Term {
    std::vector<std::int32_t> factors{};
    /// Other than Own: the only factor is an identifier of windows, and the dimension the one that they lie
    /// over (Met: the windows themselves).
    WindowReach reach = WindowReach::Own;
    friend bool operator==(const Term &, const Term &) = default;
};

/// The dimensions of one tensor of an operator. Absent optional tensors, and tensors that every part sees
/// whole
/// ("?"), have `opaque` set and no terms.
struct TensorTerms {
    std::vector<Term> terms{};
    bool opaque = false;
    friend bool operator==(const TensorTerms &, const TensorTerms &) = default;
};

/// An operator's dimension annotation: how its inputs' and outputs' dimensions belong together, and which may
/// be split. Text form: `b m k+, k+ n -> b m n`; compounds in brackets, literal sizes as numbers, opaque as
/// `?`. An output whose parts are not summed says how they are combined: `n c+ -> log-sum-exp: n`. A
/// dimension that windows lie over says what a part has of it, and how they lie stands behind: `n c+
/// h[windows], o c+ 3 -> n o h; h: 3 by 2 at -1 of 8`.
struct Annotation {
    std::vector<Dimension> dimensions{};
    std::vector<Window> windows{}; ///< Of identifiers that count windows, by identifier, ascending.
    std::vector<TensorTerms> inputs{};
    std::vector<TensorTerms> outputs{};
    /// Inputs in which the outputs are jointly linear, the others held fixed: what a value split may divide,
    /// and what lets a sum over micro-batches pass through an operator.
    std::vector<std::int32_t> linearInputs{};
    /// By output: how its parts along Reduce identifiers make up its value. Empty where all are summed.
    std::vector<Combination> combinations{};
    friend bool operator==(const Annotation &, const Annotation &) = default;
};

/// How the parts of output `slot` make up its value.
Combination combinationOf(const Annotation &annotation, std::size_t slot);

/// The whole operator in one piece: every dimension a literal.
Annotation wholeAnnotation(const std::vector<Shape> &inputs, const std::vector<Shape> &outputs);

/// Parses the text form against actual shapes, which bind the identifiers' sizes.
///
/// Identifiers keep one mark throughout; `*` stands for the remaining dimensions of each tensor that has it;
/// a factor of a compound that no other tensor binds is the quotient. Inside a compound, identifiers behind
/// the first of size other than 1 become Frozen everywhere, and so does an identifier that stands twice in
/// one tensor. A scalar is written `1`. Dimensions are numbered in the order in which they appear; equal
/// literals are one.
/// @param absent  by input: an optional one that is not there, whatever the text says of it; may be empty
/// @return InvalidInput naming the position in `text` if it does not parse or does not fit the shapes
Result<Annotation> parseAnnotation(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<Shape> &outputs, const std::vector<bool> &absent = {});

/// The identifiers of a text of so many inputs and outputs, in the order in which they appear.
/// @return InvalidInput whose `where` is "position:N", a byte of `text`
Result<std::vector<std::string>> identifiersOf(
    std::string_view text, std::size_t inputs, std::size_t outputs);

/// The shapes that inputs have where the identifiers have these sizes, and `*` stands for `star`; nothing for
/// those that are "?". @return InvalidInput for an identifier without a size
Result<std::vector<std::optional<Shape>>> annotatedInputs(std::string_view text, std::size_t inputs,
    std::size_t outputs, const std::map<std::string, std::int64_t> &sizes, const Shape &star);

/// What a text says where only the inputs' shapes are known.
struct AnnotatedShapes {
    std::map<std::string, std::int64_t> sizes{}; ///< Of all identifiers that have one.
    std::vector<std::optional<Shape>> outputs{}; ///< Nothing for those that are "?".
};
/// @param complete  is given the sizes that the inputs bind, and may add those of other identifiers
/// @return InvalidInput as `parseAnnotation`
Result<AnnotatedShapes> annotatedShapes(std::string_view text, const std::vector<Shape> &inputs,
    const std::vector<bool> &absent, std::size_t outputs,
    const std::function<Result<void>(std::map<std::string, std::int64_t> &)> &complete);

/// The same with literals in place of identifiers that count windows: what an operator has that is not to be
/// cut along them.
Annotation withoutWindows(const Annotation &annotation);

/// The text form; `parseAnnotation(toString(a), shapes...)` equals `a` but for `linearInputs`.
std::string toString(const Annotation &annotation);

/// "b m k+": the text of one tensor's terms.
std::string toString(const Annotation &annotation, const TensorTerms &terms);

/// Index of the identifier called `name`, if any.
std::optional<std::int32_t> findDimension(const Annotation &annotation, std::string_view name);

/// True if an identifier (an index into `Annotation::dimensions`) stands in a tensor's terms.
bool mentions(const TensorTerms &terms, std::int32_t dimension);

/// The output by whose logarithms the parts of output `slot` are weighed (`Combination::Weighted`); -1 if
/// they are not.
std::int32_t weightsOf(const Annotation &annotation, std::size_t slot);

/// True if some output is the largest element along an identifier, which it does not have itself.
bool isLargestOver(const Annotation &annotation, std::int32_t dimension);

/// The identifier that a split of `term` cuts: its first factor of size other than 1, if not Frozen.
std::optional<std::int32_t> splittableFactor(const Annotation &annotation, const Term &term);

/// The same where every tensor of the operator that has the identifier is cut into disjoint boxes by it, so
/// that parts need nothing of one another: not where it counts windows.
std::optional<std::int32_t> disjointFactor(const Annotation &annotation, const Term &term);

/// How the windows that an identifier counts lie; null if it counts none.
const Window *findWindow(const Annotation &annotation, std::int32_t dimension);

/// Identifiers that may be split at all: not Frozen and larger than 1.
std::vector<std::int32_t> splittableDimensions(const Annotation &annotation);

} // namespace planloom
