// Package fileworker opens and replaces files for calls in processes that are confined like the commands of the same
// profile.
//
// It takes canonical paths and follows no links. What the profile or its masks refuse is a *sandbox.Denial. It makes
// no decisions about calls, and does not open files for commands.
package fileworker

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// Pool opens and replaces files in a worker process that is confined like the commands of a profile. It starts the
// worker on demand, and replaces it if it dies, does not answer, or has an outdated view. If no worker can be
// started, opening fails.
//
// Under danger-full-access, and with a nil Pool, the daemon opens files itself. The zero value is ready to use. A
// Pool is safe for concurrent use.
type Pool struct{ workers workers }

// Open opens a regular file for reading by its canonical path without following symbolic links. The Report says what
// confined the process that opened it; it is empty if p.CanRead refuses. errors.Is finds fs.ErrNotExist. Open waits
// at most 30 s for a file system. A read that would block fails.
func (f *Pool) Open(ctx context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	return f.open(ctx, p, canonical, openFile, (*workers).open)
}

// OpenDir opens a directory by its canonical path, like Open. The caller may use ReadDir on it, but must open its
// entries with Open and OpenDir.
func (f *Pool) OpenDir(ctx context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	return f.open(ctx, p, canonical, openDir, (*workers).openDir)
}

// open opens a file or directory in the daemon or in a worker.
func (f *Pool) open(
	ctx context.Context, p sandbox.Profile, canonical string,
	own func(string) (*os.File, error), by func(*workers, context.Context, sandbox.Profile, string) (*os.File, sandbox.Report, error),
) (*os.File, sandbox.Report, error) {
	err := p.CanOpen(canonical, false)
	switch {
	case err != nil:
		return nil, sandbox.Report{}, err
	case p.Mode == sandbox.FullAccess:
		file, err := own(canonical)
		report, _ := launch.Try(ctx, p) // starts nothing, and does not fail
		return file, report, err
	case f == nil:
		return nil, sandbox.Report{}, errNoWorker
	}
	return by(&f.workers, ctx, p, canonical)
}

// Replace replaces the content of a file atomically and durably; other hard links keep the old content. It fails
// first for what p.CanWrite refuses; protected paths are read-only, as for commands. It follows no symbolic link. The
// file must still be r.Old, and writable. Once started, it ignores ctx, but takes at most two minutes.
func (f *Pool) Replace(ctx context.Context, p sandbox.Profile, canonical string, r Replacement) error {
	err := p.CanOpen(canonical, true)
	switch {
	case err != nil:
		return err
	case p.Mode == sandbox.FullAccess:
		return replaceFile(canonical, r)
	case f == nil:
		return errNoWorker
	}
	return f.workers.replace(ctx, p, canonical, r)
}

// Report sets a function that is called with the reason when a worker was lost and replaced. It must be called before
// any other method.
func (f *Pool) Report(failed func(error)) { f.workers.failed = failed }

// Close ends the workers and waits for them. Afterwards no worker opens a file.
func (f *Pool) Close() {
	if f != nil {
		f.workers.close()
	}
}

var errNoWorker = errors.New("there is no process that opens files for calls")

// Replacement is the new content of a file.
type Replacement struct {
	Data []byte
	// Old is the file to replace, as returned by Pool.Open; nil = the file must be new. Its mode, owner and extended
	// attributes are kept, except setuid, setgid, file capabilities, and a group that the daemon cannot set and that
	// has no more rights than all others, except writing.
	Old *os.File
	// Seen is the result of Old.Stat before its content was read. Replace fails if the file has changed since; nil =
	// no check.
	Seen fs.FileInfo
	// Parents creates missing directories for a new file.
	Parents bool
	// Like is the file whose mode, owner and extended attributes a new file gets; nil = defaults.
	Like *os.File
	// Remove removes Old, which must be set.
	Remove bool
}
