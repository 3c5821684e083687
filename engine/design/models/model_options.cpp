#include "engine/design/models/model_options.h"

#include "engine/design/models/operator_files.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace planloom {

namespace {

Error wrong(const std::string &option, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), {}, "--" + option};
}

/// The shortest text that reads back as `number`.
std::string textOf(double number)
{
    std::array<char, 32> text;
    const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} ? std::string(text.data(), end) : std::string{};
}

template<typename Number> std::optional<Number> numberOf(const std::string &text)
{
    Number number{};
    const char *end = text.data() + text.size();
    const auto [last, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc{} && last == end ? std::optional(number) : std::nullopt;
}

Result<double> rateOf(const std::string &option, const std::string &text)
{
    const auto number = numberOf<double>(text);
    if (!number || !(*number >= 0 && *number <= 1e30))
        return wrong(option, "expected a number of at least 0, found \"" + text + "\"");
    return *number;
}

} // namespace

const char *nameOf(Optimizer optimizer)
{
    return optimizer == Optimizer::Sgd ? "sgd" : "adamw";
}

Result<Optimizer> optimizerNamed(std::string_view name)
{
    for (const Optimizer optimizer : {Optimizer::AdamW, Optimizer::Sgd})
        if (name == nameOf(optimizer))
            return optimizer;
    return wrong("optimizer", "expected sgd or adamw, found \"" + std::string(name) + "\"");
}

std::map<std::string, std::string> valuesOf(const ModelOptions &options, WrittenOptions written)
{
    const bool all = written == WrittenOptions::All;
    const ModelOptions usual;
    std::map<std::string, std::string> values;
    if (all || !options.lossOutput.empty())
        values["loss"] = options.lossOutput;
    for (const auto &[name, size] : options.dimensions)
        values[std::string(kDimensionOption) + name] = std::to_string(size);
    for (const auto &[name, as] : options.storedAs)
        values[std::string(kStoredOption) + name] = nameOf(as);
    for (const std::string &name : options.asInputs)
        values[std::string(kStoredOption) + name] = kStoredAsInput;
    for (const std::string &path : options.operatorFiles)
        values[std::string(kOperatorsOption) + path] = kOperatorsValue;
    for (const auto &[name, capacity] : options.capacities)
        values[std::string(kCapacityOption) + (name == "*" ? "" : "." + name)] = toString(capacity);
    if (all && options.capacities.count("*") == 0)
        values[std::string(kCapacityOption)] = toString(Capacity{});
    for (const std::string &name : options.unroll)
        values[std::string(kUnrollOption) + (name == "*" ? "" : "." + name)] = "1";
    if (all && options.unroll.count("*") == 0)
        values[std::string(kUnrollOption)] = "0";
    if (all || options.inference)
        values["inference"] = options.inference ? "1" : "0";
    if (all || options.optimizer != usual.optimizer)
        values["optimizer"] = nameOf(options.optimizer);
    if (all || options.learningRate != usual.learningRate)
        values["learning-rate"] = textOf(options.learningRate);
    if (all || options.weightDecay != usual.weightDecay)
        values["weight-decay"] = textOf(options.weightDecay);
    if (all || options.clipNorm != usual.clipNorm)
        values["clip-norm"] = textOf(options.clipNorm);
    return values;
}

namespace {

Result<std::optional<StoredAs>> storedAsNamed(const std::string &name, const std::string &value)
{
    for (const StoredAs as : {StoredAs::Parameter, StoredAs::Buffer, StoredAs::Constant}) {
        if (value == planloom::nameOf(as))
            return std::optional(as);
    }
    if (value == kStoredByRule)
        return std::optional<StoredAs>{};
    return wrong("stored",
        "\"" + name + "\" is \"" + value
            + "\", where parameter, buffer, constant, input or by-rule was expected");
}

} // namespace

