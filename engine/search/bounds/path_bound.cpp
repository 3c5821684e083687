#include "engine/search/bounds/path_bound.h"

#include "engine/schedule/schedule_templates.h"
#include "engine/search/partition/meeting_tables.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostMixtures = 3; ///< That are looked for: all cuts are tried for each.

} // namespace

const std::array<double PathBound::Weights::*, 11> PathBound::kParts{&Weights::forward, &Weights::backward,
    &Weights::weights, &Weights::gathering, &Weights::reducing, &Weights::reduction, &Weights::reductionApart,
    &Weights::reductionFilled, &Weights::reductionAsOne, &Weights::update, &Weights::gather};
const std::array<double PathBound::Weights::*, kReducedAs> PathBound::kReductions{
    &Weights::reduction, &Weights::reductionApart, &Weights::reductionFilled, &Weights::reductionAsOne};

PathBound::PathBound(const Configuration &configuration, const PartitionProblem &problem,
    const StagePlan &plan, const Reductions &reductions, const std::vector<LeastStage> &least,
    const OperatorTimes &waits, bool trains)
    : m_configuration(configuration)
    , m_problem(problem)
    , m_plan(plan)
    , m_reductions(reductions)
    , m_waits(waits)
    , m_trains(trains)
    , m_splits(splitsBackward(configuration.schedule))
    , m_read(least.size())
    , m_readers(problem.setting().model->graph->tensors.size(), 0)
    , m_isShared(m_readers.size(), false)
    , m_sharedBy(m_readers.size(), -1)
{
    for (const Meeting &meeting : problem.meetings()) {
        std::int32_t first = meeting.readers.front().first;
        for (const auto &[reader, slot] : meeting.readers)
            first = std::min(first, reader);
        m_charged.push_back(static_cast<std::size_t>(first));
        m_readers[static_cast<std::size_t>(meeting.tensor.index)] =
            static_cast<std::int32_t>(meeting.readers.size());
        if (meeting.producer >= 0)
            continue;
        std::map<std::int32_t, std::int32_t> readBy; // first reader by stage
        for (const auto &[reader, slot] : meeting.readers) {
            const auto [own, fresh] =
                readBy.try_emplace(plan.stageOf[static_cast<std::size_t>(reader)], reader);
            own->second = std::min(own->second, reader);
        }
        // Where the backward pass is split, products alone make gradients of weights in the last pass.
        const bool isLast =
            !m_splits || problem.choiceOf(static_cast<std::size_t>(first), 0).weightGradients > 0;
        m_isShared[static_cast<std::size_t>(meeting.tensor.index)] = readBy.size() > 1;
        for (const auto &[reader, slot] : meeting.readers)
            if (readBy.size() > 1)
                ++m_readersIn[{meeting.tensor, plan.stageOf[static_cast<std::size_t>(reader)]}];
        if (readBy.size() > 1 && trains && problem.gradientOf(meeting.tensor)) {
            m_sharedBy[static_cast<std::size_t>(meeting.tensor.index)] =
                static_cast<std::int32_t>(m_shared.size());
            Shared &shared = m_shared.emplace_back(Shared{.weight = meeting.tensor});
            for (const auto &[stage, reader] : readBy)
                shared.stages.push_back(stage);
        }
        for (const auto &[stage, reader] : readBy)
            m_read[static_cast<std::size_t>(stage)].push_back(
                {reader, meeting.tensor, isLast && readBy.size() == 1});
    }
    if (configuration.zero >= 2)
        findAtEnds();
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(configuration.ranks); ++rank)
        m_leastBehind.push_back(reductions.leastBehind(least, rank));
    m_links = leastLinks(problem, plan);
    m_leastSends = reductions.sendsOf(m_links);
    m_leastSending = reductions.sendingOf(m_links);
    const PassedBefore nothing{
        std::vector<double>(problem.operatorCount(), 0), std::vector<double>(problem.operatorCount(), 0)};
    for (const ShardAxes axes : {ShardAxes::None, ShardAxes::Inner, ShardAxes::Outer, ShardAxes::Both}) {
        const std::int64_t parts = problem.setting().devicesOver(axes);
        if (auto &sending = m_sending[parts]; sending.empty())
            sending = reductions.sendingOf(stageLinks(
                problem, plan, [parts](const auto &) { return parts; }, nothing));
    }
    m_recomputes.assign(static_cast<std::size_t>(plan.stages), false);
    for (std::size_t i = 0; i < plan.runsAgain.size(); ++i)
        if (plan.runsAgain[i] > 0)
            m_recomputes[static_cast<std::size_t>(plan.stageOf[i])] = true;
}

