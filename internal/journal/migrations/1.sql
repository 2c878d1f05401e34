-- One row a call. A row only ever moves forward through its states.
-- Times are nanoseconds since 1970, UTC; NULL until it happens.
CREATE TABLE calls (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  client             TEXT NOT NULL,
  tool_call_id       TEXT NOT NULL,
  agent_id           TEXT NOT NULL,
  conversation_id    TEXT NOT NULL,
  run_id             TEXT NOT NULL,
  step_id            TEXT NOT NULL,
  otid               TEXT NOT NULL,
  request_message_id TEXT NOT NULL,
  dialect            TEXT NOT NULL,
  tool_name          TEXT NOT NULL,            -- as asked
  canonical_tool     TEXT NOT NULL DEFAULT '', -- empty: no such tool
  args_hash          TEXT NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('received', 'waiting', 'decided', 'running', 'returned', 'delivered')),
  decision_action    TEXT NOT NULL DEFAULT '',
  decision_by        TEXT NOT NULL DEFAULT '',
  decision_rule      TEXT NOT NULL DEFAULT '',
  decision_source    TEXT NOT NULL DEFAULT '',
  decision_reason    TEXT NOT NULL DEFAULT '',
  daemon             TEXT NOT NULL,            -- whose call it is: pid, start time, boot
  process            TEXT NOT NULL DEFAULT '', -- the same of the call's own process
  spool_dir          TEXT NOT NULL DEFAULT '',
  status             TEXT NOT NULL DEFAULT '',
  error_type         TEXT NOT NULL DEFAULT '',
  exit_code          INTEGER,
  signal             TEXT NOT NULL DEFAULT '',
  sandbox            TEXT NOT NULL DEFAULT '',
  return_seq         INTEGER REFERENCES messages (seq),
  received_at        INTEGER NOT NULL,
  decided_at         INTEGER,
  intended_at        INTEGER,                  -- set: it may have run, and must not run again
  started_at         INTEGER,
  returned_at        INTEGER,
  delivered_at       INTEGER,
  UNIQUE (client, agent_id, tool_call_id)
);
CREATE INDEX calls_by_id ON calls (tool_call_id);
CREATE INDEX calls_open ON calls (daemon) WHERE return_seq IS NULL;

-- Apart from calls: SQLite writes a whole row anew for each change of state, and
-- arguments may be megabytes.
CREATE TABLE arguments (
  call INTEGER PRIMARY KEY REFERENCES calls (id),
  text TEXT NOT NULL
);

-- Every message, in the order in which it was recorded. seq is never used
-- again. Rows are never changed: hash covers the row and the hash before it.
CREATE TABLE messages (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL UNIQUE,
  ts              INTEGER NOT NULL,
  message_type    TEXT NOT NULL,
  direction       TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  client          TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  run_id          TEXT NOT NULL,
  step_id         TEXT NOT NULL,
  otid            TEXT NOT NULL,
  tool_call_id    TEXT NOT NULL,
  status          TEXT NOT NULL,
  body            TEXT NOT NULL,
  prev_hash       BLOB NOT NULL,
  hash            BLOB NOT NULL
);
CREATE INDEX messages_by_agent ON messages (agent_id, seq) WHERE agent_id <> '';
CREATE INDEX messages_by_conversation ON messages (conversation_id, seq) WHERE conversation_id <> '';
CREATE INDEX messages_by_run ON messages (run_id, seq) WHERE run_id <> '';
CREATE INDEX messages_by_step ON messages (step_id, seq) WHERE step_id <> '';
CREATE INDEX messages_by_otid ON messages (otid, seq) WHERE otid <> '';
CREATE INDEX messages_by_call ON messages (tool_call_id, seq) WHERE tool_call_id <> '';
