#pragma once

#include "engine/base/result.h"
#include "engine/frontend/writer/graph_writer.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Makes one operator of which an input has rows that data choose (chosen_rows.h), so that the rows without
/// place change neither results nor gradients.
///
/// What works row by row is made as it is; what picks or writes at places gets them as such; sums, means and
/// losses over the rows leave out those without place. Anything else is refused.
class ChosenWriter
{
public:
    ChosenWriter(GraphWriter &writer, std::string name, SourceNode source)
        : m_writer(writer)
        , m_name(std::move(name))
        , m_source(std::move(source))
    {
    }

    /// As `GraphWriter::emit`. @return NotSupported where rows without place would count
    Result<std::vector<TensorId>> write(OperatorKind kind, Attributes attributes,
        std::vector<TensorId> inputs, std::vector<TensorType> declared);

private:
    using Outputs = Result<std::vector<TensorId>>;
    Outputs append(OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs,
        std::vector<TensorType> declared = {}, const char *suffix = "");
    Outputs byRow(OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs,
        std::vector<TensorType> declared);
    Outputs gather(Attributes attributes, const std::vector<TensorId> &inputs);
    Outputs gatherND(Attributes attributes, const std::vector<TensorId> &inputs);
    Outputs gatherElements(Attributes attributes, const std::vector<TensorId> &inputs);
    Outputs scatterND(Attributes attributes, const std::vector<TensorId> &inputs);
    Outputs scatterElements(Attributes attributes, const std::vector<TensorId> &inputs);
    /// The list [c ..] divided among `parts`: [parts c/parts ..], where c is how many there are.
    Outputs divide(const std::vector<TensorId> &inputs, TensorType type);
    /// The last row of each part of a divided list: [parts ..].
    Outputs lastOfParts(const Attributes &attributes, const std::vector<TensorId> &inputs);
    Outputs reduce(OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs);
    Outputs loss(OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs);
    /// For each row whether it has a place, [1 .. c .. 1] with `rank` dimensions and c in `dimension`.
    Result<TensorId> hasPlace(const ChosenRows &rows, std::size_t rank, std::size_t dimension);
    /// `x` where its row has a place, `value` elsewhere.
    Result<TensorId> orElse(TensorId x, double value);
    Result<TensorId> reshaped(TensorId x, Shape shape, const char *suffix);
    /// The places that were spread over the elements of `x`, which all are at the same place of dimension
    /// `axis`; nothing if there are none.
    std::optional<TensorId> beforeExpand(TensorId x, std::size_t axis) const;
    /// In how many parts the places are about parts of dimension `axis` of `x` of their own.
    std::int64_t groupsOf(const ChosenRows &rows, TensorId x, std::size_t axis);
    Error refused(const std::string &why) const;

    GraphWriter &m_writer;
    std::string m_name;
    SourceNode m_source;
};

/// The places of what is not zero in `mask`, whose values are not known: a NonZero with room for as many as
/// `ImportOptions::capacities` says, [r c]. Equal masks have the same.
/// @return NotSupported for a mask over rows that data choose themselves
Result<TensorId> choosePlaces(
    GraphWriter &writer, const std::string &name, const SourceNode &source, TensorId mask);

} // namespace planloom
