#pragma once

#include "engine/base/result.h"
#include "engine/frontend/import_options.h"
#include "engine/frontend/writer/chosen_values.h"
#include "engine/frontend/writer/constant_pool.h"
#include "engine/frontend/writer/operator_names.h"
#include "engine/frontend/writer/stored_tensor.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// The types of an operator's inputs and outputs, once they are found and checked.
struct OperatorTypes {
    std::vector<TensorType> inputs{};
    std::vector<TensorType> outputs{};
};

/// A graph in the making during import, whatever the format: tensors with what is known of their values,
/// operators in the order of the file, each folded to a constant where all its inputs are.
///
/// A tensor is *known* if its values are at hand and no training changes them: constants, folded results,
/// Buffers with data. Only known tensors fold. Not thread-safe.
class GraphWriter
{
public:
    explicit GraphWriter(const ImportOptions &options)
        : m_options(options)
        , m_constants(options.mostFoldedBytes)
    {
    }

    const ImportOptions &options() const { return m_options; }

    TensorId addInput(std::string name, TensorType type);
    /// A weight or buffer of the file.
    TensorId addStored(StoredTensor tensor, TensorRole role);
    /// Says what a stored tensor was taken as, and how it is called where the file has another name for it.
    void classify(TensorId id, const Classification &classification, const std::string &name);
    /// A known value. Large equal ones share their memory.
    TensorId addConstant(std::shared_ptr<const TensorData> data, std::string name = {});

    const Tensor &at(TensorId id) const { return m_graph.at(id); }
    const TensorType &typeOf(TensorId id) const { return m_graph.at(id).type; }
    bool isKnown(TensorId id) const { return m_known[static_cast<std::size_t>(id.index)]; }
    /// The graph as it is by now.
    const Graph &written() const { return m_graph; }
    /// The operator that makes a value; invalid if none does.
    OperatorId producerOf(TensorId id) const { return m_producers[static_cast<std::size_t>(id.index)]; }

    /// The values of a tensor the file holds or that was folded, even of a weight: what an operator's shape
    /// or scale parameters are read from. Reads small external data. Null if they are not at hand.
    std::shared_ptr<const TensorData> valuesOf(TensorId id) const
    {
        return valuesUpTo(at(id), kMostParameterBytes);
    }

    /// Says what a constant of a node is (import_onnx.h, "What is a weight"): a parameter is a Weight.
    void makeStored(TensorId id, const Classification &classification);
    /// Gives a tensor its name in the file, if it has none yet. Returns false if it has another one.
    bool nameTensor(TensorId id, const std::string &name);
    /// Takes away the name of a constant or of what an operator makes, so that another tensor can have it;
    /// inputs and weights keep theirs.
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

    /// What is known of rows that data choose.
    ChosenValues &chosen() { return m_chosen; }
    const ChosenValues &chosen() const { return m_chosen; }
    /// The places that were found in a mask, or in one of the latest that is made alike, if any were.
    TensorId placesOf(TensorId mask) const;
    /// Says that a known value has the sizes of dimensions `begin` .. `end` - 1 of `of`, which data may
    /// choose: good for shapes, wrong as a number.
    void noteSizes(TensorId sizes, TensorId of, std::size_t begin, std::size_t end);
    /// The dimension of a value that the batch leads; -1 if none.
    std::int32_t batchDimensionOf(TensorId id);
    /// Samples, as far as inputs say.
    std::int64_t batchSize();
    /// See `expectedShare`.
    double expectedShareOf(TensorId mask) const { return expectedShare(m_graph, m_producers, mask); }

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

    /// Memory for known values.
    ConstantPool &constants() { return m_constants; }
    OperatorNames &names() { return m_names; }
    /// A number no other operator of this graph gets, for Dropout.
    std::int64_t nextSeed() { return ++m_seed; }
    /// Adds a note once, however often it is given.
    void note(const std::string &text);

    /// The graph so far, with every tensor named. `outputs` become the graph's.
    Graph take(std::vector<TensorId> outputs);

private:
    /// An operator that is to be appended.
    struct Draft {
        const std::string &name;
        const SourceNode &source;
        OperatorKind kind = OperatorKind::Unknown;
        Attributes attributes{};
        std::vector<TensorId> inputs{};
        bool mayFold = true;

        Error error(ErrorCode code, const std::string &what, std::string advice) const;
        Error tooMany(std::size_t most, const char *what) const;
    };
    using Made = std::optional<std::vector<TensorId>>; ///< Nothing where it is not made that way.

    TensorId addTensor(Tensor tensor, bool known);
    TensorId addEmpty(const TensorType &type);
    Result<OperatorTypes> typesOf(const Draft &draft, const std::vector<TensorType> &declared) const;
    Made fold(const Draft &draft, const OperatorTypes &types);
    /// The outputs where they, or some of the inputs, have no elements.
    Result<Made> appendWithoutElements(const Draft &draft, const std::vector<TensorType> &outputs);
    /// The outputs where some inputs have no elements: sums of nothing, what is joined to nothing, and so
    /// on. Nothing for operators that this says nothing of.
    Result<Made> appendOfNothing(const Draft &draft, const std::vector<TensorType> &outputs);
    /// A Split of which some parts are empty: these are constants, the others are split.
    Result<std::vector<TensorId>> emitParts(const Draft &draft, const std::vector<TensorType> &outputs);
    /// Follows what data choose from inputs to known outputs. @return NotSupported where a number of rows is
    /// computed with
    Result<void> followSizes(const std::string &name, const SourceNode &source,
        const std::vector<TensorId> &inputs, const std::vector<TensorId> &outputs);
    /// True if both values are made by the same operators of the same values, as far as `depth` of them show.
    bool isMadeAlike(TensorId a, TensorId b, int depth) const;

    static constexpr std::int64_t kMostParameterBytes = std::int64_t{1} << 20; ///< Of shapes, axes.

    const ImportOptions &m_options;
    Graph m_graph{};
    std::vector<bool> m_known{}; ///< By tensor.
    std::vector<OperatorId> m_producers{}; ///< By tensor.
    ChosenValues m_chosen{};
    BatchDimensions m_batch{};
    OperatorNames m_names{};
    ConstantPool m_constants;
    std::int64_t m_seed = 0;
};

/// Attributes from a list: `attributesFrom({{"axis", axis}})`.
Attributes attributesFrom(std::initializer_list<std::pair<std::string_view, Attribute>> values);

} // namespace planloom
