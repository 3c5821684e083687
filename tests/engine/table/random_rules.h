#pragma once

#include "engine/table/table.h"
#include "tests/engine/table/random_values.h"

#include <algorithm>
#include <array>

namespace planloom {

/// `make` gives a rule of kind R with every construct of its text form: one specialisation a kind.
template<typename R> struct RandomRule;

template<> struct RandomRule<MeshRule> {
    static MeshRule make(RandomValues &random)
    {
        MeshRule mesh;
        for (int n = random.number(1, 3); n > 0; --n)
            mesh.axes.push_back({random.text(), random.number(1, 8)});
        return mesh;
    }
};

template<> struct RandomRule<MicroBatchesRule> {
    static MicroBatchesRule make(RandomValues &random)
    {
        return {random.number(1, 64), random.chance(30), random.chance(30) ? random.number(1, 8) : 0};
    }
};

template<> struct RandomRule<DimensionSizeRule> {
    static DimensionSizeRule make(RandomValues &random) { return {random.text(), random.number(1, 4096)}; }
};

template<> struct RandomRule<CapacityRule> {
    static CapacityRule make(RandomValues &random)
    {
        CapacityRule rule{random.text(), {}};
        rule.capacity.kind = static_cast<Capacity::Kind>(random.number(0, 2));
        if (rule.capacity.kind == Capacity::Kind::Expected)
            rule.capacity.factor = random.number(1, 64) / 8.0;
        if (rule.capacity.kind == Capacity::Kind::Rows)
            rule.capacity.rows = random.number(1, 4096);
        return rule;
    }
};

template<> struct RandomRule<UnrollRule> {
    static UnrollRule make(RandomValues &random) { return {random.text()}; }
};

inline SegmentKind randomPass(RandomValues &random)
{
    return kPasses[static_cast<std::size_t>(random.number(0, 3))];
}

inline DimensionRef randomDimension(RandomValues &random)
{
    DimensionRef ref;
    ref.kind = static_cast<DimensionRef::Kind>(random.number(0, 3));
    if (ref.kind == DimensionRef::Kind::Identifier)
        ref.name = random.maybeEmpty();
    if (ref.kind == DimensionRef::Kind::Meaning)
        ref.meaning = static_cast<DimensionMeaning>(random.number(1, kDimensionMeaningCount - 1));
    if (ref.kind == DimensionRef::Kind::Input || ref.kind == DimensionRef::Kind::Output) {
        ref.slot = random.number(0, 5);
        ref.dimension = random.number(-3, 3);
    }
    return ref;
}

template<> struct RandomRule<OpTransRule> {
    static SplitStep step(RandomValues &random)
    {
        SplitStep made;
        made.kind = static_cast<SplitKind>(random.number(0, 2));
        if (made.kind == SplitKind::Dimension)
            made.dimension = randomDimension(random);
        if (random.chance(50))
            made.axis = random.text();
        if (made.kind == SplitKind::Dimension && random.chance(30)) {
            for (int n = random.number(1, 4); n > 0; --n)
                made.sizes.push_back(random.number(1, 1000));
        } else if (made.axis.empty() || random.chance(50)) {
            made.parts = random.number(1, 64);
        }
        made.zigzag = made.kind == SplitKind::Dimension && !made.axis.empty() && made.sizes.empty()
            && random.chance(30);
        return made;
    }
    static OpTransRule make(RandomValues &random)
    {
        OpTransRule trans;
        for (int n = random.number(1, 3); n > 0; --n)
            trans.steps.push_back(step(random));
        return trans;
    }
};

template<> struct RandomRule<CoshardRule> {
    static CoshardRule make(RandomValues &random)
    {
        CoshardRule coshard{.dimension = randomDimension(random)};
        coshard.parts = random.number(1, 8);
        coshard.keep = random.chance(30);
        return coshard;
    }
};

template<> struct RandomRule<SliceRule> {
    static SliceRule make(RandomValues &random)
    {
        SliceRule slice{.dimension = randomDimension(random)};
        slice.parts = random.number(1, 8);
        return slice;
    }
};

template<> struct RandomRule<OpAssignRule> {
    static OpAssignRule make(RandomValues &random)
    {
        OpAssignRule assign;
        if (random.chance(50)) {
            for (int n = random.number(1, 4); n > 0; --n)
                assign.devices.push_back({random.number(0, 15)});
        } else {
            for (int n = random.number(0, 2); n > 0; --n)
                assign.coordinates.push_back({random.text(), random.number(0, 7)});
        }
        return assign;
    }
};

template<> struct RandomRule<OpOrderRule> {
    static OpOrderRule make(RandomValues &random)
    {
        const auto part = [&] { return BlockPart{random.number(-1, 3), random.number(-1, 3)}; };
        return {random.selector(), random.number(-3, 3), random.chance(50) ? -1 : random.number(0, 9), part(),
            part()};
    }
};

template<> struct RandomRule<CommunicateRule> {
    static CommunicateRule make(RandomValues &random)
    {
        return {static_cast<CommunicationPart>(random.number(1, 3)), random.chance(50), random.selector(),
            static_cast<CommunicationPart>(random.number(0, 3)), random.number(-3, 3),
            random.chance(50) ? -1 : random.number(0, 9)};
    }
};

template<> struct RandomRule<ScheduleRule> {
    static ScheduleRule make(RandomValues &random)
    {
        if (random.chance(15)) {
            ScheduleRule left{.chosen = true};
            for (const ScheduleKind kind : kSearchedSchedules)
                if (random.chance(40))
                    left.among.push_back(kind);
            return left;
        }
        const auto kind = static_cast<std::size_t>(random.number(0, static_cast<int>(kAllSchedules.size())));
        if (kind < kAllSchedules.size())
            return {kAllSchedules[kind], {}, random.chance(70) ? 0 : random.number(1, 64)};
        ScheduleRule rule{ScheduleKind::Listed, {.ranks = {{}}}};
        for (int i = random.number(1, 6); i > 0; --i) {
            rule.order.ranks.back().push_back(
                {{StageId{random.number(0, 3)}, randomPass(random), random.number(0, 1), random.number(0, 1)},
                    i});
            if (random.number(0, 3) == 0)
                rule.order.ranks.emplace_back();
        }
        const auto &first = rule.order.ranks.front();
        if (first.size() > 1)
            rule.order.interleaved.emplace_back(first[0], first[1]);
        rule.microBatches = random.chance(50) ? 0 : random.number(1, 64);
        return rule;
    }
};

template<> struct RandomRule<OverlapRule> {
    static OverlapRule make(RandomValues &random)
    {
        return {random.chance(50) ? CollectiveOverlap::Tensor : CollectiveOverlap::None};
    }
};

template<> struct RandomRule<StageRule> {
    static StageRule make(RandomValues &random)
    {
        StageRule rule{random.number(0, 8)};
        if (random.chance(30))
            rule.count = rule.index + random.number(1, 8);
        return rule;
    }
};

template<> struct RandomRule<RecomputeRule> {
    static RecomputeRule make(RandomValues &random)
    {
        if (random.chance(30))
            return {.when = random.chance(50) ? Switched::Never : Switched::Chosen};
        return {static_cast<RecomputePer>(random.number(0, 2))};
    }
};

template<> struct RandomRule<AttentionRule> {
    static AttentionRule make(RandomValues &random)
    {
        return {random.chance(50) ? AttentionMode::Plain : AttentionMode::Fused};
    }
};

template<> struct RandomRule<SplitBackwardRule> {
    static SplitBackwardRule make(RandomValues &) { return {}; }
};

template<> struct RandomRule<RingRule> {
    static RingRule make(RandomValues &random) { return {random.text()}; }
};

template<> struct RandomRule<LanesRule> {
    static LanesRule make(RandomValues &random)
    {
        LanesRule lanes;
        if (random.number(0, 1) == 0)
            lanes.count = static_cast<std::int32_t>(random.number(2, kMostBlockLanes));
        else
            lanes.axis = random.text();
        return lanes;
    }
};
template<> struct RandomRule<WeightVersionsRule> {
    static WeightVersionsRule make(RandomValues &random)
    {
        return {static_cast<std::int32_t>(random.number(1, kMostWeightVersions))};
    }
};

template<> struct RandomRule<OffloadRule> {
    static OffloadRule make(RandomValues &random)
    {
        const bool states = random.chance(50);
        return {states ? OffloadedKind::States : OffloadedKind::Activations,
            static_cast<Switched>(random.number(0, states ? 1 : 2))};
    }
};

template<> struct RandomRule<OptimizerShardingRule> {
    static OptimizerShardingRule make(RandomValues &random)
    {
        if (random.chance(20))
            return {.stage = 0};
        if (random.chance(15))
            return {.chosen = true};
        OptimizerShardingRule rule{.stage = random.number(1, 3),
            .axis = random.chance(50) ? random.text() : "",
            .parts = random.chance(50) ? 0 : random.number(1, 8)};
        for (int more = rule.axis.empty() ? 0 : random.number(0, 2); more > 0; --more)
            rule.moreAxes.push_back(random.text());
        if (rule.stage == 3) {
            rule.keep = random.chance(50);
            rule.prefetch = random.number(0, 64);
        }
        return rule;
    }
};

template<> struct RandomRule<PrecisionRule> {
    static PrecisionRule make(RandomValues &random)
    {
        constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16,
            DataType::TensorFloat32, DataType::Float8E4M3};
        const auto type = [&](int count) {
            return kTypes[static_cast<std::size_t>(random.number(0, count - 1))];
        };
        PrecisionRule rule;
        if (random.chance(50))
            rule.preset = kAllPrecisionPresets[static_cast<std::size_t>(random.number(0, 4))];
        if (random.chance(30))
            rule.compute = type(5);
        for (auto *setting : {&rule.storage, &rule.gradient, &rule.reduction, &rule.optimizer})
            if (random.chance(30))
                *setting = type(3);
        if (random.chance(30) || rule == PrecisionRule{})
            rule.scale = 1 << random.number(0, 24);
        return rule;
    }
};

