#include "engine/search/partition/nested_meshes.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace planloom {

namespace {

/// Of the time of all kernels: operators of less do not pay for what a second axis communicates.
constexpr double kLeastShare = 0.05;
constexpr std::size_t kMostMeshes = 2; ///< Of one number of shards.

} // namespace

NestedMeshes::NestedMeshes(const AxisSetting &setting)
{
    const Model &model = *setting.model;
    ChoiceFinder whole(setting);
    std::map<std::vector<std::int64_t>, double> seconds; // by sizes
    for (std::size_t i = 0; i < model.index->forwardCount(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        const Annotation &annotation = model.graph->at(op).annotation;
        std::vector<std::int64_t> sizes;
        for (const std::int32_t dimension : splittableDimensions(annotation))
            if (dimension != model.batch->operatorDimension[i])
                sizes.push_back(annotation.dimensions[static_cast<std::size_t>(dimension)].size);
        const OperatorChoice &choice = whole.of(op).choices.front();
        m_seconds += choice.forward + choice.backward;
        seconds[std::move(sizes)] += choice.forward + choice.backward;
    }
    for (auto &[sizes, each] : seconds)
        m_operators.push_back({sizes, each});
}

std::vector<std::int32_t> NestedMeshes::outerShards(std::int32_t shards) const
{
    std::map<std::int32_t, double> seconds; // of operators with a dimension that so many divide
    for (const OperatorTime &each : m_operators) {
        std::set<std::int32_t> dividing;
        for (const std::int64_t size : each.sizes)
            if (const std::int64_t inner = std::gcd<std::int64_t>(size, shards); inner > 1 && inner < shards)
                dividing.insert(static_cast<std::int32_t>(inner));
        for (const std::int32_t inner : dividing)
            seconds[inner] += each.seconds;
    }
    std::vector<std::pair<double, std::int32_t>> worth;
    for (const auto &[inner, each] : seconds)
        if (each >= kLeastShare * m_seconds)
            worth.emplace_back(-each, shards / inner);
    std::sort(worth.begin(), worth.end());
    worth.resize(std::min(worth.size(), kMostMeshes));
    std::vector<std::int32_t> outer;
    for (const auto &[less, parts] : worth)
        outer.push_back(parts);
    return outer;
}

} // namespace planloom
