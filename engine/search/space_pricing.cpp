#include "engine/search/space_pricing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

/// How much of the time for simulations may be spent on configurations that nearly fit.
constexpr double kNearlyFitShare = 0.5;
/// Those of them that are looked at first, until one fits.
constexpr std::size_t kMostFittedAtOnce = 12;
/// Configurations some of whose ranks have no room, that are looked at with other stages.
constexpr int kMostTriedWithOtherStages = 12;
/// As a multiple of that time, while none fits.
constexpr double kShareUntilOneFits = 4;
/// What partitions that people use may be faster by than that which the search finds.
constexpr double kUsualGain = 0.03;
/// Configurations that are looked at where none can fit: those that need least.
constexpr std::size_t kTriedWithoutHope = 12;
/// And where those that fit in the model did not in simulation.
constexpr std::size_t kTriedWhereNoneFitted = 24;
constexpr double kNearPeak = 0.01;
/// Partitions of a configuration that are looked at on the way to those which hold so much.
constexpr int kMostPathsWithin = 12;
/// A second shard axis is tried where without it a plan takes at most so much more than the best, of so many.
constexpr double kFarBehind = 0.2;
constexpr std::size_t kMostNested = 12;
constexpr std::size_t kMostNestedOfAnEdit = 2;
/// So many configurations are looked at with layers in turns: the most promising.
constexpr std::size_t kMostInTurns = 12;
constexpr std::size_t kMostInTurnsOfAnEdit = 2;
/// Entries of tables that may be worked out for those, at first and after an edit. They are counted, not
/// timed, so that what is found does not depend on how busy the machine is.
constexpr double kMostNestedEntries = 3 << 23;
constexpr double kMostNestedEntriesOfAnEdit = 1 << 22;
/// By so much a configuration's price after an edit may be below that before it, which had more partitions to
/// choose from: neither is of the very best.
constexpr double kBelowBefore = 0.01;

/// Bytes that a configuration needs, at least.
using Need = std::pair<std::int64_t, const Configuration *>;

/// Those that need least first; but of each mesh one before others of it: what they need in the end differs
/// most between meshes.
std::vector<Need> leastOfMeshesFirst(std::vector<Need> needs)
{
    std::stable_sort(
        needs.begin(), needs.end(), [](const Need &a, const Need &b) { return a.first < b.first; });
    std::set<std::array<std::int32_t, 3>> meshes;
    std::vector<Need> order;
    std::vector<Need> others;
    for (const Need &each : needs) {
        const auto [bytes, configuration] = each;
        const std::array mesh{configuration->replicas, configuration->ranks, configuration->shards};
        (meshes.insert(mesh).second ? order : others).push_back(each);
    }
    order.insert(order.end(), others.begin(), others.end());
    return order;
}

} // namespace

SpacePricing::SpacePricing(Setting setting)
    : m_setting(std::move(setting))
    , m_estimator(*m_setting.estimator)
    , m_space(*m_setting.space)
    , m_correction(*m_setting.correction)
    , m_book(m_estimator, m_space, m_correction)
{
    findNested();
}

void SpacePricing::takeOver(KnownBounds known)
{
    m_book.known() = std::move(known);
    m_tookOver = !m_book.known().empty();
    for (const auto &[configuration, bound] : m_book.known())
        if (const double seconds = bound.fitted > 0 ? bound.fitted : bound.priced; seconds > 0)
            m_pricedBefore.emplace(configuration, seconds);
}

Result<void> SpacePricing::price()
{
    TRY_VOID(priceOpenOnes());
    if (m_tookOver && !m_book.anyFits()) { // whether none can is to be proven: from the beginning
        m_tookOver = false;
        m_pricedBefore.clear();
        m_book.clear();
        m_open.clear();
        m_isUsualPriced.clear();
        m_isFitted.clear();
        m_inTurns.clear();
        TRY_VOID(priceOpenOnes());
    }
    TRY_VOID(priceWhereNothingCanFit());
    return priceNested();
}

