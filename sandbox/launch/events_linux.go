package launch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/helper"
)

const maxFiles = 64

func (p *Process) nextFiles() (event helper.Event, files []*os.File, err error) {
	raw, err := p.control.SyscallConn()
	if err != nil {
		return event, nil, err
	}
	buf, oob := p.eventBuffer(), make([]byte, unix.CmsgSpace(4*maxFiles))
	var n, oobn int
	outer := raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, err = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		for errors.Is(err, unix.EINTR) || ended(err) {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = errors.Join(outer, err); err != nil {
		return event, nil, err
	}
	if files, err = filesOf(oob[:oobn]); err != nil {
		return event, nil, err
	}
	event, err = helper.DecodeEvent(buf[:n])
	return event, files, err
}

// ended reports whether err is the kernel's notice, sent once, that the helper exited with unread orders. Earlier
// events can still be read.
func ended(err error) bool { return errors.Is(err, unix.ECONNRESET) }

func filesOf(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "from the helper"))
		}
	}
	return files, nil
}
