#include "engine/interop/configs/framework_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

template<typename Kind> const Kind *kindOf(const SettingValue *value)
{
    return value == nullptr ? nullptr : std::get_if<Kind>(value);
}

const SettingValue *valueOf(const ConfigEntry *entry)
{
    return entry == nullptr ? nullptr : &entry->value;
}

std::string numberWord(double number)
{
    std::array<char, 32> text{};
    if (std::abs(number) < 1e15 && number == std::floor(number))
        return std::to_string(static_cast<std::int64_t>(number));
    const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} ? std::string(text.data(), end) : std::string("0");
}

} // namespace

std::string textOf(const SettingValue *value)
{
    const auto *const text = kindOf<std::string>(value);
    return text == nullptr ? std::string() : *text;
}

std::optional<double> numberOf(const SettingValue *value)
{
    const auto *const number = kindOf<double>(value);
    return number == nullptr ? std::nullopt : std::optional(*number);
}

std::int64_t countOf(const SettingValue *value, std::int64_t missing)
{
    constexpr double kMost = 1e15;
    return static_cast<std::int64_t>(
        std::clamp(numberOf(value).value_or(static_cast<double>(missing)), -kMost, kMost));
}

std::optional<bool> flagOf(const SettingValue *value)
{
    const auto *const flag = kindOf<bool>(value);
    return flag == nullptr ? std::nullopt : std::optional(*flag);
}

std::vector<double> numbersOf(const SettingValue *value)
{
    const auto *const numbers = kindOf<std::vector<double>>(value);
    return numbers == nullptr ? std::vector<double>{} : *numbers;
}

std::vector<std::string> wordsOf(const SettingValue *value)
{
    if (const auto *const words = kindOf<std::vector<std::string>>(value))
        return *words;
    const auto *const one = kindOf<std::string>(value);
    return one == nullptr ? std::vector<std::string>{} : std::vector{*one};
}

std::string wordOf(const SettingValue &value)
{
    if (const auto *const flag = kindOf<bool>(&value))
        return *flag ? "true" : "false";
    if (const auto *const number = kindOf<double>(&value))
        return numberWord(*number);
    std::string all;
    const auto add = [&all](const std::string &word) { all += (all.empty() ? "" : " ") + word; };
    for (const double each : numbersOf(&value))
        add(numberWord(each));
    for (const std::string &each : wordsOf(&value))
        add(each);
    return all;
}

const ConfigEntry *FrameworkConfig::find(std::string_view name) const
{
    const auto found = m_entries.find(name);
    return found == m_entries.end() ? nullptr : &found->second;
}

void FrameworkConfig::derive(std::string_view name, SettingValue value, std::string_view source)
{
    const ConfigEntry *const from = find(source);
    ConfigEntry entry{std::move(value), from == nullptr ? "" : from->key, from == nullptr ? 0 : from->line};
    set(name, std::move(entry));
}

void FrameworkConfig::remove(std::string_view name)
{
    if (const auto found = m_entries.find(name); found != m_entries.end())
        m_entries.erase(found);
}

std::string FrameworkConfig::text(std::string_view name) const
{
    return textOf(valueOf(find(name)));
}

std::optional<double> FrameworkConfig::number(std::string_view name) const
{
    return numberOf(valueOf(find(name)));
}

std::int64_t FrameworkConfig::count(std::string_view name, std::int64_t missing) const
{
    return countOf(valueOf(find(name)), missing);
}

std::optional<bool> FrameworkConfig::flag(std::string_view name) const
{
    return flagOf(valueOf(find(name)));
}

std::vector<std::string> FrameworkConfig::words(std::string_view name) const
{
    return wordsOf(valueOf(find(name)));
}

} // namespace planloom
