-- Of a decision by a person: whose token answered, and what that answer has added to
-- the sandbox of this one call, as JSON. Empty for others.
ALTER TABLE calls ADD COLUMN decision_person TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN decision_widened TEXT NOT NULL DEFAULT '';
