#pragma once

#include "engine/base/result.h"
#include "engine/frontend/import_onnx.h"
#include "engine/frontend/onnx_model.h"
#include "engine/frontend/onnx_values.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace planloom {

/// A graph in the making during import: tensors with what is known of their values, operators in the order of
/// the file, each folded to a constant where all its inputs are.
///
/// A tensor is *known* if its values are at hand and no training changes them: Constant nodes, folded
/// results, Buffers with data. Only known tensors fold. Not thread-safe.
class OnnxBuilder
{
public:
    OnnxBuilder(const ImportOptions &options, std::int64_t opset);

    const ImportOptions &options() const { return m_options; }
    std::int64_t opset() const { return m_opset; }

    TensorId addInput(std::string name, TensorType type);
    /// A weight or buffer of the file.
    TensorId addStored(OnnxTensor tensor, TensorRole role);
    /// Says what a stored tensor was taken as, and how it is called where the file has another name for it.
    void classify(TensorId id, const Classification &classification, const std::string &name);
    /// A known value. Large equal ones share their memory.
    TensorId addConstant(std::shared_ptr<const TensorData> data, std::string name = {});

    const Tensor &at(TensorId id) const { return m_graph.at(id); }
    const TensorType &typeOf(TensorId id) const { return m_graph.at(id).type; }
    bool isKnown(TensorId id) const { return m_known[static_cast<std::size_t>(id.index)]; }

    /// The values of a tensor the file holds or that was folded, even of a weight: what an operator's shape
    /// or scale parameters are read from. Reads small external data. Null if they are not at hand.
    std::shared_ptr<const TensorData> valuesOf(TensorId id);

    /// Turns a known constant into a Weight (see import_onnx.h, rule 4).
    void makeWeight(TensorId id);
    /// Gives a tensor its name in the file, if it has none yet. Returns false if it has another one.
    bool nameTensor(TensorId id, const std::string &name);

    /// Takes a constant's name away, so that another tensor can have it; inputs and weights keep theirs.
    void unname(TensorId id);

    /// Appends an operator, or folds it. Infers and checks the output types.
    ///
    /// @param name      of the operator; made unique
    /// @param source    the node it comes from
    /// @param declared  output types where the kind does not determine them
    /// @param mayFold   false keeps the operator even if its inputs are known
    Result<std::vector<TensorId>> emit(const std::string &name, const SourceNode &source, OperatorKind kind,
        Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
        bool mayFold = true);

    /// Appends an operator of which nothing is known but its type and inputs (`ImportOptions::look`).
    /// @param why  what could not be read; null if only its inputs are to blame
    std::vector<TensorId> emitOpaque(const std::string &name, const SourceNode &source,
        std::vector<TensorId> inputs, std::size_t outputs, const Error *why);
    /// An input of a type that cannot be read.
    TensorId addOpaqueInput(const std::string &name, const Error &why);
    /// True if a tensor of unknown type is among them.
    bool areOpaque(const std::vector<TensorId> &tensors) const;
    /// True if importing may go on behind `error`: it is about one operator or input, and people want to look
    /// at the others.
    bool maySkip(const Error &error) const
    {
        return m_options.look
            && (error.code == ErrorCode::NotSupported || error.code == ErrorCode::InvalidInput);
    }

    /// True if a known value of this size may still be made; counts it if so.
    bool takeFoldedBytes(const TensorType &type);

    /// All elements of `type` equal to `value`, from one memory for equal requests. Null if too large.
    std::shared_ptr<const TensorData> filled(const TensorType &type, Number value);

    /// A number no other operator of this graph gets, for Dropout.
    std::int64_t nextSeed() { return ++m_seed; }
    /// "Add_17": a name for a node that has none.
    std::string nameless(const std::string &type);
    /// Adds a note once, however often it is given.
    void note(const std::string &text);

    /// The graph so far, with every tensor named. `outputs` become the graph's.
    Graph take(std::vector<TensorId> outputs);

private:
    TensorId addTensor(Tensor tensor, bool known);
    std::shared_ptr<const TensorData> interned(std::shared_ptr<const TensorData> data);
    /// A Split of which some parts are empty: these are constants, the others are split.
    Result<std::vector<TensorId>> emitParts(const std::string &name, const SourceNode &source,
        Attributes attributes, TensorId x, const std::vector<TensorType> &outputs);
    std::string uniqueOperatorName(const std::string &name);
    void nameTensors();

    const ImportOptions &m_options;
    std::int64_t m_opset = 0;
    Graph m_graph{};
    std::vector<bool> m_known{};
    std::unordered_map<std::string, std::int32_t> m_operatorNames{}; ///< How often each was asked for.
    std::unordered_map<std::string, std::int32_t> m_nameless{};
    std::unordered_multimap<std::size_t, std::shared_ptr<const TensorData>> m_interned{};
    std::map<std::string, std::shared_ptr<const TensorData>> m_filled{}; ///< By type and value, as text.
    std::size_t m_foldedBytes = 0;
    std::int64_t m_seed = 0;
};

} // namespace planloom