template<> struct RandomRule<InFlightRule> {
    static InFlightRule make(RandomValues &random) { return {random.number(1, 20), random.number(-1, 5)}; }
};

template<> struct RandomRule<InterleaveRule> {
    static InterleaveRule make(RandomValues &random)
    {
        InterleaveRule rule{.first = randomPass(random),
            .second = randomPass(random),
            .stage = random.number(-1, 3),
            .microBatchOffset = random.number(-3, 3)};
        rule.secondStage = rule.stage < 0 ? -1 : random.number(0, 3);
        rule.lane = random.number(-1, 2);
        rule.secondLane = random.number(-1, 2);
        return rule;
    }
};

template<> struct RandomRule<LimitRule> {
    /// Round amounts, decimal and binary, and any others up to the most.
    static LimitRule make(RandomValues &random)
    {
        LimitRule limit{.kind = static_cast<LimitRule::Kind>(random.number(0, 2))};
        limit.value = random.number(1, 999);
        for (int n = random.number(0, 4); n > 0; --n)
            limit.value *= random.chance(50) ? 1024 : 1000;
        limit.value = std::min(limit.value, kMostExtent) - (random.chance(30) ? random.number(0, 1000) : 0);
        limit.value = std::max<std::int64_t>(limit.value, 1);
        if (limit.kind == LimitRule::Kind::Traffic && random.chance(60))
            limit.links = std::array{"link", "device", "card", "node", "rack", "links",
                "a b"}[static_cast<std::size_t>(random.number(0, 6))];
        return limit;
    }
};

