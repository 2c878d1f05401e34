package sandbox

import (
	"context"
	"errors"
	"os"
)

// Files opens and replaces files for calls in a process that is confined as the profile's commands
// are. It is started when needed, and replaced when it dies, does not answer, or would see
// something else. Where it cannot be started nothing is opened.
//
// Under danger-full-access, and of a nil Files, the daemon does it. The zero value is ready, for
// concurrent use.
type Files struct{ workers workers }

// Open opens a regular file for reading by its canonical path, following no symbolic link, and
// reports what confined the process that opened it. The Report is empty if p.CanRead refuses it.
// errors.Is finds fs.ErrNotExist. It waits for a file system at most 30 s; a read that would have
// to wait fails.
func (f *Files) Open(ctx context.Context, p Profile, canonical string) (*os.File, Report, error) {
	err := p.canOpen(canonical, false)
	switch {
	case err != nil:
		return nil, Report{}, err
	case p.Mode == FullAccess:
		file, err := openFile(canonical)
		return file, p.report(0, false), err
	case f == nil:
		return nil, Report{}, errNobodyOpens
	}
	return f.workers.open(ctx, p, canonical)
}

// OpenDir opens a directory by its canonical path as Open opens a file. The names in
// it are to be read with ReadDir; what they name is to be opened by Open and OpenDir.
func (f *Files) OpenDir(ctx context.Context, p Profile, canonical string) (*os.File, Report, error) {
	err := p.canOpen(canonical, false)
	switch {
	case err != nil:
		return nil, Report{}, err
	case p.Mode == FullAccess:
		dir, err := openDir(canonical)
		return dir, p.report(0, false), err
	case f == nil:
		return nil, Report{}, errNobodyOpens
	}
	return f.workers.openDir(ctx, p, canonical)
}

// Replace gives a file new content atomically and durably; other hard links keep the old. What
// p.CanWrite refuses is refused first, and what p protects is read-only as for commands. No
// symbolic link is followed, and the file must still be r.Old, and writable. Once begun it does
// not end with ctx, but takes at most two minutes.
func (f *Files) Replace(ctx context.Context, p Profile, canonical string, r Replacement) error {
	err := p.canOpen(canonical, true)
	switch {
	case err != nil:
		return err
	case p.Mode == FullAccess:
		return replaceFile(canonical, r)
	case f == nil:
		return errNobodyOpens
	}
	return f.workers.replace(ctx, p, canonical, r)
}

// Report has failed called with why a process was lost that another one took the place of. It is
// called before any other method.
func (f *Files) Report(failed func(error)) { f.workers.failed = failed }

// Close ends the processes and waits until they are gone. Nothing is opened
// by one afterwards.
func (f *Files) Close() {
	if f != nil {
		f.workers.close()
	}
}

var errNobodyOpens = errors.New("there is no process that opens files for calls")
