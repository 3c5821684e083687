#pragma once

// Private to the graph room: all that the room knows of an operator kind, in one place.
//
// A new kind is a name in `OperatorKind` and one entry in the list of its family (families/*.cpp). Names,
// arity, types, annotations, gradients and work are looked up here; a test fails for a kind that has no
// entry. What stands in the entry of Custom is what holds of every operator file: the rest, its definition
// says.

#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/operator.h"
#include "engine/graph/operators/infer_call.h"
#include "engine/graph/operators/work_shapes.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// How many inputs a kind takes: the first `required` must be present.
struct Arity {
    std::size_t required = 1;
    std::size_t most = 1;
};

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

/// What the gradient of one input is made from, besides the gradients of the outputs: forward inputs and
/// outputs by slot. Shapes are no need: they come with the gradients' own buffers.
struct NeedOfInput {
    std::vector<std::size_t> inputs{};
    std::vector<std::size_t> outputs{};
};

/// By input, given that it is floating; nothing, or no entry, where the outputs do not depend continuously on
/// it, or it is held fixed.
using NeedsOfInputs = std::vector<std::optional<NeedOfInput>>;

using TypesRule = TypesOutcome (*)(const InferCall &call);

/// How operators of a kind may be split.
struct SplitRule {
    /// Describes the operator's dimensions, or says why it cannot. Looks at ranks itself.
    std::string (*annotate)(const AnnotateCall &call, AnnotationBuilder &builder) = nullptr;
    /// Why dimensions that `annotate` freezes may not be split, where it gives no other reason.
    DimensionLock lock = DimensionLock::Whole;
    /// Inputs in which the outputs are jointly linear whatever the attributes, if they are floating.
    std::vector<std::int32_t> linear{};
    std::string_view letters{}; ///< Identifiers that `annotate` names itself.
};

struct GradientNeeds {
    NeedsOfInputs all{};
    NeedsOfInputs (*of)(
        const Operator &op) = nullptr; ///< In place of `all`, where it depends on the operator.
};

/// Floating-point operations (multiply and add are two): so many for each of what `count` counts.
struct WorkRule {
    double operations = 0;
    double (*count)(const WorkShapes &shapes) = nullptr;
    /// Those of the backward operator, which makes some gradient; null: those of the forward one.
    double (*backward)(const WorkShapes &shapes, double forward) = nullptr;
    /// Whether input 2 is a bias: an addition for each element of output 0, where there is one, forward and
    /// backward.
    bool hasBias = false;
};

/// What is true of few kinds.
struct KindMarks {
    const char *words = nullptr; ///< What sentences call it, if not by its name.
    bool isDeclared = false; ///< Output types have to be declared, since the inputs' do not tell them.
    bool isElementwise = false; ///< With NumPy broadcasting, unary, binary or ternary.
    bool isView = false; ///< Output 0 may lie in the memory of input 0.
    /// Outputs that are statistics, or losses, whatever they are computed from.
    std::vector<std::size_t> statistics{};
};

struct KindEntry {
    OperatorKind kind = OperatorKind::Unknown;
    const char *name = ""; ///< As in the enumeration.
    OperatorCategory category = OperatorCategory::Other;
    Arity inputs{};
    TypesRule types = nullptr; ///< Types of the outputs; the number of inputs has been looked at.
    SplitRule splits{};
    GradientNeeds gradients{}; ///< None: it has no gradient.
    WorkRule work{};
    KindMarks marks{};
};

/// O(1).
const KindEntry &entryOf(OperatorKind kind);

// By family.
std::vector<KindEntry> elementwiseKinds();
std::vector<KindEntry> productKinds();
std::vector<KindEntry> windowKinds();
std::vector<KindEntry> normKinds();
std::vector<KindEntry> lossKinds();
std::vector<KindEntry> reductionKinds();
std::vector<KindEntry> shapingKinds();
std::vector<KindEntry> pickingKinds();
std::vector<KindEntry> axisKinds();
std::vector<KindEntry> compositeKinds();
std::vector<KindEntry> optimizerKinds();

} // namespace planloom
