#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/onnx/onnx_model.h"
#include "engine/frontend/onnx/onnx_values.h"
#include "engine/frontend/passes/mixture/chosen_rows.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
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

    /// Says what a constant of a node is (import_onnx.h, "What is a weight"): a parameter is a Weight.
    void makeStored(TensorId id, const Classification &classification);
    /// Gives a tensor its name in the file, if it has none yet. Returns false if it has another one.
    bool nameTensor(TensorId id, const std::string &name);

    /// Takes a constant's name away, so that another tensor can have it; inputs and weights keep theirs.
    void unname(TensorId id);

    /// Appends an operator, or folds it. Infers and checks the output types. Values without elements are
    /// known, and what is computed from them needs no operator.
    ///
    /// @param name      of the operator; made unique
    /// @param source    the node it comes from
    /// @param declared  output types where the kind does not determine them
    /// @param mayFold   false keeps the operator even if its inputs are known
    Result<std::vector<TensorId>> emit(const std::string &name, const SourceNode &source, OperatorKind kind,
        Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
        bool mayFold = true);

    /// As `emit`, taking all dimensions for what they seem: rows that data choose are the caller's to follow.
    Result<std::vector<TensorId>> append(const std::string &name, const SourceNode &source, OperatorKind kind,
        Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared, bool mayFold);

    /// What is known of a value's rows that data choose; null if it has none.
    const ChosenRows *chosenRows(TensorId id) const;
    void setChosenRows(TensorId id, ChosenRows rows) { m_chosen.insert_or_assign(id.index, std::move(rows)); }
    /// The places that were found in a mask, or in one of the latest that is made alike, if any were.
    TensorId placesOf(TensorId mask) const;
    void setPlacesOf(TensorId mask, TensorId places) { m_places.emplace_back(mask, places); }
    /// Says that `counts` has how many elements of `of` are 0, 1, ..; and what was said so, or an invalid id.
    void setCounted(TensorId counts, TensorId of) { m_counted[counts.index] = of; }
    TensorId countedBy(TensorId counts) const
    {
        const auto found = m_counted.find(counts.index);
        return found == m_counted.end() ? TensorId{} : found->second;
    }
    /// Says that a known value has the sizes of dimensions `begin` .. `end` - 1 of `of`, which data may
    /// choose: good for shapes, wrong as a number.
    void noteSizes(TensorId sizes, TensorId of, std::size_t begin, std::size_t end);
    /// Says of a graph's outputs that have rows which data choose that there are others behind these.
    /// @return NotSupported if none is a number that may be a loss: then these rows are what the model is for
    Result<void> checkChosenOutputs(const std::vector<TensorId> &outputs);
    /// The room that a person gives operator `name`.
    Capacity capacityOf(const std::string &name) const;
    /// The dimension of a value that the batch leads; -1 if none.
    std::int32_t batchDimensionOf(TensorId id);
    /// Samples, as far as inputs say.
    std::int64_t batchSize();
    /// See `expectedShare`.
    double expectedShareOf(TensorId mask) const { return expectedShare(m_graph, m_producers, mask); }
    /// The operator that makes a value; invalid if none does.
    OperatorId producerOf(TensorId id) const { return m_producers[static_cast<std::size_t>(id.index)]; }
    /// The graph as it is by now.
    const Graph &graph() const { return m_graph; }
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

    /// The same value as a scalar that has its name, where it is floating and of one element: so losses are.
    /// All others as they are.
    Result<TensorId> scalarOf(TensorId id, const std::string &name);

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
    /// The operator's outputs where some of its inputs have no elements: sums of nothing, what is joined to
    /// nothing, and so on. Nothing for operators that this says nothing of.
    Result<std::optional<std::vector<TensorId>>> appendOfNothing(const std::string &name,
        const SourceNode &source, OperatorKind kind, const Attributes &attributes,
        const std::vector<TensorId> &inputs, const std::vector<TensorType> &outputs, bool mayFold);
    /// A Split of which some parts are empty: these are constants, the others are split.
    Result<std::vector<TensorId>> emitParts(const std::string &name, const SourceNode &source,
        Attributes attributes, TensorId x, const std::vector<TensorType> &outputs);
    /// Follows what data choose from inputs to known outputs. @return NotSupported where a number of rows is
    /// computed with
    Result<void> followSizes(const std::string &name, const SourceNode &source,
        const std::vector<TensorId> &inputs, const std::vector<TensorId> &outputs);
    /// True if both values are made by the same operators of the same values, as far as `depth` of them show.
    bool isMadeAlike(TensorId a, TensorId b, int depth) const;
    std::string uniqueOperatorName(const std::string &name);
    void nameTensors();

    const ImportOptions &m_options;
    std::int64_t m_opset = 0;
    Graph m_graph{};
    std::vector<bool> m_known{};
    std::vector<OperatorId> m_producers{}; ///< By tensor.
    std::unordered_map<std::int32_t, ChosenRows> m_chosen{}; ///< By tensor.
    std::vector<std::pair<TensorId, TensorId>> m_places{}; ///< Of masks, in order.
    std::unordered_map<std::int32_t, TensorId> m_counted{}; ///< By tensor of counts.
    std::unordered_map<std::int32_t, std::int64_t>
        m_chosenSizes{}; ///< By known tensor: the size that data choose.
    BatchDimensions m_batch{};
    std::unordered_map<std::string, std::int32_t> m_operatorNames{}; ///< How often each was asked for.
    std::unordered_map<std::string, std::int32_t> m_nameless{};
    std::unordered_multimap<std::size_t, std::shared_ptr<const TensorData>> m_interned{};
    std::map<std::string, std::shared_ptr<const TensorData>> m_filled{}; ///< By type and value, as text.
    std::size_t m_foldedBytes = 0;
    std::int64_t m_seed = 0;
};

} // namespace planloom
