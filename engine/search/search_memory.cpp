#include "engine/search/search_memory.h"

#include "engine/hardware/remembered_costs.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// How near plans of one configuration are to what the model is wrong by for another of its partitions; and
/// plans that differ from it in what they compute again, or in what replicas share, as well.
constexpr double kAlike = 0.015;
constexpr double kNearlyAlike = 0.025;
/// Likewise for plans that share the schedule alone.
constexpr double kSameSchedule = 0.06;

/// Estimators that are kept: of so many different sets of rows about operators.
constexpr std::size_t kMostEstimators = 8;
constexpr std::size_t kMostOutcomes = 4096;
constexpr std::size_t kMostTables = 32; ///< Whose bounds and results are kept.

/// What a row that is added does to what was found without it.
enum class Addition : std::uint8_t {
    Restricts, ///< What is left was there before, and takes what it took.
    TakesLonger, ///< What is left takes no less time, but perhaps less memory.
    Changes,
};

template<typename Rule, typename... Rules> constexpr bool kIsOneOf = (std::is_same_v<Rule, Rules> || ...);

Addition additionOf(const Row &row)
{
    // Of ZeRO: what a row does not name is sharded otherwise than before, too.
    const bool isWhole = row.selector.kind == SelectorKind::All
        || (row.selector.kind == SelectorKind::Weight && row.selector.text == "*");
    return std::visit(
        [isWhole]<typename R>(const R &rule) {
            if constexpr (std::is_same_v<R, RecomputeRule>)
                return rule.when == Switched::Always ? Addition::TakesLonger : Addition::Changes;
            else if constexpr (std::is_same_v<R, OptimizerShardingRule>)
                return !rule.chosen && isWhole ? Addition::Restricts : Addition::Changes;
            else
                return kIsOneOf<R, OpTransRule, PartsRule, AlikeRule, FollowRule, MeshRule, MicroBatchesRule,
                           DegreeRule, ScheduleRule, LimitRule>
                    ? Addition::Restricts
                    : Addition::Changes;
        },
        row.rule);
}

/// Gradients are reduced, and weights perhaps gathered, in every micro-batch.
bool reducesOften(const Configuration &configuration)
{
    return configuration.zero >= 2 && configuration.microBatches > 1;
}

/// What plans have in common that the model is wrong about in the same way.
Configuration kindOf(Configuration configuration)
{
    configuration.recompute = RecomputeWord::None;
    configuration.inTurns = false;
    configuration.zero = reducesOften(configuration) ? 2 : std::min(configuration.zero, 1);
    return configuration;
}

std::tuple<ScheduleKind, int, bool, bool> familyOf(const Configuration &configuration)
{
    return {configuration.schedule,
        (configuration.innerShards() > 1 ? 1 : 0) + (configuration.outerShards > 1 ? 1 : 0),
        configuration.isUnequal(), reducesOften(configuration)};
}

/// What is held for a while: gathered weights, what was sent, what a micro-batch passes on.
std::array<bool, 7> peakFamilyOf(const Configuration &configuration)
{
    return {configuration.zero > 0, configuration.zero > 2, configuration.ranks > 1, configuration.shards > 1,
        configuration.recompute == RecomputeWord::Full, configuration.isUnequal(), configuration.inTurns};
}

} // namespace

void Correction::learn(const Configuration &configuration, double modelled, double simulated, double proven)
{
    m_same[configuration] = m_alike[kindOf(configuration)] = simulated / modelled;
    m_families[familyOf(configuration)].add(simulated / modelled);
    if (proven <= 0 || !std::isfinite(proven))
        return;
    double &least = m_leastProven.try_emplace(familyOf(configuration), 1).first->second;
    least = std::min(least, simulated / proven);
}

Correction::Range Correction::of(const Configuration &configuration, double trust) const
{
    if (const auto same = m_same.find(configuration); same != m_same.end())
        return {same->second * (1 - kAlike), same->second};
    if (const auto alike = m_alike.find(kindOf(configuration)); alike != m_alike.end())
        return {alike->second * (1 - kNearlyAlike), alike->second};
    if (const auto family = m_families.find(familyOf(configuration)); family != m_families.end()) {
        const double likely = family->second.mean();
        return {std::max(1 - trust, likely * (1 - kSameSchedule)), likely};
    }
    return {1 - trust, 1};
}