PathBound::Mean PathBound::nothing() const
{
    const std::size_t operators = m_problem.operatorCount();
    const std::size_t tensors = m_readers.size();
    Mean mean{.stages = std::vector<Weights>(m_read.size()),
        .lastPass = std::vector<double>(operators, 0),
        .firstPass = std::vector<double>(operators, 0),
        .skipped = std::vector<double>(operators, 0),
        .shared = std::vector<double>(tensors, 0),
        .sharedUpdate = std::vector<double>(tensors, 0),
        .gathered = std::vector<double>(tensors, 0)};
    mean.reduced.fill(std::vector<double>(tensors, 0));
    return mean;
}

Result<void> PathBound::add(const std::vector<std::int32_t> &choice, const std::vector<StageFigures> &figures,
    const std::vector<StageLink> &links)
{
    std::vector<StageTime> times;
    std::vector<bool> gathers;
    std::vector<bool> reduces;
    for (const StageFigures &stage : figures) {
        times.push_back(stage.time);
        const Reductions::Longer longer = m_reductions.addTo(stage, times.back());
        gathers.push_back(longer.gathers);
        reduces.push_back(longer.reduces);
    }
    std::vector<PlayedBlock> blocks;
    TRY(const PipelineTime played,
        playPipeline(m_configuration.schedule, times, m_reductions.sendsOf(links), SendOrder::Any,
            m_configuration.ranks, m_configuration.microBatches, m_trains, &blocks));
    Way way = longestWayOf(figures, played, blocks);
    std::vector<bool> isOwn; // by stage: its blocks take what its operators do
    for (std::size_t s = 0; s < way.stages.size(); ++s)
        isOwn.push_back(!gathers[s] && !reduces[s]);
    addSends(links, isOwn, way);
    for (std::size_t s = 0; s < way.stages.size(); ++s) {
        Weights &own = way.stages[s];
        if (own.ahead > 0)
            way.ahead.emplace_back(m_reductions.aheadOf(figures[s]).reader, own.ahead);
        if (gathers[s])
            own.gathering = std::exchange(own.forward, 0);
        if (reduces[s] && !m_splits)
            own.reducing = std::exchange(own.backward, 0);
        if (reduces[s] && m_splits) { // both parts of a backward pass together take as long as its reductions
            own.reducing = std::min(own.backward, own.weights);
            own.backward -= own.reducing;
            own.weights -= own.reducing;
        }
    }
    Mean alone = nothing();
    add(way, 1, alone);
    auto &seconds = m_seconds.emplace_back();
    for (const Partition &before : m_partitions)
        seconds.push_back(secondsOf(before, alone));
    m_ways.push_back(std::move(way));
    m_partitions.push_back(partitionOf(choice));
    for (std::size_t w = 0; w < m_ways.size(); ++w) {
        Mean each = nothing();
        add(m_ways[w], 1, each);
        m_seconds[w].push_back(secondsOf(m_partitions.back(), each));
    }
    return {};
}

/// Which stages are linked, and by what, is the same for all partitions: only whole tensors or parts are
/// sent.
void PathBound::addSends(const std::vector<StageLink> &links, const std::vector<bool> &isOwn, Way &way) const
{
    const std::vector<Reductions::Sending> sending = m_reductions.sendingOf(links);
    for (std::size_t i = 0; i < links.size(); ++i) {
        const SendVisits &visits = way.blocks.sends[i];
        const auto addOf = [&](bool backward, double counts, double leastAhead) {
            if (counts == 0)
                return;
            const std::vector<StageLink::Sent> &sent = backward ? links[i].backward : links[i].forward;
            const auto reads = static_cast<std::size_t>(backward ? links[i].from : links[i].to);
            const std::int32_t by = sentAhead(sent, backward ? sending[i].backward : sending[i].forward).by;
            if (by < 0)
                return;
            // What is computed again before gradients come is of operators behind and before their reader.
            if (!isOwn[reads] || (backward && m_recomputes[reads])) {
                way.constant += counts * leastAhead;
                return;
            }
            const std::vector<double> &least =
                backward ? m_leastSending[i].backward : m_leastSending[i].forward;
            way.constant += counts * std::accumulate(least.begin(), least.begin() + by + 1, 0.0);
            for (std::int32_t each = 0; each <= by; ++each)
                way.sent.push_back({i, static_cast<std::size_t>(each), backward, counts});
            way.skipped.push_back({sent[static_cast<std::size_t>(by)].reader, backward, counts});
        };
        addOf(false, visits.forward, m_leastSends[i].forwardAhead);
        addOf(true, visits.backward, m_leastSends[i].backwardAhead);
    }
    if (way.blocks.into >= 0) {
        const StageSend &into = m_leastSends[static_cast<std::size_t>(way.blocks.into)];
        way.constant += way.blocks.intoBackward ? into.backwardAhead : into.forwardAhead;
    }
}