inline CountBound randomBound(RandomValues &random)
{
    CountBound bound{
        .kind = static_cast<CountBound::Kind>(random.number(0, 2)), .values = {random.number(1, 64)}};
    for (int n = random.number(0, 3); n > 0 && bound.kind == CountBound::Kind::OneOf; --n)
        bound.values.push_back(bound.values.back() + random.number(1, 64));
    return bound;
}

template<> struct RandomRule<DegreeRule> {
    static DegreeRule make(RandomValues &random)
    {
        return {static_cast<Degree>(random.number(0, 6)), randomBound(random)};
    }
};

template<> struct RandomRule<PartsRule> {
    static PartsRule make(RandomValues &random)
    {
        PartsRule rule{{}, randomBound(random)};
        if (random.chance(80))
            rule.dimension = randomDimension(random);
        return rule;
    }
};

template<> struct RandomRule<AlikeRule> {
    static AlikeRule make(RandomValues &random) { return {random.selector()}; }
};

template<> struct RandomRule<FollowRule> {
    static FollowRule make(RandomValues &) { return {}; }
};

template<> struct RandomRule<SpreadRule> {
    static SpreadRule make(RandomValues &random)
    {
        return {random.text(), static_cast<SpreadBy>(random.number(0, 2))};
    }
};

template<> struct RandomRule<LayoutRule> {
    static LayoutRule make(RandomValues &random)
    {
        std::string layout = "E";
        for (std::int32_t i = random.number(0, 3); i > 0; --i)
            layout += random.chance(50) ? "(t*2,|)*3 t" : "t*4|t";
        return {
            layout + (random.chance(50) ? "mL" : "|L"), random.chance(50) ? random.text() : std::string{}};
    }
};

template<> struct RandomRule<DeviceSharingRule> {
    static DeviceSharingRule make(RandomValues &random) { return {random.chance(50), random.selector()}; }
};

} // namespace planloom
