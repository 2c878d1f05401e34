package journal

import (
	"context"
	"sync/atomic"
)

// news passes on what is committed. Its fields but last are for whoever has the turn.
type news struct {
	last  atomic.Int64        // number of the last message committed
	fresh []Message           // appended by the transaction under way
	tell  func(added Message) // nil: no one
}

// passOn is called when the transaction has been committed.
func (n *news) passOn() {
	for _, m := range n.fresh {
		n.last.Store(m.Seq)
		if n.tell != nil {
			n.tell(m)
		}
	}
	n.fresh = nil
}

// Last returns the number of the last message committed, 0 when there is none.
func (j *Journal) Last() int64 { return j.write.news.last.Load() }

// Follow calls added for each message committed from now on, in the order of their
// numbers. It replaces an earlier one. added must not block and must not call the journal,
// other than Last, which is the number of the message or higher.
func (j *Journal) Follow(added func(Message)) {
	j.write.turn <- struct{}{}
	j.write.news.tell = added
	<-j.write.turn
}

// findLast sets the number of the last message.
func (j *Journal) findLast(ctx context.Context) error {
	var seq int64
	err := j.read.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM messages").Scan(&seq)
	j.write.news.last.Store(seq)
	return err
}
