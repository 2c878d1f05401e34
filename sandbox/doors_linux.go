package sandbox

import (
	"errors"
	"io"
	"net"

	"github.com/toold/toold/sandbox/internal/helper"
)

// doors are where a call's network leads to.
type doors struct {
	names net.PacketConn
	ports []net.Listener
}

// Doors returns where questions for names and connections of the command arrive,
// when its profile has Ports; else nil. Closing them early is allowed, End does it as
// well. The local address of a connection is the one that the command meant.
func (p *Process) Doors() (names net.PacketConn, ports []net.Listener) {
	return p.doors.names, p.doors.ports
}

func (d doors) close() {
	if d.names != nil {
		d.names.Close()
	}
	for _, l := range d.ports {
		l.Close()
	}
}

// first waits until the helper tells whether the command has started.
func (p *Process) first() (helper.Event, error) {
	event, files, err := p.nextFiles()
	if err != nil || event.Kind != helper.EventDoors {
		if err == nil && event.Kind == "" {
			err = io.EOF // it is gone
		}
		return event, err
	}
	for i, f := range files {
		if i == 0 {
			p.doors.names, err = net.FilePacketConn(f)
		} else {
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				p.doors.ports = append(p.doors.ports, l)
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return event, err
		}
	}
	return p.next(make([]byte, maxEvent))
}
