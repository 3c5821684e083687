#include "engine/graph/operator_file.h"

#include "engine/graph/annotation.h"
#include "engine/graph/operator_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

namespace planloom {

namespace {

constexpr std::string_view kHeader = "planloom-operators";
constexpr int kFormatVersion = 1;
constexpr std::size_t kMostDefinitions = 1'000;
constexpr std::size_t kMostBodySteps = 1'000;
constexpr std::size_t kMostValues = 64; ///< Inputs, outputs, attributes: of each.
constexpr const char *kHelp = "resources/operators.md describes the file";

std::optional<DataType> namedType(std::string_view name)
{
    for (int i = 0; i <= static_cast<int>(DataType::Bool); ++i)
        if (name == nameOf(static_cast<DataType>(i)))
            return static_cast<DataType>(i);
    return std::nullopt;
}

/// What a body may not have, and why; null for all other kinds.
const char *whyNotInBody(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Dropout:
        return "draws by an element's place in the whole tensor, which a body does not know";
    case OperatorKind::SgdStep:
    case OperatorKind::AdamWStep:
        return "is a step of an optimizer";
    case OperatorKind::Custom:
    case OperatorKind::Unknown:
        return "is not an operator by itself";
    default:
        return nullptr;
    }
}

using Definition = OperatorDefinition;

/// Reads one file. Names that may stand before what they name is written are checked at the end of their
/// operator.
class OperatorFileReader
{
public:
    OperatorFileReader(std::string_view text, const std::string &name, const std::string &folder)
        : m_text(text, name)
        , m_name(name)
        , m_folder(folder)
    {
    }

    Result<std::vector<std::shared_ptr<const Definition>>> read()
    {
        TRY_VOID(readHeader());
        while (m_text.nextLine()) {
            TRY_VOID(readStatement());
        }
        TRY_VOID(finishOperator());
        return resolve();
    }

private:
    using Check = std::function<Result<void>()>;
    using Statement = Result<void> (OperatorFileReader::*)();

    Result<void> readHeader()
    {
        m_text.nextLine();
        const OperatorTextPlace begin = m_text.place();
        const std::string advice = "begin the file with the line: planloom-operators 1";
        if (!m_text.take(kHeader))
            return m_text.fail(
                begin, "this is no operator file: expected '" + std::string(kHeader) + " 1'", advice);
        TRY(const SizeExpression version, m_text.takeExpression());
        TRY_VOID(m_text.expectEnd());
        if (version.steps.size() != 1 || version.steps[0].number != kFormatVersion)
            return m_text.fail(begin,
                "the file is of version " + toString(version) + ", where version 1 was expected", advice);
        return {};
    }

    Result<void> readStatement()
    {
        static const std::map<std::string_view, Statement> kStatements{
            {"also", &OperatorFileReader::readAlso}, {"annotation", &OperatorFileReader::readAnnotation},
            {"attribute", &OperatorFileReader::readAttribute},
            {"backward_flops", &OperatorFileReader::readBackwardFlops},
            {"body", &OperatorFileReader::readBody}, {"derivative", &OperatorFileReader::readDerivative},
            {"flops", &OperatorFileReader::readFlops}, {"inputs", &OperatorFileReader::readInputs},
            {"library", &OperatorFileReader::readLibrary}, {"linear", &OperatorFileReader::readLinear},
            {"operator", &OperatorFileReader::readOperator}, {"outputs", &OperatorFileReader::readOutputs},
            {"saves", &OperatorFileReader::readSaves}, {"shape", &OperatorFileReader::readShape},
            {"units", &OperatorFileReader::readUnits}, {"where", &OperatorFileReader::readWhere},
            {"workspace", &OperatorFileReader::readWorkspace}};
        static const std::set<std::string_view> kRepeated{"also", "attribute", "shape", "where", "operator"};
        const OperatorTextPlace begin = m_text.place();
        const std::string word(m_text.peekName());
        const auto statement = kStatements.find(word);
        if (statement == kStatements.end()) {
            std::string known;
            for (const auto &[name, read] : kStatements)
                known += (known.empty() ? "" : ", ") + std::string(name);
            return m_text.expected("a statement", "known: " + known + "; " + kHelp);
        }
        static_cast<void>(m_text.takeName("a statement"));
        if (word != "operator") {
            if (!m_definition)
                return m_text.fail(begin, "'" + word + "' stands before the first operator",
                    "begin with the line: operator DOMAIN::TYPE");
            if (!m_places.emplace(word, begin).second && kRepeated.count(word) == 0)
                return m_text.fail(
                    begin, "'" + word + "' stands twice in this operator", "keep one of the two");
        }
        TRY_VOID((this->*statement->second)());
        return m_text.expectEnd();
    }

