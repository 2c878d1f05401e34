-- What each transaction left behind, in the order of transactions: hashes of the calls
-- that it changed, and the last message; see seal.go.
CREATE TABLE seals (
  seq  INTEGER PRIMARY KEY,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
);
