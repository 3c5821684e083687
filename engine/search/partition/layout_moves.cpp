#include "engine/search/partition/layout_moves.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace planloom {

/// Dijkstra over all layouts of a tensor, from one of them.
class LayoutMoves::Search
{
public:
    /// @param to  what has to be reached, whatever the tensor says of cuts
    Search(const LayoutMoves &moves, ShardLayout from, ShardLayout to, const MovedTensor &tensor)
        : m_moves(moves)
        , m_from{from}
        , m_tensor(tensor)
    {
        for (const ShardLayout &end : {from, to}) {
            if (isCut(end.inner))
                m_tensor.innerCuts |= bitOf(end.inner);
            if (isCut(end.outer))
                m_tensor.outerCuts |= bitOf(end.outer);
            if (isTwice(end))
                m_tensor.bothCuts |= bitOf(end.inner);
        }
        m_forms = formsOf(m_tensor);
        for (AxisLayout cut = cutAlong(0); static_cast<std::size_t>(cut) < m_forms; ++cut)
            m_cuts.push_back(cut);
        run();
    }

    /// Of one axis: whole, summands, and by dimension.
    static std::size_t formsOf(const MovedTensor &tensor)
    {
        const auto cuts = static_cast<unsigned>(tensor.innerCuts | tensor.outerCuts | tensor.bothCuts);
        return static_cast<std::size_t>(cutAlong(0)) + static_cast<std::size_t>(std::bit_width(cuts));
    }

    /// The way to it was looked for.
    bool knows(ShardLayout to) const
    {
        return (!isCut(to.inner) || (m_tensor.innerCuts & bitOf(to.inner)))
            && (!isCut(to.outer) || (m_tensor.outerCuts & bitOf(to.outer)))
            && (!isTwice(to) || (m_tensor.bothCuts & bitOf(to.inner)));
    }

    /// Summands of what is whole over an axis: one device has it, the others zeros.
    double secondsTo(ShardLayout to) const
    {
        double least = secondsToJust(to);
        const auto through = [&](ShardLayout layout) {
            if (layout != to)
                least = std::min(least,
                    secondsToJust(layout)
                        + m_moves.m_costs.copy(Bytes{localBytes(to)}, m_moves.m_deviceClass));
        };
        for (const bool inner : {false, true})
            for (const bool outer : {false, true})
                through({inner && to.inner == kSummands ? kWhole : to.inner,
                    outer && to.outer == kSummands ? kWhole : to.outer});
        return least;
    }

private:
    static constexpr double kNever = std::numeric_limits<double>::infinity();

    struct State {
        ShardLayout layout{};
        bool reversed = false; ///< Both axes cut one dimension, the inner one first.
        friend bool operator==(const State &, const State &) = default;
    };

    static std::uint16_t bitOf(AxisLayout cut)
    {
        return static_cast<std::uint16_t>(1U << static_cast<unsigned>(cut - cutAlong(0)));
    }
    static bool isTwice(ShardLayout layout) { return isCut(layout.inner) && layout.inner == layout.outer; }
    static bool is(ShardLayout layout, ShardAxes axes, AxisLayout form)
    {
        return (!contains(axes, ShardAxes::Inner) || layout.inner == form)
            && (!contains(axes, ShardAxes::Outer) || layout.outer == form);
    }
    static ShardLayout with(ShardLayout layout, ShardAxes axes, AxisLayout form)
    {
        if (contains(axes, ShardAxes::Inner))
            layout.inner = form;
        if (contains(axes, ShardAxes::Outer))
            layout.outer = form;
        return layout;
    }

    std::size_t numberOf(const State &state) const
    {
        return (static_cast<std::size_t>(state.layout.inner) * m_forms
                   + static_cast<std::size_t>(state.layout.outer))
            * 2
            + (state.reversed ? 1 : 0);
    }
    State stateOf(std::size_t number) const
    {
        return {
            {static_cast<AxisLayout>(number / 2 / m_forms), static_cast<AxisLayout>(number / 2 % m_forms)},
            number % 2 == 1};
    }

