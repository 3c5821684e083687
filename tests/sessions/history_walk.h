#pragma once

#include "sessions/history.h"

#include <random>
#include <string>
#include <vector>

namespace planloom {

/// Random edits of a state, as a person might make them. The same seed gives the same edits.
class RandomEditor
{
public:
    explicit RandomEditor(std::uint32_t seed)
        : m_random(seed)
    {
    }

    std::size_t below(std::size_t count) { return m_random() % count; }

    /// A line of a table: mostly rows, some notes, empty lines and lines that are no rows.
    std::string line()
    {
        const std::string number = std::to_string(below(100));
        switch (below(8)) {
        case 0:
            return "# note " + number;
        case 1:
            return {};
        case 2:
            return "not a row " + number + " \xc3\xa9\t";
        case 3:
            return "micro-batches " + number;
        case 4:
            return "  split all : batch into " + number + "   # with a note";
        default:
            return "place layer:" + number + " on " + std::to_string(below(8));
        }
    }

    std::string text(std::size_t lines)
    {
        std::string result;
        for (std::size_t i = 0; i < lines; ++i)
            result += line() + "\n";
        return result;
    }

    /// A change that starts from `state`.
    DesignChange change(const DesignState &state)
    {
        DesignState after = state;
        const TableDocument &table = state.table;
        const auto lines = static_cast<std::size_t>(table.lineCount());
        const auto at = static_cast<std::int32_t>(below(lines + 1));
        DesignChange result;
        switch (below(7)) {
        case 0:
            result.table = insertText(table, at, line() + "\n" + line());
            break;
        case 1:
            result.table = removeLines(table, {at, static_cast<std::int32_t>(below(lines + 1))});
            break;
        case 2:
            result.table = replaceLine(table, at, line());
            break;
        case 3:
            result.table = moveLines(table, {at}, static_cast<std::int32_t>(below(lines + 1)));
            break;
        case 4:
            result.table = setEnabled(table, {at}, below(2) == 0);
            break;
        case 5:
            result.table = insertText(table, at, line());
            break;
        default:
            break;
        }
        if (result.table.empty() || below(5) == 0) {
            const std::string name = "value/" + std::to_string(below(6));
            if (below(3) == 0)
                after.values.erase(name);
            else
                after.values[name] = std::to_string(below(1000));
            result.values = difference(state, after).values;
        }
        return result;
    }

private:
    std::mt19937 m_random;
};

} // namespace planloom