void Correction::learnMoved(const Configuration &configuration, double factor)
{
    m_moved.insert(configuration);
    m_leastMoved = std::min(m_leastMoved, factor);
}

double Correction::leastOf(const Configuration &configuration) const
{
    const double moved = configuration.ranks > 1 && !m_moved.contains(configuration) ? m_leastMoved : 1;
    const auto family = m_leastProven.find(familyOf(configuration));
    if (m_same.contains(configuration) || m_alike.contains(kindOf(configuration))
        || family == m_leastProven.end())
        return of(configuration, kModelTrust).least * moved;
    return family->second * (1 - kSameSchedule) * moved;
}

void Correction::learnPeak(const Configuration &configuration, double modelled, double simulated)
{
    m_samePeak[configuration] = simulated / modelled;
    m_peaks[peakFamilyOf(configuration)].add(simulated / modelled);
}

double Correction::peakOf(const Configuration &configuration) const
{
    if (const auto same = m_samePeak.find(configuration); same != m_samePeak.end())
        return same->second;
    const auto family = m_peaks.find(peakFamilyOf(configuration));
    return family == m_peaks.end() ? 1 : family->second.mean();
}

SearchMemory::SearchMemory()
    : m_kept(std::make_unique<Kept>())
{
}
SearchMemory::~SearchMemory() = default;

void SearchMemory::Kept::use(const GraphSnapshot &graph, const Cluster &cluster, std::int32_t deviceCount,
    PrecisionPreset precision, const CostModel &costs)
{
    if (m_graph == graph && m_cluster == cluster && m_deviceCount == deviceCount && m_precision == precision)
        return;
    m_graph = graph;
    m_cluster = cluster;
    m_deviceCount = deviceCount;
    m_precision = precision;
    m_costs = withRememberedCollectives(costs);
    m_usual = std::make_shared<UsualPartitions>();
    m_paths = std::make_shared<PathMemory>();
    m_seen = std::make_shared<StepsSeen>();
    m_estimators.clear();
    m_outcomes.clear();
    m_bounds.clear();
    m_results.clear();
    m_corrections.clear();
    m_unequalHelped = false;
}

StepEstimator *SearchMemory::Kept::estimatorOf(const std::string &rows)
{
    const auto found = std::find_if(
        m_estimators.begin(), m_estimators.end(), [&](const auto &each) { return each.first == rows; });
    if (found == m_estimators.end())
        return nullptr;
    std::rotate(m_estimators.begin(), found, std::next(found));
    return m_estimators.front().second.get();
}

void SearchMemory::Kept::remember(std::string rows, std::unique_ptr<StepEstimator> estimator)
{
    m_estimators.emplace_front(std::move(rows), std::move(estimator));
    if (m_estimators.size() > kMostEstimators)
        m_estimators.pop_back();
}

const TimedStep *SearchMemory::Kept::outcomeOf(const std::string &rows) const
{
    const auto found = m_outcomes.find(rows);
    return found == m_outcomes.end() ? nullptr : &found->second;
}

void SearchMemory::Kept::remember(std::string rows, TimedStep outcome)
{
    if (m_outcomes.size() >= kMostOutcomes)
        m_outcomes.clear();
    m_outcomes.emplace(std::move(rows), outcome);
}

SearchMemory::Kept::Rows SearchMemory::Kept::enabled(const ConstraintTable &rows)
{
    Rows texts;
    for (const Row &row : rows.rows)
        if (row.enabled)
            texts.push_back(print(row));
    std::sort(texts.begin(), texts.end());
    return texts;
}

const SearchResult *SearchMemory::Kept::resultOf(const ConstraintTable &rows) const
{
    const Rows texts = enabled(rows);
    const auto found = std::find_if(
        m_results.begin(), m_results.end(), [&](const TableResult &each) { return each.rows == texts; });
    return found == m_results.end() ? nullptr : &found->result;
}

void SearchMemory::Kept::remember(const ConstraintTable &rows, SearchResult result)
{
    result.plan = nullptr;
    result.materialized = nullptr;
    result.figures = nullptr;
    m_results.push_front({enabled(rows), std::move(result), m_uses});
    if (m_results.size() > kMostTables)
        m_results.erase(std::min_element(m_results.begin(), m_results.end(),
            [](const TableResult &a, const TableResult &b) { return a.used < b.used; }));
}

