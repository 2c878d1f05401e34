package journal

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// durability is when a record is synced. A written record survives the daemon in any case.
type durability int

const (
	soon   durability = iota // within about laterAfter
	synced                   // before record returns
)

// laterAfter is how long a record waits so that others are written or synced with it.
const laterAfter = 20 * time.Millisecond

// lookFor is how long a reader waits for another process that writes.
const lookFor = 3 * time.Second

// recorder appends records. The goroutine that has the turn writes the records of all waiting goroutines, because one
// write and sync for many costs the same as for one.
type recorder struct {
	turn     chan struct{} // capacity 1; full while a goroutine writes
	log      *chain.Log    // nil if tampered is set
	batch    batch         // of the current turn; reused
	crowd    bool          // the last write served several callers; guarded by turn
	tampered error         // why the log is not open; nil if it is
	texts    texts
	signed   atomic.Pointer[signed] // last record that needs no further checkpoint
	appended atomic.Bool            // this process has appended records
	changed  func()                 // called when the index may need saving

	index   *index
	known   sync.RWMutex // guards table; taken after turn
	table   *table
	settled uint64              // number of the last record at the last settle
	tell    func(added Message) // see Journal.Follow; may be nil
	grew    func(bytes int64)   // see Journal.Bound; called with the turn

	last   atomic.Int64 // number of the last message
	synced atomic.Pointer[func(time.Duration, error)]
	health health
	alarm  alarm // writes late tasks and syncs

	mu    sync.Mutex
	queue []*task // not started, in order
	late  []*task // tasks that no caller waits for
}

type task struct {
	do     func(*batch) error
	failed func(error)   // of a late task
	err    error         // valid once done is closed
	number uint64        // last record written with it
	done   chan struct{} // nil for a late task
}

// unsyncedError says that records are visible but could not be synced, or that it is unknown whether they were
// written.
type unsyncedError struct{ error }

func (e *unsyncedError) Unwrap() error { return e.error }

func newRecorder() *recorder {
	r := &recorder{turn: make(chan struct{}, 1), changed: func() {}, grew: func(int64) {}}
	r.alarm.after = laterAfter
	r.alarm.do = func() {
		r.flush()
		r.extend()
		if err := r.sync(r.end().Number); err != nil {
			r.health.wrote(err)
		}
		r.changed()
	}
	return r
}

// see applies a record that another process has appended.
func (r *recorder) see(rec chain.Record) error {
	r.known.Lock()
	defer r.known.Unlock()
	if rec.Number <= r.table.number {
		return nil
	}
	e, err := decodeRecord(rec, r.texts)
	if err != nil {
		return err
	}
	if rec.Kind == kindCheckpoint {
		r.signed.Store(&signed{rec.Mark, rec.Time})
	}
	r.table.apply(e, rec.Number, rec.Time)
	r.table.commit()
	r.take(taken{e, rec.Mark, rec.Before, rec.Time})
	if rec.Number%forgetEvery == 0 {
		r.table.forget(rec.Number)
	}
	return nil
}

// forgetEvery is how many records are read before ended calls are dropped.
const forgetEvery = 4096

// take indexes a record that the table has, and passes its messages to tell. The caller holds known.
func (r *recorder) take(t taken) {
	var call *Call
	if e := r.table.calls[callOf(t.event)]; e != nil {
		call = &e.Call
	}
	r.index.add(t, call)
	if r.tell == nil {
		r.last.Store(r.table.lastSeq)
		return
	}
	for _, m := range t.messages(call) {
		r.last.Store(m.Seq)
		r.tell(m)
	}
}

func (t taken) messages(call *Call) []Message {
	switch e := t.event.(type) {
	case *callEvent:
		if e.answer != nil {
			return []Message{e.message(t.time), e.answer.message(&e.call, t.time)}
		}
		return []Message{e.message(t.time)}
	case *returnEvent:
		if call != nil {
			return []Message{e.message(call, t.time)}
		}
	case *messageEvent:
		return []Message{e.m}
	}
	return nil
}