void PathBound::skip(const Skipped &skipped, double counts, Mean &mean) const
{
    const auto reader = static_cast<std::size_t>(skipped.reader);
    const std::int32_t stage = m_plan.stageOf[reader];
    const std::size_t begin = skipped.backward ? reader + 1 : 0;
    const std::size_t end = skipped.backward ? m_problem.operatorCount() : reader;
    std::vector<double> &passes = skipped.backward ? mean.skipped : mean.firstPass;
    for (std::size_t i = begin; i < end; ++i)
        if (m_plan.stageOf[i] == stage)
            passes[i] -= counts * skipped.counts;
}

void PathBound::add(const Way &way, double counts, Mean &mean) const
{
    for (const Skipped &skipped : way.skipped)
        skip(skipped, counts, mean);
    for (SentOn sent : way.sent) {
        sent.counts *= counts;
        mean.sent[makerOf(sent)].push_back(sent);
    }
    mean.constant += counts * way.constant;
    if (way.behind >= 0)
        addReductions(way, counts, mean);
    for (const Shared &shared : m_shared)
        if (way.shared && isSharedBy(shared, way.rank)) {
            mean.shared[static_cast<std::size_t>(shared.weight.index)] += counts;
            mean.sharedUpdate[static_cast<std::size_t>(shared.weight.index)] += way.sharedUpdate ? counts : 0;
        }
    for (const auto &[reader, times] : way.ahead)
        addGathering(reader, counts * times, mean);
    for (std::size_t s = 0; s < way.stages.size(); ++s)
        for (double Weights::*part : kParts)
            mean.stages[s].*part += counts * way.stages[s].*part;
}

/// Those of a rank's weights that are complete when operator `Way::behind` has made its gradients, or later:
/// behind what its stage's last backward block does until then, unless that is all of it.
void PathBound::addReductions(const Way &way, double counts, Mean &mean) const
{
    const std::int32_t stage = m_plan.stageOf[static_cast<std::size_t>(way.behind)];
    for (auto i = static_cast<std::size_t>(way.behind); i < m_problem.operatorCount() && !way.behindAll; ++i)
        if (m_plan.stageOf[i] == stage)
            mean.lastPass[i] += counts;
    const auto add = [&](const Read &read) {
        if (read.isLast)
            mean.reduced[static_cast<std::size_t>(way.as)][static_cast<std::size_t>(read.weight.index)] +=
                counts;
    };
    for (const Read &read : m_read[static_cast<std::size_t>(stage)])
        if (read.reader <= way.behind)
            add(read);
    for (const std::int32_t later : way.later)
        for (const Read &read : m_read[static_cast<std::size_t>(later)])
            add(read);
}

/// Those that `reader` and the operators of its stage before it read, and then what it and those behind it
/// do.
void PathBound::addGathering(std::int32_t reader, double counts, Mean &mean) const
{
    const std::int32_t stage = m_plan.stageOf[static_cast<std::size_t>(reader)];
    for (auto i = static_cast<std::size_t>(reader); i < m_problem.operatorCount(); ++i)
        if (m_plan.stageOf[i] == stage)
            mean.firstPass[i] += counts;
    for (const Read &read : m_read[static_cast<std::size_t>(stage)])
        if (read.reader <= reader)
            mean.gathered[static_cast<std::size_t>(read.weight.index)] += counts;
}

PathBound::Partition PathBound::partitionOf(const std::vector<std::int32_t> &choice) const
{
    Partition partition{choice, {}};
    for (const Meeting &meeting : m_problem.meetings()) {
        const MeetingMoves::Readers readers = m_problem.readersOf(meeting, choice);
        const OperatorChoice *producer = m_problem.producerOf(meeting, choice);
        const auto seconds = [&](CountedPasses passes) {
            return m_problem.moves().seconds(meeting, readers, producer, passes);
        };
        partition.meetings.emplace_back(seconds(producer ? CountedPasses::Forward : CountedPasses::Both),
            producer ? seconds(CountedPasses::Backward) : 0);
    }
    return partition;
}

