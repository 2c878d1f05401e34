package daemon

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestAnAddressIsTakenOnceItIsReleased: what a killed daemon held is released a moment
// after its end.
func TestAnAddressIsTakenOnceItIsReleased(t *testing.T) {
	t.Parallel()
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, tries := old.Addr().String(), 0
	err = retryWhileTaken(t.Context(), func() error {
		if tries++; tries == 3 {
			old.Close()
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			l.Close()
		}
		return err
	}, inUse)
	if err != nil || tries < 3 { // more when a process that starts just then holds it, too
		t.Errorf("after %d tries: %v", tries, err)
	}
	tries = 0
	if err := retryWhileTaken(t.Context(), func() error { tries++; return syscall.EACCES }, inUse); !errors.Is(err, syscall.EACCES) || tries != 1 {
		t.Errorf("another error after %d tries: %v", tries, err)
	}
}