    OperatorTextPlace placeOf(const std::string &statement) const
    {
        const auto found = m_places.find(statement);
        return found == m_places.end() ? m_operatorPlace : found->second;
    }

    /// "my.ops::Swish", "Swish".
    Result<DefinedName> readDefinedName()
    {
        DefinedName name;
        name.type = m_text.takeDotted();
        if (name.type.empty())
            return m_text.expected("the name of an operator, as in my.ops::Swish");
        if (m_text.take("::")) {
            name.domain = std::move(name.type);
            name.type = m_text.takeDotted();
            if (name.type.empty())
                return m_text.expected("the type of an operator behind its domain");
        }
        if (name.domain == "ai.onnx")
            name.domain.clear();
        return name;
    }

    Result<void> readOperator()
    {
        TRY_VOID(finishOperator());
        m_operatorPlace = m_text.place();
        if (m_read.size() == kMostDefinitions)
            return m_text.fail(m_operatorPlace,
                "expected at most " + std::to_string(kMostDefinitions) + " operators", "make several files");
        auto definition = std::make_unique<Definition>();
        TRY(definition->name, readDefinedName());
        definition->file = m_name;
        definition->line = static_cast<std::int32_t>(m_operatorPlace.line);
        m_definition = std::move(definition);
        return addName(m_definition->name, m_operatorPlace);
    }

    Result<void> addName(const DefinedName &name, OperatorTextPlace place)
    {
        const auto [known, isNew] = m_names.emplace(name, place.line);
        if (!isNew)
            return m_text.fail(place,
                "the operator " + toString(name) + " is defined in line " + std::to_string(known->second)
                    + " already",
                "keep one of the two");
        return {};
    }

    Result<void> readAlso()
    {
        const OperatorTextPlace place = m_text.place();
        TRY(DefinedName name, readDefinedName());
        TRY_VOID(addName(name, place));
        m_definition->alsoNamed.push_back(std::move(name));
        return {};
    }

    /// A name that no other value, attribute or dimension of the operator has.
    Result<void> addValue(const std::string &name, OperatorTextPlace place)
    {
        if (!m_values.emplace(name, place.line).second)
            return m_text.fail(
                place, "'" + name + "' is a name that this operator has already", "name it otherwise");
        return {};
    }

    Result<void> readTensors(std::vector<DefinedTensor> &tensors, bool areInputs)
    {
        do {
            DefinedTensor tensor;
            tensor.optional = areInputs && m_text.take("[");
            const OperatorTextPlace place = m_text.place();
            TRY(tensor.name, m_text.takeName(areInputs ? "the name of an input" : "the name of an output"));
            if (tensor.name == "d")
                return m_text.fail(place, "'d' is what gradients begin with", "name it otherwise");
            TRY_VOID(addValue(tensor.name, place));
            if (m_text.take(":"))
                TRY_VOID(readTensorType(tensor, areInputs));
            if (tensor.optional)
                TRY_VOID(m_text.expect(']'));
            if (tensors.size() == kMostValues)
                return m_text.fail(place, "expected at most " + std::to_string(kMostValues) + " tensors");
            tensors.push_back(std::move(tensor));
        } while (m_text.take(","));
        return {};
    }

    Result<void> readTensorType(DefinedTensor &tensor, bool isInput)
    {
        const OperatorTextPlace place = m_text.place();
        const std::string what =
            isInput ? "an element type, as in int64" : "an element type, or 'like INPUT'";
        TRY(const std::string word, m_text.takeName(what));
        if (!isInput && word == "like") {
            const OperatorTextPlace at = m_text.place();
            TRY(tensor.like, m_text.takeName("the name of an input"));
            checkInput(tensor.like, at);
            return {};
        }
        tensor.type = namedType(word);
        if (!tensor.type)
            return m_text.fail(place, "'" + word + "' is no element type",
                "known: float32, float16, bfloat16, float64, int64, int32, int16, int8, uint8, bool");
        return {};
    }

