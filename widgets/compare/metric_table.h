#pragma once

#include "widgets/common/delta.h"
#include "widgets/design/plan_update.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// One figure of several plans.
struct PlanMetric {
    enum class Unit : std::uint8_t { Seconds, Bytes, Share, Count, Word };
    std::string name{}; ///< "step time", "peak memory" ...
    Unit unit = Unit::Seconds;
    enum class Better : std::uint8_t { Less, More, Neither };
    Better better = Better::Less;
    std::vector<std::optional<double>> values{}; ///< By plan; nothing where it is not known.
    std::vector<std::string> texts{}; ///< By plan, of Unit::Word.
};

/// Figures of plans; null ones, and those without a timeline, have what is known without.
std::vector<PlanMetric> metricTable(const std::vector<PlanUpdateSnapshot> &plans);

/// "41.2 ms", "63.0 GiB", "30.6%", "8"; "–" if it is not known.
std::string valueText(const PlanMetric &metric, std::size_t plan);
/// "−2.70 ms" of `plan` against plan `base`; empty without both.
std::string deltaText(const PlanMetric &metric, std::size_t base, std::size_t plan);
/// "−6.1%"; empty without both, and for shares, whose difference is in points already.
std::string percentText(const PlanMetric &metric, std::size_t base, std::size_t plan);
/// What it means that `base` became `plan`.
Change changeOf(const PlanMetric &metric, std::size_t base, std::size_t plan);

} // namespace planloom
