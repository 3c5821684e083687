#pragma once

#include "engine/table/selector.h"

#include <cstdint>
#include <iterator>
#include <random>
#include <string>

namespace planloom {

/// Random numbers, words and selectors.
class RandomValues
{
public:
    explicit RandomValues(std::uint32_t seed)
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
    std::string maybeEmpty() { return chance(20) ? std::string{} : text(); }

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

private:
    std::mt19937 m_random;
};

} // namespace planloom
