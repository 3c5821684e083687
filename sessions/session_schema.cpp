#include "sessions/session_schema.h"

namespace planloom {

namespace {

// Version 1. Single rows are kept single by `CHECK (id = 1)`; rows of the table keep their lines as people
// wrote them, wrong ones included, so that a session holds work that is not finished.
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

// Version 2: a history of steps instead of one table. A step's change is in columns: splices of the table's
// text (lines that each end in a line end) and named values. Columns without a type hold text as it is, or
// deflated as a blob; their length is beside them. `state` keeps whole states: of the root (step 0), and of
// every 256th step of a line of work, by which what follows a damaged step is found again. `crc` covers a
// step's id, parent, time, words and change, and a state's table and values; it is NULL where version 1 had
// none.
//
// Version 1's table becomes the root, its cluster two named values; its plan follows from the rows.
constexpr const char *kVersion2 = R"sql(
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE state (
    step INTEGER PRIMARY KEY CHECK (step >= 0),
    text NOT NULL,
    text_size INTEGER NOT NULL CHECK (text_size >= 0),
    crc INTEGER
);
CREATE TABLE state_value (
    step INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (step, name)
) WITHOUT ROWID;
CREATE TABLE step (
    id INTEGER PRIMARY KEY CHECK (id >= 1),
    parent INTEGER NOT NULL CHECK (parent >= 0 AND parent < id),
    depth INTEGER NOT NULL CHECK (depth >= 1),
    words TEXT NOT NULL,
    created INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    step_seconds REAL,
    peak_bytes INTEGER,
    verified INTEGER
);
CREATE TABLE step_splice (
    step INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    line INTEGER NOT NULL,
    removed NOT NULL,
    removed_size INTEGER NOT NULL CHECK (removed_size >= 0),
    inserted NOT NULL,
    inserted_size INTEGER NOT NULL CHECK (inserted_size >= 0),
    PRIMARY KEY (step, position)
) WITHOUT ROWID;
CREATE TABLE step_value (
    step INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    name TEXT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (step, position)
) WITHOUT ROWID;
CREATE TABLE branch (
    id INTEGER PRIMARY KEY CHECK (id >= 0),
    name TEXT NOT NULL,
    head INTEGER NOT NULL CHECK (head >= 0)
);
CREATE TABLE step_name (
    name TEXT PRIMARY KEY,
    step INTEGER NOT NULL CHECK (step >= 1)
) WITHOUT ROWID;
CREATE TABLE position (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    step INTEGER NOT NULL CHECK (step >= 0),
    branch INTEGER NOT NULL CHECK (branch >= 0)
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id >= 1),
    step INTEGER NOT NULL,
    created INTEGER NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    details TEXT NOT NULL
);
CREATE TABLE run_timeline (
    run INTEGER PRIMARY KEY,
    spans NOT NULL,
    spans_size INTEGER NOT NULL CHECK (spans_size >= 0)
);
CREATE TABLE plan_cache (
    step INTEGER PRIMARY KEY CHECK (step >= 0),
    used INTEGER NOT NULL,
    execution NOT NULL,
    execution_size INTEGER NOT NULL CHECK (execution_size >= 0)
);
CREATE TABLE thumbnail (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    png BLOB NOT NULL
);
INSERT INTO state (step, text, text_size)
    SELECT 0, text, length(CAST(text AS BLOB)) FROM (
        SELECT coalesce(group_concat(line || char(10), ''), '') AS text
        FROM (SELECT line FROM constraint_row ORDER BY position));
INSERT INTO state_value (step, name, value) SELECT 0, 'cluster', name FROM cluster;
INSERT INTO state_value (step, name, value) SELECT 0, 'devices', CAST(device_count AS TEXT) FROM cluster;
INSERT INTO meta (name, value) SELECT 'cluster_json', json FROM cluster WHERE json <> '';
INSERT INTO branch (id, name, head) VALUES (0, 'main', 0);
INSERT INTO position (id, step, branch) VALUES (1, 0, 0);
DROP TABLE cluster;
DROP TABLE constraint_row;
DROP TABLE plan;
)sql";

// What version 3 calls the model of a version before: the zoo's GPT joined queries, keys and values in one
// weight, and older sessions ask for three, so that their rows find the operators that they name.
constexpr const char *kSourceBefore3 = "CASE WHEN source = 'zoo:gpt' THEN 'zoo:gpt?fused=0'"
                                       " WHEN substr(source, 1, 8) = 'zoo:gpt?' THEN source || '&fused=0'"
                                       " ELSE source END";

// Version 3: the same tables.
const std::string &version3()
{
    static const std::string sql = std::string("UPDATE model SET source = ") + kSourceBefore3;
    return sql;
}

} // namespace

const std::vector<Migration> &sessionMigrations()
{
    static const std::vector<Migration> kMigrations{{0, kVersion1}, {1, kVersion2}, {2, version3().c_str()}};
    return kMigrations;
}

std::string modelSourceColumn(int version)
{
    return version < 3 ? kSourceBefore3 : "source";
}

} // namespace planloom
