-- Who else works with the agent, and who has it do so. Their hash covers them where one
-- is not empty, so messages from before keep theirs.
ALTER TABLE messages ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN sender_id TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN sender_id TEXT NOT NULL DEFAULT '';
CREATE INDEX messages_by_group ON messages (group_id, seq) WHERE group_id <> '';
CREATE INDEX messages_by_sender ON messages (sender_id, seq) WHERE sender_id <> '';
