package sandbox

import (
	"context"
	"errors"
	"os"
)

// Files opens and replaces files for calls in a worker process that is confined like the profile's
// commands. The worker is started on demand, and replaced when it dies, does not answer, or has an
// outdated view. If it cannot be started, opening fails.
//
// Under danger-full-access, and with a nil Files, the daemon opens files itself. The zero value is
// ready for concurrent use.
type Files struct{ workers workers }

// Open opens a regular file for reading by its canonical path, following no symbolic link, and
// reports what confined the process that opened it. The Report is empty if p.CanRead refuses.
// errors.Is finds fs.ErrNotExist. It waits at most 30 s for a file system; a read that would block
// fails.
func (f *Files) Open(ctx context.Context, p Profile, canonical string) (*os.File, Report, error) {
	err := p.canOpen(canonical, false)
	switch {
	case err != nil:
		return nil, Report{}, err
	case p.Mode == FullAccess:
		file, err := openFile(canonical)
		return file, p.report(0, false), err
	case f == nil:
		return nil, Report{}, errNoWorker
	}
	return f.workers.open(ctx, p, canonical)
}

// OpenDir opens a directory by its canonical path, like Open. Read it with ReadDir, and open its
// entries with Open and OpenDir.
func (f *Files) OpenDir(ctx context.Context, p Profile, canonical string) (*os.File, Report, error) {
	err := p.canOpen(canonical, false)
	switch {
	case err != nil:
		return nil, Report{}, err
	case p.Mode == FullAccess:
		dir, err := openDir(canonical)
		return dir, p.report(0, false), err
	case f == nil:
		return nil, Report{}, errNoWorker
	}
	return f.workers.openDir(ctx, p, canonical)
}

// Replace gives a file new content atomically and durably; other hard links keep the old content.
// What p.CanWrite refuses fails first; protected paths are read-only as for commands. No symbolic
// link is followed, and the file must still be r.Old, and writable. Once started it ignores ctx,
// but takes at most two minutes.
func (f *Files) Replace(ctx context.Context, p Profile, canonical string, r Replacement) error {
	err := p.canOpen(canonical, true)
	switch {
	case err != nil:
		return err
	case p.Mode == FullAccess:
		return replaceFile(canonical, r)
	case f == nil:
		return errNoWorker
	}
	return f.workers.replace(ctx, p, canonical, r)
}

// Report sets a function that is called with the reason when a worker was lost and replaced. Call
// it before any other method.
func (f *Files) Report(failed func(error)) { f.workers.failed = failed }

// Close ends the workers and waits for them. No file is opened by one afterwards.
func (f *Files) Close() {
	if f != nil {
		f.workers.close()
	}
}

var errNoWorker = errors.New("there is no process that opens files for calls")
