//go:build linux

package escape

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// resolve sets 127.0.0.53, where the world listens, as the name server.
func (w *World) resolve(resolver string) error {
	own := filepath.Join(w.Base, "resolv.conf")
	if err := os.WriteFile(own, []byte("nameserver 127.0.0.53\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return err
	}
	if strings.HasPrefix(resolver, "/run/") { // where the world has nothing
		if err := os.MkdirAll(filepath.Dir(resolver), 0o755); err != nil {
			return err
		}
		return os.Symlink(own, resolver)
	}
	return syscall.Mount(own, resolver, "", syscall.MS_BIND, "")
}

// MakeNetwork gives the loopback of the world the addresses of internet hosts and of a cloud's metadata, and lets anyone
// listen on any port. As with 127.0.0.0/8, all of 93.0.0.0/8 answers, but only its first address is assigned.
func MakeNetwork() error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	for label, address := range map[string]string{"lo": "127.0.0.1", "lo:1": "203.0.113.5", "lo:2": "169.254.169.254", "lo:3": "93.0.0.1"} {
		var request [40]byte // struct ifreq (netdevice(7))
		copy(request[:16], label)
		if label != "lo" {
			binary.NativeEndian.PutUint16(request[16:], syscall.AF_INET)
			copy(request[20:24], net.ParseIP(address).To4())
			if err := ioctl(s, syscall.SIOCSIFADDR, unsafe.Pointer(&request)); err != nil {
				return fmt.Errorf("address %s: %w", address, err)
			}
			clear(request[16:])
		}
		binary.NativeEndian.PutUint16(request[16:], syscall.IFF_UP|syscall.IFF_RUNNING)
		if err := ioctl(s, syscall.SIOCSIFFLAGS, unsafe.Pointer(&request)); err != nil {
			return fmt.Errorf("interface %s: %w", label, err)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); e != 0 {
		return e
	}
	return nil
}