    std::int64_t localBytes(ShardLayout layout) const
    {
        return m_tensor.bytes / (isCut(layout.inner) ? m_moves.m_inner : 1)
            / (isCut(layout.outer) ? m_moves.m_outer : 1);
    }
    std::int64_t partsOf(ShardAxes axes) const
    {
        return std::int64_t{contains(axes, ShardAxes::Inner) ? m_moves.m_inner : 1}
        * (contains(axes, ShardAxes::Outer) ? m_moves.m_outer : 1);
    }

    void run()
    {
        m_seconds.assign(2 * m_forms * m_forms, kNever);
        std::vector<bool> done(m_seconds.size(), false);
        reach(m_from, 0);
        for (;;) {
            std::size_t nearest = m_seconds.size();
            for (std::size_t n = 0; n < m_seconds.size(); ++n)
                if (!done[n] && m_seconds[n] < kNever
                    && (nearest == m_seconds.size() || m_seconds[n] < m_seconds[nearest]))
                    nearest = n;
            if (nearest == m_seconds.size())
                return;
            done[nearest] = true;
            const State state = stateOf(nearest);
            m_at = m_seconds[nearest];
            for (const ShardAxes axes : {ShardAxes::Inner, ShardAxes::Outer, ShardAxes::Both}) {
                reachReduced(state, axes);
                reachGathered(state, axes);
                reachSliced(state, axes);
            }
            if (state == m_from && permutes(state))
                reach(permuted(state), permuting(state));
        }
    }

    void reach(const State &next, double cost)
    {
        double &known = m_seconds[numberOf(next)];
        known = std::min(known, m_at + cost);
    }

    /// Where these axes cut a dimension further, inside of what cuts it already: in every order, of both.
    /// @param but  a dimension that they do not
    template<typename Cost>
    void reachCut(ShardLayout layout, ShardAxes axes, const Cost &cost, AxisLayout but = kAbsent)
    {
        for (const AxisLayout cut : m_cuts) {
            const ShardLayout next = with(layout, axes, cut);
            if (cut == but || !knows(next))
                continue;
            if (!isTwice(next) || axes != ShardAxes::Outer)
                reach({next}, cost(next));
            if (isTwice(next) && axes != ShardAxes::Inner)
                reach({next, true}, cost(next));
        }
    }

    void reachReduced(const State &state, ShardAxes axes)
    {
        if (!is(state.layout, axes, kSummands))
            return;
        const auto seconds = [&](CollectiveKind kind) {
            return m_tensor.combination == Combination::Sum
                ? m_moves.collective(kind, localBytes(state.layout), axes)
                : reductionSeconds(m_moves.m_costs, kind, Bytes{localBytes(state.layout)},
                    m_moves.groupOf(axes), onceWeighed(m_tensor.combination));
        };
        reach({with(state.layout, axes, kWhole)}, seconds(CollectiveKind::AllReduce));
        const double scattered = seconds(CollectiveKind::ReduceScatter);
        reachCut(state.layout, axes, [&](ShardLayout) { return scattered; });
    }

    /// All-gather, and all-to-all: of the innermost of what cuts a dimension.
    void reachGathered(const State &state, ShardAxes axes)
    {
        const AxisLayout cut = axes == ShardAxes::Outer ? state.layout.outer : state.layout.inner;
        if (!isCut(cut) || !is(state.layout, axes, cut))
            return;
        if (isTwice(state.layout) && axes == (state.reversed ? ShardAxes::Inner : ShardAxes::Outer))
            return;
        const std::int64_t bytes = localBytes(state.layout);
        const ShardLayout gathered = with(state.layout, axes, kWhole);
        reach({gathered}, m_moves.collective(CollectiveKind::AllGather, bytes * partsOf(axes), axes));
        const double exchanged = m_moves.collective(CollectiveKind::AllToAll, bytes, axes);
        reachCut(
            gathered, axes, [&](ShardLayout) { return exchanged; }, cut);
    }

    void reachSliced(const State &state, ShardAxes axes)
    {
        if (!is(state.layout, axes, kWhole))
            return;
        const auto cost = [&](ShardLayout next) {
            return m_moves.m_costs.copy(Bytes{localBytes(next)}, m_moves.m_deviceClass);
        };
        reachCut(state.layout, axes, cost);
        if (axes != ShardAxes::Both)
            return;
        for (const AxisLayout inner : m_cuts) // along one dimension each
            for (const AxisLayout outer : m_cuts)
                if (inner != outer && knows({inner, outer}))
                    reach({{inner, outer}}, cost({inner, outer}));
    }