    void checkInput(const std::string &name, OperatorTextPlace place)
    {
        m_checks.push_back([this, name, place]() -> Result<void> {
            if (inputNamed(*m_definition, name) < 0)
                return m_text.fail(place, "'" + name + "' is no input of this operator",
                    "name one of: " + namesOf(m_definition->inputs));
            return {};
        });
    }

    static std::string namesOf(const std::vector<DefinedTensor> &tensors)
    {
        std::string names;
        for (const DefinedTensor &tensor : tensors)
            names += (names.empty() ? "" : ", ") + tensor.name;
        return names;
    }

    Result<void> readInputs() { return readTensors(m_definition->inputs, true); }
    Result<void> readOutputs() { return readTensors(m_definition->outputs, false); }
    Result<void> readSaves() { return readTensors(m_definition->saved, false); }

    /// The value of a constant expression.
    Result<double> takeNumber()
    {
        const OperatorTextPlace place = m_text.place();
        TRY(const SizeExpression expression, m_text.takeExpression());
        const auto number = evaluate(expression, [](const std::string &, bool) { return std::nullopt; });
        if (!number)
            return m_text.fail(place, "expected a number: " + number.error().message);
        return *number;
    }

    Result<void> readAttribute()
    {
        const OperatorTextPlace place = m_text.place();
        DefinedAttribute attribute;
        TRY(attribute.name, m_text.takeName("the name of an attribute"));
        TRY_VOID(addValue(attribute.name, place));
        if (m_text.take("=")) {
            if (m_text.peek() == '"') {
                TRY(std::string text, m_text.takeQuoted());
                attribute.fallback = Attribute(std::move(text));
            } else if (m_text.take("[")) {
                TRY(attribute.fallback, readNumbers());
            } else {
                const std::string written(m_text.peekNumber());
                TRY(const double number, takeNumber());
                attribute.fallback = numberOf(number, written);
            }
        }
        if (m_definition->attributes.size() == kMostValues)
            return m_text.fail(place, "expected at most " + std::to_string(kMostValues) + " attributes");
        m_definition->attributes.push_back(std::move(attribute));
        return {};
    }

    /// "1" is an integer, "1.0" and "1e3" are not.
    static Attribute numberOf(double number, const std::string &written)
    {
        const bool real = written.find_first_of(".e/") != std::string::npos
            || number != static_cast<double>(static_cast<std::int64_t>(std::clamp(number, -9e15, 9e15)));
        return real ? Attribute(number) : Attribute(static_cast<std::int64_t>(number));
    }

    Result<std::optional<Attribute>> readNumbers()
    {
        std::vector<double> numbers;
        bool real = false;
        while (!m_text.take("]")) {
            if (!numbers.empty())
                TRY_VOID(m_text.expect(','));
            const std::string written(m_text.peekNumber());
            TRY(const double number, takeNumber());
            real = real || std::holds_alternative<double>(numberOf(number, written));
            numbers.push_back(number);
        }
        if (real)
            return std::optional<Attribute>(std::move(numbers));
        return std::optional<Attribute>(std::vector<std::int64_t>(numbers.begin(), numbers.end()));
    }

    Result<void> readAnnotation()
    {
        const auto [text, place] = m_text.takeRest();
        if (text.empty())
            return m_text.expected("dimensions, as in b m k+, k+ n -> b m n");
        m_definition->annotation = text;
        m_annotationPlace = place;
        return {};
    }

    Result<void> readLinear()
    {
        do {
            const OperatorTextPlace place = m_text.place();
            TRY(std::string name, m_text.takeName("the name of an input"));
            checkInput(name, place);
            m_definition->linear.push_back(std::move(name));
        } while (m_text.take(","));
        return {};
    }

    Result<void> readWhere()
    {
        const OperatorTextPlace place = m_text.place();
        NamedExpression size;
        TRY(size.name, m_text.takeName("the name of a dimension"));
        TRY_VOID(m_text.expect('='));
        TRY(size.value, takeKnown());
        m_checks.push_back([this, name = size.name, place]() -> Result<void> {
            if (m_dimensions.count(name) == 0)
                return m_text.fail(
                    place, "'" + name + "' is no dimension of the annotation", "write it there");
            return {};
        });
        m_definition->sizes.push_back(std::move(size));
        return {};
    }

