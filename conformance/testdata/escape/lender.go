//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lender is a server of a call that runs in the background. It listens on addresses,
// NETWORK:ADDRESS each, and logs in beside.log what it listens on and what reaches it. When
// it has begun to listen there is a file beside-ready.
func lender(a args) int {
	file, err := os.OpenFile("beside.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l := &logbook{to: file}
	for _, word := range a {
		network, at, _ := strings.Cut(word, ":")
		listen := func() error { return l.stream(network, at, at) }
		if network == "udp" {
			listen = func() error { return l.packets(network, at) }
		}
		if err := listen(); err != nil {
			l.line("NOTE " + err.Error())
			continue
		}
		l.line("listening " + at)
	}
	if err := os.WriteFile("beside-ready", nil, 0o600); err != nil {
		fmt.Println(err)
		return 1
	}
	select {} // until the call ends
}

// again connects, lets the socket go, and connects it to somewhere else.
func again(a args) (string, int, error) {
	to, family := address(a.text(0), a.number(1))
	s, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", s, err
	}
	if err := unix.Connect(s, to); err != nil {
		return "connect", -1, err
	}
	var none [16]byte // AF_UNSPEC
	if _, err := call(unix.SYS_CONNECT, uintptr(s), uintptr(unsafe.Pointer(&none)), uintptr(len(none))); err != nil {
		return "disconnect", -1, err
	}
	to, _ = address(a.text(2), a.number(3))
	if err := unix.Connect(s, to); err != nil {
		return "connect-again", -1, err
	}
	talk(s, "AGAIN")
	return "connect-again", 0, nil
}
