//go:build !linux

package main

import "net"

// reservePort returns a port of 127.0.0.1 that nobody has at this moment.
func reservePort() (port int, release func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	return l.Addr().(*net.TCPAddr).Port, func() error { return nil }, l.Close()
}