    /// An expression whose names are checked once all are known.
    Result<SizeExpression> takeKnown()
    {
        const OperatorTextPlace place = m_text.place();
        TRY(SizeExpression expression, m_text.takeExpression());
        checkNames(expression, place);
        return expression;
    }

    void checkNames(const SizeExpression &expression, OperatorTextPlace place)
    {
        for (const SizeExpression::Step &step : expression.steps) {
            if (step.action != SizeExpression::Action::Name && step.action != SizeExpression::Action::Whole)
                continue;
            const bool whole = step.action == SizeExpression::Action::Whole;
            m_checks.push_back([this, name = step.name, whole, place]() -> Result<void> {
                const auto &attributes = m_definition->attributes;
                const bool attribute = std::any_of(attributes.begin(), attributes.end(),
                    [&](const DefinedAttribute &a) { return a.name == name; });
                if (m_dimensions.count(name) == 0 && (whole || !attribute))
                    return m_text.fail(place,
                        "'" + name + "' is no dimension of the annotation"
                            + (whole ? "" : " and no attribute"),
                        "use a name that the annotation or a line 'attribute' has");
                return {};
            });
        }
    }

    Result<void> readShape()
    {
        const OperatorTextPlace place = m_text.place();
        DefinedShape shape;
        TRY(shape.name, m_text.takeName("the name of an output"));
        TRY_VOID(m_text.expect('='));
        TRY(shape.extents, readExtents());
        m_checks.push_back([this, name = shape.name, place]() -> Result<void> {
            if (resultNamed(*m_definition, name) < 0)
                return m_text.fail(place, "'" + name + "' is no output of this operator",
                    "name one of: " + namesOf(m_definition->outputs));
            return {};
        });
        m_definition->shapes.push_back(std::move(shape));
        return {};
    }

    /// "[b, 2 * s]"; "[]" is a scalar.
    Result<std::vector<SizeExpression>> readExtents()
    {
        TRY_VOID(m_text.expect('['));
        std::vector<SizeExpression> extents;
        while (!m_text.take("]")) {
            if (!extents.empty())
                TRY_VOID(m_text.expect(','));
            TRY(SizeExpression extent, takeKnown());
            extents.push_back(std::move(extent));
        }
        return extents;
    }

    Result<void> readFlops()
    {
        TRY(m_definition->flops, takeKnown());
        return {};
    }
    Result<void> readBackwardFlops()
    {
        TRY(m_definition->backwardFlops, takeKnown());
        return {};
    }
    Result<void> readWorkspace()
    {
        TRY(m_definition->workspace, takeKnown());
        return {};
    }

    Result<void> readUnits()
    {
        const OperatorTextPlace place = m_text.place();
        TRY(const std::string word, m_text.takeName("'matrix' or 'vector'"));
        if (word != "matrix" && word != "vector")
            return m_text.fail(place, "expected 'matrix' or 'vector', found '" + word + "'");
        m_definition->matrixUnits = word == "matrix";
        return {};
    }

    Result<void> readLibrary()
    {
        const OperatorTextPlace place = m_text.place();
        DefinedLibrary library;
        TRY(library.path, m_text.takeQuoted());
        if (library.path.empty() || library.path.find('\0') != std::string::npos)
            return m_text.fail(
                place, "expected the path of a shared library", "as in: library \"libmyops.so\" my_function");
        if (!m_folder.empty())
            library.path = (std::filesystem::path(m_folder) / library.path).lexically_normal().string();
        TRY(library.function, m_text.takeName("the name of a function in it"));
        m_definition->library = std::move(library);
        return {};
    }

