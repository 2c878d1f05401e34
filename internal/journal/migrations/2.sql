-- Of a call that runs on after the return of another: that other's tool_call_id.
ALTER TABLE calls ADD COLUMN background_of TEXT NOT NULL DEFAULT '';
