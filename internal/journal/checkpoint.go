package journal

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
)

// A checkpoint is appended after so many records, so long after the last one, in each segment, and
// when a writer stops.
const (
	checkpointEvery = 1000
	checkpointAfter = 10 * time.Minute
)

const keyName = "key"

// checkpointEvent is kindCheckpoint. It signs the number, hash and time that its record contains
// anyway: of the previous record, and its own time.
type checkpointEvent struct {
	key, signature []byte
	log            string // "" in older ones
}

func (e *checkpointEvent) fields(c *codec) {
	c.bytes(&e.key)
	c.bytes(&e.signature)
	c.text(&e.log)
}

// signed is the last record that needs no further checkpoint, and since when.
type signed struct {
	chain.Mark
	at time.Time
}

// Key returns the key that signs checkpoints.
func (j *Journal) Key() seal.Key { return j.key }

// Checkpoint appends a signed checkpoint of all records so far and syncs it.
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

// checkpointWhenDue appends a checkpoint if one is due. The next write reports any error.
func (j *Journal) checkpointWhenDue() {
	end, last := j.write.end(), *j.write.signed.Load()
	switch {
	case end.Number <= last.Number:
	case end.Segment != last.Segment, end.Number-last.Number >= checkpointEvery, time.Since(last.at) >= checkpointAfter:
		_, _ = j.checkpoint(soon)
	}
}

// CheckpointRest signs what this process has recorded. Close does so too.
func (j *Journal) CheckpointRest() {
	if j.write.appended.Load() && j.write.end().Number > j.write.signed.Load().Number {
		_, _ = j.checkpoint(soon) // the next process to stop signs it
	}
}

func keyPath(dir string) string { return filepath.Join(notesDir(dir), keyName) }