    Result<void> readDerivative()
    {
        DefinedDerivative &derivative = m_definition->derivative;
        m_derivativePlace = m_text.place();
        TRY(derivative.operatorName, readDefinedName());
        if (m_text.peek() == '\0' && derivative.operatorName.domain.empty()) {
            const std::string word = std::exchange(derivative.operatorName.type, {});
            if (word != "none" && word != "body")
                return m_text.fail(m_derivativePlace,
                    "expected 'body', 'none' or another operator with what it reads and makes, found '" + word
                        + "'",
                    "as in: derivative my.ops::SwishGrad(d.y, x) -> d.x");
            derivative.way = word == "body" ? DefinedDerivative::Way::Body : DefinedDerivative::Way::None;
            return {};
        }
        derivative.way = DefinedDerivative::Way::Operator;
        TRY_VOID(m_text.expect('('));
        TRY_VOID(readDerivativeValues(derivative.reads, false));
        TRY_VOID(m_text.expect(')'));
        if (!m_text.take("->"))
            return m_text.expected("'->' and the gradients that it makes");
        return readDerivativeValues(derivative.makes, true);
    }

    Result<void> readDerivativeValues(std::vector<DerivativeValue> &values, bool made)
    {
        do {
            DerivativeValue value;
            const OperatorTextPlace place = m_text.place();
            TRY(value.name, m_text.takeName("a value, or 'd.' and a value for its gradient"));
            if (value.name == "d" && m_text.take(".")) {
                value.gradient = true;
                TRY(value.name, m_text.takeName("the value whose gradient is meant"));
            }
            m_checks.push_back([this, value, made, place]() -> Result<void> {
                const bool input = inputNamed(*m_definition, value.name) >= 0;
                const std::int32_t result = resultNamed(*m_definition, value.name);
                const bool output =
                    result >= 0 && static_cast<std::size_t>(result) < m_definition->outputs.size();
                if (made ? !value.gradient || !input : value.gradient ? !output : !input && result < 0)
                    return m_text.fail(place,
                        made ? "expected the gradient of an input, as in d.x"
                            : value.gradient
                            ? "expected the gradient of an output, as in d.y"
                            : "'" + value.name + "' is no input and no output of this operator",
                        "inputs: " + namesOf(m_definition->inputs)
                            + "; outputs: " + namesOf(m_definition->outputs));
                return {};
            });
            values.push_back(std::move(value));
        } while (m_text.take(","));
        return {};
    }

    Result<void> readBody()
    {
        TRY_VOID(m_text.expectEnd());
        const OperatorTextPlace begin = m_text.place();
        while (true) {
            if (!m_text.nextLine())
                return m_text.fail(
                    begin, "this body has no 'end'", "write 'end' in a line of its own behind it");
            if (m_text.peekName() == "end") {
                m_text.take("end");
                return {};
            }
            TRY_VOID(readStep());
            TRY_VOID(m_text.expectEnd());
        }
    }

    Result<void> readStep()
    {
        BodyStep step;
        const OperatorTextPlace begin = m_text.place();
        step.line = static_cast<std::int32_t>(begin.line);
        do {
            const OperatorTextPlace place = m_text.place();
            TRY(std::string name, m_text.takeName("the name of a value, or 'end'"));
            m_checks.push_back([this, name, place]() -> Result<void> {
                const bool result = resultNamed(*m_definition, name) >= 0;
                if (!m_made.insert(name).second || (!result && m_values.count(name) != 0))
                    return m_text.fail(place, "'" + name + "' is made twice", "name it otherwise");
                return {};
            });
            step.outputs.push_back(std::move(name));
        } while (m_text.take(","));
        TRY_VOID(m_text.expect('='));
        const OperatorTextPlace place = m_text.place();
        TRY(const std::string kind, m_text.takeName("an operator, as in Mul"));
        const auto known = operatorKindNamed(kind);
        if (!known)
            return m_text.fail(place, "'" + kind + "' is no operator that Planloom computes",
                "names are those of planloom-cli info: Add, Mul, MatMul, Linear, Softmax, ReduceSum; "
                    + std::string(kHelp));
        if (const char *why = whyNotInBody(*known))
            return m_text.fail(place, kind + " cannot stand in a body: it " + why);
        step.kind = *known;
        // What a step makes is known from the next one on.
        const std::size_t outputs = m_checks.size() - step.outputs.size();
        std::vector<Check> makes(m_checks.begin() + static_cast<std::ptrdiff_t>(outputs), m_checks.end());
        m_checks.resize(outputs);
        TRY_VOID(m_text.expect('('));
        TRY_VOID(readArguments(step));
        m_checks.insert(m_checks.end(), makes.begin(), makes.end());
        if (m_text.take(":")) {
            if (const std::string type(m_text.peekName()); !type.empty()) {
                step.type = namedType(type);
                if (!step.type)
                    return m_text.expected("an element type, or '[' and extents");
                m_text.take(type);
            }
            if (m_text.peek() == '[') {
                TRY(step.shape, readExtents());
            }
            if (!step.type && !step.shape)
                return m_text.expected("an element type, or '[' and extents");
        }
        if ((step.type || step.shape) && step.outputs.size() != 1)
            return m_text.fail(begin, "a type can be given to one value alone");
        if (m_definition->body.size() == kMostBodySteps)
            return m_text.fail(begin, "expected at most " + std::to_string(kMostBodySteps) + " steps");
        m_definition->body.push_back(std::move(step));
        return {};
    }

