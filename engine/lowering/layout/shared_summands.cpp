#include "engine/lowering/layout/shared_summands.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace planloom {

namespace {

SummandSet difference(const SummandSet &a, const SummandSet &b)
{
    SummandSet rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
    return rest;
}

/// Who keeps what of one box, by what they have; empty if nothing has to change, or nothing helps.
std::map<SummandSet, SummandSet> keptOf(const std::set<SummandSet> &sets)
{
    std::vector<SummandSet> bySize(sets.begin(), sets.end());
    std::stable_sort(bySize.begin(), bySize.end(),
        [](const SummandSet &a, const SummandSet &b) { return a.size() < b.size(); });
    std::map<SummandSet, SummandSet> kept;
    SummandSet taken;
    bool shared = false;
    for (const SummandSet &set : bySize) { // who has little keeps it
        SummandSet own = difference(set, taken);
        if (own.empty())
            return {};
        shared = shared || own.size() < set.size();
        taken = unionOf(taken, own);
        kept[set] = std::move(own);
    }
    if (!shared || bySize.back().size() == taken.size())
        return {};
    return kept;
}

} // namespace

std::vector<Holding> withoutShared(const std::vector<Holding> &holdings)
{
    std::map<IndexMask, std::map<DeviceId, SummandSet>> setOf;
    for (const Holding &h : holdings) {
        SummandSet &set = setOf[h.box][h.device];
        set = unionOf(set, h.summands);
    }
    std::map<IndexMask, std::map<SummandSet, SummandSet>> kept;
    for (const auto &[box, byDevice] : setOf) {
        std::set<SummandSet> sets;
        for (const auto &[device, set] : byDevice)
            sets.insert(set);
        if (sets.size() > 1)
            kept[box] = keptOf(sets);
    }
    std::vector<Holding> rest;
    for (const Holding &h : holdings) {
        const auto ofBox = kept.find(h.box);
        if (ofBox == kept.end() || ofBox->second.empty()) {
            rest.push_back(h);
            continue;
        }
        const SummandSet &mine = ofBox->second.at(setOf.at(h.box).at(h.device));
        const SummandSet lost = difference(h.summands, mine);
        if (lost.empty())
            rest.push_back(h);
        else if (lost.size() < h.summands.size())
            return holdings; // added up already with something that others keep
    }
    return rest;
}

bool shareSome(const std::vector<Holding> &holdings)
{
    for (auto a = holdings.begin(); a != holdings.end(); ++a)
        for (auto b = std::next(a); b != holdings.end(); ++b)
            if (a->summands != b->summands
                && (a->summands.empty() || b->summands.empty() || !disjointSets(a->summands, b->summands))
                && intersection(a->box, b->box))
                return true;
    return false;
}

} // namespace planloom
