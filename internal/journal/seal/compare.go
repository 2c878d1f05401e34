package seal

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"
)

// RemovedError says that all records to compare with were removed.
type RemovedError struct{ text string }

func (e *RemovedError) Error() string { return e.text }

// Link is the number and hash of a record, which imply all earlier records. The zero Link means none.
type Link struct {
	Number uint64
	Hash   [32]byte
}

// Checks is what was stored outside a journal to compare it with.
type Checks struct {
	Kept    Link                // record that must exist, or zero
	Keys    []ed25519.PublicKey // all signatures must be by these, and one must exist; none: any key
	Anchors []Checkpoint        // may include those of other journals; nil: none
}

// Found is what a Comparison has found.
type Found struct {
	Gone   uint64              // number of removed records at the beginning
	Count  int                 // of checkpoints
	Signed uint64              // number of the last covered record
	Keys   []ed25519.PublicKey // in the order of their first checkpoint
	Met    int                 // matching anchors
	Older  int                 // anchors of removed records
	Other  int                 // anchors of other journals
}

// Comparison compares the records of a journal, received in order, with Checks.
type Comparison struct {
	Found
	checks  Checks
	log     string // ID of the log; "" = unknown
	begun   bool
	kept    bool                    // checks.Kept was found, or is zero
	anchors map[uint64][]Checkpoint // not yet compared, by record number
	failed  map[string]Checkpoint   // first mismatch by origin
	met     map[string]int          // matches by origin
}

// Compare begins a Comparison with the journal of an ID.
func (c Checks) Compare(log string) *Comparison {
	v := &Comparison{log: log, checks: c, kept: c.Kept == Link{}, anchors: map[uint64][]Checkpoint{}, failed: map[string]Checkpoint{}, met: map[string]int{}}
	for _, a := range c.Anchors {
		v.anchors[a.Number] = append(v.anchors[a.Number], a)
	}
	return v
}

// origin returns "" for an anchor that names this journal, whatever its key; otherwise the key, which may be one of
// this journal.
func (v *Comparison) origin(a Checkpoint) string {
	if a.Log != "" && a.Log == v.log {
		return ""
	}
	return string(a.Key)
}

// Record compares the next record.
func (v *Comparison) Record(l Link) {
	if !v.begun {
		v.begun, v.Gone = true, l.Number-1
	}
	v.kept = v.kept || l == v.checks.Kept
	for _, a := range v.anchors[l.Number] {
		if a.Hash == l.Hash {
			v.met[v.origin(a)]++
		} else {
			v.failed[v.origin(a)] = a
		}
	}
	delete(v.anchors, l.Number)
}

// Checkpoint checks a checkpoint. Its record must directly follow the record that it signs.
func (v *Comparison) Checkpoint(c Checkpoint) error {
	known := func(k ed25519.PublicKey) bool { return k.Equal(c.Key) }
	switch {
	case !c.Valid():
		return fmt.Errorf("the checkpoint in record number %d was not signed by the key that it names", c.Number+1)
	case c.Log != "" && c.Log != v.log:
		return fmt.Errorf("the checkpoint in record number %d is of another journal (%.40q)", c.Number+1, c.Log)
	case len(v.checks.Keys) > 0 && !slices.ContainsFunc(v.checks.Keys, known):
		return fmt.Errorf("the checkpoint in record number %d was signed by another key (%s) than those that were given", c.Number+1, ID(c.Key))
	case !slices.ContainsFunc(v.Keys, known):
		v.Keys = append(v.Keys, c.Key)
	}
	v.Count++
	v.Signed = c.Number
	return nil
}

// End completes Found. The error is a *RemovedError, or says where the journal differs.
func (v *Comparison) End() error {
	kept := v.checks.Kept
	switch {
	case !v.kept && kept.Number <= v.Gone:
		return &RemovedError{fmt.Sprintf("record number %d was removed with its part of the journal, which begins with number %d now: keep a later link", kept.Number, v.Gone+1)}
	case !v.kept:
		return fmt.Errorf("record number %d is not the one that was noted", kept.Number)
	case v.Count == 0 && len(v.checks.Keys) > 0:
		return errors.New("it has no checkpoint, so the key has signed nothing")
	}
	for _, list := range v.anchors {
		for _, a := range list {
			if a.Number <= v.Gone {
				v.Older++
			} else {
				v.failed[v.origin(a)] = a
			}
		}
	}
	for _, k := range append([]ed25519.PublicKey{nil}, v.Keys...) {
		if a, failed := v.failed[string(k)]; failed {
			return fmt.Errorf("record number %d is not the one that was anchored at %s", a.Number, a.Time.UTC().Format(time.RFC3339))
		}
		v.Met += v.met[string(k)]
	}
	v.Other = len(v.checks.Anchors) - v.Met - v.Older
	if v.Met == 0 && v.Older > 0 {
		return &RemovedError{fmt.Sprintf("all anchors (%d) are of records that were removed: run toold audit anchor more often than limits.record_keep and limits.state_bytes remove records", v.Older)}
	}
	if v.Met == 0 && v.checks.Anchors != nil {
		return fmt.Errorf("none of the %d anchors is signed by a key of this journal: it was made anew, or they are of others", len(v.checks.Anchors))
	}
	return nil
}
