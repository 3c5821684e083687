#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace planloom {

namespace {

template<typename Value> using ByKind = std::array<Value, kOperatorKindCount>;

ByKind<KindEntry> allEntries()
{
    ByKind<KindEntry> all;
    for (const auto family : {elementwiseKinds, productKinds, windowKinds, normKinds, lossKinds,
             reductionKinds, shapingKinds, pickingKinds, axisKinds, compositeKinds, optimizerKinds}) {
        for (KindEntry &entry : family()) {
            KindEntry &own = all[static_cast<std::size_t>(entry.kind)];
            assert(own.types == nullptr);
            own = std::move(entry);
        }
    }
    return all;
}

using KindIndex = std::pair<std::string_view, OperatorKind>;

/// The names in alphabetical order, for binary search.
ByKind<KindIndex> sortedNames()
{
    ByKind<KindIndex> sorted;
    for (std::size_t i = 0; i < sorted.size(); ++i)
        sorted[i] = {nameOf(static_cast<OperatorKind>(i)), static_cast<OperatorKind>(i)};
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

} // namespace

const KindEntry &entryOf(OperatorKind kind)
{
    static const ByKind<KindEntry> all = allEntries();
    return all[static_cast<std::size_t>(kind)];
}

const char *nameOf(OperatorKind kind)
{
    return entryOf(kind).name;
}

const char *wordsOf(OperatorKind kind)
{
    const KindEntry &entry = entryOf(kind);
    return entry.marks.words ? entry.marks.words : entry.name;
}

std::optional<OperatorKind> operatorKindNamed(std::string_view name)
{
    static const auto sorted = sortedNames();
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), name,
        [](const KindIndex &entry, std::string_view wanted) { return entry.first < wanted; });
    if (found == sorted.end() || found->first != name)
        return std::nullopt;
    return found->second;
}

OperatorCategory categoryOf(OperatorKind kind)
{
    return entryOf(kind).category;
}

bool isElementwise(OperatorKind kind)
{
    return entryOf(kind).marks.isElementwise;
}

} // namespace planloom
