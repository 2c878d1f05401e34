package launch

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// permit is needed to start a reserved command. The helper and the daemon share it, and one of them takes it: the
// helper in order to start the command, the daemon in order to prevent that.
type permit struct {
	file *os.File // eventfd whose count is 1 until the permit is taken

	mu    sync.Mutex
	taken bool // by the daemon
}

func newPermit() (*permit, error) {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &permit{file: os.NewFile(uintptr(fd), "permit")}, nil
}

// revoke takes the permit, and reports whether it belongs to the daemon.
func (p *permit) revoke() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := p.file.SyscallConn()
	if err != nil || p.taken {
		return p.taken
	}
	err = control(raw, func(fd int) error {
		_, err := unix.Read(fd, make([]byte, 8))
		return err
	})
	p.taken = err == nil
	return p.taken
}

// close closes the permit. Unless it was revoked, it counts as taken by the helper.
func (p *permit) close() {
	if p != nil {
		p.file.Close()
	}
}
