-- Calls that were cancelled before they came: one that comes with such an id does
-- not run. The highest id is the latest.
CREATE TABLE fences (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  client       TEXT NOT NULL,
  tool_call_id TEXT NOT NULL,
  UNIQUE (client, tool_call_id)
);
-- Background calls whose end no client has been told.
CREATE INDEX calls_untold ON calls (client) WHERE background_of <> '' AND state = 'returned';
