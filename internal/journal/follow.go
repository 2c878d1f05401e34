package journal

// Last returns the number of the last recorded message, or 0.
func (j *Journal) Last() int64 { return j.write.last.Load() }

// Follow makes added receive each message recorded from now on, in order. Messages of other processes arrive when this
// process reads or writes. added must not block, nor call the journal except Last.
func (j *Journal) Follow(added func(Message)) {
	j.write.known.Lock()
	defer j.write.known.Unlock()
	j.write.tell = added
}