    Result<void> readArguments(BodyStep &step)
    {
        bool first = true;
        while (!m_text.take(")")) {
            if (!std::exchange(first, false))
                TRY_VOID(m_text.expect(','));
            const OperatorTextPlace place = m_text.place();
            const std::string name(m_text.peekName());
            if (name.empty()) {
                TRY(const double number, takeNumber());
                step.inputs.emplace_back(number);
                continue;
            }
            m_text.take(name);
            if (m_text.take("=")) {
                TRY_VOID(readStepAttribute(step, name, place));
                continue;
            }
            if (!step.attributes.empty())
                return m_text.fail(place, "inputs stand before attributes", "put '" + name + "' before them");
            m_checks.push_back([this, name, place]() -> Result<void> {
                const bool attribute =
                    std::any_of(m_definition->attributes.begin(), m_definition->attributes.end(),
                        [&](const DefinedAttribute &a) { return a.name == name; });
                if (m_made.count(name) == 0 && inputNamed(*m_definition, name) < 0 && !attribute)
                    return m_text.fail(place,
                        "'" + name + "' is no input or attribute, and no line above makes it",
                        "steps stand in the order in which they are computed");
                return {};
            });
            step.inputs.emplace_back(name);
        }
        return {};
    }

    Result<void> readStepAttribute(BodyStep &step, const std::string &name, OperatorTextPlace place)
    {
        const auto isNamed = [&](const auto &entry) { return entry.first == name; };
        if (std::any_of(step.attributes.begin(), step.attributes.end(), isNamed))
            return m_text.fail(place, "the attribute '" + name + "' is given twice");
        if (m_text.peek() == '"') {
            TRY(std::string text, m_text.takeQuoted());
            step.attributes.emplace_back(name, std::move(text));
        } else if (m_text.peek() == '[') {
            TRY(auto numbers, readExtents());
            step.attributes.emplace_back(name, std::move(numbers));
        } else {
            TRY(SizeExpression number, takeKnown());
            step.attributes.emplace_back(name, std::move(number));
        }
        return {};
    }

    /// Ends the operator that was read: what had to wait is checked.
    Result<void> finishOperator();
    /// Gives derivatives their operators.
    Result<std::vector<std::shared_ptr<const Definition>>> resolve();
    Result<void> checkGradientOperator(
        const Definition &definition, const Definition &gradient, OperatorTextPlace place) const;