double PathBound::secondsOf(const Partition &partition, const Mean &mean) const
{
    double seconds = mean.constant + waitSeconds(mean);
    for (std::size_t i = 0; i < m_problem.operatorCount(); ++i)
        seconds += ownSeconds(i, m_problem.choiceOf(i, partition.choice[i]), mean);
    const std::vector<Meeting> &meetings = m_problem.meetings();
    for (std::size_t m = 0; m < meetings.size(); ++m) {
        const auto [forward, backward] = countsOf(meetings[m], m_charged[m], mean);
        seconds += forward * partition.meetings[m].first + backward * partition.meetings[m].second;
    }
    return seconds;
}

namespace {

/// Shares of both players of a game, of which one has most of the other in the worst case.
struct PlayedShares {
    std::vector<double> rows{}; ///< Of who wants much.
    std::vector<double> columns{};
};

/// By regret matching (Hart and Mas-Colell, Econometrica 68, 2000; without negative regrets: Tammelin,
/// arXiv:1407.5042).
PlayedShares playedShares(const std::vector<std::vector<double>> &payoffs)
{
    constexpr int kRounds = 3000;
    struct Player {
        explicit Player(std::size_t count)
            : regrets(count, 0)
            , played(count, 0)
            , sum(count, 0)
        {
        }
        std::vector<double> regrets{};
        std::vector<double> played{};
        std::vector<double> sum{};
        void play(int round)
        {
            const double all = std::accumulate(regrets.begin(), regrets.end(), 0.0);
            for (std::size_t i = 0; i < regrets.size(); ++i) {
                played[i] = all > 0 ? regrets[i] / all : 1.0 / static_cast<double>(regrets.size());
                sum[i] += round * played[i]; // later rounds count for more
            }
        }
        std::vector<double> shares() const
        {
            const double all = std::accumulate(sum.begin(), sum.end(), 0.0);
            std::vector<double> shares = sum;
            for (double &each : shares)
                each /= all;
            return shares;
        }
    };
    Player rows(payoffs.size());
    Player columns(payoffs.front().size());
    std::vector<double> ofRow(payoffs.size(), 0);
    std::vector<double> ofColumn(payoffs.front().size(), 0);
    for (int round = 1; round <= kRounds; ++round) {
        rows.play(round);
        columns.play(round);
        std::fill(ofRow.begin(), ofRow.end(), 0);
        std::fill(ofColumn.begin(), ofColumn.end(), 0);
        double value = 0;
        for (std::size_t r = 0; r < ofRow.size(); ++r) {
            for (std::size_t c = 0; c < ofColumn.size(); ++c) {
                ofRow[r] += payoffs[r][c] * columns.played[c];
                ofColumn[c] += payoffs[r][c] * rows.played[r];
            }
            value += ofRow[r] * rows.played[r];
        }
        for (std::size_t r = 0; r < ofRow.size(); ++r)
            rows.regrets[r] = std::max(0.0, rows.regrets[r] + ofRow[r] - value);
        for (std::size_t c = 0; c < ofColumn.size(); ++c)
            columns.regrets[c] = std::max(0.0, columns.regrets[c] + value - ofColumn[c]);
    }
    return {rows.shares(), columns.shares()};
}

} // namespace

/// What partitions hold beyond the limits that there are by now.
void PathBound::holdAgainstLimits()
{
    m_beyond.resize(m_limits ? m_limits->count() : 0);
    for (std::size_t l = 0; l < m_beyond.size(); ++l)
        for (std::size_t p = m_beyond[l].size(); p < m_partitions.size(); ++p)
            m_beyond[l].push_back(m_limits->beyond(l, m_partitions[p].choice));
}

