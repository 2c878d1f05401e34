package sandbox

import (
	"context"
	"errors"
	"os"
)

// Files opens and replaces files for calls. A process does it that is confined as
// the profile's commands are: it sees what they see, and is refused what they are
// refused. It is started when it is needed first, kept, and replaced when it dies,
// when it does not answer, and when another one would see something else. Where it
// cannot be started nothing is opened.
//
// Under danger-full-access the daemon does it itself. The zero value is ready. A nil
// Files has no process, so it can do no more than that. The methods may be called
// from several goroutines.
type Files struct{ workers workers }

// Open opens a regular file for reading by its canonical path, and tells what
// confined who opened it. What p.CanRead refuses is refused before anybody opens it,
// and the Report is empty then. No symbolic link is followed: what was judged under
// this path is what is opened, or there is an error. fs.ErrNotExist is visible to
// errors.Is. It waits for a file system that does not answer until ctx ends, but at
// most 30 s; a read that would have to wait fails.
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

// Replace gives a file new content at once and for good: readers see the old file or
// the new one, a crash or a full disk leaves the old one, and other hard links of it
// keep the old content. What p.CanWrite refuses is refused before anybody opens it,
// and what p protects is as read-only as it is for commands. No symbolic link is
// followed, and the file must still be r.Old, and writable. Once begun it does not
// end with ctx: it takes as long as the disk does, but at most two minutes.
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

// Close ends the processes and waits until they are gone. Nothing is opened
// by one afterwards.
func (f *Files) Close() {
	if f != nil {
		f.workers.close()
	}
}

var errNobodyOpens = errors.New("there is no process that opens files for calls")
