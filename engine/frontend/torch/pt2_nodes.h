#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/aten/aten_operators.h"
#include "engine/frontend/torch/pt2_arguments.h"
#include "engine/frontend/torch/pt2_frame.h"
#include "engine/frontend/torch/pt2_numbers.h"
#include "engine/frontend/torch/pt2_symbols.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace planloom {

/// Makes operators of the nodes of a program, one graph after the other.
class Pt2NodeImporter final : public ValueScope
{
public:
    /// @param sizeOf  of the program's symbols, for the shapes that the file declares
    Pt2NodeImporter(GraphWriter &writer, Pt2SymbolLookup sizeOf, std::string where);

    /// Imports all nodes of the frame's graph, whose inputs have values.
    /// @return the graph's outputs; nothing in the place of those that no node makes
    Result<std::vector<AtenValue>> run(Pt2Frame &frame);

    /// Names of values that the program returns: they keep their names.
    void setOutputs(std::unordered_set<std::string> names) { m_outputs = std::move(names); }

    /// The type that the file declares, with the symbols' sizes. @return nothing where it says none
    std::optional<TensorType> declaredType(const Pt2Meta &meta) const;

    bool isUsed(const std::string &value) const override { return m_frame->isUsed(value); }
    bool isOutput(const std::string &value) const override
    {
        return m_depth == 1 && m_outputs.count(value) != 0;
    }
    std::optional<TensorType> declaredType(const std::string &value) const override;
    Result<void> bind(const std::string &value, TensorId tensor) override;

private:
    void keepOpaque(const Pt2Node &node, const Error *why);
    NodeWriter writerOf(const Pt2Node &node, std::vector<std::string> results);
    Result<void> importNode(const Pt2Node &node);
    // Graphs that nodes call (pt2_control.cpp).
    struct GraphCall;
    Result<void> importInner(const Pt2Node &node, const std::string &target);
    Result<GraphCall> graphCall(const Pt2Node &node) const;
    /// @param written  what the graph's inputs are at its end, where it is asked for
    Result<std::vector<AtenValue>> runGraph(const Pt2Node &node, const Pt2Graph &graph,
        std::vector<AtenValue> arguments, std::vector<AtenValue> *written = nullptr);
    Result<std::vector<AtenValue>> make(const Pt2Node &node, const std::string &name, AtenArguments arguments,
        std::size_t results, const std::string &suffix);
    Result<AtenValue> makeOne(
        const Pt2Node &node, const std::string &name, AtenArguments arguments, const std::string &suffix);
    Result<void> bindResults(const Pt2Node &node, std::vector<AtenValue> outputs);
    Result<std::vector<AtenValue>> stopGradients(const Pt2Node &node, std::vector<AtenValue> outputs);
    Result<std::vector<std::vector<AtenValue>>> stepsOf(
        const Pt2Node &node, const std::vector<AtenValue> &sequences);
    Result<AtenValue> stackSteps(const Pt2Node &node, std::size_t slot, const std::vector<AtenValue> &steps);
    Result<std::optional<bool>> truthOf(const AtenValue &value);
    Result<std::vector<AtenValue>> runScan(const Pt2Node &node, const GraphCall &call);
    Result<std::vector<AtenValue>> runAssociativeScan(const Pt2Node &node, const GraphCall &call);
    Result<std::vector<AtenValue>> runMap(const Pt2Node &node, const GraphCall &call);
    Result<std::vector<AtenValue>> runWhile(const Pt2Node &node, const GraphCall &call);
    Result<std::vector<AtenValue>> runCondition(const Pt2Node &node, const GraphCall &call);
    Result<std::vector<AtenValue>> runSide(const Pt2Node &node, const Pt2Graph &graph,
        std::vector<AtenValue> operands, TensorId condition, bool side);
    Result<AtenValue> selectSide(
        const Pt2Node &node, TensorId condition, const AtenValue &whenTrue, const AtenValue &whenFalse);
    Result<TensorId> withoutGradient(const Pt2Node &node, TensorId tensor);
    Result<TensorId> writtenAside(const Pt2Node &node, TensorId before, TensorId after);
    Result<void> keepWritten(
        const Pt2Node &node, const std::string &name, TensorId before, TensorId after, bool stopsGradients);
    void noteChanged(TensorId before, const std::string &name);
    Result<void> checkSharing(const Pt2Node &node, const std::string &written) const;
    bool keepsOrder(const Pt2Node &node, const std::map<std::string, AtenValue> &arguments) const;
    Result<void> importAten(const Pt2Node &node, const std::string &target);
    Result<void> call(const Pt2Node &node, const std::string &target, const std::string &name,
        AtenArguments arguments, const std::vector<std::string> &results);
    std::shared_ptr<const OperatorDefinition> definitionOf(const std::string &target) const;
    Result<void> checkDeclared(const Pt2Node &node, const std::vector<std::string> &results);
    Result<void> writeInPlace(const Pt2Node &node, const std::string &target, const std::string &name);
    Result<void> writeIntoBase(const Pt2Node &node, const Pt2Frame::View &view, const std::string &part);
    void noteViews(const Pt2Node &node, const std::string &name, const std::vector<std::string> &results);

    GraphWriter &m_writer;
    Pt2SymbolLookup m_sizeOf;
    Pt2Numbers m_numbers;
    std::string m_where;
    Pt2Frame *m_frame = nullptr;
    std::size_t m_position = 0;
    int m_depth = 0;
    std::vector<std::string> m_modules{}; ///< Of the node that calls the graph at hand.
    std::size_t m_nodes = 0;
    std::unordered_set<std::string> m_outputs{};
};

} // namespace planloom
