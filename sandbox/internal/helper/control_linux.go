package helper

import (
	"errors"

	"golang.org/x/sys/unix"
)

// send sends an event to the daemon. A packet is a message, so threads need no lock. If sending fails, it shuts the
// connection down, since the daemon may be waiting for the event: the helper then counts as lost, and obey ends the
// call.
func send(e Event) {
	b := e.Encode()
	err := unix.Sendto(ControlFD, b, unix.MSG_NOSIGNAL, nil)
	for errors.Is(err, unix.EINTR) {
		err = unix.Sendto(ControlFD, b, unix.MSG_NOSIGNAL, nil)
	}
	if err != nil {
		_ = unix.Shutdown(ControlFD, unix.SHUT_RDWR) // fails if the daemon has ended, which obey detects
	}
}

const maxHanded = 64

// receiveSpec waits for the first order. Its first descriptor contains the specification; the next Handed ones are
// for the helper, the rest for the shell, from descriptor 3 on.
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

// receiveOrder waits for the next order. It returns an error if the daemon has ended.
func receiveOrder(buf []byte) (order Order, fds []int, err error) {
	n, fds, err := receive(ControlFD, buf)
	if err != nil {
		return Order{}, nil, err
	}
	order, err = DecodeOrder(buf[:n])
	return order, fds, err
}

func readSpec(fd int) (Spec, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Spec{}, err
	}
	b := make([]byte, st.Size)
	n, err := unix.Pread(fd, b, 0)
	if err == nil && n < len(b) {
		err = errGarbled
	}
	if err != nil {
		return Spec{}, err
	}
	return DecodeSpec(b)
}
