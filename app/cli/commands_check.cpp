#include "app/cli/commands.h"
#include "app/cli/without_effect.h"

#include "engine/check/check_annotation.h"
#include "engine/design/models/operator_files.h"
#include "engine/graph/operator_files/operator_file.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

Error wrongValue(const std::string &option, const std::string &expected, const std::string &found)
{
    return {ErrorCode::InvalidInput, "expected " + expected + ", found \"" + found + "\"", {}, "--" + option};
}

/// "NAME=REST" in two.
Result<std::pair<std::string, std::string>> named(
    const std::string &option, const std::string &expected, const std::string &text)
{
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        return wrongValue(option, expected, text);
    return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

/// Numbers with `separator` between them; nothing if one of them is none.
std::optional<std::vector<double>> numbersIn(const std::string &text, char separator)
{
    std::vector<double> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        const std::string one = text.substr(begin, end - begin);
        char *behind = nullptr;
        const double number = std::strtod(one.c_str(), &behind);
        if (one.empty() || *behind != '\0' || !std::isfinite(number))
            return std::nullopt;
        numbers.push_back(number);
        begin = end + 1;
    }
    return numbers;
}

bool isSize(double number)
{
    return number == std::floor(number) && number >= 1 && number <= 1e6;
}

Result<void> readSizes(const Arguments &arguments, DefinitionTrialOptions &options)
{
    for (const std::string &text : arguments.texts("size")) {
        const std::string expected = "DIM=N with a size from 1 to 1000000";
        TRY(const auto pair, named("size", expected, text));
        const auto numbers = numbersIn(pair.second, ',');
        if (!numbers || numbers->size() != 1 || !isSize(numbers->front()))
            return wrongValue("size", expected, text);
        options.sizes[pair.first] = static_cast<std::int64_t>(numbers->front());
    }
    for (const std::string &text : arguments.texts("shape")) {
        const std::string expected = "INPUT=N,N with sizes from 1 to 1000000";
        TRY(const auto pair, named("shape", expected, text));
        const auto numbers = numbersIn(pair.second, ',');
        if (!numbers || !std::all_of(numbers->begin(), numbers->end(), isSize))
            return wrongValue("shape", expected, text);
        options.shapes[pair.first] = Shape(numbers->begin(), numbers->end());
    }
    return {};
}

Result<DefinitionTrialOptions> trialOptions(const Arguments &arguments)
{
    DefinitionTrialOptions options;
    TRY_VOID(readSizes(arguments, options));
    for (const std::string &text : arguments.texts("range")) {
        const std::string expected = "INPUT=LOW:HIGH";
        TRY(const auto pair, named("range", expected, text));
        const auto numbers = numbersIn(pair.second, ':');
        if (!numbers || numbers->size() != 2 || !(numbers->front() < numbers->back()))
            return wrongValue("range", expected, text);
        options.ranges[pair.first] = {numbers->front(), numbers->back()};
    }
    for (const std::string &text : arguments.texts("attribute")) {
        const std::string expected = "NAME=NUMBER";
        TRY(const auto pair, named("attribute", expected, text));
        const auto numbers = numbersIn(pair.second, ',');
        if (!numbers || numbers->size() != 1)
            return wrongValue("attribute", expected, text);
        const double number = numbers->front();
        const bool integer = number == std::floor(number) && std::fabs(number) < 9e15
            && pair.second.find_first_of(".e") == std::string::npos;
        options.attributes.set(
            pair.first, integer ? Attribute(static_cast<std::int64_t>(number)) : Attribute(number));
    }
    if (arguments.has("type")) {
        const std::string type = arguments.text("type");
        if (type != "float32" && type != "float64")
            return wrongValue("type", "float32 or float64", type);
        options.type = type == "float64" ? DataType::Float64 : DataType::Float32;
    }
    if (arguments.has("tolerance")) {
        TRY(options.tolerance, arguments.real("tolerance", 0));
    }
    TRY(const auto seed, arguments.integer("seed", 1, 0, INT64_MAX));
    options.seed = static_cast<std::uint64_t>(seed);
    return options;
}

