package helper

// starter is the main thread of a helper, which starts the processes of the calls, and does nothing else. What it is
// restricted by, they inherit; the other threads are not.
type starter struct {
	jobs chan func()
	done chan struct{}

	restricted bool   // restrict was called
	threads    uint32 // threadCount when the filters were installed
	listener   int    // of its filter, for the brokers of the calls; -1 = local sockets are refused
	over       int    // see broker
}

func newStarter() *starter {
	return &starter{jobs: make(chan func()), done: make(chan struct{}), listener: -1}
}

// serve runs jobs for ever. The caller must have locked its thread.
func (t *starter) serve() {
	for do := range t.jobs {
		do()
		t.done <- struct{}{}
	}
}

// run runs do on the thread of serve.
func (t *starter) run(do func()) {
	t.jobs <- do
	<-t.done
}