/// Of ways alone: as they are played against partitions. A limit is played as a way that takes as long as is
/// expected of all, and longer or shorter by what is held beyond it or below: then the value is what was
/// expected where that is right. It is found as a root, by Newton's method, of what is convex.
PathBound::Shares PathBound::bestShares()
{
    constexpr int kMostSteps = 6;
    constexpr double kExact = 1e-4;
    constexpr double kLeastOfWays = 1e-3; ///< Else nothing is found that keeps to the limits.
    constexpr double kMost = 2; ///< As a multiple of what ways take.
    holdAgainstLimits();
    if (m_beyond.empty()) {
        auto [ways, partitions] = playedShares(m_seconds);
        return {std::move(ways), std::move(partitions), {}};
    }
    double longest = 0;
    for (const std::vector<double> &way : m_seconds)
        longest = std::max(longest, *std::max_element(way.begin(), way.end()));
    double furthest = 1;
    for (const std::vector<double> &limit : m_beyond)
        for (const double bytes : limit)
            furthest = std::max(furthest, std::abs(bytes));
    const double scale = longest / furthest;
    Shares shares;
    for (int step = 0; step < kMostSteps; ++step) {
        std::vector<std::vector<double>> payoffs = m_seconds;
        for (const std::vector<double> &limit : m_beyond) {
            payoffs.push_back(limit);
            for (double &each : payoffs.back())
                each = m_expected + scale * each;
        }
        const PlayedShares played = playedShares(payoffs);
        const auto ways = played.rows.begin() + static_cast<std::ptrdiff_t>(m_ways.size());
        shares = {{played.rows.begin(), ways}, played.columns, {ways, played.rows.end()}};
        double value = std::numeric_limits<double>::infinity();
        for (std::size_t p = 0; p < m_partitions.size(); ++p) {
            double own = 0;
            for (std::size_t r = 0; r < payoffs.size(); ++r)
                own += played.rows[r] * payoffs[r][p];
            value = std::min(value, own);
        }
        const double ofWays =
            std::max(std::accumulate(shares.ways.begin(), shares.ways.end(), 0.0), kLeastOfWays);
        for (double &each : shares.ways)
            each /= ofWays;
        for (double &each : shares.prices)
            each *= scale / ofWays;
        const double expected = std::clamp(m_expected + (value - m_expected) / ofWays, 0.0, kMost * longest);
        const bool isFound = std::abs(expected - m_expected) <= kExact * longest;
        m_expected = expected;
        if (isFound)
            break;
    }
    return shares;
}

bool PathBound::isKnown(const std::vector<std::int32_t> &choice) const
{
    return std::any_of(m_partitions.begin(), m_partitions.end(),
        [&](const Partition &each) { return each.choice == choice; });
}

std::optional<std::vector<std::int32_t>> PathBound::mixtureByLayers(const Shares &shares) const
{
    constexpr std::size_t kMostCuts = 6;
    std::vector<std::size_t> order(m_partitions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return shares.partitions[a] > shares.partitions[b]; });
    if (order.size() < 2 || shares.partitions[order[1]] <= 0)
        return std::nullopt;
    const SelectorIndex &index = *m_problem.setting().model->index;
    std::vector<std::size_t> cuts; // between layers
    for (std::size_t i = 1; i < m_problem.operatorCount(); ++i)
        if (index.layerOf({static_cast<std::int32_t>(i)})
            != index.layerOf({static_cast<std::int32_t>(i - 1)}))
            cuts.push_back(i);
    const std::size_t step = std::max<std::size_t>(1, cuts.size() / kMostCuts);
    std::vector<Mean> ways;
    for (const Way &way : m_ways) {
        ways.push_back(nothing());
        add(way, 1, ways.back());
    }
    std::optional<std::vector<std::int32_t>> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = step / 2; c < cuts.size(); c += step)
        for (const auto &[first, second] : {std::pair{order[0], order[1]}, {order[1], order[0]}}) {
            std::vector<std::int32_t> choice = m_partitions[first].choice;
            std::copy(m_partitions[second].choice.begin() + static_cast<std::ptrdiff_t>(cuts[c]),
                m_partitions[second].choice.end(), choice.begin() + static_cast<std::ptrdiff_t>(cuts[c]));
            if (isKnown(choice) || !std::isfinite(m_problem.costOf({}, choice)))
                continue;
            const Partition mixed = partitionOf(choice);
            double longest = 0;
            for (const Mean &way : ways)
                longest = std::max(longest, secondsOf(mixed, way));
            if (longest < least) {
                least = longest;
                best = std::move(choice);
            }
        }
    return best;
}

