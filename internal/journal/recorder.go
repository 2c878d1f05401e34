package journal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// durability says when a record is on the disk. Once it is in the log it outlives the
// daemon in any case.
type durability int

const (
	soon   durability = iota // within about laterAfter
	synced                   // before its writer goes on
)

// laterAfter is how long a record for which nobody waits may wait for others to be written
// with it, and how long one that is soon on the disk may wait for that.
const laterAfter = 20 * time.Millisecond

// lookFor is how long a reader waits for a process that is writing.
const lookFor = 3 * time.Second

// recorder appends what several callers want to record. Whoever has its turn writes what
// all the others wait for as well: a write and a sync cost the same for one as for many.
type recorder struct {
	turn     chan struct{} // capacity 1; full while somebody writes
	log      *chain.Log    // nil when it has lost something, which tampered then says
	batch    batch         // of whoever has the turn; its slices are used again
	tampered error
	texts    texts
	end      atomic.Pointer[chain.Mark] // the last record; nil before there is a table
	signed   atomic.Pointer[signed]     // what needs no further checkpoint
	appended atomic.Bool                // whether this process has
	changed  func()                     // is called when there is something that the index does not have

	index *index
	known sync.RWMutex // of what is recorded; taken by one that has the turn, or by a reader
	table *table
	tell  func(added Message) // nil: no one
	grew  func(bytes int64)   // of Bound; called by one that has the turn

	last   atomic.Int64 // number of the last message
	synced atomic.Pointer[func(time.Duration, error)]
	health health
	alarm  alarm // writes what nobody waits for, and syncs

	mu    sync.Mutex
	queue []*task // not begun, in their order
	late  []*task // those for which nobody waits
}

type task struct {
	do     func(*batch) error
	failed func(error)   // of a task for which nobody waits
	err    error         // valid when it is done, as is
	number uint64        // of the last record that was written with it
	done   chan struct{} // nil for one that nobody waits for
}

// unsyncedError says that something was recorded, and others can read it, but that it could
// not be brought to the disk.
type unsyncedError struct{ error }

func (e *unsyncedError) Unwrap() error { return e.error }

func newRecorder() *recorder {
	r := &recorder{turn: make(chan struct{}, 1), changed: func() {}, grew: func(int64) {}}
	r.alarm.after = laterAfter
	r.alarm.do = func() {
		r.flush()
		r.extend()
		if err := r.sync(r.end.Load().Number); err != nil {
			r.health.wrote(err)
		}
		r.changed()
	}
	return r
}

// see takes up a record that another process appended. It is a fact: nothing takes it back.
func (r *recorder) see(rec chain.Record) error {
	r.known.Lock()
	defer r.known.Unlock()
	if rec.Number <= r.table.number {
		return nil // the index has it
	}
	e, err := decodeRecord(rec, r.texts)
	if err != nil {
		return err
	}
	if rec.Kind == kindCheckpoint {
		r.signed.Store(&signed{rec.Mark, rec.Time})
	}
	added := r.table.apply(e, rec.Number, rec.Time)
	r.table.commit()
	r.take(taken{e, rec.Mark, rec.Before, rec.Time})
	if rec.Number%forgetEvery == 0 {
		r.table.forget(rec.Number)
	}
	r.passOn(added)
	return nil
}

// forgetEvery is how many records are read before the calls that have ended are forgotten.
const forgetEvery = 4096

// take has the index take up a record that the table has.
func (r *recorder) take(t taken) {
	var call *Call
	if k := callOf(t.event); k != 0 {
		if e := r.table.calls[k]; e != nil {
			call = &e.Call
		}
	}
	r.index.add(t, call)
}

// passOn tells of messages that are in the log.
func (r *recorder) passOn(added []Message) {
	for _, m := range added {
		r.last.Store(m.Seq)
		if r.tell != nil {
			r.tell(m)
		}
	}
}

// record has do append to the log, together with what others append. do may see the table; when
// it fails it must not have appended. The error is an *unsyncedError when what was appended
// cannot be brought to the disk.
func (r *recorder) record(d durability, do func(*batch) error) error {
	t := &task{do: do}
	select {
	case r.turn <- struct{}{}:
		r.commit(append(r.waiting(false), t))
		<-r.turn
	default:
		r.wait(t)
	}
	switch {
	case errors.Is(t.err, chain.ErrUnsure):
		return &unsyncedError{t.err}
	case t.err != nil:
		return t.err
	case d == synced:
		if err := r.sync(t.number); err != nil {
			r.health.wrote(err)
			return &unsyncedError{err}
		}
		r.changed()
		return nil
	}
	r.alarm.set()
	return nil
}

// wait has whoever gets the turn first do a task.
func (r *recorder) wait(t *task) {
	t.done = make(chan struct{})
	r.mu.Lock()
	r.queue = append(r.queue, t)
	r.mu.Unlock()
	select {
	case <-t.done:
	case r.turn <- struct{}{}:
		if tasks := r.waiting(false); len(tasks) > 0 {
			r.commit(tasks)
		}
		<-r.turn
	}
	<-t.done
}

