// Package letta connects conversations of Letta Code's App Server with a daemon: the model gets toold's tools, and
// Letta Code's own tools run only if the daemon allows it.
//
// It implements version 1 of the App Server's protocol (letta-ai/letta-code: src/types/protocol_v2.ts,
// external-tool-protocol.ts), tested with 0.32.18, and for http and https URLs the older message streams, after their
// source.
package letta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
)

// Options describes the server, the conversations and the daemon.
type Options struct {
	URL           string   // App Server: ws or wss; older protocol: http or https
	Token         string   // of the App Server; may be ""
	Agent         string   // id of the agent
	Conversations []string // ids, or "default"

	// AnswerAfter is when the App Server, whose limit is 300 s, gets an answer for a call that still runs.
	AnswerAfter time.Duration

	// Dial connects to the daemon for calls in dir, an absolute path.
	Dial func(ctx context.Context, dir string) (*client.Client, error)
	Dir  string // default directory of a conversation

	Say func(text string) // shows a message to a person
}

// errRefused is wrapped by errors for which a retry is useless.
var errRefused = errors.New("the server cannot be used")

const (
	firstPause = 500 * time.Millisecond
	mostPause  = 15 * time.Second
)

// Run serves the conversations until ctx ends, and reconnects when necessary. It returns an error if the server cannot
// be used or was never reached.
func Run(ctx context.Context, o Options) error {
	daemon := link.New(o.Dial)
	defer daemon.Close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	errs := make([]error, len(o.Conversations))
	for i, name := range o.Conversations {
		b := &bridge{Options: o, agent: o.Agent, conversation: name, daemon: daemon}
		all.Go(func() {
			defer b.calls.Wait()
			if errs[i] = b.run(ctx); errs[i] != nil {
				fail(errs[i]) // tools of this conversation would run without decisions
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *bridge) run(ctx context.Context) error {
	serve := b.serve
	if isHTTP(b.URL) {
		serve = b.serveStream
	}
	pause := firstPause
	for served := false; ; {
		began := time.Now()
		reached, err := serve(ctx)
		served = served || reached
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRefused) || !served:
			return err
		}
		if time.Since(began) > mostPause {
			pause = firstPause
		}
		b.Say(fmt.Sprintf("the connection to the server was lost (%v); trying again", err))
		if wait(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, mostPause)
	}
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
