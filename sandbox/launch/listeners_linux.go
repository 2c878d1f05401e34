package launch

import (
	"errors"
	"io"
	"net"

	"github.com/toold/toold/sandbox/internal/helper"
)

// proxyListeners accept the connections of a call's network.
type proxyListeners struct {
	names net.PacketConn
	ports []net.Listener
}

// ProxyListeners returns the sockets that receive the DNS queries and connections of the command if its profile has
// Ports, else nil. The local address of a connection is the one that the command dialed. End closes the sockets; the
// caller may close them earlier.
func (p *Process) ProxyListeners() (names net.PacketConn, ports []net.Listener) {
	return p.proxyListeners.names, p.proxyListeners.ports
}

func (d proxyListeners) close() {
	if d.names != nil {
		d.names.Close()
	}
	for _, l := range d.ports {
		l.Close()
	}
}

func (p *Process) first() (helper.Event, error) {
	event, files, err := p.nextFiles()
	if err != nil || event.Kind != helper.EventListeners {
		if err == nil && event.Kind == "" {
			err = io.EOF // the helper has ended
		}
		return event, err
	}
	for i, f := range files {
		if i == 0 {
			p.proxyListeners.names, err = net.FilePacketConn(f)
		} else {
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				p.proxyListeners.ports = append(p.proxyListeners.ports, l)
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return event, err
		}
	}
	return p.next()
}
