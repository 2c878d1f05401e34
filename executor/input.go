package executor

import "sync"

// feed passes each input to control, and those for which control returns false to write, in order. It returns when
// input is closed and everything is written, or when done is closed. A blocked write does not delay control. The
// caller must end a blocked write when it closes done.
func feed(input <-chan Input, done <-chan struct{}, control func(Input) bool, write func(Input) bool) {
	data := make(chan Input)
	var writer sync.WaitGroup
	// Ends with feed.
	writer.Go(func() {
		for in := range data {
			taken := write(in)
			if in.Taken != nil {
				in.Taken(taken)
			}
		}
	})
	defer writer.Wait()
	defer close(data)
	var unread []Input
	for input != nil || len(unread) > 0 {
		var first Input
		var ready chan<- Input
		if len(unread) > 0 {
			first, ready = unread[0], data
		}
		select {
		case <-done:
			return
		case ready <- first:
			unread = unread[1:]
		case in, open := <-input:
			switch {
			case !open:
				input = nil
			case !control(in):
				unread = append(unread, in)
			}
		}
	}
}
