package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
)

func (b Limits) single(g *Escalation, p sandbox.Profile) error {
	if g.words.Host == "" {
		return nil
	}
	have := networkOf(p)
	switch {
	case g.words.Network != "":
		return errors.New("widen the network, or by one host: not both")
	case have == Full:
		return errors.New("the call may contact every host anyway")
	}
	pattern, err := egress.ParsePattern(g.words.Host)
	host, port, one := pattern.Single()
	switch {
	case err != nil:
		return fmt.Errorf("no host to widen by: %w", err)
	case !one:
		return fmt.Errorf("%s matches more than one host: name one", text(g.words.Host))
	}
	ports := b.Ports
	if have == Proxy {
		ports = p.Ports
	}
	if port != 0 && !slices.Contains(ports, port) {
		return fmt.Errorf("calls reach hosts at the ports %s, not at %d (sandbox.egress.ports)", list(ports), port)
	}
	if port != 0 {
		ports = []uint16{port}
	}
	if b.Network < Proxy && !b.covers(host, ports) {
		return beyond("the host "+g.words.Host, "hosts", strings.Join(b.Hosts, ", "))
	}
	g.host, g.port, g.alone = host, port, have == Off
	g.words.Host = pattern.String()
	return nil
}

func (b Limits) covers(host string, ports []uint16) bool {
	for _, port := range ports {
		if !slices.ContainsFunc(b.Hosts, func(text string) bool {
			p, err := egress.ParsePattern(text)
			return err == nil && p.Matches(host, port)
		}) {
			return false
		}
	}
	return len(ports) > 0
}

func list(ports []uint16) string {
	texts := make([]string, len(ports))
	for i, p := range ports {
		texts[i] = fmt.Sprint(p)
	}
	return strings.Join(texts, ", ")
}
