// Any bytes as an execution plan: refused with an error, or a plan that prints, reads back and can be judged.

#include "engine/lowering/program/execution_plan_json.h"
#include "engine/verify/verify.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

using namespace planloom;
using nlohmann::json;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

/// Something that a number, text or list could be replaced by.
json anyValue(std::mt19937 &random)
{
    static const json kValues = json::array({0, 1, -1, 2, 3, 7, 64, 65536, 1048576, 2147483647, 2147483648U,
        -2147483648LL, 1099511627776LL, 9223372036854775807LL, 0.5, 1e300, true, false, nullptr, "", "matmul",
        "send", "all-reduce", "kernel", "b m k+, k+ n -> b m n", json::array(), json::array({0}),
        json::array({0, 1}), json::array({-1}), json::array({json::array({0, 0})}), json::object()});
    return kValues[std::uniform_int_distribution<std::size_t>(0, kValues.size() - 1)(random)];
}

/// Changes one place in the document, as deep in it as chance goes.
void change(json &value, std::mt19937 &random)
{
    const auto below = [&](std::size_t count) {
        return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    if ((!value.is_array() && !value.is_object()) || value.empty() || below(32) == 0) {
        if (value.is_number_integer() && below(2) == 0)
            value = value.get<std::int64_t>() % (1 << 20) + (below(2) == 0 ? 1 : -1);
        else
            value = anyValue(random);
        return;
    }
    auto it = value.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(below(value.size())));
    const std::size_t what = below(24);
    if (what == 0) {
        value.erase(it);
    } else if (what == 1 && value.is_array()) {
        const json copy = *it;
        value.insert(it, copy);
    } else if (what == 2 && value.is_array()) {
        std::swap(*it, value[below(value.size())]);
    } else {
        change(*it, random);
    }
}

} // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t most);

/// Bytes changed at random are seldom JSON: most changes are of the document instead.
extern "C" std::size_t LLVMFuzzerCustomMutator(
    std::uint8_t *data, std::size_t size, std::size_t most, unsigned int seed)
{
    std::mt19937 random(seed);
    json document = json::parse(data, data + size, nullptr, false);
    if (document.is_discarded() || random() % 16 == 0)
        return LLVMFuzzerMutate(data, size, most);
    change(document, random);
    const std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > most)
        return LLVMFuzzerMutate(data, size, most);
    std::copy(text.begin(), text.end(), data);
    return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    const auto plan = executionPlanFromJson(bytes);
    if (!plan) {
        require(plan.error().code != ErrorCode::Internal && !plan.error().message.empty());
        return 0;
    }
    const std::string text = toJson(*plan);
    const auto again = executionPlanFromJson(text);
    require(again.has_value());
    require(again->devices == plan->devices && again->partitions == plan->partitions);
    require(toJson(*again) == text);

    const auto report = verify(*plan);
    require(report.has_value() && (report->ok() || !report->failure->reason.empty()));
    return 0;
}
