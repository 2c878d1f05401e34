package journal

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"slices"
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
type checkpointEvent struct{ key, signature []byte }

func (e *checkpointEvent) fields(c *codec) {
	c.bytes(&e.key)
	c.bytes(&e.signature)
}

func checkpointOf(rec chain.Record, e *checkpointEvent) seal.Checkpoint {
	return seal.Checkpoint{Number: rec.Number - 1, Hash: rec.Before, Time: rec.Time, Key: e.key, Signature: e.signature}
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
	err = j.write.record(d, func(b *batch) error {
		before := b.log.Last()
		c = j.key.Checkpoint(before.Number, before.Hash, b.log.Time())
		err := b.append(kindCheckpoint, &checkpointEvent{c.Key, c.Signature})
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

// Checks is external evidence that Verify compares with a journal.
type Checks struct {
	Kept    Link                // record that must exist; may be zero
	Keys    []ed25519.PublicKey // only these may have signed, and one must have; none: any key
	Anchors []seal.Checkpoint   // kept elsewhere, also of other journals; nil: none
	// Output returns the checksum of a call's kept output, "" if it was removed; may be nil.
	Output func(Key) (string, error)
}

// Checkpoints says what is signed.
type Checkpoints struct {
	Count  int
	Signed uint64              // number of the last covered record
	Keys   []ed25519.PublicKey // in the order of their first checkpoint
	Met    int                 // matching anchors
	Older  int                 // anchors of records that were removed since
}

func newCheckpoints(checks Checks) *checkpoints {
	v := &checkpoints{Checks: checks, anchors: map[uint64][]seal.Checkpoint{}, failed: map[string]seal.Checkpoint{}, met: map[string]int{}}
	for _, a := range checks.Anchors {
		v.anchors[a.Number] = append(v.anchors[a.Number], a)
	}
	return v
}

// checkpoints verifies signatures and anchors. The errors are ErrTampered.
type checkpoints struct {
	Checks
	Checkpoints
	anchors map[uint64][]seal.Checkpoint // not matched yet, by number
	failed  map[string]seal.Checkpoint   // first mismatch by key
	met     map[string]int               // matches by key
	first   uint64                       // number of the first record seen
}

// add checks a record, and through its Before the previous one: the first of a segment is not
// passed on.
func (v *checkpoints) add(rec chain.Record) error {
	before := rec.Number - 1
	if v.first == 0 {
		v.first = rec.Number
	}
	for _, a := range v.anchors[before] {
		if a.Hash == rec.Before {
			v.met[string(a.Key)]++
		} else {
			v.failed[string(a.Key)] = a
		}
	}
	delete(v.anchors, before)
	if rec.Kind != kindCheckpoint {
		return nil
	}
	var e checkpointEvent
	if err := decode(rec.Body, &e, nil); err != nil {
		return tampered("the checkpoint in record number %d cannot be read: %v", rec.Number, err)
	}
	c := checkpointOf(rec, &e)
	known := func(k ed25519.PublicKey) bool { return k.Equal(c.Key) }
	switch {
	case !c.Valid():
		return tampered("the checkpoint in record number %d was not signed by the key that it names", rec.Number)
	case len(v.Checks.Keys) > 0 && !slices.ContainsFunc(v.Checks.Keys, known):
		return tampered("the checkpoint in record number %d was signed by another key (%s) than those that were given", rec.Number, seal.ID(c.Key))
	case !slices.ContainsFunc(v.Checkpoints.Keys, known):
		v.Checkpoints.Keys = append(v.Checkpoints.Keys, c.Key)
	}
	v.Count++
	v.Signed = before
	return nil
}

func (v *checkpoints) end() error {
	if v.Count == 0 && len(v.Checks.Keys) > 0 {
		return tampered("it has no checkpoint, so the key has signed nothing")
	}
	for _, list := range v.anchors {
		for _, a := range list {
			if a.Number+1 < v.first {
				v.Older++
			} else {
				v.failed[string(a.Key)] = a
			}
		}
	}
	for _, k := range v.Checkpoints.Keys {
		if a, failed := v.failed[string(k)]; failed {
			return tampered("record number %d is not the one that was anchored at %s", a.Number, a.Time.UTC().Format(time.RFC3339))
		}
		v.Met += v.met[string(k)]
	}
	if v.Met == 0 && v.Older > 0 {
		return fmt.Errorf("all anchors (%d) are of records that were removed: run toold audit anchor more often than limits.record_keep and limits.state_bytes remove records", v.Older)
	}
	if v.Met == 0 && v.Checks.Anchors != nil {
		return tampered("none of the %d anchors is signed by a key of this journal: it was made anew, or they are of others", len(v.Checks.Anchors))
	}
	return nil
}