Result<void> SpacePricing::priceUnequal()
{
    const StepEstimate *best = nullptr;
    for (const StepEstimate &each : m_book.priced())
        if (m_book.fits(each) && (!best || each.seconds < best->seconds))
            best = &each;
    if (!best)
        return {};
    TRY(std::vector<StepEstimate> found, m_estimator.unequalPlans(StepEstimate(*best), m_setting.stop));
    for (StepEstimate &each : found)
        m_book.addUnbounded(std::move(each));
    return {};
}

Result<void> SpacePricing::priceOpenOnes()
{
    TRY_VOID(leaveOutWhatCannotFit());
    TRY_VOID(priceAllOpen());
    TRY_VOID(priceThoseThatNearlyFit());
    return priceInTurns();
}

Result<void> SpacePricing::priceInTurns()
{
    if (m_leastNeeded > m_space.memoryLimit || m_book.anyFits()) // the former without what passes
        return {};
    std::set<Configuration> priced;
    for (const StepEstimate &each : m_book.priced())
        priced.insert(each.configuration);
    std::vector<std::pair<double, const Configuration *>> order;
    for (const Configuration &each : m_space.configurations) {
        const auto known = m_book.known().find(each);
        if (known == m_book.known().end() || known->second.isNeedless || known->second.likely == 0
            || !m_estimator.mayTakeTurns(each))
            continue;
        // What is only known of a search before may be of weights and what is kept.
        if (const auto least = m_estimator.leastPeakOf(each); priced.contains(each)
            || m_tooFull.contains(each) || (!known->second.fits && least && *least <= m_space.memoryLimit))
            order.emplace_back(known->second.likely, &each);
    }
    std::stable_sort(
        order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    order.resize(std::min(order.size(), m_tookOver ? kMostInTurnsOfAnEdit : kMostInTurns));
    std::vector<const Configuration *> open;
    for (const auto &[likely, each] : order) {
        m_inTurns.push_back(*each);
        m_inTurns.back().inTurns = true;
        open.push_back(&m_inTurns.back());
    }
    if (open.empty())
        return {};
    for (const double reductions : {0.0, 1.0})
        TRY_VOID(priceAll(open, reductions));
    TRY_VOID(priceThoseThatNearlyFit());
    // Of those that are not the best that fits nothing is claimed.
    const double found = m_book.bestPrice();
    for (const Configuration *each : open)
        if (std::none_of(m_book.priced().begin(), m_book.priced().end(), [&](const StepEstimate &priced) {
                return priced.configuration == *each && m_book.fits(priced) && priced.seconds <= found;
            }))
            m_book.bounds().erase(*each);
    return {};
}

Result<void> SpacePricing::leaveOutWhatCannotFit()
{
    std::vector<Need> tooLarge;
    std::size_t hopeless = 0;
    for (const Configuration &each : m_space.configurations) {
        if (m_setting.stop.stop_requested())
            return cancelled();
        if (const auto known = m_book.known().find(each); known != m_book.known().end()) {
            if (known->second.fits && !known->second.isNeedless)
                m_open.push_back(&each);
            else if (!known->second.fits)
                ++hopeless;
            continue;
        }
        // It takes time: of two plans that fit the one without is faster.
        if (each.recompute != RecomputeWord::None && !m_estimator.mayNeedRecompute(each, m_setting.stop)) {
            m_book.known()[each].isNeedless = true;
            continue;
        }
        const auto least = m_estimator.leastPeakOf(each);
        if (!least) {
            m_book.noteProblem(least.error());
            continue;
        }
        m_leastNeeded = m_leastNeeded == 0 ? *least : std::min(m_leastNeeded, *least);
        if (*least > m_space.memoryLimit)
            tooLarge.emplace_back(*least, &each);
        else
            m_open.push_back(&each);
    }
    if (!m_open.empty()) {
        for (const auto &[least, each] : tooLarge) {
            m_book.known()[*each].fits = false;
            m_book.known()[*each].needed = least;
        }
        if (m_tookOver && m_leastNeeded > m_space.memoryLimit)
            m_leastNeeded = 0; // of those that may fit it was not asked again
        return {};
    }
    if (hopeless > 0) { // all need to be looked at after all: those that need least are shown
        m_book.known().clear();
        tooLarge.clear();
        return leaveOutWhatCannotFit();
    }
    tooLarge = leastOfMeshesFirst(std::move(tooLarge));
    tooLarge.resize(std::min(tooLarge.size(), kTriedWithoutHope));
    for (const auto &[least, configuration] : tooLarge)
        m_open.push_back(configuration);
    return {};
}

Result<void> SpacePricing::priceAllOpen()
{
    for (const double reductions : {0.0, 1.0})
        TRY_VOID(priceAll(m_open, reductions));
    return {};
}

Result<void> SpacePricing::priceThoseThatNearlyFit()
{
    std::map<Configuration, bool> fitting;
    for (const StepEstimate &each : m_book.priced()) {
        bool &any = fitting[each.configuration];
        any = any || m_book.fits(each);
    }
    std::vector<std::pair<double, Configuration>> order;
    for (const auto &[configuration, any] : fitting) {
        const auto known = m_book.known().find(configuration);
        if (any || known == m_book.known().end() || !known->second.fits || m_isFitted.contains(configuration))
            continue;
        // After an edit those that were worth it before, if one fits.
        if (!m_tookOver || known->second.isWorthFitting || !m_book.anyFits())
            order.emplace_back(known->second.likely, configuration);
    }
    std::sort(order.begin(), order.end());
    const double begin = m_setting.worked->seconds();
    double best = m_book.bestPrice();
    for (const auto &[likely, configuration] : order) {
        const double worked = m_setting.worked->seconds() - begin;
        if (likely >= best
            || worked > m_setting.mostSeconds * (std::isfinite(best) ? kNearlyFitShare : kShareUntilOneFits))
            break;
        auto estimate = priceWithin(configuration, m_space.memoryLimit);
        if (!estimate && estimate.error().code == ErrorCode::Cancelled)
            return estimate.error();
        if (!estimate || !m_book.fits(*estimate))
            continue;
        if (estimate->seconds < best * (1 + kModelTrust))
            m_book.known()[configuration].isWorthFitting = true;
        best = std::min(best, estimate->seconds);
    }
    return {};
}

Result<void> SpacePricing::priceWhereNothingCanFit()
{
    if (!m_book.priced().empty())
        return {};
    std::vector<Need> order;
    for (const auto &[configuration, peak] : m_tooFull)
        order.emplace_back(peak, &configuration);
    // Those that could have fitted cannot be planned at all: the others are what there is.
    const bool isOfOthers = order.empty();
    for (const auto &[configuration, known] : m_book.known())
        if (isOfOthers && !known.fits && known.needed > 0)
            order.emplace_back(known.needed, &configuration);
    if (order.empty())
        return {};
    order = leastOfMeshesFirst(std::move(order));
    if (isOfOthers)
        m_leastNeeded = order.front().first;
    else if (std::all_of(order.begin(), order.end(), // else it is only proven of these stages
                 [this](const auto &each) {
                     Configuration inTurns = *each.second;
                     inTurns.inTurns = true;
                     return m_estimator.stagesAreDecided(*each.second)
                         && (m_tooFull.contains(inTurns) || !m_estimator.mayTakeTurns(*each.second));
                 }))
        m_leastNeeded = std::max(m_leastNeeded, order.front().first);
    std::size_t priced = 0; // others cannot be planned
    for (auto each = order.begin(); each != order.end() && priced < kTriedWithoutHope; ++each) {
        const auto estimate = priceWithin(*each->second, m_space.memoryLimit);
        if (!estimate && estimate.error().code == ErrorCode::Cancelled)
            return estimate.error();
        priced += estimate ? 1 : 0;
    }
    return {};
}

Result<StepEstimate> SpacePricing::priceWithin(const Configuration &configuration, std::int64_t limit)
{
    TRY(StepEstimate estimate, m_estimator.estimateWithin(configuration, limit, m_setting.stop));
    m_isFitted.insert(configuration);
    StepEstimate found = estimate;
    if (limit < m_space.memoryLimit) // others may hold more
        estimate.bound = 0;
    m_book.add(std::move(estimate));
    return found;
}

Result<double> SpacePricing::priceAlongPaths(const Configuration &configuration, std::int64_t limit)
{
    double best = std::numeric_limits<double>::infinity();
    for (int path = 0; path < kMostPathsWithin; ++path) {
        TRY(StepEstimate estimate, m_estimator.estimateAlongPaths(configuration, limit, m_setting.stop));
        if (estimate.peakBytes <= limit)
            best = std::min(best, estimate.seconds);
        if (limit < m_space.memoryLimit) // others may hold more
            estimate.bound = 0;
        m_book.add(std::move(estimate));
    }
    return best;
}

Result<void> SpacePricing::priceThoseThatNeedLeast()
{
    std::map<std::array<std::int32_t, 3>, std::pair<double, const Configuration *>> ofMeshes;
    for (const Configuration *each : m_open)
        if (const auto least = m_estimator.leastPeakOf(*each)) {
            const double likely = static_cast<double>(*least) * m_correction.peakOf(*each);
            auto &own = ofMeshes[{each->replicas, each->ranks, each->shards}];
            // Small micro-batches take little on their way, which `leastPeakOf` does not count.
            const bool isNear = own.second && std::abs(likely - own.first) <= kNearPeak * own.first;
            if (!own.second || (isNear ? each->microBatches > own.second->microBatches : likely < own.first))
                own = {likely, each};
        }
    std::vector<std::pair<double, const Configuration *>> order;
    for (const auto &[mesh, least] : ofMeshes)
        order.push_back(least);
    std::stable_sort(
        order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    order.resize(std::min(order.size(), kTriedWhereNoneFitted));
    for (const auto &[least, each] : order)
        for (const std::int64_t limit : {m_space.memoryLimit, std::int64_t{0}}) {
            const auto estimate = priceWithin(*each, limit);
            if (!estimate && estimate.error().code == ErrorCode::Cancelled)
                return estimate.error();
        }
    return {};
}

void SpacePricing::findNested()
{
    if (m_space.ownMesh)
        return;
    std::map<std::int32_t, std::vector<std::int32_t>> outer; // by shards
    for (const Configuration &each : m_space.configurations) {
        const auto [known, fresh] = outer.try_emplace(each.shards);
        if (fresh && each.shards > 3)
            known->second = m_estimator.outerShardsFor(each.shards);
        for (const std::int32_t parts : known->second) {
            m_nested.push_back(each);
            m_nested.back().outerShards = parts;
        }
    }
}

Result<void> SpacePricing::priceNested()
{
    if (m_nested.empty())
        return {};
    const double best = m_book.bestPrice();
    const auto prices = m_book.pricesThatFit();
    std::vector<std::pair<double, const Configuration *>> order;
    for (const Configuration &each : m_nested) {
        Configuration like = each;
        like.outerShards = 1;
        const auto price = prices.find(like);
        const auto known = m_book.known().find(like);
        if (known == m_book.known().end() || known->second.likely == 0 || !known->second.fits)
            continue;
        // Of those that were not priced, no less than that is likely.
        const double seconds =
            price != prices.end() ? price->second : std::max(known->second.likely, best * (1 + kModelTrust));
        if (seconds <= best * (1 + kFarBehind))
            order.emplace_back(seconds, &each);
    }
    std::stable_sort(
        order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<const Configuration *> open;
    double entriesLeft = m_tookOver ? kMostNestedEntriesOfAnEdit : kMostNestedEntries;
    std::set<std::array<std::int32_t, 4>> networks;
    for (const auto &[price, each] : order) {
        const auto known = m_book.known().find(*each);
        if (open.size() == (m_tookOver ? kMostNestedOfAnEdit : kMostNested))
            break;
        if (known != m_book.known().end() && !known->second.fits)
            continue;
        const std::array network{each->shards, each->outerShards, each->replicas, each->microBatches};
        if (!networks.contains(network)) {
            const auto entries = m_estimator.nestedEntriesOf(*each, m_setting.stop);
            if (!entries || *entries > entriesLeft)
                continue;
            entriesLeft -= *entries;
            networks.insert(network);
        }
        const auto kernels = m_estimator.kernelBoundOf(*each);
        const auto least = m_estimator.leastPeakOf(*each);
        if (kernels && *kernels <= best * (1 + kModelTrust) && least && *least <= m_space.memoryLimit)
            open.push_back(each);
    }
    for (const Configuration *each : open)
        for (const double reductions : {0.0, 1.0})
            TRY_VOID(priceAll({each}, reductions));
    // Of those that are not the best nothing is claimed.
    const double found = m_book.bestPrice();
    for (const Configuration *each : open)
        if (std::none_of(m_book.priced().begin(), m_book.priced().end(), [&](const StepEstimate &priced) {
                return priced.configuration == *each && priced.seconds <= found;
            }))
            m_book.bounds().erase(*each);
    return {};
}

void SpacePricing::bringBestBeforeForward(std::vector<std::pair<double, const Configuration *>> &order) const
{
    const auto fitted = [this](const Configuration &configuration) {
        const auto known = m_book.known().find(configuration);
        return known == m_book.known().end() || known->second.fitted == 0
            ? std::numeric_limits<double>::infinity()
            : known->second.fitted;
    };
    const auto best = std::min_element(order.begin(), order.end(),
        [&](const auto &a, const auto &b) { return fitted(*a.second) < fitted(*b.second); });
    if (best != order.end() && std::isfinite(fitted(*best->second)))
        std::rotate(order.begin(), best, best + 1);
}

double SpacePricing::likelyAfterEdit(const Configuration &configuration) const
{
    const auto before = m_pricedBefore.find(configuration);
    return std::max(m_book.known().at(configuration).likely,
        before == m_pricedBefore.end() ? 0 : before->second * (1 - kBelowBefore));
}

Result<void> SpacePricing::priceAll(const std::vector<const Configuration *> &open, double reductions)
{
    double best = std::numeric_limits<double>::infinity();
    double fastest = best; // in the model, as it is noted
    // Both as they would be simulated.
    const auto hasNoChance = [&](const Configuration &configuration, double bound) {
        return bound * m_correction.of(configuration, kModelTrust).least > best;
    };
    const auto corrected = [&](const StepEstimate &each) {
        return each.seconds * m_correction.of(each.configuration, kModelTrust).likely;
    };
    const auto consider = [&](const StepEstimate &each) {
        if (!m_book.fits(each))
            return;
        best = std::min(best, corrected(each));
        fastest = std::min(fastest, each.seconds);
    };
    for (const StepEstimate &each : m_book.priced())
        consider(each);
    std::vector<std::pair<double, const Configuration *>> looked; // at for the first time
    std::vector<std::pair<double, const Configuration *>> order;
    for (const Configuration *each : open)
        order.emplace_back(m_book.known().contains(*each) ? likelyAfterEdit(*each) : 0, each);
    const auto sort = [&] {
        std::stable_sort(
            order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    };
    // Those of which nothing is known are bounded first, so that the most promising one is priced first.
    for (auto &[likely, each] : order)
        if (likely == 0) {
            TRY(likely, boundsOf(*each));
        }
    sort();
    if (m_tookOver)
        bringBestBeforeForward(order);
    for (const auto &[known, configuration] : order) {
        if (m_setting.stop.stop_requested()) // what is remembered is priced without asking
            return cancelled();
        if (hasNoChance(*configuration, known)) {
            if (const auto found = m_book.known().find(*configuration); found != m_book.known().end())
                m_book.bounds().try_emplace(*configuration, found->second.proven);
            continue;
        }
        TRY(const double bound, boundsOf(*configuration));
        if (hasNoChance(*configuration, bound) || m_tooFull.contains(*configuration))
            continue;
        if (const auto peak = m_estimator.stagedPeakOf(*configuration, m_setting.stop);
            peak && *peak > m_space.memoryLimit) {
            TRY(const auto moved, priceWithOtherStages(*configuration));
            if (moved && m_book.fits(*moved)) {
                consider(*moved);
                continue;
            }
            m_tooFull.emplace(*configuration, *peak);
            m_book.known()[*configuration].needed = *peak;
            m_book.bounds()[*configuration] = std::numeric_limits<double>::infinity();
            continue;
        }
        auto estimate = m_estimator.estimate(*configuration, reductions, m_setting.stop);
        if (!estimate) {
            if (estimate.error().code == ErrorCode::Cancelled)
                return estimate.error();
            m_book.bounds().erase(*configuration); // its stages cannot be as rows say
            m_book.noteProblem(std::move(estimate).error());
            continue;
        }
        // Before one fits all others are in question.
        if (!m_book.fits(*estimate) && !std::isfinite(best) && m_isFitted.size() < kMostFittedAtOnce
            && !m_isFitted.contains(*configuration)) {
            const auto within = priceWithin(*configuration, m_space.memoryLimit);
            if (!within && within.error().code == ErrorCode::Cancelled)
                return within.error();
            if (within)
                consider(*within);
        }
        consider(*estimate);
        m_setting.note(fastest, 0);
        if (m_isUsualPriced.insert(*configuration).second)
            looked.emplace_back(estimate->seconds, configuration);
        m_book.add(*std::move(estimate));
    }
    for (const auto &[seconds, configuration] : looked) {
        if (hasNoChance(*configuration, seconds * (1 - kUsualGain)))
            continue;
        TRY(auto usual, m_estimator.estimateUsual(*configuration, m_setting.stop));
        for (StepEstimate &each : usual) {
            consider(each);
            m_book.notePrice(each);
            m_book.addUnbounded(std::move(each));
        }
    }
    return {};
}

Result<std::optional<StepEstimate>> SpacePricing::priceWithOtherStages(const Configuration &configuration)
{
    if (m_isFitted.contains(configuration) || m_triedOtherStages >= kMostTriedWithOtherStages
        || !m_estimator.mayFitWithOtherStages(configuration, m_setting.stop))
        return std::optional<StepEstimate>();
    ++m_triedOtherStages;
    auto estimate = priceWithin(configuration, m_space.memoryLimit);
    if (!estimate && estimate.error().code == ErrorCode::Cancelled)
        return estimate.error();
    return estimate ? std::optional(*std::move(estimate)) : std::nullopt;
}

Result<double> SpacePricing::boundsOf(const Configuration &configuration)
{
    auto likely = m_estimator.likelyBoundOf(configuration, m_setting.stop);
    const auto proven = m_estimator.boundOf(configuration, m_setting.stop);
    if (!likely || !proven) {
        if (!likely && likely.error().code == ErrorCode::Cancelled)
            return likely;
        if (!likely)
            m_book.noteProblem(std::move(likely).error());
        return std::numeric_limits<double>::infinity();
    }
    KnownBound &known = m_book.known()[configuration];
    known.likely = std::max(known.likely, *likely);
    known.proven = std::max(known.proven, *proven);
    m_book.bounds().try_emplace(configuration, known.proven);
    return known.likely;
}

} // namespace planloom