// record calls do, which appends records, together with the tasks of other callers. If do fails it must not append.
// The error is an *unsyncedError if the records could not be synced or may have been written.
func (r *recorder) record(d durability, do func(*batch) error) error {
	t := &task{do: do}
	select {
	case r.turn <- struct{}{}:
		r.commit(append(r.gathered(), t))
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

func (r *recorder) wait(t *task) {
	t.done = make(chan struct{})
	r.mu.Lock()
	r.queue = append(r.queue, t)
	r.mu.Unlock()
	select {
	case <-t.done:
	case r.turn <- struct{}{}:
		if tasks := r.gathered(); len(tasks) > 0 {
			r.commit(tasks)
		}
		<-r.turn
	}
	<-t.done
}

// gathered takes the queued tasks. If the last write served several callers, it first yields, so that others can queue
// theirs: one write for many costs the same as for one. The caller has the turn.
func (r *recorder) gathered() []*task {
	if r.crowd {
		runtime.Gosched()
	}
	tasks := r.waiting(false)
	r.crowd = len(tasks) > 0
	return tasks
}

// later queues a task that is written within laterAfter, or before the next read. failed receives any error.
func (r *recorder) later(do func(*batch) error, failed func(error)) {
	r.mu.Lock()
	r.late = append(r.late, &task{do: do, failed: failed})
	r.mu.Unlock()
	r.alarm.set()
}

// waiting takes the tasks that have not started; with all, also the late ones.
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

func (r *recorder) extend() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.log != nil {
		_ = r.log.Extend()
	}
}

// look reads the records that other processes have appended, and writes late tasks. The error is ErrBusy if another
// process holds the lock for lookFor.
func (r *recorder) look() error {
	if r.log == nil {
		return r.tampered
	}
	select {
	case r.turn <- struct{}{}:
	case <-time.After(lookFor):
		return ErrBusy
	}
	defer func() { <-r.turn }()
	switch err := r.log.CatchUp(lookFor); {
	case errors.Is(err, chain.ErrBusy):
		return ErrBusy
	case err != nil:
		return err
	}
	if tasks := r.waiting(true); len(tasks) > 0 {
		r.commit(tasks)
	}
	return nil
}

// end returns the last record of the log or, if it is not open, of the index. It is safe for concurrent use.
func (r *recorder) end() chain.Mark {
	if r.log == nil {
		return r.index.last()
	}
	return r.log.Last()
}

func (r *recorder) sync(number uint64) error {
	if r.log == nil {
		return r.tampered
	}
	return r.log.Sync(number)
}

// commit runs the tasks and writes what they append. If it cannot get the lock, tasks queued meanwhile fail too. The
// caller has the turn.
func (r *recorder) commit(tasks []*task) {
	err := r.write(tasks)
	if errors.Is(err, chain.ErrBusy) {
		tasks = append(tasks, r.waiting(false)...)
	}
	r.health.wrote(err)
	for _, t := range tasks {
		if t.number = r.end().Number; err != nil {
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

// write appends the records of the tasks, all or none. The caller has the turn.
func (r *recorder) write(tasks []*task) error {
	if r.log == nil {
		return r.tampered
	}
	return r.wrote(r.log.Update(func(log *chain.Batch) error {
		r.known.Lock() // until it is known whether they are recorded
		r.batch.begin(r.table, log)
		for _, t := range tasks {
			t.err = t.do(&r.batch)
		}
		return nil
	}))
}

// remove removes the segments before the one that choose returns, after writing what choose appends.
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

// wrote applies what a batch has appended to the log, or rolls it back. The caller has the turn.
func (r *recorder) wrote(err error) error {
	b := &r.batch
	defer b.end()
	if b.log != nil {
		defer r.known.Unlock()
	}
	if r.table.number > r.log.Last().Number {
		r.table.rollback()
		return err
	}
	r.table.commit()
	for _, t := range b.taken {
		r.take(t)
	}
	if len(b.taken) > 0 {
		r.appended.Store(true)
		r.grew(b.log.Bytes())
	}
	return err
}

func (r *recorder) present() error {
	if r.log == nil {
		return r.tampered
	}
	return r.log.Present()
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
