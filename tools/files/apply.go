package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/sandbox/fileworker"
)

type application struct {
	o      Options
	states []state
	undo   []undo // reverts what was written, in order of writing
}

type undo struct {
	name string // for messages
	back func(context.Context) error
}

// apply writes all files or none: if a write fails, it reverts the others. It removes files last, since only writing
// can fail for lack of space.
func (a *application) apply(ctx context.Context) error {
	err := a.write(ctx)
	if err == nil {
		err = a.remove(ctx)
	}
	if err == nil || len(a.undo) == 0 {
		return err
	}
	return a.restore(context.WithoutCancel(ctx), err)
}

func (a *application) write(ctx context.Context) error {
	for _, s := range a.states {
		var err error
		isSame := s.old != nil && string(s.before) == string(s.after)
		switch {
		case s.remove || s.to.canonical == "" && isSame:
		case s.to.canonical != "":
			err = a.put(ctx, s.to, s, fileworker.Replacement{Data: s.after, Parents: true, Like: s.old})
		default:
			err = a.put(ctx, s.file, s, fileworker.Replacement{Data: s.after, Old: s.old, Seen: s.seen, Parents: s.fresh})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *application) remove(ctx context.Context) error {
	for _, s := range a.states {
		if !s.remove && s.to.canonical == "" {
			continue
		}
		err := a.replace(ctx, s.file, fileworker.Replacement{Old: s.old, Seen: s.seen, Remove: true})
		if err == nil || a.gone(ctx, s.file) {
			a.undo = append(a.undo, undo{s.file.name(), func(ctx context.Context) error {
				return a.replace(ctx, s.file, fileworker.Replacement{Data: s.before, Like: s.old})
			}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *application) put(ctx context.Context, file target, s state, r fileworker.Replacement) error {
	err := a.replace(ctx, file, r)
	if err == nil || a.holds(ctx, file, s.after) {
		a.undo = append(a.undo, undo{file.name(), func(ctx context.Context) error { return a.putBack(ctx, file, s, r) }})
	}
	return err
}

// holds reports whether file has the content although writing it failed: its directory was not synced, or the worker
// was lost.
func (a *application) holds(ctx context.Context, file target, content []byte) bool {
	f, _, err := a.o.Files.Open(context.WithoutCancel(ctx), a.o.Profile, file.canonical)
	if err != nil || len(a.states) == 1 {
		f.Close() // nil is allowed
		return false
	}
	defer f.Close()
	_, now, err := a.look(f, file)
	return err == nil && string(now) == string(content)
}

// gone reports whether a file was removed although the removal reported an error.
func (a *application) gone(ctx context.Context, file target) bool {
	f, _, err := a.o.Files.Open(context.WithoutCancel(ctx), a.o.Profile, file.canonical)
	f.Close() // nil is allowed
	return errors.Is(err, fs.ErrNotExist)
}

// putBack reverts a write, unless the file has changed since.
func (a *application) putBack(ctx context.Context, file target, s state, r fileworker.Replacement) error {
	now, _, err := a.o.Files.Open(ctx, a.o.Profile, file.canonical)
	if err != nil {
		return err
	}
	defer now.Close()
	seen, content, err := a.look(now, file)
	switch {
	case err != nil:
		return err
	case string(content) != string(s.after):
		return errors.New("it has changed since")
	case r.Old == nil:
		return a.replace(ctx, file, fileworker.Replacement{Old: now, Seen: seen, Remove: true})
	}
	return a.replace(ctx, file, fileworker.Replacement{Data: s.before, Old: now, Seen: seen})
}

func (a *application) look(f *os.File, file target) (seen fs.FileInfo, content []byte, err error) {
	if seen, err = f.Stat(); err == nil {
		content, err = a.o.content(f, seen.Size(), file)
	}
	return seen, content, err
}

func (a *application) replace(ctx context.Context, file target, r fileworker.Replacement) error {
	return a.o.Files.Replace(ctx, a.o.Profile, file.canonical, r)
}

func (a *application) restore(ctx context.Context, because error) error {
	var restored, left []string
	for _, u := range slices.Backward(a.undo) {
		if err := u.back(ctx); err != nil {
			left = append(left, fmt.Sprintf("%s (%v)", u.name, err))
		} else {
			restored = append(restored, u.name)
		}
	}
	text := "nothing changed"
	if len(restored) > 0 {
		text = "put back: " + strings.Join(restored, ", ")
	}
	if len(left) > 0 {
		text += "; CHANGED AND NOT PUT BACK: " + strings.Join(left, ", ")
	}
	return fmt.Errorf("%w; earlier writes of the call are reverted. %s", because, text)
}
