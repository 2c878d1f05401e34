package journal

// Last returns the number of the last message recorded, 0 when there is none.
func (j *Journal) Last() int64 { return j.write.last.Load() }

// Follow calls added for each message that is recorded from now on, in the order of their
// numbers; those of other processes are among them when this one writes or queries. It
// replaces an earlier one. added must not block and must not call the journal, other than
// Last, which is the number of the message or higher.
func (j *Journal) Follow(added func(Message)) {
	j.write.known.Lock()
	defer j.write.known.Unlock()
	j.write.tell = added
}
