package journal

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
)

// A checkpoint is appended after checkpointEvery records, checkpointAfter the last checkpoint, in each new segment,
// and when a writer stops.
const (
	checkpointEvery = 1000
	checkpointAfter = 10 * time.Minute
)

const keyName = "key"

// checkpointEvent is kindCheckpoint. Its signature covers the number and hash of the previous record and the time of
// its own, which the record contains anyway.
type checkpointEvent struct {
	key, signature []byte
	log            string // "" in checkpoints of older versions
}

func (e *checkpointEvent) fields(c *codec) {
	c.bytes(&e.key)
	c.bytes(&e.signature)
	c.text(&e.log)
}

// signed is the last record that needs no further checkpoint, and when it was signed.
type signed struct {
	chain.Mark
	at time.Time
}

// Key returns the key that signs checkpoints.
func (j *Journal) Key() seal.Key { return j.key }

// Checkpoint appends and syncs a signed checkpoint of all records so far.
func (j *Journal) Checkpoint() (seal.Checkpoint, error) {
	c, err := j.checkpoint(synced)
	if err != nil {
		return c, fmt.Errorf("cannot record a checkpoint: %w", err)
	}
	return c, nil
}

func (j *Journal) checkpoint(d durability) (c seal.Checkpoint, err error) {
	var own chain.Mark
	id, err := j.ID()
	if err != nil {
		return c, err
	}
	err = j.write.record(d, func(b *batch) error {
		before := b.log.Last()
		c = j.key.Checkpoint(id, before.Number, before.Hash, b.log.Time())
		err := b.append(kindCheckpoint, &checkpointEvent{c.Key, c.Signature, c.Log})
		own = b.log.Last()
		return err
	})
	if err == nil {
		j.write.signed.Store(&signed{own, time.Now()})
	}
	return c, err
}

// checkpointWhenDue appends a checkpoint if one is due. An error recurs with the next write, which reports it.
func (j *Journal) checkpointWhenDue() {
	end, last := j.write.end(), *j.write.signed.Load()
	switch {
	case end.Number <= last.Number:
	case end.Segment != last.Segment, end.Number-last.Number >= checkpointEvery, time.Since(last.at) >= checkpointAfter:
		_, _ = j.checkpoint(soon)
	}
}

// CheckpointRest signs the records of this process that no checkpoint covers. Close calls it.
func (j *Journal) CheckpointRest() {
	if j.write.appended.Load() && j.write.end().Number > j.write.signed.Load().Number {
		_, _ = j.checkpoint(soon) // the next process that stops signs them
	}
}

func keyPath(dir string) string { return filepath.Join(notesDir(dir), keyName) }
