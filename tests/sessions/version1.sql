PRAGMA application_id = 1349274733;
PRAGMA user_version = 1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE model (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    source TEXT NOT NULL,
    content BLOB NOT NULL,
    content_size INTEGER NOT NULL CHECK (content_size >= 0),
    sha256 TEXT NOT NULL
);
INSERT INTO model VALUES(1,'/models/gpt.onnx',X'7801e36067284fcd4ccf2829fe0f00107e040a',11,'b43bc8d6779933a9775301dfc0a4b668346cbd65432f7c93f07e3c7f914dba3d');
CREATE TABLE model_option (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO model_option VALUES('dim.batch','8');
INSERT INTO model_option VALUES('loss','loss');
CREATE TABLE cluster (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    json TEXT NOT NULL,
    device_count INTEGER NOT NULL CHECK (device_count >= 1)
);
INSERT INTO cluster VALUES(1,'dgx-a100','',4);
CREATE TABLE constraint_row (
    position INTEGER PRIMARY KEY CHECK (position >= 0),
    line TEXT NOT NULL
);
INSERT INTO constraint_row VALUES(0,'# two by two');
INSERT INTO constraint_row VALUES(1,'mesh dp=2 tp=2');
INSERT INTO constraint_row VALUES(2,'');
INSERT INTO constraint_row VALUES(3,'split all : batch over dp');
INSERT INTO constraint_row VALUES(4,'split nonsense here');
INSERT INTO constraint_row VALUES(5,'it''s "quoted" é');
CREATE TABLE plan (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    table_sha256 TEXT NOT NULL,
    summary TEXT NOT NULL,
    execution BLOB NOT NULL,
    execution_size INTEGER NOT NULL CHECK (execution_size >= 0)
);
INSERT INTO "plan" VALUES(1,'1a29713733f9a4ed69d5c77d928679659ae342c1dafc2f7a0fb6345176e9fc3f','{"step_seconds":0.0412}',X'7801ab562a4b2d2acecccf53b232ac0500223604ae',13);
CREATE TABLE view_state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO view_state VALUES('theme','dark');
INSERT INTO view_state VALUES('timeline.begin','12.5');
COMMIT;
