#pragma once

#include "engine/conflict/ways_out.h"
#include "engine/table/table_text.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace planloom {

using Rows = std::vector<std::int32_t>;

constexpr auto kAnyTime = std::chrono::seconds(60);

inline std::set<Rows> setsOf(const ConflictAnswer &answer)
{
    std::set<Rows> sets;
    for (const ConflictSet &set : answer.sets) {
        Rows rows;
        for (const RowId row : set.rows)
            rows.push_back(row.index);
        sets.insert(rows);
    }
    return sets;
}

/// "1: split name:a : n by 4", "2 off"; a star in front where other conflicts are left.
inline std::vector<std::string> wordsOf(const std::vector<WayOut> &ways)
{
    std::vector<std::string> words;
    for (const WayOut &way : ways)
        words.push_back(std::string(way.holds ? "" : "*") + std::to_string(way.row.index)
            + (way.changed ? ": " + print(*way.changed) : " off"));
    return words;
}

inline ConstraintTable applied(ConstraintTable table, const WayOut &way)
{
    Row &row = table.rows[at(way.row)];
    if (way.changed)
        row = *way.changed;
    else
        row.enabled = false;
    return table;
}

} // namespace planloom
