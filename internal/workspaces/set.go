package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/internal/display"
)

// UnregisteredError reports a directory outside of every registered workspace.
type UnregisteredError struct{ Dir string }

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("%s is not registered with toold; a person can register it: toold workspaces add %s", e.Dir, display.Operand(e.Dir))
}

// Set opens workspaces on first use, and closes them when they are unregistered and unused. It is safe for concurrent
// use.
type Set[T any] struct {
	opt SetOptions[T]

	mu     sync.Mutex
	seen   fs.FileInfo // of the registry when roots was read; nil = no file
	known  bool        // roots was read
	roots  []string
	units  map[string]*unit[T] // by root
	closed bool
	work   sync.WaitGroup // units being closed
}

// SetOptions configure a Set.
type SetOptions[T any] struct {
	Registry Registry
	Home     string // default workspace
	Only     bool   // serve only Home
	// Open creates what the calls in a workspace share; Close ends it. Calls of Open for the same root do not
	// overlap.
	Open  func(ctx context.Context, root string) (T, error)
	Close func(T)
}

// unit is an open workspace, or one that is being opened.
type unit[T any] struct {
	root  string
	is    fs.FileInfo   // the directory that was opened
	ready chan struct{} // closed when value or err is set
	value T
	err   error
	users int  // guarded by Set.mu
	gone  bool // closed with its last user
}

// NewSet returns an empty set.
func NewSet[T any](o SetOptions[T]) *Set[T] {
	return &Set[T]{opt: o, units: make(map[string]*unit[T])}
}

// Use returns the workspace that contains dir, a canonical path or "" for Home. It is open until release is called.
// The error may be an *UnregisteredError.
func (s *Set[T]) Use(ctx context.Context, dir string) (value T, release func(), err error) {
	var none T
	if dir == "" {
		dir = s.opt.Home
	}
	u, fresh, err := s.enter(dir)
	if err != nil {
		return none, nil, err
	}
	if fresh {
		u.value, u.err = s.opt.Open(context.WithoutCancel(ctx), u.root) // others may wait for it
		close(u.ready)
	}
	select {
	case <-u.ready:
	case <-ctx.Done():
		s.leave(u)
		return none, nil, context.Cause(ctx)
	}
	if u.err != nil {
		s.forget(u) // the next call tries again
		s.leave(u)
		return none, nil, fmt.Errorf("cannot open the workspace %s: %w", u.root, u.err)
	}
	var once sync.Once
	return u.value, func() { once.Do(func() { s.leave(u) }) }, nil
}

// enter counts a user of a workspace. If fresh, the caller must open it and close ready.
func (s *Set[T]) enter(dir string) (u *unit[T], fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errors.New("toold is stopping")
	}
	if err := s.refresh(); err != nil {
		return nil, false, err
	}
	root := Containing(s.roots, dir)
	if root == "" {
		return nil, false, &UnregisteredError{dir}
	}
	is, err := os.Stat(root)
	if err != nil {
		return nil, false, fmt.Errorf("cannot work in the workspace: %w", err)
	}
	u = s.units[root]
	if u != nil && !os.SameFile(u.is, is) {
		s.retire(u) // the directory was replaced
		u = nil
	}
	if fresh = u == nil; fresh {
		u = &unit[T]{root: root, is: is, ready: make(chan struct{})}
		s.units[root] = u
	}
	u.users++
	return u, fresh, nil
}

// refresh reads a changed registry, and retires what was removed. The caller holds mu.
func (s *Set[T]) refresh() error {
	if s.opt.Only {
		s.roots = []string{s.opt.Home}
		return nil
	}
	now, err := os.Stat(s.opt.Registry.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the list of workspaces: %w", err)
	}
	if s.known && unchanged(s.seen, now) {
		return nil
	}
	list, err := s.opt.Registry.List()
	if err != nil {
		return err
	}
	s.roots, s.seen, s.known = Paths(list), now, true
	for root, u := range s.units {
		if !slices.Contains(s.roots, root) {
			s.retire(u)
		}
	}
	return nil
}

// unchanged compares the state of the file, which is replaced, never written.
func unchanged(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}

// retire marks a unit to be closed with its last user. The caller holds mu.
func (s *Set[T]) retire(u *unit[T]) {
	if s.units[u.root] == u {
		delete(s.units, u.root)
	}
	if !u.gone {
		u.gone = true
		s.closeUnused(u)
	}
}

// closeUnused closes a retired unit without users. The caller holds mu.
func (s *Set[T]) closeUnused(u *unit[T]) {
	if !u.gone || u.users > 0 || u.err != nil {
		return
	}
	// Ends when the unit is closed; Close waits.
	s.work.Go(func() { s.opt.Close(u.value) })
}

func (s *Set[T]) forget(u *unit[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire(u)
}

func (s *Set[T]) leave(u *unit[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.users--
	s.closeUnused(u)
}

// Roots returns the registered paths.
func (s *Set[T]) Roots() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	return slices.Clone(s.roots), err
}

// Root returns the workspace that contains dir ("" = Home), or an *UnregisteredError.
func (s *Set[T]) Root(dir string) (string, error) {
	if dir == "" {
		dir = s.opt.Home
	}
	roots, err := s.Roots()
	if err != nil {
		return "", err
	}
	if root := Containing(roots, dir); root != "" {
		return root, nil
	}
	return "", &UnregisteredError{dir}
}

// Each calls do for every open workspace and joins the errors. It may omit one that is being opened.
func (s *Set[T]) Each(do func(root string, value T) error) error {
	s.mu.Lock()
	var open []*unit[T]
	for _, u := range s.units {
		select {
		case <-u.ready:
			if u.err == nil {
				u.users++
				open = append(open, u)
			}
		default:
		}
	}
	s.mu.Unlock()
	slices.SortFunc(open, func(a, b *unit[T]) int { return strings.Compare(a.root, b.root) })
	var errs []error
	for _, u := range open {
		errs = append(errs, do(u.root, u.value))
		s.leave(u)
	}
	return errors.Join(errs...)
}

// Close retires all workspaces and waits for the unused ones. Others are closed with their last release.
func (s *Set[T]) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	for _, u := range s.units {
		s.retire(u)
	}
	s.mu.Unlock()
	s.work.Wait()
}
