#include "engine/frontend/torch/pt2_numbers.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace planloom {

namespace {

struct PythonNumber {
    bool whole = true;
    std::int64_t integer = 0;
    double real = 0;
};

std::optional<PythonNumber> numberOf(const AtenValue &value)
{
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        return PythonNumber{true, *integer, static_cast<double>(*integer)};
    if (const auto *flag = std::get_if<bool>(&value))
        return PythonNumber{true, *flag ? 1 : 0, *flag ? 1.0 : 0.0};
    if (const auto *real = std::get_if<double>(&value))
        return PythonNumber{false, 0, *real};
    return std::nullopt;
}

std::optional<AtenValue> wholeOf(double value)
{
    constexpr double kLargest = 9007199254740992.0; // 2^53: doubles below it are exact
    if (!(std::abs(value) < kLargest))
        return std::nullopt;
    return AtenValue(static_cast<std::int64_t>(value));
}

AtenValue sameNumber(const PythonNumber &x)
{
    if (x.whole)
        return x.integer;
    return x.real;
}

std::optional<AtenValue> ofOne(std::string_view name, const PythonNumber &x)
{
    if (name == "neg")
        return x.whole ? wholeOf(-x.real) : AtenValue(-x.real);
    if (name == "pos")
        return sameNumber(x);
    if (name == "not_" || name == "sym_not")
        return AtenValue(x.real == 0);
    if (name == "ceil")
        return wholeOf(std::ceil(x.real));
    if (name == "floor")
        return wholeOf(std::floor(x.real));
    if (name == "trunc" || name == "sym_int")
        return wholeOf(std::trunc(x.real));
    if (name == "sym_float")
        return AtenValue(x.real);
    if (name == "sqrt" || name == "sym_sqrt" || name == "_sym_sqrt")
        return AtenValue(std::sqrt(x.real));
    return std::nullopt;
}

/// What Python computes of two numbers, integers where both are.
std::optional<AtenValue> ofTwo(std::string_view name, const PythonNumber &a, const PythonNumber &b)
{
    const bool whole = a.whole && b.whole;
    const auto made = [whole](double value) { return whole ? wholeOf(value) : AtenValue(value); };
    if (name == "add")
        return made(a.real + b.real);
    if (name == "sub")
        return made(a.real - b.real);
    if (name == "mul")
        return made(a.real * b.real);
    if (name == "pow" || name == "pow_by_natural")
        return made(std::pow(a.real, b.real));
    if (name == "sym_max")
        return made(std::max(a.real, b.real));
    if (name == "sym_min")
        return made(std::min(a.real, b.real));
    const bool divides = name == "floordiv" || name == "truediv" || name == "mod";
    if (divides && b.real == 0)
        return std::nullopt;
    if (name == "floordiv")
        return made(std::floor(a.real / b.real));
    if (name == "truediv")
        return AtenValue(a.real / b.real);
    if (name == "mod")
        return made(a.real - b.real * std::floor(a.real / b.real));
    if (name == "eq")
        return AtenValue(a.real == b.real);
    if (name == "ne")
        return AtenValue(a.real != b.real);
    if (name == "lt")
        return AtenValue(a.real < b.real);
    if (name == "le")
        return AtenValue(a.real <= b.real);
    if (name == "gt")
        return AtenValue(a.real > b.real);
    if (name == "ge")
        return AtenValue(a.real >= b.real);
    if (name == "and_")
        return AtenValue(a.real != 0 && b.real != 0);
    if (name == "or_")
        return AtenValue(a.real != 0 || b.real != 0);
    return std::nullopt;
}

} // namespace

bool isPt2Arithmetic(std::string_view target)
{
    for (const std::string_view prefix : {"_operator.", "operator.", "math.", "torch.sym_", "torch._sym_"}) {
        if (target.substr(0, prefix.size()) == prefix)
            return true;
    }
    return false;
}

std::optional<AtenValue> computePt2Number(std::string_view target, const std::vector<AtenValue> &arguments)
{
    const std::string_view name = target.substr(target.rfind('.') + 1);
    std::vector<PythonNumber> numbers;
    for (const AtenValue &argument : arguments) {
        const auto number = numberOf(argument);
        if (!number)
            return std::nullopt;
        numbers.push_back(*number);
    }
    if (numbers.size() == 1)
        return ofOne(name, numbers[0]);
    if (numbers.size() == 2)
        return ofTwo(name, numbers[0], numbers[1]);
    if (numbers.size() == 3 && name == "sym_ite")
        return arguments[numbers[0].real != 0 ? 1 : 2];
    return std::nullopt;
}

} // namespace planloom
