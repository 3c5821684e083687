#include "engine/graph/operator_files/operator_file_reader.h"

#include "engine/graph/annotation/annotation.h"

#include <algorithm>

namespace planloom {

const char *whyNotInBody(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Dropout:
        return "draws by an element's place in the whole tensor, which a body does not know";
    case OperatorKind::SgdStep:
    case OperatorKind::AdamWStep:
    case OperatorKind::SquareSum:
    case OperatorKind::ClipFactor:
        return "is a step of an optimizer";
    case OperatorKind::Custom:
    case OperatorKind::Unknown:
        return "is not an operator by itself";
    default:
        return nullptr;
    }
}

Result<void> OperatorFileReader::readDerivative()
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

Result<void> OperatorFileReader::readDerivativeValues(std::vector<DerivativeValue> &values, bool made)
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
                    made                 ? "expected the gradient of an input, as in d.x"
                        : value.gradient ? "expected the gradient of an output, as in d.y"
                                         : "'" + value.name + "' is no input and no output of this operator",
                    "inputs: " + namesOf(m_definition->inputs)
                        + "; outputs: " + namesOf(m_definition->outputs));
            return {};
        });
        values.push_back(std::move(value));
    } while (m_text.take(","));
    return {};
}

Result<void> OperatorFileReader::readBodySource()
{
    const OperatorTextPlace place = m_text.place();
    BodySource source;
    TRY(source.path, m_text.takeQuoted());
    if (source.path.empty() || source.path.find('\0') != std::string::npos)
        return m_text.fail(place, "expected the path of an ONNX file that has the body as a function",
            "as in: body \"swish.onnx\" my.functions::Swish");
    source.path = inFolder(source.path);
    if (m_text.peek() != '\0') {
        TRY(source.function, readDefinedName());
    }
    m_bodySource = std::move(source);
    return {};
}

Result<void> OperatorFileReader::takeBodySource()
{
    if (!m_bodySource)
        return {};
    const OperatorTextPlace place = placeOf("body");
    if (!m_bodies)
        return m_text.fail(
            place, "bodies are not read from other files here", "write the body out, down to 'end'");
    auto steps = m_bodies(*m_definition, *std::exchange(m_bodySource, {}));
    if (!steps)
        return m_text.fail(place, steps.error().message, steps.error().advice);
    m_definition->body = std::move(*steps);
    for (BodyStep &step : m_definition->body)
        step.line = static_cast<std::int32_t>(place.line);
    for (const DefinedTensor &result : m_definition->outputs)
        m_made.insert(result.name);
    for (const DefinedTensor &result : m_definition->saved)
        m_made.insert(result.name);
    return {};
}

Result<void> OperatorFileReader::readBody()
{
    if (m_text.peek() == '"')
        return readBodySource();
    TRY_VOID(m_text.expectEnd());
    const OperatorTextPlace begin = m_text.place();
    while (true) {
        if (!m_text.nextLine())
            return m_text.fail(begin, "this body has no 'end'", "write 'end' in a line of its own behind it");
        if (m_text.peekName() == "end") {
            m_text.take("end");
            return {};
        }
        TRY_VOID(readStep());
        TRY_VOID(m_text.expectEnd());
    }
}

Result<void> OperatorFileReader::readStep()
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
            "resources/operators.md describes the file");
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
            step.type = elementTypeNamed(type);
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

Result<void> OperatorFileReader::readArguments(BodyStep &step)
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
            const bool attribute = std::any_of(m_definition->attributes.begin(),
                m_definition->attributes.end(), [&](const DefinedAttribute &a) { return a.name == name; });
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

Result<void> OperatorFileReader::readStepAttribute(
    BodyStep &step, const std::string &name, OperatorTextPlace place)
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
        if (definition.annotation.find_first_of(";[") != std::string::npos)
            return m_text.fail(m_annotationPlace,
                "operators from files have no windows over their dimensions",
                "leave out what stands behind ';' and in square brackets, and mark the dimension with ^");
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
    TRY_VOID(takeBodySource());
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

Result<std::vector<std::shared_ptr<const OperatorDefinition>>> OperatorFileReader::resolve()
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

} // namespace planloom
