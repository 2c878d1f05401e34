-- What queries look up. It is made when the tables are filled for the first time, which is
-- several times as fast. A query uses a partial index only when it has the same words.
CREATE INDEX IF NOT EXISTS calls_by_id ON calls (tool_call_id);
CREATE INDEX IF NOT EXISTS calls_untold ON calls (client) WHERE background_of <> '' AND state = 'returned';
CREATE INDEX IF NOT EXISTS calls_open ON calls (id) WHERE return_seq IS NULL;
CREATE INDEX IF NOT EXISTS calls_ended ON calls (client) WHERE return_seq IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_ran ON calls (client, agent_id, conversation_id) WHERE return_seq IS NOT NULL AND spool_dir <> '';
CREATE INDEX IF NOT EXISTS calls_by_agent ON calls (agent_id);
CREATE INDEX IF NOT EXISTS calls_by_workspace ON calls (workspace);
CREATE INDEX IF NOT EXISTS calls_by_tool ON calls (canonical_tool);
CREATE INDEX IF NOT EXISTS calls_denied ON calls (id) WHERE decision_action = 'deny';
CREATE INDEX IF NOT EXISTS calls_asked ON calls (id) WHERE decision_by IN ('person', 'beforehand', 'deadline') OR decision_action = 'ask';
CREATE INDEX IF NOT EXISTS messages_by_id ON messages (id);
CREATE INDEX IF NOT EXISTS messages_by_agent ON messages (agent_id, seq) WHERE agent_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_conversation ON messages (conversation_id, seq) WHERE conversation_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_run ON messages (run_id, seq) WHERE run_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_step ON messages (step_id, seq) WHERE step_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_otid ON messages (otid, seq) WHERE otid <> '';
CREATE INDEX IF NOT EXISTS messages_by_group ON messages (group_id, seq) WHERE group_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_sender ON messages (sender_id, seq) WHERE sender_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_call ON messages (tool_call_id, seq) WHERE tool_call_id <> '';
CREATE INDEX IF NOT EXISTS messages_by_client ON messages (client);
CREATE INDEX IF NOT EXISTS messages_by_type ON messages (message_type) WHERE message_type NOT IN ('approval_request_message', 'tool_return_message');
CREATE INDEX IF NOT EXISTS messages_by_status ON messages (status) WHERE status NOT IN ('', 'success');
