#include "sessions/session_schema.h"

namespace planloom {

namespace {

// Version 1. Single rows are kept single by `CHECK (id = 1)`; rows of the table keep their lines as people wrote
// them, wrong ones included, so that a session holds work that is not finished.
constexpr const char *kVersion1 = R"sql(
CREATE TABLE model (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    source TEXT NOT NULL,
    content BLOB NOT NULL,
    content_size INTEGER NOT NULL CHECK (content_size >= 0),
    sha256 TEXT NOT NULL
);
CREATE TABLE model_option (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cluster (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    json TEXT NOT NULL,
    device_count INTEGER NOT NULL CHECK (device_count >= 1)
);
CREATE TABLE constraint_row (
    position INTEGER PRIMARY KEY CHECK (position >= 0),
    line TEXT NOT NULL
);
CREATE TABLE plan (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    table_sha256 TEXT NOT NULL,
    summary TEXT NOT NULL,
    execution BLOB NOT NULL,
    execution_size INTEGER NOT NULL CHECK (execution_size >= 0)
);
CREATE TABLE view_state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
)sql";

} // namespace

const std::vector<Migration> &sessionMigrations()
{
    static const std::vector<Migration> kMigrations{{0, kVersion1}};
    return kMigrations;
}

} // namespace planloom