    OperatorText m_text;
    std::string m_name;
    std::string m_folder;
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

Result<void> OperatorFileReader::finishOperator()
{
    if (!m_definition)
        return {};
    Definition &definition = *m_definition;
    const std::string name = toString(definition.name);
    if (definition.inputs.empty())
        return m_text.fail(m_operatorPlace, name + " has no inputs", "say them in a line: inputs x, y");
    if (definition.outputs.empty())
        return m_text.fail(m_operatorPlace, name + " has no outputs", "say them in a line: outputs z");
    m_dimensions.clear();
    if (!definition.annotation.empty()) {
        auto identifiers =
            identifiersOf(definition.annotation, definition.inputs.size(), definition.resultCount());
        if (!identifiers)
            return m_text.placed(std::move(identifiers).error(), m_annotationPlace);
        if (definition.annotation.find(':') != std::string::npos)
            return m_text.fail(m_annotationPlace,
                "parts of outputs of operators from files are summed, not combined otherwise",
                "leave the word before the ':' out, and mark the dimension with ^");
        for (const std::string &identifier : *identifiers) {
            m_dimensions.insert(identifier);
            const auto &attributes = definition.attributes;
            if (std::any_of(attributes.begin(), attributes.end(),
                    [&](const DefinedAttribute &a) { return a.name == identifier; }))
                return m_text.fail(m_annotationPlace, "'" + identifier + "' is a dimension and an attribute",
                    "name one of them otherwise");
        }
    }
    m_made.clear();
    for (const Check &check : m_checks)
        TRY_VOID(check());
    if (!definition.body.empty()) {
        for (std::size_t slot = 0; slot < definition.resultCount(); ++slot)
            if (m_made.count(definition.result(slot).name) == 0)
                return m_text.fail(placeOf("body"),
                    "the body does not make '" + definition.result(slot).name + "'",
                    "add a line: " + definition.result(slot).name + " = ...");
    } else if (m_places.count("body") != 0) {
        return m_text.fail(
            placeOf("body"), "this body is empty", "leave it out, or write how each output is made");
    }
    if (definition.derivative.way == DefinedDerivative::Way::Body && definition.body.empty())
        return m_text.fail(
            m_derivativePlace, "there is no body to differentiate", "write one, or name another operator");
    if (m_places.count("derivative") == 0 && !definition.body.empty())
        definition.derivative.way = DefinedDerivative::Way::Body;
    m_read.emplace_back(std::move(m_definition), m_derivativePlace);
    m_places.clear();
    m_values.clear();
    m_checks.clear();
    return {};
}

Result<void> OperatorFileReader::checkGradientOperator(
    const Definition &definition, const Definition &gradient, OperatorTextPlace place) const
{
    const DefinedDerivative &derivative = definition.derivative;
    const std::string name = toString(gradient.name);
    if (gradient.inputs.size() != derivative.reads.size())
        return m_text.fail(place,
            name + " has " + std::to_string(gradient.inputs.size()) + " inputs, but is given "
                + std::to_string(derivative.reads.size()),
            "give it one value for each input");
    if (gradient.outputs.size() != derivative.makes.size() || !gradient.saved.empty())
        return m_text.fail(place,
            name + " has " + std::to_string(gradient.resultCount()) + " outputs, where "
                + std::to_string(derivative.makes.size()) + " were expected",
            "name the gradient that each output is");
    std::set<std::string> made;
    for (const DerivativeValue &value : derivative.makes)
        if (!made.insert(value.name).second)
            return m_text.fail(place, "the gradient of '" + value.name + "' is made twice");
    return {};
}

Result<std::vector<std::shared_ptr<const Definition>>> OperatorFileReader::resolve()
{
    std::map<DefinedName, std::size_t> byName;
    for (std::size_t i = 0; i < m_read.size(); ++i) {
        byName.emplace(m_read[i].first->name, i);
        for (const DefinedName &also : m_read[i].first->alsoNamed)
            byName.emplace(also, i);
    }
    // Gradient operators are taken without derivatives of their own, so that no definition holds itself.
    for (auto &[definition, place] : m_read) {
        DefinedDerivative &derivative = definition->derivative;
        if (derivative.way != DefinedDerivative::Way::Operator)
            continue;
        const auto found = byName.find(derivative.operatorName);
        if (found == byName.end())
            return m_text.fail(place, "this file defines no operator " + toString(derivative.operatorName),
                "define it in a block of its own: operator " + toString(derivative.operatorName));
        auto gradient = std::make_shared<Definition>(*m_read[found->second].first);
        gradient->derivative = {};
        TRY_VOID(checkGradientOperator(*definition, *gradient, place));
        derivative.definition = std::move(gradient);
    }
    std::vector<std::shared_ptr<const Definition>> definitions;
    for (auto &[definition, place] : m_read)
        definitions.push_back(std::move(definition));
    return definitions;
}

} // namespace

Result<std::vector<std::shared_ptr<const OperatorDefinition>>> readOperatorFile(
    std::string_view text, const std::string &name, const std::string &folder)
{
    if (text.size() > kMostOperatorFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "the operator file has " + std::to_string(text.size()) + " bytes, more than the "
                + std::to_string(kMostOperatorFileBytes) + " that are read",
            "make several files", name};
    return OperatorFileReader(text, name, folder).read();
}

} // namespace planloom
