#pragma once

#include "sessions/migrate.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// PRAGMA application_id of a session: "PlLm" in ASCII, by which `file` and we know it.
constexpr std::int32_t kSessionApplicationId = 0x506C4C6D;

/// Every schema there was, in order; the last entry makes today's.
const std::vector<Migration> &sessionMigrations();

/// The SQL expression over table `model` of a session of `version` for the model's name today: what can't be
/// brought up to date is read so.
std::string modelSourceColumn(int version);

} // namespace planloom
