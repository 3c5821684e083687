#pragma once

#include "engine/plan/table.h"

#include <algorithm>
#include <random>

namespace planloom {

/// Random selectors and tables with every construct of the text form, for round-trip tests.
class RandomTable
{
public:
    explicit RandomTable(std::uint32_t seed)
        : m_random(seed)
    {
    }

    std::int32_t number(std::int32_t least, std::int32_t most)
    {
        return std::uniform_int_distribution<std::int32_t>(least, most)(m_random);
    }
    bool chance(int percent) { return number(1, 100) <= percent; }

    /// Words, reserved words and awkward texts; UTF-8, without carriage returns.
    std::string text()
    {
        static const char *const kTexts[] = {"h.3.attn", "c_attn", "*.mlp.*", "a", "batch", "value", "in0.1",
            "all", "set", "before", "devices", "mesh", "off", "x y", "a\"b", "back\\slash", "tab\there",
            "line\nend", "#no note", "\xc3\xbc", "onnx::MatMul_12", "(b)", "{c}", "d,e", "@text", "0", "-1",
            "'", "?", "\x01"};
        return kTexts[number(0, static_cast<int>(std::size(kTexts)) - 1)];
    }
    std::string maybeEmpty() { return chance(20) ? std::string {} : text(); }

    Selector selector(int depth = 3)
    {
        Selector made;
        const int kind = number(0, depth > 0 ? 10 : 7);
        made.kind = static_cast<SelectorKind>(kind);
        switch (made.kind) {
        case SelectorKind::Name:
        case SelectorKind::Kind:
        case SelectorKind::In:
        case SelectorKind::Weight:
            made.text = maybeEmpty();
            break;
        case SelectorKind::Layer:
            made.firstLayer = number(0, 20);
            made.lastLayer = chance(30) ? -1 : made.firstLayer + number(0, 5);
            break;
        case SelectorKind::Direction:
            made.direction = static_cast<Direction>(number(0, 2));
            break;
        case SelectorKind::Set:
            for (int n = number(1, 3); n > 0; --n)
                made.names.push_back(maybeEmpty());
            break;
        case SelectorKind::And:
        case SelectorKind::Or:
            for (int n = number(2, 3); n > 0; --n)
                made.children.push_back(selector(depth - 1));
            break;
        case SelectorKind::Not:
            made.children.push_back(selector(depth - 1));
            break;
        case SelectorKind::All:
            break;
        }
        if (depth <= 0 && !made.children.empty())
            return {};
        return made;
    }

    DimensionRef dimension()
    {
        DimensionRef ref;
        ref.kind = static_cast<DimensionRef::Kind>(number(0, 3));
        if (ref.kind == DimensionRef::Kind::Identifier)
            ref.name = maybeEmpty();
        if (ref.kind == DimensionRef::Kind::Meaning)
            ref.meaning = static_cast<DimensionMeaning>(number(1, kDimensionMeaningCount - 1));
        if (ref.kind == DimensionRef::Kind::Input || ref.kind == DimensionRef::Kind::Output) {
            ref.slot = number(0, 5);
            ref.dimension = number(-3, 3);
        }
        return ref;
    }

    SplitStep step()
    {
        SplitStep made;
        made.kind = static_cast<SplitKind>(number(0, 2));
        if (made.kind == SplitKind::Dimension)
            made.dimension = dimension();
        if (chance(50))
            made.axis = text();
        if (made.kind == SplitKind::Dimension && chance(30)) {
            for (int n = number(1, 4); n > 0; --n)
                made.sizes.push_back(number(1, 1000));
        } else if (made.axis.empty() || chance(50)) {
            made.parts = number(1, 64);
        }
        return made;
    }

    Rule rule()
    {
        switch (number(0, 11)) {
        case 0: {
            MeshRule mesh;
            for (int n = number(1, 3); n > 0; --n)
                mesh.axes.push_back({text(), number(1, 8)});
            return mesh;
        }
        case 1:
            return MicroBatchesRule {number(1, 64)};
        case 2: {
            OpTransRule trans;
            for (int n = number(1, 3); n > 0; --n)
                trans.steps.push_back(step());
            return trans;
        }
        case 3:
            return CoshardRule {dimension(), number(1, 8)};
        case 4: {
            OpAssignRule assign;
            if (chance(50)) {
                for (int n = number(1, 4); n > 0; --n)
                    assign.devices.push_back({number(0, 15)});
            } else {
                for (int n = number(0, 2); n > 0; --n)
                    assign.coordinates.push_back({text(), number(0, 7)});
            }
            return assign;
        }
        case 5:
            return OpOrderRule {selector(), number(-3, 3), chance(50) ? -1 : number(0, 9)};
        case 6:
            return ScheduleRule {static_cast<ScheduleKind>(number(0, 2))};
        case 7:
            return StageRule {number(0, 8)};
        case 8:
            return RecomputeRule {static_cast<RecomputePer>(number(0, 2))};
        case 9:
            return InFlightRule {number(1, 20), number(-1, 5)};
        case 10: {
            // Round amounts, decimal and binary, and any others up to the most.
            LimitRule limit {.kind = chance(50) ? LimitRule::Kind::Memory : LimitRule::Kind::Time};
            limit.value = number(1, 999);
            for (int n = number(0, 4); n > 0; --n)
                limit.value *= chance(50) ? 1024 : 1000;
            limit.value = std::min(limit.value, std::int64_t {1} << 50) - (chance(30) ? number(0, 1000) : 0);
            limit.value = std::max<std::int64_t>(limit.value, 1);
            return limit;
        }
        default:
            return OptimizerShardingRule {chance(50) ? text() : "", chance(50) ? 0 : number(1, 8)};
        }
    }

    Row row()
    {
        Row made;
        made.enabled = chance(80);
        if (chance(25))
            made.preference = chance(50) ? 1 : number(1, chance(50) ? 20 : kMostWeight);
        made.rule = rule();
        if (hasSelector(made.rule))
            made.selector = selector();
        made.origin = static_cast<RowOrigin>(number(0, 3));
        if (chance(40))
            made.note = note();
        return made;
    }

    std::string note()
    {
        static const char *const kNotes[] = {"why", " leading", "trailing ", "two\nlines", "\n", "a # b",
            "\"quoted", "back\\", "three\n\nlines "};
        return kNotes[number(0, static_cast<int>(std::size(kNotes)) - 1)];
    }

    ConstraintTable table()
    {
        ConstraintTable made;
        for (int n = number(0, 8); n > 0; --n)
            made.rows.push_back(row());
        if (chance(30))
            made.note = note();
        return made;
    }

private:
    std::mt19937 m_random;
};

} // namespace planloom
