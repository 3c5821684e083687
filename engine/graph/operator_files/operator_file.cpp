#include "engine/graph/operator_files/operator_file_reader.h"
#include "engine/graph/operator_files/torch_expression.h"

#include <algorithm>
#include <filesystem>

namespace planloom {

namespace {

constexpr std::string_view kHeader = "planloom-operators";
constexpr int kFormatVersion = 1;
constexpr std::size_t kMostDefinitions = 1'000;
constexpr std::size_t kMostValues = 64; ///< Inputs, outputs, attributes: of each.
constexpr const char *kHelp = "resources/operators.md describes the file";

} // namespace

std::optional<DataType> elementTypeNamed(std::string_view name)
{
    for (int i = 0; i <= static_cast<int>(DataType::Bool); ++i)
        if (name == nameOf(static_cast<DataType>(i)))
            return static_cast<DataType>(i);
    return std::nullopt;
}

Result<std::vector<std::shared_ptr<const OperatorDefinition>>> OperatorFileReader::read()
{
    TRY_VOID(readHeader());
    while (m_text.nextLine()) {
        TRY_VOID(readStatement());
    }
    TRY_VOID(finishOperator());
    return resolve();
}

Result<void> OperatorFileReader::readHeader()
{
    m_text.nextLine();
    const OperatorTextPlace begin = m_text.place();
    const std::string advice = "begin the file with the line: planloom-operators 1";
    if (!m_text.take(kHeader))
        return m_text.fail(
            begin, "this is no operator file: expected '" + std::string(kHeader) + " 1'", advice);
    const auto written = m_text.takeExpression();
    if (!written)
        return m_text.fail(begin, "the first line does not say a version", advice);
    const SizeExpression &version = *written;
    TRY_VOID(m_text.expectEnd());
    if (version.steps.size() != 1 || version.steps[0].number != kFormatVersion)
        return m_text.fail(
            begin, "the file is of version " + toString(version) + ", where version 1 was expected", advice);
    return {};
}

Result<void> OperatorFileReader::readStatement()
{
    static const std::map<std::string_view, Statement> kStatements{{"also", &OperatorFileReader::readAlso},
        {"annotation", &OperatorFileReader::readAnnotation},
        {"attribute", &OperatorFileReader::readAttribute},
        {"backward_flops", &OperatorFileReader::readBackwardFlops}, {"body", &OperatorFileReader::readBody},
        {"derivative", &OperatorFileReader::readDerivative}, {"flops", &OperatorFileReader::readFlops},
        {"inputs", &OperatorFileReader::readInputs}, {"library", &OperatorFileReader::readLibrary},
        {"linear", &OperatorFileReader::readLinear}, {"operator", &OperatorFileReader::readOperator},
        {"outputs", &OperatorFileReader::readOutputs}, {"saves", &OperatorFileReader::readSaves},
        {"shape", &OperatorFileReader::readShape}, {"torch", &OperatorFileReader::readTorch},
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
            return m_text.fail(begin, "'" + word + "' stands twice in this operator", "keep one of the two");
    }
    TRY_VOID((this->*statement->second)());
    return m_text.expectEnd();
}

OperatorTextPlace OperatorFileReader::placeOf(const std::string &statement) const
{
    const auto found = m_places.find(statement);
    return found == m_places.end() ? m_operatorPlace : found->second;
}

Result<DefinedName> OperatorFileReader::readDefinedName()
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

Result<void> OperatorFileReader::readOperator()
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

Result<void> OperatorFileReader::addName(const DefinedName &name, OperatorTextPlace place)
{
    const auto [known, isNew] = m_names.emplace(name, place.line);
    if (!isNew)
        return m_text.fail(place,
            "the operator " + toString(name) + " is defined in line " + std::to_string(known->second)
                + " already",
            "keep one of the two");
    return {};
}

Result<void> OperatorFileReader::readAlso()
{
    const OperatorTextPlace place = m_text.place();
    TRY(DefinedName name, readDefinedName());
    TRY_VOID(addName(name, place));
    m_definition->alsoNamed.push_back(std::move(name));
    return {};
}

Result<void> OperatorFileReader::addValue(const std::string &name, OperatorTextPlace place)
{
    if (!m_values.emplace(name, place.line).second)
        return m_text.fail(
            place, "'" + name + "' is a name that this operator has already", "name it otherwise");
    return {};
}

Result<void> OperatorFileReader::readTensors(std::vector<DefinedTensor> &tensors, bool areInputs)
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

Result<void> OperatorFileReader::readTensorType(DefinedTensor &tensor, bool isInput)
{
    const OperatorTextPlace place = m_text.place();
    const std::string what = isInput ? "an element type, as in int64" : "an element type, or 'like INPUT'";
    TRY(const std::string word, m_text.takeName(what));
    if (!isInput && word == "like") {
        const OperatorTextPlace at = m_text.place();
        TRY(tensor.like, m_text.takeName("the name of an input"));
        checkInput(tensor.like, at);
        return {};
    }
    tensor.type = elementTypeNamed(word);
    if (!tensor.type)
        return m_text.fail(place, "'" + word + "' is no element type",
            "known: float32, float16, bfloat16, float64, int64, int32, int16, int8, uint8, bool");
    return {};
}

void OperatorFileReader::checkInput(const std::string &name, OperatorTextPlace place)
{
    m_checks.push_back([this, name, place]() -> Result<void> {
        if (inputNamed(*m_definition, name) < 0)
            return m_text.fail(place, "'" + name + "' is no input of this operator",
                "name one of: " + namesOf(m_definition->inputs));
        return {};
    });
}

std::string OperatorFileReader::namesOf(const std::vector<DefinedTensor> &tensors)
{
    std::string names;
    for (const DefinedTensor &tensor : tensors)
        names += (names.empty() ? "" : ", ") + tensor.name;
    return names;
}

Result<double> OperatorFileReader::takeNumber()
{
    const OperatorTextPlace place = m_text.place();
    TRY(const SizeExpression expression, m_text.takeExpression());
    const auto number = evaluate(expression, [](const std::string &, bool) { return std::nullopt; });
    if (!number)
        return m_text.fail(place, "expected a number: " + number.error().message);
    return *number;
}

Result<void> OperatorFileReader::readAttribute()
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

Attribute OperatorFileReader::numberOf(double number, const std::string &written)
{
    const bool real = written.find_first_of(".e/") != std::string::npos
        || number != static_cast<double>(static_cast<std::int64_t>(std::clamp(number, -9e15, 9e15)));
    return real ? Attribute(number) : Attribute(static_cast<std::int64_t>(number));
}

Result<std::optional<Attribute>> OperatorFileReader::readNumbers()
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

Result<void> OperatorFileReader::readAnnotation()
{
    const auto [text, place] = m_text.takeRest();
    if (text.empty())
        return m_text.expected("dimensions, as in b m k+, k+ n -> b m n");
    m_definition->annotation = text;
    m_annotationPlace = place;
    return {};
}

Result<void> OperatorFileReader::readLinear()
{
    do {
        const OperatorTextPlace place = m_text.place();
        TRY(std::string name, m_text.takeName("the name of an input"));
        checkInput(name, place);
        m_definition->linear.push_back(std::move(name));
    } while (m_text.take(","));
    return {};
}

Result<void> OperatorFileReader::readWhere()
{
    const OperatorTextPlace place = m_text.place();
    NamedExpression size;
    TRY(size.name, m_text.takeName("the name of a dimension"));
    TRY_VOID(m_text.expect('='));
    TRY(size.value, takeKnown());
    m_checks.push_back([this, name = size.name, place]() -> Result<void> {
        if (m_dimensions.count(name) == 0)
            return m_text.fail(place, "'" + name + "' is no dimension of the annotation", "write it there");
        return {};
    });
    m_definition->sizes.push_back(std::move(size));
    return {};
}

Result<SizeExpression> OperatorFileReader::takeKnown()
{
    const OperatorTextPlace place = m_text.place();
    TRY(SizeExpression expression, m_text.takeExpression());
    checkNames(expression, place);
    return expression;
}

void OperatorFileReader::checkNames(const SizeExpression &expression, OperatorTextPlace place)
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
                    "'" + name + "' is no dimension of the annotation" + (whole ? "" : " and no attribute"),
                    "use a name that the annotation or a line 'attribute' has");
            return {};
        });
    }
}

