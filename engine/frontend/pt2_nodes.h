#pragma once

#include "engine/base/result.h"
#include "engine/frontend/aten_operators.h"
#include "engine/frontend/pt2_frame.h"
#include "engine/frontend/pt2_symbols.h"

#include <cstddef>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace planloom {

/// Makes operators of the nodes of a program, one graph after the other.
class Pt2NodeImporter final : public OnnxScope
{
public:
    /// @param sizeOf  of the program's symbols, for the shapes that the file declares
    Pt2NodeImporter(OnnxBuilder &builder, Pt2SymbolLookup sizeOf, std::string where);

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
    std::optional<Classification> storedByNode(const OnnxTensor &) const override { return std::nullopt; }
    const OnnxValue *declared(const std::string &value) const override;
    Result<std::vector<TensorId>> inlineGraph(const OnnxGraph &, const std::vector<TensorId> &) override;
    Result<void> bind(const std::string &value, TensorId tensor) override;

private:
    Error nodeError(const Pt2Node &node, ErrorCode code, std::string message, std::string advice) const;
    Result<AtenValue> resolve(const Pt2Argument &argument, const Pt2Node &node) const;
    Result<AtenValue> valueOf(const std::string &name, const Pt2Node &node) const;
    Result<void> setOnce(const std::string &name, AtenValue value, const Pt2Node &node);
    std::vector<TensorId> tensorsOf(const Pt2Node &node) const;
    void keepOpaque(const Pt2Node &node, const Error *why);
    Result<void> importNode(const Pt2Node &node);
    Result<bool> importNumber(const Pt2Node &node);
    bool hasChosenRows(const Pt2Node &node, const std::vector<AtenValue> &arguments) const;
    bool readsChosenSize(const Pt2Node &node) const;
    Result<void> importInner(const Pt2Node &node, const std::string &target);
    Result<TensorId> withoutGradient(const Pt2Node &node, TensorId tensor);
    Result<TensorId> writtenAside(const Pt2Node &node, TensorId before, TensorId after);
    Result<void> keepWritten(
        const Pt2Node &node, const std::string &name, TensorId before, TensorId after, bool stopsGradients);
    void noteChanged(TensorId before, const std::string &name);
    Result<void> checkSharing(const Pt2Node &node, const std::string &written) const;
    bool keepsOrder(const Pt2Node &node, const std::map<std::string, AtenValue> &arguments) const;
    Result<void> importAten(const Pt2Node &node, const std::string &target);
    Result<void> call(const Pt2Node &node, const std::string &target, const std::string &name,
        std::map<std::string, AtenValue> arguments, const std::vector<std::string> &results);
    std::shared_ptr<const OperatorDefinition> definitionOf(const std::string &target) const;
    Result<void> checkDeclared(const Pt2Node &node, const std::vector<std::string> &results);
    Result<void> writeInPlace(const Pt2Node &node, const std::string &target, const std::string &name);
    Result<void> writeIntoBase(const Pt2Node &node, const Pt2Frame::View &view, const std::string &part);
    void noteViews(const Pt2Node &node, const std::string &name, const std::vector<std::string> &results);

    OnnxBuilder &m_builder;
    Pt2SymbolLookup m_sizeOf;
    std::string m_where;
    Pt2Frame *m_frame = nullptr;
    std::size_t m_position = 0;
    int m_depth = 0;
    std::size_t m_nodes = 0;
    std::unordered_set<std::string> m_outputs{};
    std::unordered_set<std::string> m_chosenSizes{}; ///< Numbers that come from sizes which data choose.
    mutable std::map<std::string, OnnxValue> m_declared{}; ///< Of the node at hand.
};

} // namespace planloom