/// The longest way to the end of the step.
PathBound::Way PathBound::longestWayOf(const std::vector<StageFigures> &figures, const PipelineTime &played,
    const std::vector<PlayedBlock> &blocks) const
{
    // Of the rank that ends last, through what it does last.
    const auto ranks = static_cast<std::size_t>(m_configuration.ranks);
    double most = -1;
    std::size_t last = 0;
    Ending its;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Ending ending = m_reductions.endingOf(rank, figures, played);
        if (ending.seconds() > most) {
            most = ending.seconds();
            last = rank;
            its = ending;
        }
    }
    if (!m_trains)
        its = {.begin = 0, .computed = its.computed};
    enum class Through { Updates, Gathering, Reductions, Behind, Shared }; // behind its last block, or beside
    const double behind = m_trains && its.reduction > 0 ? m_leastBehind[last] : 0;
    std::pair<double, Through> longest{its.computed + its.update, Through::Updates};
    const auto consider = [&longest](double seconds, Through through) {
        if (seconds > longest.first)
            longest = {seconds, through};
    };
    consider(its.computed + behind + its.gather, Through::Gathering);
    consider(
        its.reduction > its.shared ? its.begin + its.leastReduction + its.gather : 0, Through::Reductions);
    // What several ranks add up is reduced behind all others.
    const double sharedUpdate = its.shared > 0 && its.gather == 0 ? its.updatedLast - its.reduced : 0;
    const double after = its.shared + std::max(its.gather, sharedUpdate);
    consider(its.behind >= 0 ? its.leastReduced + after : 0, Through::Behind);
    consider(its.shared > 0 ? played.makespan + after : 0, Through::Shared);
    const Through through = longest.second;

    // To the last block of all where all make some of a gradient, to the one beside which gradients are
    // reduced, or to the rank's last.
    std::size_t beside = figures.size(); // the stage whose last backward block begins first
    for (std::size_t s = last; s < figures.size(); s += ranks)
        if (beside == figures.size() || played.lastBackward[s] < played.lastBackward[beside])
            beside = s;
    if (through == Through::Behind)
        beside = static_cast<std::size_t>(m_plan.stageOf[static_cast<std::size_t>(its.behind)]);
    std::size_t latest = last;
    for (std::size_t s = 0; s < figures.size(); ++s)
        if (through == Through::Shared && played.end[s] > played.end[latest])
            latest = s;
    std::int32_t to = -1;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const auto stage = static_cast<std::size_t>(blocks[b].block.block.stage.index);
        const bool isLast = through == Through::Reductions || through == Through::Behind
            ? stage == beside && blocks[b].block.block.pass != SegmentKind::Forward
            : stage % ranks == latest % ranks;
        if (isLast)
            to = static_cast<std::int32_t>(b);
    }
    const bool including = through != Through::Reductions && (through != Through::Behind || its.behindAll);
    LongestWay blocksOf = longestWay(blocks, to, including, figures.size(), m_leastSends.size());
    Way way;
    for (const StageVisits &visits : blocksOf.stages)
        way.stages.push_back({visits});
    way.blocks = std::move(blocksOf);
    way.rank = last;
    way.constant = through == Through::Gathering ? behind : 0;
    way.shared = its.shared > 0
        && (through == Through::Reductions || through == Through::Behind || through == Through::Shared);
    way.sharedUpdate = way.shared && sharedUpdate > 0;
    for (std::size_t s = last; s < way.stages.size() && m_trains; s += ranks) {
        if (through == Through::Reductions)
            way.stages[s].*kReductions[static_cast<std::size_t>(its.allAs)] = 1;
        way.stages[s].gather = through != Through::Updates ? 1 : 0;
        way.stages[s].update = through == Through::Updates ? 1 : 0;
    }
    way.behind = through == Through::Behind ? its.behind : -1;
    way.behindAll = its.behindAll;
    for (std::size_t s = last; s < figures.size() && way.behind >= 0; s += ranks)
        if (played.end[s] > played.end[beside]) // in the order of the rank's blocks
            way.later.push_back(static_cast<std::int32_t>(s));
    way.as = its.as;
    if ((way.behind >= 0 && its.as == ReducedAs::AsOne)
        || (through == Through::Reductions && its.allAs == ReducedAs::AsOne))
        way.constant += m_reductions.leastLaunch();
    if (through != Through::Updates && its.gather > 0)
        way.constant += m_reductions.leastGatheringLaunch();
    return way;
}

/// Whether some way goes through what a weight that the operator reads makes be sent.
bool PathBound::hasTraffic(std::size_t op, const Mean &mean) const
{
    const std::vector<TensorId> &inputs = m_problem.setting().model->graph->operators[op].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&mean](TensorId input) {
        const auto t = static_cast<std::size_t>(input.index);
        return input
            && (mean.shared[t] + mean.gathered[t] > 0
                || std::any_of(mean.reduced.begin(), mean.reduced.end(),
                    [t](const std::vector<double> &reduced) { return reduced[t] > 0; }));
    });
}

bool PathBound::isSharedBy(const Shared &shared, std::size_t rank) const
{
    return std::any_of(shared.stages.begin(), shared.stages.end(),
        [&](std::int32_t s) { return static_cast<std::size_t>(s % m_configuration.ranks) == rank; });
}

void PathBound::findAtEnds()
{
    m_atEnds.resize(m_readers.size());
    for (const std::vector<Read> &read : m_read) {
        std::int32_t first = std::numeric_limits<std::int32_t>::max();
        std::int32_t last = -1;
        for (const Read &each : read)
            if (m_problem.gradientOf(each.weight)) {
                first = std::min(first, each.reader);
                last = std::max(last, each.reader);
            }
        for (const Read &each : read)
            if (!m_isShared[static_cast<std::size_t>(each.weight.index)])
                m_atEnds[static_cast<std::size_t>(each.weight.index)] = {
                    each.reader == first, each.reader == last};
    }
}