Result<void> OperatorFileReader::readShape()
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

Result<std::vector<SizeExpression>> OperatorFileReader::readExtents()
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

Result<void> OperatorFileReader::readFlops()
{
    TRY(m_definition->flops, takeKnown());
    return {};
}

Result<void> OperatorFileReader::readBackwardFlops()
{
    TRY(m_definition->backwardFlops, takeKnown());
    return {};
}

Result<void> OperatorFileReader::readWorkspace()
{
    TRY(m_definition->workspace, takeKnown());
    return {};
}

Result<void> OperatorFileReader::readUnits()
{
    const OperatorTextPlace place = m_text.place();
    TRY(const std::string word, m_text.takeName("'matrix' or 'vector'"));
    if (word != "matrix" && word != "vector")
        return m_text.fail(place, "expected 'matrix' or 'vector', found '" + word + "'");
    m_definition->matrixUnits = word == "matrix";
    return {};
}

std::string OperatorFileReader::inFolder(const std::string &path) const
{
    return m_folder.empty() ? path : (std::filesystem::path(m_folder) / path).lexically_normal().string();
}

Result<void> OperatorFileReader::readLibrary()
{
    const OperatorTextPlace place = m_text.place();
    DefinedLibrary library;
    TRY(library.path, m_text.takeQuoted());
    if (library.path.empty() || library.path.find('\0') != std::string::npos)
        return m_text.fail(
            place, "expected the path of a shared library", "as in: library \"libmyops.so\" my_function");
    library.path = inFolder(library.path);
    TRY(library.function, m_text.takeName("the name of a function in it"));
    m_definition->library = std::move(library);
    return {};
}

Result<void> OperatorFileReader::readTorch()
{
    const OperatorTextPlace place = m_text.place();
    TRY(m_definition->torch, m_text.takeQuoted());
    m_checks.push_back([this, place]() -> Result<void> { // values and attributes may come in later lines
        const Definition &definition = *m_definition;
        const auto isKnown = [&](const std::string &name) {
            return inputNamed(definition, name) >= 0
                    || std::any_of(definition.attributes.begin(), definition.attributes.end(),
                        [&](const DefinedAttribute &each) { return each.name == name; })
                ? name
                : std::string{};
        };
        auto read = torchExpression(definition.torch, isKnown);
        return read ? Result<void>{} : m_text.placed(std::move(read).error(), place);
    });
    return {};
}

Result<std::vector<std::shared_ptr<const OperatorDefinition>>> readOperatorFile(
    std::string_view text, const std::string &name, const std::string &folder, const BodyReader &bodies)
{
    if (text.size() > kMostOperatorFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "the operator file has " + std::to_string(text.size()) + " bytes, more than the "
                + std::to_string(kMostOperatorFileBytes) + " that are read",
            "make several files", name};
    return OperatorFileReader(text, name, folder, bodies).read();
}

} // namespace planloom