Result<ModelOptions> modelOptionsOf(const std::map<std::string, std::string> &values)
{
    ModelOptions options;
    for (const auto &[name, value] : values) {
        if (name == "loss") {
            options.lossOutput = value;
        } else if (name == "inference") {
            if (value != "0" && value != "1")
                return wrong(name, "expected 0 or 1, found \"" + value + "\"");
            options.inference = value == "1";
        } else if (name == "optimizer") {
            TRY(options.optimizer, optimizerNamed(value));
        } else if (name == "learning-rate") {
            TRY(options.learningRate, rateOf(name, value));
        } else if (name == "weight-decay") {
            TRY(options.weightDecay, rateOf(name, value));
        } else if (name == "clip-norm") {
            TRY(options.clipNorm, rateOf(name, value));
        } else if (name.starts_with(kDimensionOption) && name.size() > kDimensionOption.size()) {
            const std::string dimension = name.substr(kDimensionOption.size());
            const auto size = numberOf<std::int64_t>(value);
            if (!size || *size < 1)
                return wrong("dim",
                    "the size of dimension \"" + dimension + "\" is \"" + value
                        + "\", not a positive number");
            options.dimensions[dimension] = *size;
        } else if (name.starts_with(kStoredOption) && name.size() > kStoredOption.size()) {
            const std::string tensor = name.substr(kStoredOption.size());
            if (value == kStoredAsInput) {
                options.asInputs.insert(tensor);
                continue;
            }
            TRY(const auto as, storedAsNamed(tensor, value));
            if (as)
                options.storedAs[tensor] = *as;
        } else if (name.starts_with(kOperatorsOption) && name.size() > kOperatorsOption.size()) {
            if (value != kOperatorsValue && value != kNoOperatorsValue)
                return wrong(
                    "operators", "\"" + name + "\" is \"" + value + "\", where file or none was expected");
            if (value == kOperatorsValue)
                options.operatorFiles.insert(name.substr(kOperatorsOption.size()));
        } else if (name == kCapacityOption) {
            TRY(const Capacity capacity, capacityNamed(value));
            if (capacity != Capacity{})
                options.capacities["*"] = capacity;
        } else if (name.starts_with(kCapacityOption) && name.size() > kCapacityOption.size() + 1
            && name[kCapacityOption.size()] == '.') {
            TRY(options.capacities[name.substr(kCapacityOption.size() + 1)], capacityNamed(value));
        } else if (name == kUnrollOption
            || (name.starts_with(kUnrollOption) && name.size() > kUnrollOption.size() + 1
                && name[kUnrollOption.size()] == '.')) {
            if (value != "0" && value != "1")
                return wrong(name, "expected 0 or 1, found \"" + value + "\"");
            if (value == "1")
                options.unroll.insert(name == kUnrollOption ? "*" : name.substr(kUnrollOption.size() + 1));
        } else {
            return wrong(name, "\"" + name + "\" is no option of a model that this version knows");
        }
    }
    return options;
}

bool isOpenedAs(const ModelOptions &wanted, const ModelOptions &opened, const std::string &source)
{
    ModelOptions all = wanted;
    for (const std::string &file : opened.operatorFiles) {
        if (originOfOperatorFile(file, source) != OperatorFileOrigin::Named)
            all.operatorFiles.insert(file);
    }
    return all == opened;
}

std::string describe(const ModelOptions &options)
{
    std::string text;
    for (const auto &[name, value] : valuesOf(options)) {
        if (!text.empty())
            text += ", ";
        if (name == "inference")
            text += "forward pass alone";
        else if (name == "optimizer")
            text += value;
        else if (name == "learning-rate")
            text += "learning rate " + value;
        else if (name == "weight-decay")
            text += "weight decay " + value;
        else if (name == "clip-norm")
            text += "gradients clipped at norm " + value;
        else if (name == "loss")
            text += "loss " + value;
        else if (name.starts_with(kOperatorsOption))
            text += "operators of " + name.substr(kOperatorsOption.size());
        else if (name == kCapacityOption)
            text += "capacity " + value;
        else if (name.starts_with(kCapacityOption))
            text += "capacity of " + name.substr(kCapacityOption.size() + 1) + " = " + value;
        else if (name == kUnrollOption)
            text += "recurrences unrolled";
        else if (name.starts_with(kUnrollOption))
            text += name.substr(kUnrollOption.size() + 1) + " unrolled";
        else if (name.starts_with(kStoredOption))
            text += name.substr(kStoredOption.size()) + " as " + value;
        else
            text += name.substr(kDimensionOption.size()) + " = " + value;
    }
    return text;
}

} // namespace planloom