/// The operators of a file, or the one that --operator names.
Result<std::vector<CheckedOperator>> checkFile(const Arguments &arguments, const std::string &path)
{
    TRY(DefinitionTrialOptions options, trialOptions(arguments));
    TRY(const auto definitions, readOperatorFileAt(path));
    TRY(options.libraries, trustedLibraries({path})); // the user named it
    const std::string wanted = arguments.text("operator");
    std::vector<CheckedOperator> all;
    bool found = wanted.empty();
    for (const auto &definition : definitions) {
        if (!wanted.empty() && wanted != toString(definition->name) && wanted != definition->name.type)
            continue;
        found = true;
        TRY(auto checked, checkDefinition(definition, options));
        for (CheckedOperator &op : checked)
            all.push_back(std::move(op));
    }
    if (!found)
        return Error{ErrorCode::NotFound, path + " defines no operator \"" + wanted + "\"",
            "name one as its line 'operator' does", "--operator"};
    return all;
}

json jsonOf(const CheckedOperator &op)
{
    json failures = json::array();
    for (const SplitTrial &failure : op.trial.failures)
        failures.push_back({{"direction", failure.backward ? "backward" : "forward"},
            {"split", failure.partition}, {"tensor", failure.tensor},
            {"error", std::isfinite(failure.error) ? json(failure.error) : json(nullptr)},
            {"problem", failure.problem}});
    return {{"operator", op.name}, {"annotation", op.trial.annotation}, {"kept_whole", op.trial.whole},
        {"splits", op.trial.splits}, {"worst", op.trial.worst}, {"ok", op.trial.failures.empty()},
        {"failures", std::move(failures)}};
}

void print(const CheckedOperator &op)
{
    constexpr std::size_t kMostShown = 12;
    const AnnotationTrial &trial = op.trial;
    std::printf("%s  %s\n", trial.failures.empty() ? "ok   " : "WRONG", op.name.c_str());
    std::printf("       %s\n", trial.annotation.c_str());
    if (!trial.whole.empty())
        std::printf("       kept whole: %s\n", trial.whole.c_str());
    if (trial.failures.empty()) {
        std::printf("       %lld splits equal the whole operator (largest difference %.2g)\n",
            static_cast<long long>(trial.splits), trial.worst);
        return;
    }
    std::printf("       %zu of %lld splits differ from the whole operator:\n", trial.failures.size(),
        static_cast<long long>(trial.splits));
    for (std::size_t i = 0; i < trial.failures.size() && i < kMostShown; ++i)
        std::printf("         %s\n", describe(trial.failures[i]).c_str());
    if (trial.failures.size() > kMostShown)
        std::printf("         ... and %zu more\n", trial.failures.size() - kMostShown);
}

} // namespace

Result<int> runCheckAnnotation(const Arguments &arguments)
{
    const std::string &name = arguments.positional();
    TRY(const auto checked,
        isOperatorFile(name) ? checkFile(arguments, name) : checkKnownOperators(name == "all" ? "" : name));
    bool ok = true;
    std::int64_t splits = 0;
    json operators = json::array();
    for (const CheckedOperator &op : checked) {
        ok = ok && op.trial.failures.empty();
        splits += op.trial.splits;
        if (arguments.has("json"))
            operators.push_back(jsonOf(op));
        else
            print(op);
    }
    if (arguments.has("json")) {
        const json object{{"ok", ok}, {"splits", splits}, {"operators", std::move(operators)}};
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    } else {
        std::printf("%zu operators, %lld splits: %s\n", checked.size(), static_cast<long long>(splits),
            ok ? "all equal" : "some differ");
    }
    return ok ? 0 : 1;
}

} // namespace planloom::cli
