-- What the log says, for queries. All of it can be made again from the log.
-- Times are nanoseconds since 1970, UTC; NULL until it happens.
CREATE TABLE position ( -- one row: the last record that is taken up
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  number   INTEGER NOT NULL,
  segment  INTEGER NOT NULL,
  start    INTEGER NOT NULL,
  hash     BLOB NOT NULL,
  last_key INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  begins   INTEGER NOT NULL -- the segment before which all were removed; 0 = none
);
CREATE TABLE calls (
  id                 INTEGER PRIMARY KEY,
  client             TEXT NOT NULL,
  tool_call_id       TEXT NOT NULL,
  agent_id           TEXT NOT NULL,
  conversation_id    TEXT NOT NULL,
  run_id             TEXT NOT NULL,
  step_id            TEXT NOT NULL,
  otid               TEXT NOT NULL,
  group_id           TEXT NOT NULL,
  sender_id          TEXT NOT NULL,
  workspace          TEXT NOT NULL,
  request_message_id TEXT NOT NULL,
  dialect            TEXT NOT NULL,
  tool_name          TEXT NOT NULL,
  canonical_tool     TEXT NOT NULL,
  args_hash          TEXT NOT NULL,
  background_of      TEXT NOT NULL,
  kept               TEXT NOT NULL,
  state              TEXT NOT NULL,
  decision_action    TEXT NOT NULL,
  decision_by        TEXT NOT NULL,
  decision_rule      TEXT NOT NULL,
  decision_source    TEXT NOT NULL,
  decision_reason    TEXT NOT NULL,
  decision_person    TEXT NOT NULL,
  decision_widened   TEXT NOT NULL,
  daemon             TEXT NOT NULL,
  process            TEXT NOT NULL,
  spool_dir          TEXT NOT NULL,
  status             TEXT NOT NULL,
  error_type         TEXT NOT NULL,
  exit_code          INTEGER,
  signal             TEXT NOT NULL,
  sandbox            TEXT NOT NULL,
  return_seq         INTEGER,
  received_at        INTEGER NOT NULL,
  decided_at         INTEGER,
  intended_at        INTEGER,
  started_at         INTEGER,
  returned_at        INTEGER,
  delivered_at       INTEGER,
  segment            INTEGER -- of the log in which it begins
);
CREATE INDEX calls_by_identity ON calls (client, agent_id, tool_call_id); -- several, of which only the last has started
CREATE TABLE arguments (call INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE messages (
  seq             INTEGER PRIMARY KEY,
  id              TEXT NOT NULL,
  ts              INTEGER NOT NULL,
  message_type    TEXT NOT NULL,
  direction       TEXT NOT NULL,
  client          TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  run_id          TEXT NOT NULL,
  step_id         TEXT NOT NULL,
  otid            TEXT NOT NULL,
  group_id        TEXT NOT NULL,
  sender_id       TEXT NOT NULL,
  tool_call_id    TEXT NOT NULL,
  status          TEXT NOT NULL,
  segment         INTEGER NOT NULL, -- of the log
  body            TEXT NOT NULL
);
CREATE TABLE fences (
  id           INTEGER PRIMARY KEY, -- in their order
  client       TEXT NOT NULL,
  tool_call_id TEXT NOT NULL
);