// later is record for what nobody waits for: it is written laterAfter from now, or when
// somebody wants to read. failed is called when it cannot be.
func (r *recorder) later(do func(*batch) error, failed func(error)) {
	r.mu.Lock()
	r.late = append(r.late, &task{do: do, failed: failed})
	r.mu.Unlock()
	r.alarm.set()
}

// waiting takes the tasks that have not begun: all, or those with a waiter.
func (r *recorder) waiting(all bool) []*task {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := r.queue
	r.queue = nil
	if all {
		tasks = append(tasks, r.late...)
		r.late = nil
	}
	return tasks
}

func (r *recorder) flush() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if tasks := r.waiting(true); len(tasks) > 0 {
		r.commit(tasks)
	}
}

// extend has the log make room for later records, while no one waits. Without it their syncs
// take longer.
func (r *recorder) extend() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.log != nil {
		_ = r.log.Extend()
	}
}

// look reads what other processes have appended, and writes what waits, unless another
// process has the lock for longer than a reader should wait.
func (r *recorder) look() error {
	if r.log == nil {
		return r.tampered
	}
	late := time.NewTimer(lookFor)
	defer late.Stop()
	select {
	case r.turn <- struct{}{}:
	case <-late.C:
		return chain.ErrBusy
	}
	defer func() { <-r.turn }()
	if err := r.log.CatchUp(lookFor); err != nil {
		return err
	}
	r.ended()
	if tasks := r.waiting(true); len(tasks) > 0 {
		r.commit(tasks)
	}
	return nil
}

// ended notes the last record. The caller has the turn.
func (r *recorder) ended() {
	last := r.log.Last()
	r.end.Store(&last)
}

func (r *recorder) sync(number uint64) error {
	if r.log == nil {
		return r.tampered
	}
	return r.log.Sync(number)
}

// commit does the tasks and writes what they append. Those that came while it waited in vain
// for the lock of another process have waited for the same, and fail too. The caller has the
// turn.
func (r *recorder) commit(tasks []*task) {
	err := r.write(tasks)
	if errors.Is(err, chain.ErrBusy) {
		tasks = append(tasks, r.waiting(false)...)
	}
	r.health.wrote(err)
	for _, t := range tasks {
		if t.number = r.end.Load().Number; err != nil {
			t.err = err
		}
		if t.done != nil {
			close(t.done)
		}
		if t.err != nil && t.failed != nil {
			t.failed(t.err)
		}
	}
}

// write does the tasks, and appends all or nothing. The caller has the turn.
func (r *recorder) write(tasks []*task) error {
	if r.log == nil {
		return r.tampered
	}
	return r.wrote(r.log.Update(func(log *chain.Batch) error {
		r.known.Lock() // until it is certain that all of it is recorded
		r.batch.begin(r.table, log)
		for _, t := range tasks {
			t.err = t.do(&r.batch)
		}
		return nil
	}))
}

// remove removes the oldest segments, up to the one that choose returns. What choose appends
// is recorded before.
func (r *recorder) remove(choose func(b *batch, first, last uint32) (stays uint32, err error)) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.log == nil {
		return r.tampered
	}
	return r.wrote(r.log.Remove(func(log *chain.Batch, first, last uint32) (uint32, error) {
		r.known.Lock()
		r.batch.begin(r.table, log)
		return choose(&r.batch, first, last)
	}))
}

// wrote takes up what a batch has appended, or takes it back. The caller has the turn.
func (r *recorder) wrote(err error) error {
	b := &r.batch
	defer b.end()
	if b.log != nil {
		defer r.known.Unlock()
	}
	r.ended()
	if r.table.number > r.log.Last().Number {
		r.table.rollback()
		return gone(err)
	}
	r.table.commit()
	for _, t := range b.taken {
		r.take(t)
	}
	if len(b.taken) > 0 {
		r.appended.Store(true)
		r.grew(b.log.Bytes())
	}
	r.passOn(b.fresh)
	return gone(err)
}

// present returns an error unless the log is where it was opened.
func (r *recorder) present() error {
	if r.log == nil {
		return r.tampered
	}
	return gone(r.log.Present())
}

// gone makes the error of a log that is not there the one of this package.
func gone(err error) error {
	if errors.Is(err, chain.ErrGone) {
		return ErrGone
	}
	return err
}

func decodeRecord(rec chain.Record, t texts) (event, error) {
	e := newEvent(rec.Kind)
	if e == nil {
		return nil, fmt.Errorf("record number %d of the journal is of kind %d: a newer toold wrote it; update toold", rec.Number, rec.Kind)
	}
	if err := decode(rec.Body, e, t.of(rec.Segment)); err != nil {
		return e, fmt.Errorf("cannot read record number %d of the journal: %w", rec.Number, err)
	}
	return e, nil
}

// callOf is the call, recorded before, that an event changes; 0 when it changes none.
func callOf(e event) Key {
	switch e := e.(type) {
	case *decisionEvent:
		return Key(e.key)
	case *startedEvent:
		return Key(e.key)
	case *returnEvent:
		return Key(e.key)
	case *deliveredEvent:
		return Key(e.key)
	case *adoptedEvent:
		return Key(e.key)
	}
	return 0
}
