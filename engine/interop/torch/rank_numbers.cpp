#include "engine/interop/torch/rank_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

constexpr char kBegin = '\1'; // kind, name, value, the two texts of a choice
constexpr char kNext = '\2';
constexpr char kEnd = '\3';

std::string marked(
    char kind, std::string_view name, std::int64_t value, std::string_view ifSo, std::string_view ifNot)
{
    std::string text{kBegin, kind};
    text.append(name) += kNext;
    text.append(std::to_string(value)) += kNext;
    text.append(ifSo) += kNext;
    text.append(ifNot) += kEnd;
    return text;
}

/// Names of the numbers that a rank has, each with its values by device.
class RankNames
{
public:
    /// The name of these values: one that has them already, or a new one that begins with `base`.
    std::string nameOf(const std::string &base, const std::vector<std::int64_t> &values, bool anyName)
    {
        for (std::size_t i = 0; i < m_names.size(); ++i)
            if (m_values[i] == values && (anyName || m_bases[i] == base))
                return "rank." + m_names[i];
        std::string name = base;
        for (int next = 2; std::find(m_names.begin(), m_names.end(), name) != m_names.end(); ++next)
            name = base + "_" + std::to_string(next);
        m_names.push_back(name);
        m_bases.push_back(base);
        m_values.push_back(values);
        return "rank." + name;
    }

    std::vector<std::string> m_names{};
    std::vector<std::string> m_bases{};
    std::vector<std::vector<std::int64_t>> m_values{};
};

/// first + step * rank.name, where the values are such.
std::string expressionOf(RankNames &names, const std::string &base, const std::vector<std::int64_t> &values)
{
    const std::int64_t first = *std::min_element(values.begin(), values.end());
    std::vector<std::int64_t> steps;
    std::int64_t step = 0;
    for (const std::int64_t value : values) {
        steps.push_back(value - first);
        step = std::gcd(step, steps.back());
    }
    if (step == 0)
        return std::to_string(first);
    for (std::int64_t &each : steps)
        each /= step;
    std::string text = names.nameOf(base, steps, true);
    if (step != 1)
        text = std::to_string(step) + " * " + text;
    if (first != 0)
        text = first > 0 ? text + " + " + std::to_string(first) : text + " - " + std::to_string(-first);
    return text;
}

} // namespace

std::string rankNumber(std::string_view name, std::int64_t value)
{
    return marked('n', name, value, {}, {});
}

std::string rankName(std::string_view name, std::int64_t value)
{
    return marked('g', name, value, {}, {});
}

std::string rankChoice(std::string_view name, bool value, std::string_view ifSo, std::string_view ifNot)
{
    if (ifSo.find(kBegin) != std::string_view::npos || ifNot.find(kBegin) != std::string_view::npos)
        return std::string(value ? ifSo : ifNot); // marks don't stand in one another
    return marked('c', name, value ? 1 : 0, ifSo, ifNot);
}

std::int64_t markedNumber(std::string_view mark)
{
    return std::strtoll(mark.data() + mark.find(kNext) + 1, nullptr, 10);
}

void ModuleFolder::add(std::int32_t device, std::string_view text)
{
    Form form;
    std::string key;
    std::size_t at = 0;
    const auto takeUntil = [&](char end) {
        const std::size_t stop = std::min(text.find(end, at), text.size());
        std::string taken(text.substr(at, stop - at));
        at = std::min(stop + 1, text.size());
        return taken;
    };
    while (true) {
        const bool last = text.find(kBegin, at) == std::string_view::npos;
        form.between.push_back(takeUntil(kBegin));
        key += form.between.back();
        if (last)
            break;
        Mark mark;
        mark.name = takeUntil(kNext);
        mark.kind = mark.name[0];
        mark.name.erase(0, 1);
        mark.values.push_back(std::strtoll(takeUntil(kNext).c_str(), nullptr, 10));
        mark.ifSo = takeUntil(kNext);
        mark.ifNot = takeUntil(kEnd);
        (((key += kBegin) += mark.kind) += mark.name) += mark.ifSo + kNext + mark.ifNot;
        form.marks.push_back(std::move(mark));
    }
    const auto [found, fresh] = m_byText.try_emplace(std::move(key), m_forms.size());
    if (fresh) {
        form.devices.push_back(device);
        m_forms.push_back(std::move(form));
        return;
    }
    Form &known = m_forms[found->second];
    known.devices.push_back(device);
    for (std::size_t i = 0; i < known.marks.size(); ++i)
        known.marks[i].values.push_back(form.marks[i].values[0]);
}

SharedModule ModuleFolder::resolved(const Form &form)
{
    SharedModule made;
    RankNames names;
    for (std::size_t i = 0; i < form.between.size(); ++i) {
        made.text += form.between[i];
        if (i == form.marks.size())
            break;
        const Mark &mark = form.marks[i];
        const bool same = std::equal(mark.values.begin() + 1, mark.values.end(), mark.values.begin());
        if (mark.kind == 'n')
            made.text += expressionOf(names, mark.name, mark.values);
        else if (mark.kind == 'g')
            made.text += names.nameOf(mark.name, mark.values, false);
        else if (same)
            made.text += mark.values[0] != 0 ? mark.ifSo : mark.ifNot;
        else
            made.text +=
                mark.ifSo + " if " + names.nameOf(mark.name, mark.values, false) + " else " + mark.ifNot;
    }
    made.names = names.m_names;
    made.devices = form.devices;
    for (std::size_t d = 0; d < form.devices.size(); ++d) {
        std::vector<std::int64_t> &own = made.numbers.emplace_back();
        for (const std::vector<std::int64_t> &values : names.m_values)
            own.push_back(values[d]);
    }
    return made;
}

std::vector<SharedModule> ModuleFolder::finish() const
{
    std::vector<SharedModule> modules;
    for (const Form &form : m_forms)
        modules.push_back(resolved(form));
    return modules;
}

} // namespace planloom
