#pragma once

#include "engine/graph/dimensions/batch.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/table/table.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Chance, and what of a graph random rows can speak of.
class TableDice
{
public:
    TableDice(const Graph &graph, std::mt19937 &random)
        : m_graph(graph)
        , m_random(random)
        , m_batch(analyseBatch(graph))
    {
        for (const Operator &op : graph.operators)
            if (op.direction == Direction::Forward)
                m_forward.push_back(&op);
    }

    std::int64_t below(std::int64_t n)
    {
        return std::uniform_int_distribution<std::int64_t>(0, std::max<std::int64_t>(n - 1, 0))(m_random);
    }
    std::int32_t number(std::int32_t least, std::int32_t most)
    {
        return least + static_cast<std::int32_t>(below(most - least + 1));
    }
    bool chance(double p) { return std::bernoulli_distribution(p)(m_random); }
    template<typename List> const auto &of(const List &list)
    {
        return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
    }
    DeviceId device(std::int32_t count) { return {number(0, count - 1)}; }

    const BatchInfo &batch() const { return m_batch; }
    /// From now on the batch is cut so.
    void cutBatch(std::int32_t microBatches, bool whole)
    {
        m_microBatches = microBatches;
        m_cuts = whole ? 1 : microBatches;
    }
    std::int32_t microBatches() const { return m_microBatches; }

    /// Forward operators, in the order of the graph.
    const std::vector<const Operator *> &forward() const { return m_forward; }
    /// What there is to split of each identifier of `op`, in one micro-batch.
    std::vector<std::int64_t> extentsOf(const Operator &op) const
    {
        std::vector<std::int64_t> extents;
        for (const Dimension &dimension : op.annotation.dimensions)
            extents.push_back(dimension.size);
        const std::int32_t batch = m_batch.operatorDimension[indexOf(op)];
        if (batch >= 0)
            extents[static_cast<std::size_t>(batch)] /= m_cuts;
        return extents;
    }
    bool isOncePerStep(const Operator &op) const { return m_batch.oncePerStep[indexOf(op)]; }

    /// Each forward operator with chance `share`; may be empty.
    std::vector<std::string> some(double share)
    {
        std::vector<std::string> names;
        for (const Operator *op : m_forward)
            if (chance(share))
                names.push_back(op->name);
        return names;
    }
    /// Neighbours in the order of the graph, at least one.
    std::vector<std::string> neighbours(std::size_t most)
    {
        const auto count = static_cast<std::int64_t>(m_forward.size());
        const std::int64_t first = below(count);
        const std::int64_t end = std::min(count, first + 1 + below(static_cast<std::int64_t>(most)));
        std::vector<std::string> names;
        for (std::int64_t i = first; i < end; ++i)
            names.push_back(m_forward[static_cast<std::size_t>(i)]->name);
        return names;
    }
    /// All operators, neighbours, or any.
    Selector selector()
    {
        if (chance(0.4))
            return selectAll();
        if (chance(0.5))
            return selectSet(neighbours(m_forward.size()));
        auto names = some(0.5);
        return names.empty() ? selectAll() : selectSet(std::move(names));
    }

    /// 2 to 4 parts that divide `extent`; nothing where none do.
    std::optional<std::int32_t> partsOf(std::int64_t extent)
    {
        std::vector<std::int32_t> counts;
        for (std::int32_t k = 2; k <= 4; ++k)
            if (extent > 0 && extent % k == 0)
                counts.push_back(k);
        if (counts.empty())
            return std::nullopt;
        return of(counts);
    }

    /// A meaning that some operators have a dimension of, and what divides all of these.
    struct Meant {
        DimensionRef dimension{};
        std::int64_t extent = 0;
    };
    std::optional<Meant> meant(std::optional<DimensionMeaning> only = {})
    {
        if (m_meant.empty())
            findMeanings();
        std::vector<Meant> fit;
        for (const Meant &each : m_meant)
            if (!only || each.dimension.meaning == *only)
                fit.push_back(each);
        if (fit.empty())
            return std::nullopt;
        return of(fit);
    }

private:
    std::size_t indexOf(const Operator &op) const
    {
        return static_cast<std::size_t>(&op - m_graph.operators.data());
    }

    void findMeanings()
    {
        const DimensionClasses classes = analyseDimensions(m_graph);
        for (int m = 1; m < kDimensionMeaningCount; ++m) {
            Meant each;
            each.dimension.kind = DimensionRef::Kind::Meaning;
            each.dimension.meaning = static_cast<DimensionMeaning>(m);
            for (const Operator *op : m_forward) {
                const auto found = findMeant(
                    classes, m_graph, {static_cast<std::int32_t>(indexOf(*op))}, each.dimension.meaning);
                if (found.identifier >= 0)
                    each.extent = std::gcd(each.extent, found.extent);
            }
            if (each.dimension.meaning == DimensionMeaning::Batch)
                each.extent /= m_cuts;
            if (each.extent > 1)
                m_meant.push_back(std::move(each));
        }
    }

    const Graph &m_graph;
    std::mt19937 &m_random;
    BatchInfo m_batch;
    std::int32_t m_microBatches = 1;
    std::int32_t m_cuts = 1; ///< Of the batch.
    std::vector<const Operator *> m_forward{};
    std::vector<Meant> m_meant{};
};

} // namespace planloom
