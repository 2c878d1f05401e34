// Package statedir locks a state directory and records where its daemon can be reached.
//
// Processes lock bytes of the empty file "lock" with open file description locks (F_OFD_SETLK), which the kernel
// releases when a process ends and which work across containers. The daemon that serves the directory locks byte 0.
// Each process that records calls locks another byte, which depends on its name (Hold).
//
// "daemon.json" contains the addresses of the daemon. It exists only while the daemon listens there, since clients send
// their tokens to these addresses, and is valid only while byte 0 is locked.
package statedir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	lockName   = "lock"
	daemonName = "daemon.json"
)

// Daemon is the content of daemon.json.
type Daemon struct {
	PID         int    `json:"pid"` // in its own pid namespace
	Version     string `json:"version"`
	URL         string `json:"url"`                   // of its WebSocket, e.g. ws://127.0.0.1:7717/v1/ws
	Socket      string `json:"socket,omitempty"`      // path of its Unix socket
	Certificate string `json:"certificate,omitempty"` // path of the certificate of a wss URL
	Background  bool   `json:"background,omitempty"`  // internal/service started it
	Policy      string `json:"policy,omitempty"`      // a path, with its links, or a name; "" = unknown
	File        string `json:"config,omitempty"`      // path without links or name of its configuration; "" = unknown
}

// ServedError means that another daemon serves the directory.
type ServedError struct {
	Dir    string
	Daemon Daemon // zero if it has not published itself yet
}

func (e *ServedError) Error() string {
	if e.Daemon == (Daemon{}) {
		return fmt.Sprintf("cannot serve the state directory %s: another toold, which is starting or ending, has locked it", e.Dir)
	}
	return fmt.Sprintf("cannot serve the state directory %s: another toold (pid %d) serves it at %s; use that one, or choose another directory with --state-dir", e.Dir, e.Daemon.PID, e.Daemon.URL)
}

// Lock is the right to serve a directory.
type Lock struct {
	dir  string
	file *os.File
}

// Serve acquires the right to serve dir until Close or the end of the process. The error is a *ServedError if another
// process has it.
func Serve(dir string) (*Lock, error) {
	f, err := openLock(dir, true)
	if err != nil {
		return nil, err
	}
	switch locked, err := lockByte(f, 0, true); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot lock the state directory %s: %w", dir, err), f.Close())
	case !locked:
		served := &ServedError{Dir: dir}
		served.Daemon, _ = read(dir) // optional in the message
		return nil, errors.Join(served, f.Close())
	}
	l := &Lock{dir, f}
	if err := l.Withdraw(); err != nil { // a killed daemon left it
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// Publish writes daemon.json.
func (l *Lock) Publish(d Daemon) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, daemonName)
	err = os.WriteFile(path+".new", append(text, '\n'), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("cannot write where the daemon is reached: %w", err)
	}
	return nil
}

// Replace writes a file atomically.
func Replace(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".toold-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a failure
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Withdraw removes daemon.json. It must be called before the daemon stops listening: another program may take the
// address then.
func (l *Lock) Withdraw() error {
	err := os.Remove(filepath.Join(l.dir, daemonName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close removes daemon.json and releases the right. A nil Lock does nothing.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.Withdraw(), l.file.Close())
}

// Head returns the directory, next to a state directory, that records the end of its journal.
func Head(dir string) string { return filepath.Clean(dir) + ".head" }

// Running returns the daemon that serves dir. ok is false if there is none, or it has not published itself yet.
func Running(dir string) (d Daemon, ok bool, err error) {
	is, err := Served(dir)
	if !is || err != nil {
		return Daemon{}, false, err
	}
	switch d, err = read(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return Daemon{}, false, nil
	case err != nil:
		return Daemon{}, false, fmt.Errorf("cannot read where the daemon of %s is reached: %w", dir, err)
	}
	return d, true, nil
}

// Left returns the daemon that last served dir if it ended without Close, as one that was killed, and when dir was last
// written. It does not look whether the daemon still runs.
func Left(dir string) (d Daemon, last time.Time, ok bool) {
	d, err := read(dir)
	if err != nil {
		return d, last, false
	}
	written, _ := filepath.Glob(filepath.Join(dir, "journal", "*"))
	for _, path := range append(written, filepath.Join(dir, daemonName)) {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return d, last, true
}

func read(dir string) (d Daemon, err error) {
	text, err := os.ReadFile(filepath.Join(dir, daemonName))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
}

// Hold marks a process as alive under a name that no other process has, until the result is closed or the process
// ends. The process may hold a name several times.
func Hold(dir, name string) (io.Closer, error) {
	f, err := openLock(dir, false)
	if err != nil {
		return nil, err
	}
	if ok, err := lockByte(f, offset(name), false); err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: another process has its byte (%v)", f.Name(), err), f.Close())
	}
	return f, nil
}

// offset returns the byte for a name, which is never 0.
func offset(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64()>>2) + 1
}

// openLock opens the lock file, on a read-only file system only for reading.
func openLock(dir string, writes bool) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EROFS) && !writes {
		if r, err := os.Open(path); err == nil {
			return r, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state directory: %w", err)
	}
	return f, nil
}

// Alone calls do while no other process is in Alone with the same name. It waits for that until ctx ends. On a
// read-only file system, other readers are not excluded.
func Alone(ctx context.Context, dir, name string, do func() error) error {
	f, err := openLock(dir, false)
	if err != nil {
		return err
	}
	defer f.Close()
	tick := time.Tick(10 * time.Millisecond)
	for {
		switch locked, err := lockByte(f, offset(name), true); {
		case err != nil:
			return fmt.Errorf("cannot lock the state directory %s: %w", dir, err)
		case locked:
			return do()
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
