// Package letta connects conversations of an App Server of Letta Code with a toold daemon:
// the server's model gets toold's tools, and the tools that Letta Code has itself run only
// where the daemon allows it.
//
// It speaks version 1 of the App Server's protocol (letta-ai/letta-code:
// src/types/protocol_v2.ts and external-tool-protocol.ts), observed with 0.32.18, and, with a
// server of http:// or https://, the older protocol of message streams, by its source.
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

// Options say what is connected.
type Options struct {
	URL           string   // of the server: ws:// or wss:// of an App Server, or http:// or https://
	Token         string   // capability token of the App Server; "" = none
	Agent         string   // its id
	Conversations []string // their ids, or "default"

	// AnswerAfter is when an App Server, which gives up after 300 s, gets an answer to a call
	// that still runs.
	AnswerAfter time.Duration

	// Dial connects to the daemon. Calls of the connection work in dir, an absolute path.
	Dial func(ctx context.Context, dir string) (*client.Client, error)
	Dir  string // for a conversation of which no directory is known

	Say func(text string) // what a person should know
}

// errRefused is wrapped by errors that another attempt does not change.
var errRefused = errors.New("the server cannot be used")

// Attempts to connect, and to send the same again, are a pause apart, which doubles.
const (
	firstPause = 500 * time.Millisecond
	mostPause  = 15 * time.Second
)

// Run serves the conversations until ctx ends, and connects again when a connection to the
// App Server was lost. It returns an error when the server cannot be used, or was never
// reached.
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
				fail(errs[i]) // one that is not served would run its tools unasked
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// run serves one conversation, on a connection of its own.
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
