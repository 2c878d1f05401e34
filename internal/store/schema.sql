-- The records of journals, as they are there. Rows are only added.
CREATE TABLE toold_records (
	owner text NOT NULL DEFAULT session_user, -- the database user of the daemon, whatever role it takes on
	daemon text NOT NULL,                     -- the id of its journal
	number bigint NOT NULL,
	segment bigint NOT NULL, -- the part of the journal, and the place in it
	start bigint NOT NULL,
	record bytea NOT NULL,
	added timestamptz NOT NULL DEFAULT now(),
	-- Copies of what is in the record, to find it by. audit verify compares them.
	kind bigint NOT NULL, -- 1: a call was received
	time bigint NOT NULL, -- nanoseconds since 1970
	call bigint NOT NULL, -- 0: of no call
	client text NOT NULL,
	agent text NOT NULL,
	conversation text NOT NULL,
	run text NOT NULL,
	tool_call text NOT NULL,
	workspace text NOT NULL,
	tool text NOT NULL,
	type text NOT NULL,
	status text NOT NULL,
	decision text NOT NULL,
	decided_by text NOT NULL,
	hash bytea GENERATED ALWAYS AS (sha256(record)) STORED, -- all that a daemon reads of the record
	PRIMARY KEY (owner, daemon, number)
);
CREATE INDEX toold_records_parts ON toold_records (owner, daemon, segment, number);
CREATE INDEX toold_records_calls ON toold_records (time, owner, daemon, number) WHERE kind = 1;
CREATE INDEX toold_records_agents ON toold_records (agent, time) WHERE kind = 1 AND agent <> '';
CREATE INDEX toold_records_of_call ON toold_records (owner, daemon, call, number) WHERE call > 0;

-- Texts above 64 KiB, which records name by their hash.
CREATE TABLE toold_texts (
	owner text NOT NULL DEFAULT session_user,
	daemon text NOT NULL,
	segment bigint NOT NULL,
	hash bytea NOT NULL,
	text bytea NOT NULL,
	PRIMARY KEY (owner, daemon, segment, hash)
);

-- A user other than the owner of the tables sees and adds its own rows, as far as it may, and no others.
ALTER TABLE toold_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE toold_texts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON toold_records USING (owner = session_user) WITH CHECK (owner = session_user);
CREATE POLICY own ON toold_texts USING (owner = session_user) WITH CHECK (owner = session_user);
