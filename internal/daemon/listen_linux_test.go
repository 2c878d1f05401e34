package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// A socket that is closed to others later is open to them until then.
func TestTheSocketIsMadeWithItsMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	watch := must.Get(unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC))(t)
	defer unix.Close(watch)
	must.Get(unix.InotifyAddWatch(watch, dir, unix.IN_ATTRIB))(t)
	path := filepath.Join(dir, "socket")
	l := must.Get(listenUnix(path))(t)
	defer l.Close()
	info := must.Get(os.Lstat(path))(t)
	if n, err := unix.Read(watch, make([]byte, 4096)); info.Mode().Perm() != 0o600 || err == nil {
		t.Errorf("its mode is %v, and was changed: %d bytes of events", info.Mode(), n)
	}
}
