package helper

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// send reports to the daemon. One packet is one message, so threads need no lock. What cannot be
// sent ends the connection, or the daemon would wait for it: the helper counts as lost, and obey
// ends the call.
func send(e Event) {
	b := e.Encode()
	err := unix.Sendto(ControlFD, b, unix.MSG_NOSIGNAL, nil)
	for errors.Is(err, unix.EINTR) {
		err = unix.Sendto(ControlFD, b, unix.MSG_NOSIGNAL, nil)
	}
	if err != nil {
		_ = unix.Shutdown(ControlFD, unix.SHUT_RDWR) // it fails when the daemon is gone, which obey sees
	}
}

const maxHanded = 64

// receiveSpec waits for the first order. Its first descriptor holds the
// specification; as many as that says are for the helper; the others are for the
// shell, from descriptor 3 on.
func receiveSpec() (spec Spec, handed []int, files []uintptr, err error) {
	buf := make([]byte, 64)
	n, fds, err := receive(ControlFD, buf)
	if err != nil {
		return Spec{}, nil, nil, err
	}
	order, err := DecodeOrder(buf[:n])
	if err != nil || order.Kind != OrderRun || len(fds) == 0 {
		return Spec{}, nil, nil, errGarbled
	}
	spec, err = readSpec(fds[0])
	fds = fds[1:]
	if err == nil && spec.Handed > uint64(len(fds)) {
		err = errGarbled
	}
	if err != nil {
		return Spec{}, nil, nil, err
	}
	for _, fd := range fds[spec.Handed:] {
		files = append(files, uintptr(fd))
	}
	return spec, fds[:spec.Handed], files, nil
}

// receive reads a packet and the descriptors that come with it.
func receive(socket int, buf []byte) (n int, fds []int, err error) {
	oob := make([]byte, unix.CmsgSpace(4*maxHanded))
	var oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(socket, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || n == 0 {
		return 0, nil, errors.Join(err, errGarbled)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	for _, m := range messages {
		if some, bad := unix.ParseUnixRights(&m); bad == nil {
			fds = append(fds, some...)
		}
	}
	return n, fds, err
}

func readSpec(fd int) (Spec, error) {
	f := os.NewFile(uintptr(fd), "specification")
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return Spec{}, err
	}
	return DecodeSpec(b)
}