std::size_t PathBound::makerOf(const SentOn &sent) const
{
    const StageLink &link = m_links[sent.link];
    const std::size_t meeting = (sent.backward ? link.backward : link.forward)[sent.number].meeting;
    return static_cast<std::size_t>(m_problem.meetings()[meeting].producer);
}

/// Of what the operator's outputs take to be sent more than at least.
double PathBound::sendingSeconds(const OperatorChoice &choice, const std::vector<SentOn> &sent) const
{
    double seconds = 0;
    for (const SentOn &each : sent) {
        const auto &tensors = each.backward ? m_links[each.link].backward : m_links[each.link].forward;
        const ShardLayout layout = choice.outputs[m_problem.meetings()[tensors[each.number].meeting].output];
        const auto of = [&](const std::vector<Reductions::Sending> &sending) {
            return (each.backward ? sending[each.link].backward : sending[each.link].forward)[each.number];
        };
        seconds +=
            each.counts * std::max(0.0, of(m_sending.at(partsSent(m_problem, layout))) - of(m_leastSending));
    }
    return seconds;
}

double PathBound::ownSeconds(std::size_t op, const OperatorChoice &choice, const Mean &mean) const
{
    const Weights &weights = mean.stages[static_cast<std::size_t>(m_plan.stageOf[op])];
    const Operator &own = m_problem.setting().model->graph->operators[op];
    const bool accumulates = m_configuration.zero < 2;
    const double half = m_splits ? choice.weightGradients : 0;
    const double adding = accumulationSeconds(m_problem, op, choice, accumulates);
    const double apart = half > 0 ? half + adding : 0; // in a pass of its own
    const double again = m_plan.runsAgain[op] * choice.forward;
    const double behind = choice.backward + (m_splits ? choice.splitMore : 0) + again + adding - apart;
    double seconds = weights.forward * choice.forward + weights.backward * behind + weights.weights * apart;
    seconds += mean.firstPass[op] * choice.forward + mean.skipped[op] * behind
        + mean.lastPass[op] * (m_splits ? apart : behind);
    if (const auto sent = mean.sent.find(op); sent != mean.sent.end())
        seconds += sendingSeconds(choice, sent->second);
    if (accumulates && weights.gathering + weights.reducing + weights.update + weights.gather == 0
        && std::none_of(kReductions.begin(), kReductions.end(),
            [&weights](double Weights::*part) { return weights.*part > 0; })
        && !hasTraffic(op, mean))
        return seconds;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId weight = own.inputs[slot];
        const auto adds = m_problem.accumulationOf(op, slot, choice);
        if (!adds)
            continue;
        // Each stage that reads a weight has it, and shares in what is done for it.
        const auto w = static_cast<std::size_t>(weight.index);
        const double all = std::max(1, m_readers[w]);
        const double readers = m_isShared[w] ? m_readersIn.at({weight, m_plan.stageOf[op]}) : all;
        const double whole = 1.0 / m_problem.setting().partsOf(choice.inputs[slot]);
        const double share = whole / readers;
        const auto traffic = [&](double times, const WeightTraffic &each) {
            return times > 0 ? times * m_problem.weights().secondsOf(weight, each, share, readers) : 0;
        };
        if (!m_atEnds.empty() && !m_isShared[w]) {
            const double passes = m_splits ? weights.weights : weights.backward;
            const AtEnds &ends = m_atEnds[w];
            if (passes > 0)
                seconds += passes * m_reductions.inPassSeconds(weight, adds->sums, share, readers);
            seconds +=
                traffic((ends.first ? weights.forward : 0) + (ends.last ? weights.backward : 0),
                    m_reductions.leastGatheringAgain(adds->sums, m_problem.weights().layerWith(weight)))
                + traffic(ends.first ? passes : 0,
                    m_reductions.leastReducing(adds->sums, m_problem.weights().layerWith(weight)));
        }
        for (std::size_t as = 0; as < kReducedAs; ++as)
            if (const double times = (m_isShared[w] ? 0 : weights.*kReductions[as]) + mean.reduced[as][w];
                times > 0)
                seconds +=
                    traffic(times, m_reductions.leastReduction(adds->sums, static_cast<ReducedAs>(as)));
        if (mean.shared[w] > 0)
            seconds += mean.shared[w] / all
                * m_reductions.sharedSeconds(m_shared[static_cast<std::size_t>(m_sharedBy[w])].stages,
                    std::floor(m_problem.weights().secondsOf(weight, {.perReducedByte = 1}, whole, 1)),
                    adds->sums);
        if (!m_isShared[w])
            seconds +=
                traffic(weights.gathering + weights.reducing,
                    m_reductions.leastGatheringAgain(adds->sums, m_problem.weights().layerWith(weight)))
                + traffic(weights.reducing,
                    m_reductions.leastReducing(adds->sums, m_problem.weights().layerWith(weight)));
        seconds += mean.gathered[w]
                * m_problem.weights().secondsOf(
                    weight, m_reductions.leastGatheringAhead(adds->sums), whole / all, all)
            + traffic(weights.gather, m_reductions.leastGathering(adds->sums))
            + (weights.update * share + mean.sharedUpdate[w] * whole / all)
                * m_problem.weights().updateSeconds(weight) / m_reductions.updaters(adds->sums);
    }
    return seconds;
}

