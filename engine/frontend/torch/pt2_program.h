#pragma once

#include "engine/graph/shape.h"

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace planloom {

// An exported program of PyTorch (`torch.export`) as plain values: what `pt2_reader` makes of the archive's
// JSON and the importer works on. Names and meanings are those of PyTorch's own schema
// (torch/_export/serde/schema.py); what an importer has no use for (devices, memory formats) is left out.

/// A size: a number, or an expression of symbols, as in "4*s0" or "Mul(Integer(4), Symbol('s0'))".
struct Pt2Size {
    std::optional<std::int64_t> value{};
    std::string expression{};
};

/// What the file says of a tensor. `dataType` is missing if Planloom has no such type; `typeName` then says
/// which it was.
struct Pt2Meta {
    std::optional<DataType> dataType{};
    std::optional<DataType> partType{}; ///< Of complex numbers: that of their real and imaginary parts.
    std::string typeName{};
    std::vector<Pt2Size> sizes{};
    std::vector<Pt2Size> strides{}; ///< In elements.
    Pt2Size storageOffset{}; ///< In elements.
    bool requiresGradient = false;
    bool isStrided = true; ///< Not sparse.
    bool isMeta = false; ///< On the device "meta": it has no values anywhere.
};

struct Pt2Graph;

struct Pt2None {
};
/// A value of the graph that is a tensor, by name; an empty name is an absent one of a list.
struct Pt2Tensor {
    std::string name{};
};
/// A value of the graph that is a number or truth value known before a run, by name.
struct Pt2Symbol {
    std::string name{};
};
/// Of a list of numbers: one, or the name of one.
using Pt2Number = std::variant<std::int64_t, double, Pt2Symbol>;
struct Pt2DataType {
    std::optional<DataType> type{};
    std::string name{};
    std::optional<DataType> partType{}; ///< As of Pt2Meta.
};
/// What Planloom does not read: "custom_obj".
struct Pt2Unreadable {
    std::string kind{};
};
using Pt2Argument = std::variant<Pt2None, Pt2Tensor, std::vector<Pt2Tensor>, std::int64_t, double, bool,
    std::string, Pt2Symbol, std::vector<Pt2Number>, Pt2DataType, std::shared_ptr<const Pt2Graph>,
    Pt2Unreadable, std::complex<double>>;

struct Pt2NamedArgument {
    std::string name{}; ///< As the operator's schema calls it; may be empty.
    Pt2Argument value{};
};

struct Pt2Node {
    std::string name{};
    std::string target{}; ///< "torch.ops.aten.linear.default", "_operator.mul"
    std::vector<Pt2NamedArgument> inputs{};
    std::vector<Pt2Argument> outputs{};
    /// Paths of the modules it lies in, outermost first, each beginning with the one before it:
    /// "transformer", "transformer.h.0".
    std::vector<std::string> modules{};
};

struct Pt2Graph {
    std::vector<Pt2Argument> inputs{};
    std::vector<Pt2Argument> outputs{};
    std::vector<Pt2Node> nodes{};
    std::map<std::string, Pt2Meta> tensors{};
};

/// What an input of the program is.
enum class Pt2InputKind : std::uint8_t { User, Parameter, Buffer, Constant, Fixed, Unreadable };
struct Pt2InputSpec {
    Pt2InputKind kind = Pt2InputKind::User;
    Pt2Argument argument{}; ///< The graph's input.
    std::string target{}; ///< Of a parameter, buffer or constant: its name in the module; else a reason.
};

/// What an output of the program is: returned, or the new value of something that persists.
enum class Pt2OutputKind : std::uint8_t { User, Loss, Mutation, Gradient, Other };
struct Pt2OutputSpec {
    Pt2OutputKind kind = Pt2OutputKind::User;
    Pt2Argument argument{};
    std::string target{}; ///< What is changed.
};

/// Bounds of a symbol; absent ones are open.
struct Pt2Range {
    std::optional<std::int64_t> least{};
    std::optional<std::int64_t> most{};
};

struct Pt2Program {
    std::string torchVersion{};
    std::int64_t schemaMajor = 0;
    std::int64_t schemaMinor = 0;
    bool isCore = false; ///< After run_decompositions: core ATen, where nothing says where gradients stop.
    Pt2Graph graph{};
    std::map<std::string, std::string> moduleClasses{}; ///< By path, of the modules that nodes lie in.
    std::vector<Pt2InputSpec> inputs{};
    std::vector<Pt2OutputSpec> outputs{};
    std::map<std::string, Pt2Range> ranges{}; ///< By symbol.
};

} // namespace planloom
