package journal

// Last returns the number of the last message recorded, 0 when there is none.
func (j *Journal) Last() int64 { return j.write.last.Load() }

// Follow calls added for each message that is recorded from now on, in order; those of other
// processes when this one writes or queries. added must not block, nor call the journal but Last.
func (j *Journal) Follow(added func(Message)) {
	j.write.known.Lock()
	defer j.write.known.Unlock()
	j.write.tell = added
}
