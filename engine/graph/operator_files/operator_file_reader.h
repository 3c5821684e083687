#pragma once

// Private to the graph room: the reader of operator files.

#include "engine/graph/operator_files/operator_file.h"
#include "engine/graph/operator_files/operator_text.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Reads one file. Names that may stand before what they name is written are checked at the end of their
/// operator.
class OperatorFileReader
{
public:
    using Definition = OperatorDefinition;

    OperatorFileReader(
        std::string_view text, const std::string &name, const std::string &folder, const BodyReader &bodies)
        : m_text(text, name)
        , m_name(name)
        , m_folder(folder)
        , m_bodies(bodies)
    {
    }

    Result<std::vector<std::shared_ptr<const Definition>>> read();

private:
    using Check = std::function<Result<void>()>;
    using Statement = Result<void> (OperatorFileReader::*)();
    Result<void> readHeader();
    Result<void> readStatement();
    OperatorTextPlace placeOf(const std::string &statement) const;

    /// "my.ops::Swish", "Swish".
    Result<DefinedName> readDefinedName();
    Result<void> readOperator();
    Result<void> addName(const DefinedName &name, OperatorTextPlace place);
    Result<void> readAlso();

    /// A name that no other value, attribute or dimension of the operator has.
    Result<void> addValue(const std::string &name, OperatorTextPlace place);
    Result<void> readTensors(std::vector<DefinedTensor> &tensors, bool areInputs);
    Result<void> readTensorType(DefinedTensor &tensor, bool isInput);
    void checkInput(const std::string &name, OperatorTextPlace place);
    static std::string namesOf(const std::vector<DefinedTensor> &tensors);
    Result<void> readInputs() { return readTensors(m_definition->inputs, true); }
    Result<void> readOutputs() { return readTensors(m_definition->outputs, false); }
    Result<void> readSaves() { return readTensors(m_definition->saved, false); }

    /// The value of a constant expression.
    Result<double> takeNumber();
    Result<void> readAttribute();

    /// "1" is an integer, "1.0" and "1e3" are not.
    static Attribute numberOf(double number, const std::string &written);
    Result<std::optional<Attribute>> readNumbers();
    Result<void> readAnnotation();
    Result<void> readLinear();
    Result<void> readWhere();

    /// An expression whose names are checked once all are known.
    Result<SizeExpression> takeKnown();
    void checkNames(const SizeExpression &expression, OperatorTextPlace place);
    Result<void> readShape();

    /// "[b, 2 * s]"; "[]" is a scalar.
    Result<std::vector<SizeExpression>> readExtents();
    Result<void> readFlops();
    Result<void> readBackwardFlops();
    Result<void> readWorkspace();
    Result<void> readUnits();
    std::string inFolder(const std::string &path) const;
    Result<void> readLibrary();
    Result<void> readTorch();
    Result<void> readDerivative();
    Result<void> readDerivativeValues(std::vector<DerivativeValue> &values, bool made);
    Result<void> readBody();
    /// What stands behind the word where the body is in another file.
    Result<void> readBodySource();
    /// Reads that body, once all other lines of the operator are known.
    Result<void> takeBodySource();
    Result<void> readStep();
    Result<void> readArguments(BodyStep &step);
    Result<void> readStepAttribute(BodyStep &step, const std::string &name, OperatorTextPlace place);

    /// Ends the operator that was read: what had to wait is checked.
    Result<void> finishOperator();
    /// Gives derivatives their operators.
    Result<std::vector<std::shared_ptr<const Definition>>> resolve();
    Result<void> checkGradientOperator(
        const Definition &definition, const Definition &gradient, OperatorTextPlace place) const;

    OperatorText m_text;
    std::string m_name;
    std::string m_folder;
    const BodyReader &m_bodies;
    std::optional<BodySource> m_bodySource; ///< Of this operator.
    std::unique_ptr<Definition> m_definition;
    OperatorTextPlace m_operatorPlace{};
    OperatorTextPlace m_annotationPlace{};
    OperatorTextPlace m_derivativePlace{};
    std::map<std::string, OperatorTextPlace> m_places; ///< Of the statements of this operator.
    std::map<std::string, std::size_t> m_values; ///< Names of its tensors and attributes.
    std::set<std::string> m_dimensions;
    std::set<std::string> m_made; ///< Values that the body has made so far.
    std::vector<Check> m_checks; ///< In the order of the text.
    std::map<DefinedName, std::size_t> m_names; ///< Of all operators, with their lines.
    std::vector<std::pair<std::unique_ptr<Definition>, OperatorTextPlace>>
        m_read; ///< With where their derivatives stand.
};

/// "float32", ... as one of a pTensor's element types.
std::optional<DataType> elementTypeNamed(std::string_view name);

} // namespace planloom
