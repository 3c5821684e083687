#pragma once

#include "engine/graph/graph.h"

#include <random>
#include <string>
#include <vector>

namespace planloom {

/// A table of a few rows of all kinds, drawn so that they often cannot hold together. The same on every
/// machine.
class RandomRows
{
public:
    RandomRows(const Graph &graph, std::int32_t devices, std::uint32_t seed)
        : m_devices(devices)
        , m_random(seed)
    {
        for (const Operator &op : graph.operators)
            if (op.direction == Direction::Forward)
                m_forward.push_back(&op);
    }

    std::string draw(int rows)
    {
        std::string text;
        if (number(0, 2) > 0) {
            text += "mesh dp=" + std::to_string(number(1, 4)) + " tp=" + std::to_string(number(1, 3)) + "\n";
            m_hasMesh = true;
        }
        if (number(0, 2) > 0)
            text += "micro-batches " + std::to_string(number(1, 4)) + "\n";
        for (int i = 0; i < rows; ++i)
            text += row() + "\n";
        return text;
    }

private:
    int number(int least, int most)
    {
        return least + static_cast<int>(m_random() % static_cast<unsigned>(most - least + 1));
    }
    const Operator &op() { return *m_forward[m_random() % m_forward.size()]; }
    std::string name() { return "name:" + op().name; }
    std::string some() { return number(0, 3) == 0 ? "all" : name(); }
    std::string devices()
    {
        std::string text;
        for (int i = 0, count = number(1, 3); i < count; ++i)
            text += (i > 0 ? "," : "") + std::to_string(number(0, m_devices - 1));
        return text;
    }
    std::string cut()
    {
        const Operator &of = op();
        const auto &dimensions = of.annotation.dimensions;
        if (dimensions.empty())
            return "name:" + of.name + " : batch by 2";
        const std::string dimension = "\"" + dimensions[m_random() % dimensions.size()].name + "\"";
        return "name:" + of.name + " : " + dimension + " by " + std::to_string(number(2, 4));
    }

    /// An operator's dimension, as rows about parts begin.
    std::string part()
    {
        const Operator &of = op();
        const auto &dimensions = of.annotation.dimensions;
        return "name:" + of.name + " : "
            + (dimensions.empty() ? "in all" : "\"" + dimensions[m_random() % dimensions.size()].name + "\"");
    }
    std::string bound()
    {
        switch (number(0, 2)) {
        case 0:
            return " at most " + std::to_string(number(1, 3));
        case 1:
            return " at least " + std::to_string(number(2, 4));
        default:
            return " one of " + std::to_string(number(1, 2)) + " " + std::to_string(number(3, 4));
        }
    }

    std::string row()
    {
        const std::string axis = number(0, 1) == 0 ? "dp" : "tp";
        switch (number(0, 32)) {
        case 0:
        case 1:
            return "split " + cut();
        case 2:
        case 3:
            return "split " + some() + " : batch by " + std::to_string(number(2, 4));
        case 4:
        case 5:
            return m_hasMesh ? "split " + some() + " : batch over " + axis : "split " + cut();
        case 6:
            return "replicate " + some() + " : by 2";
        case 7:
        case 8:
            return "place " + some() + " : devices " + devices();
        case 9:
            return m_hasMesh ? "place " + name() + " : " + axis + "=" + std::to_string(number(0, 2))
                             : "place " + name() + " : devices " + devices();
        case 10:
        case 11:
            return "stage " + name() + " : " + std::to_string(number(0, 2));
        case 12:
        case 13:
        case 14:
            return "order " + name() + " before " + name();
        case 15:
            return "order " + name() + " before " + name() + " at " + (number(0, 1) == 0 ? "+1" : "-1");
        case 16:
            return "coshard " + cut();
        case 17:
            return "recompute " + some();
        case 18:
            return "in-flight " + std::to_string(number(1, 2))
                + (number(0, 1) == 0 ? "" : " stage " + std::to_string(number(0, 2)));
        case 19:
            switch (number(0, 3)) {
            case 0:
                return "schedule gpipe";
            case 1:
                return "schedule solver";
            case 2:
                return "schedule solver among gpipe, zb-h1";
            default:
                return "schedule 1f1b";
            }
        case 20:
            return m_hasMesh && number(0, 1) == 0 ? "zero1 all over " + axis : "zero1 all";
        case 21:
            return "micro-batches " + std::to_string(number(1, 4));
        case 22:
            return "precision all : " + std::string(number(0, 1) == 0 ? "bf16" : "fp16");
        case 23:
            return m_hasMesh
                ? "split " + name() + " : batch by " + std::to_string(number(2, 3)) + " over " + axis
                : "order " + name() + " before " + name();
        case 24:
        case 25:
            return "parts " + part() + bound();
        case 26:
            return "parts " + some() + " : " + (number(0, 1) == 0 ? "batch" : "in all") + bound();
        case 27:
            return "alike " + name() + " as " + name();
        case 28:
            return "follow " + some();
        case 29:
            return (number(0, 1) == 0 ? "together " + name() + " with " : "apart " + name() + " from ")
                + name();
        case 30:
            return m_hasMesh ? "spread " + some() + " : over " + axis + (number(0, 1) == 0 ? " by count" : "")
                             : "follow " + name();
        case 31:
            return "recompute " + some() + (number(0, 1) == 0 ? " never" : " solver");
        default:
            return number(0, 1) == 0 ? "zero0 all" : "limit memory 1GiB";
        }
    }

    std::int32_t m_devices = 1;
    std::mt19937 m_random;
    std::vector<const Operator *> m_forward{};
    bool m_hasMesh = false;
};

} // namespace planloom