    /// Whether every part can go to the device that has its place where the axes change theirs.
    bool permutes(const State &state) const
    {
        return isTwice(state.layout)
            || (state.layout.inner != state.layout.outer && m_moves.m_inner == m_moves.m_outer
                && knows(permuted(state).layout));
    }
    static State permuted(const State &state)
    {
        return {{state.layout.outer, state.layout.inner}, isTwice(state.layout) && !state.reversed};
    }
    /// A device sends and receives, one after the other.
    double permuting(const State &state) const
    {
        return 2
            * m_moves.m_costs.collective(
                CollectiveKind::SendRecv, Bytes{localBytes(state.layout)}, m_moves.m_groups.apart);
    }

    double secondsToJust(ShardLayout to) const
    {
        const State state{to};
        double seconds = m_seconds[numberOf(state)];
        if (permutes(state) && m_seconds[numberOf(permuted(state))] < seconds)
            seconds = std::min(seconds, m_seconds[numberOf(permuted(state))] + permuting(state));
        return seconds;
    }

    const LayoutMoves &m_moves;
    const State m_from;
    MovedTensor m_tensor;
    std::size_t m_forms = 0;
    std::vector<AxisLayout> m_cuts{};
    std::vector<double> m_seconds{}; ///< By number of the state.
    double m_at = 0; ///< Seconds to the state that is looked at.
};

LayoutMoves::LayoutMoves(const CostModel &costs, const ShardGroups &groups, std::int32_t inner,
    std::int32_t outer, std::int32_t deviceClass)
    : m_costs(costs)
    , m_groups(groups)
    , m_overInner(costs, groups.inner, groups.innerParts, inner)
    , m_inner(inner)
    , m_outer(outer)
    , m_deviceClass(deviceClass)
{
}

LayoutMoves::~LayoutMoves() = default;

const GroupShape &LayoutMoves::groupOf(ShardAxes axes) const
{
    return axes == ShardAxes::Inner ? m_groups.inner
        : axes == ShardAxes::Outer  ? m_groups.outer
                                    : m_groups.both;
}

double LayoutMoves::collective(CollectiveKind kind, std::int64_t bytes, ShardAxes axes) const
{
    return axes == ShardAxes::Inner ? m_overInner.seconds(kind, bytes)
                                    : m_costs.collective(kind, Bytes{bytes}, groupOf(axes));
}

const LayoutMoves::Table &LayoutMoves::of(const MovedTensor &tensor) const
{
    std::unique_ptr<const Table> &known = m_tables[tensor];
    if (!known)
        known = std::make_unique<const Table>(*this, tensor);
    return *known;
}

double LayoutMoves::seconds(ShardLayout from, ShardLayout to, const MovedTensor &tensor) const
{
    return of(tensor).seconds(from, to);
}

LayoutMoves::Table::Table(const LayoutMoves &moves, const MovedTensor &tensor)
    : m_moves(moves)
    , m_tensor(tensor)
    , m_forms(Search::formsOf(tensor))
    , m_known(m_forms * m_forms * m_forms * m_forms, -1)
{
}

LayoutMoves::Table::~Table() = default;

const LayoutMoves::Search &LayoutMoves::Table::searchFrom(ShardLayout from, ShardLayout to) const
{
    std::unique_ptr<const Search> &known = m_searches[from];
    if (!known || !known->knows(to)) // else uneven parts, which rows ask for
        known = std::make_unique<const Search>(m_moves, from, to, m_tensor);
    return *known;
}

double LayoutMoves::Table::seconds(ShardLayout from, ShardLayout to) const
{
    if (from == to || m_tensor.bytes == 0)
        return 0;
    std::size_t place = 0;
    for (const AxisLayout each : {from.inner, from.outer, to.inner, to.outer}) {
        if (static_cast<std::size_t>(each) >= m_forms)
            return searchFrom(from, to).secondsTo(to);
        place = place * m_forms + static_cast<std::size_t>(each);
    }
    double &known = m_known[place];
    if (known < 0)
        known = searchFrom(from, to).secondsTo(to);
    return known;
}

} // namespace planloom
