package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/statedir"
)

// A process that was killed holds its locks and addresses a moment longer, as do its
// children until they have executed their program.
const (
	releaseWithin = 2 * time.Second
	releaseEvery  = 20 * time.Millisecond
)

// released calls try until its error is none that taken knows, for as long as a killed
// daemon may hold what try wants.
func released(ctx context.Context, try func() error, taken func(error) bool) error {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	for begun := time.Now(); ; {
		err := try()
		if err == nil || !taken(err) || time.Since(begun) > releaseWithin {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// lockState takes the right to serve the state directory.
func lockState(ctx context.Context, cfg config.Config) (lock *statedir.Lock, err error) {
	if err := makeStateDir(cfg); err != nil {
		return nil, err
	}
	err = released(ctx, func() error { lock, err = statedir.Serve(cfg.StateDir); return err }, func(err error) bool {
		var served *statedir.ServedError
		return errors.As(err, &served)
	})
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	return lock, nil
}

// listenOn listens on a TCP address.
func listenOn(ctx context.Context, address string) (l net.Listener, err error) {
	err = released(ctx, func() error { l, err = loopback.Listen("tcp", address); return err }, inUse)
	if err != nil {
		return nil, &exitError{exitFailed, fmt.Errorf("cannot listen on %s: %w; is another toold running? choose another address with --listen, e.g. --listen 127.0.0.1:0", address, err)}
	}
	return l, nil
}

func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