/// How often what an operator waits for in the backward pass counts.
double PathBound::countsBack(std::size_t op, const Mean &mean) const
{
    const Weights &stage = mean.stages[static_cast<std::size_t>(m_plan.stageOf[op])];
    return m_splits && m_problem.makesWeightsAlone(op)
        ? stage.weights + mean.lastPass[op]
        : stage.backward + mean.skipped[op] + (m_splits ? 0 : mean.lastPass[op]);
}

std::pair<double, double> PathBound::countsOf(
    const Meeting &meeting, std::size_t reader, const Mean &mean) const
{
    if (meeting.producer < 0)
        return {1, 0};
    const auto backward = [&](std::size_t op) { return countsBack(op, mean); };
    const double forward =
        mean.stages[static_cast<std::size_t>(m_plan.stageOf[reader])].forward + mean.firstPass[reader];
    return {std::max(0.0, forward + m_plan.runsAgain[reader] * backward(reader)),
        std::max(0.0, backward(static_cast<std::size_t>(meeting.producer)))};
}

double PathBound::waitSeconds(const Mean &mean) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_waits.forward.size(); ++i) {
        const Weights &of = mean.stages[static_cast<std::size_t>(m_plan.stageOf[i])];
        seconds += (of.forward + mean.firstPass[i]) * m_waits.forward[i]
            + countsBack(i, mean) * m_waits.backward[i]
            + (of.backward + mean.skipped[i] + (m_splits ? 0 : mean.lastPass[i])) * m_plan.runsAgain[i]
                * m_waits.forward[i];
    }
    return seconds;
}

Result<PathBound::Answer> PathBound::solve(const std::stop_token &stop)
{
    Mean mean = nothing();
    const Shares shares = bestShares();
    for (std::size_t w = 0; w < m_ways.size(); ++w)
        if (shares.ways[w] > 0)
            add(m_ways[w], shares.ways[w], mean);
    const HeldLimits::Prices held = m_beyond.empty() ? HeldLimits::Prices{} : m_limits->at(shares.prices);
    const double constant = mean.constant + waitSeconds(mean) - held.room;
    CostNetwork network = m_problem.networkOf([&](std::size_t op, const OperatorChoice &choice) {
        return ownSeconds(op, choice, mean) + (m_beyond.empty() ? 0 : m_limits->seconds(op, choice, held));
    });
    MeetingTables &tables = m_problem.tables();
    const std::vector<Meeting> &meetings = m_problem.meetings();
    const auto add = [&](std::size_t meeting, CountedPasses passes, double times) {
        for (const CostFactor &factor : tables.of(meeting, passes))
            network.factors.push_back(tables.scaled(factor, times));
    };
    for (std::size_t m = 0; m < meetings.size(); ++m) {
        const auto [forward, backward] = countsOf(meetings[m], m_charged[m], mean);
        if (meetings[m].producer < 0) {
            add(m, CountedPasses::Both, 1);
            continue;
        }
        add(m, CountedPasses::Forward, forward);
        add(m, CountedPasses::Backward, backward);
    }
    network.factors.insert(network.factors.end(), m_problem.ties().begin(), m_problem.ties().end());
    TRY(NetworkAnswer answer, cheapestChoice(network, m_problem.networkOptions(), stop));
    Answer found{constant + std::min(answer.bound, answer.cost), std::move(answer.choice)};
    if (!std::isfinite(answer.cost))
        return Answer{std::numeric_limits<double>::infinity(), m_partitions.back().choice};
    if (m_mixtures < kMostMixtures && isKnown(found.choice)) {
        ++m_mixtures;
        if (auto mixture = mixtureByLayers(shares))
            found.choice = *std::move(mixture);
    }
    return found;
}

} // namespace planloom