std::vector<const SearchResult *> SearchMemory::Kept::relativesOf(const ConstraintTable &rows)
{
    const Rows texts = enabled(rows);
    std::vector<const SearchResult *> relatives;
    for (auto &[own, result, used] : m_results)
        if (result.fits
            && (std::includes(texts.begin(), texts.end(), own.begin(), own.end())
                || std::includes(own.begin(), own.end(), texts.begin(), texts.end()))) {
            relatives.push_back(&result);
            used = m_uses;
        }
    return relatives;
}

KnownBounds SearchMemory::Kept::boundsFor(const ConstraintTable &rows,
    const std::vector<Configuration> &configurations, std::int64_t memoryLimit,
    const std::function<double(const Row &)> &keptBy)
{
    KnownBounds bounds;
    const Rows texts = enabled(rows);
    ++m_uses;
    for (auto &[known, found, used] : m_bounds) {
        if (!std::includes(texts.begin(), texts.end(), known.begin(), known.end()))
            continue;
        used = m_uses;
        bool restricts = true;
        bool holds = true;
        bool limits = false;
        double freed = 0;
        for (const Row &row : rows.rows) {
            if (!row.enabled || std::binary_search(known.begin(), known.end(), print(row)))
                continue;
            restricts = restricts && additionOf(row) == Addition::Restricts;
            holds = holds && additionOf(row) != Addition::Changes;
            limits = limits || std::holds_alternative<LimitRule>(row.rule);
            freed += additionOf(row) == Addition::TakesLonger ? keptBy(row) : 0;
        }
        for (const Configuration &each : configurations) {
            const auto before = found.find(each);
            const auto stillNeeded = [&](const KnownBound &known) {
                return static_cast<double>(known.needed) - freed / each.replicas;
            };
            if (!holds || before == found.end()
                || (!before->second.fits && !restricts
                    && stillNeeded(before->second) <= static_cast<double>(memoryLimit))
                || (before->second.isNeedless && (limits || !restricts)))
                continue;
            KnownBound &own = bounds[each];
            own.isNeedless = own.isNeedless || before->second.isNeedless;
            own.proven = std::max(own.proven, before->second.proven);
            own.likely = std::max(own.likely, before->second.likely);
            own.simulatedLeast = std::max(own.simulatedLeast, before->second.simulatedLeast);
            if (own.fitted == 0) // the newest says most
                own.fitted = before->second.fitted;
            own.priced = std::max(own.priced, before->second.priced);
            own.isWorthFitting = own.isWorthFitting || before->second.isWorthFitting;
            own.fits = own.fits && before->second.fits;
            if (const double needed = stillNeeded(before->second); needed > static_cast<double>(own.needed))
                own.needed = static_cast<std::int64_t>(needed);
        }
    }
    return bounds;
}

void SearchMemory::Kept::remember(
    const ConstraintTable &rows, KnownBounds known, const std::map<Configuration, double> &found)
{
    for (const auto &[configuration, bound] : found) {
        KnownBound &own = known[configuration];
        if (std::isfinite(bound))
            own.proven = std::max(own.proven, bound);
        else
            own.fits = false;
    }
    const Rows texts = enabled(rows);
    std::erase_if(m_bounds, [&](const TableBounds &each) { return each.rows == texts; });
    m_bounds.push_front({texts, std::move(known), ++m_uses});
    if (m_bounds.size() > kMostTables)
        m_bounds.erase(std::min_element(m_bounds.begin(), m_bounds.end(),
            [](const TableBounds &a, const TableBounds &b) { return a.used < b.used; }));
}

void SearchMemory::Kept::rememberSimulated(
    const ConstraintTable &rows, const std::map<Configuration, double> &least)
{
    if (m_bounds.empty() || m_bounds.front().rows != enabled(rows))
        return;
    for (const auto &[configuration, seconds] : least) {
        KnownBound &own = m_bounds.front().bounds[configuration];
        own.simulatedLeast = std::max(own.simulatedLeast, seconds);
    }
}

Correction &SearchMemory::Kept::correctionFor(const ConstraintTable &rows)
{
    std::string changes;
    for (const Row &row : rows.rows)
        if (row.enabled && additionOf(row) != Addition::Restricts)
            changes += print(row) + "\n";
    return m_corrections[std::move(changes)];
}

} // namespace planloom
