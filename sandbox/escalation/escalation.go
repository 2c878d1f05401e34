// Package escalation defines what an approver may add to the sandbox of one call: a wider profile, a directory, the
// network or a host. Limits are from the configuration, Words from the answer of the approver, and an Escalation is
// the checked result. The package makes no decisions.
package escalation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/sandbox"
)

// Network is how much of the network a call may use.
type Network int

// The networks, as in the configuration.
const (
	Off   Network = iota // a private, empty network
	Proxy                // hosts by name, each with a decision
	Full                 // the machine's network
)

// String returns the network's name in configuration and on the wire.
func (n Network) String() string { return [...]string{"off", "proxy", "full"}[n] }

// ParseNetwork parses a network's name.
func ParseNetwork(s string) (Network, error) {
	for _, n := range []Network{Off, Proxy, Full} {
		if s == n.String() {
			return n, nil
		}
	}
	return Off, fmt.Errorf("unknown network %q: expected off, proxy or full", s)
}

// Words are the additions that an answer requests. The zero value adds nothing.
type Words struct {
	Profile string // a sandbox mode
	Write   string // a directory
	Network string
	Host    string // name or address, with optional :port
}

// Limits are the most that an approver may add. The zero value allows nothing.
type Limits struct {
	Mode    sandbox.Mode // ReadOnly = none
	Write   []string     // canonical directories, including those below
	Network Network
	Hosts   []string // see egress.ParsePattern; with a Network, any host
	Ports   []uint16 // ports on which hosts are reached
	Protect []string // names that no call may change; directories below one cannot be added
}

// Offer lists what may be added to the sandbox of a call: one item of each list.
type Offer struct {
	Profile []string
	Write   []string // including directories below
	Network []string
	Host    []string // patterns; "*" = any host
}

// Offer returns what may be added to a profile; nil = nothing.
func (b Limits) Offer(p sandbox.Profile) *Offer {
	var o Offer
	if p.Mode == sandbox.FullAccess {
		return nil
	}
	for _, m := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
		if m > p.Mode && m <= b.Mode {
			o.Profile = append(o.Profile, m.String())
		}
	}
	if max(p.Mode, b.Mode) >= sandbox.WorkspaceWrite {
		o.Write = b.Write
	}
	have := networkOf(p)
	for _, n := range []Network{Proxy, Full} {
		if n > have && n <= b.Network {
			o.Network = append(o.Network, n.String())
		}
	}
	switch {
	case have == Full:
	case b.Network >= Proxy:
		o.Host = []string{"*"}
	default:
		o.Host = b.Hosts
	}
	if p.Tier == sandbox.TierC { // see errTierC
		o.Write = nil
	}
	if unnamed(p) {
		o.Host = nil
		o.Network = slices.DeleteFunc(o.Network, func(n string) bool { return n == Proxy.String() })
	}
	if len(o.Profile)+len(o.Write)+len(o.Network)+len(o.Host) == 0 {
		return nil
	}
	return &o
}

func networkOf(p sandbox.Profile) Network {
	switch {
	case p.Network || p.Mode == sandbox.FullAccess:
		return Full
	case len(p.Ports) > 0:
		return Proxy
	}
	return Off
}

// Escalation is what an approver has added to the sandbox of one call; nil = nothing. The caller must call Close when
// the call has ended. It is safe for concurrent use, except for Close.
type Escalation struct {
	words   Words // canonical
	mode    sandbox.Mode
	network Network
	ports   []uint16
	host    string
	port    uint16 // 0 = any
	alone   bool   // host is the only network access
	is      string // identity of Words.Write
	pinned  *os.File
}

// Check returns the Escalation for words of a call under p. The error says why the limits do not allow it, and which
// setting governs that. Words that add nothing return nil.
func (b Limits) Check(p sandbox.Profile, w Words) (*Escalation, error) {
	if w == (Words{}) {
		return nil, nil
	}
	byName := w.Host != "" || w.Network == Proxy.String()
	switch {
	case p.Mode == sandbox.FullAccess:
		return nil, errors.New("nothing confines the call, so there is nothing to widen")
	case p.Tier == sandbox.TierC && (w.Write != "" || byName):
		return nil, errTierC
	case unnamed(p) && byName:
		return nil, errUnnamed
	}
	g := &Escalation{words: w, ports: b.Ports}
	for _, check := range []func(*Escalation, sandbox.Profile) error{b.profile, b.net, b.single, b.dir} {
		if err := check(g, p); err != nil {
			return nil, err
		}
	}
	return g, nil
}

var errTierC = errors.New("calls run in tier C here, without a view of the files and a network of their own: neither a directory nor a host nor the network proxy can be added")

// unnamed reports whether calls cannot connect by name on this machine.
func unnamed(p sandbox.Profile) bool {
	return p.Tier == sandbox.TierBwrap || p.Tier == sandbox.TierC
}

var errUnnamed = errors.New("calls run in tier A-bwrap here, in a network that toold cannot connect to anything: neither a host nor the network proxy can be added")

func (b Limits) profile(g *Escalation, p sandbox.Profile) error {
	if g.words.Profile == "" {
		return nil
	}
	mode, err := sandbox.ParseMode(g.words.Profile)
	switch {
	case err != nil:
		return err
	case mode <= p.Mode:
		return fmt.Errorf("the profile %s is no wider than %s, in which the call runs anyway", mode, p.Mode)
	case mode > b.Mode:
		return beyond("the profile "+mode.String(), "profile", atMost(b.Mode != sandbox.ReadOnly, b.Mode.String()))
	case mode == sandbox.FullAccess && g.words != Words{Profile: g.words.Profile}:
		return errors.New("the profile danger-full-access leaves nothing else to widen")
	}
	g.mode = mode
	return nil
}

func (b Limits) net(g *Escalation, p sandbox.Profile) error {
	if g.words.Network == "" {
		return nil
	}
	n, err := ParseNetwork(g.words.Network)
	switch have := networkOf(p); {
	case err != nil:
		return err
	case n <= have:
		return fmt.Errorf("the network %s is no wider than %s, which the call has anyway", n, have)
	case n > b.Network:
		return beyond("the network "+n.String(), "network", atMost(b.Network != Off, b.Network.String()))
	}
	g.network = n
	return nil
}

func atMost(some bool, most string) string {
	if !some {
		return ""
	}
	return "at most " + most
}

// beyond returns the error for words that exceed the configuration. most is what it allows; "" = nothing.
func beyond(what, key, most string) error {
	return fmt.Errorf("%s is more than may be added to this call: approval.widen.%s in the configuration gives it %s", what, key, cmp.Or(most, "nothing"))
}

// Words returns the additions in canonical form.
func (g *Escalation) Words() Words {
	if g == nil {
		return Words{}
	}
	return g.words
}

// Dir returns the additional writable directory; "" = none.
func (g *Escalation) Dir() string { return g.Words().Write }

// Escalate returns the profile with the additions. The directory is pinned: the sandbox does not start if another one
// has replaced it.
func (g *Escalation) Escalate(p sandbox.Profile) sandbox.Profile {
	if g == nil {
		return p
	}
	p.Mode = max(p.Mode, g.mode)
	if dir := g.Dir(); dir != "" {
		p.Write = append(slices.Clone(p.Write), dir)
		p.Pinned = map[string]string{dir: g.is}
	}
	switch {
	case g.network == Full:
		p.Network, p.Ports = true, nil
	case g.network == Proxy, g.host != "" && networkOf(p) == Off:
		p.Ports = g.ports
	}
	return p
}

// Lets reports whether a host was added, and whether it is the only one that the call may contact.
func (g *Escalation) Lets(host string, port uint16) (lets, alone bool) {
	if g == nil {
		return false, false
	}
	isHost := g.host != "" && g.host == host
	return isHost && (g.port == 0 || g.port == port), g.alone
}

// Close closes the directory.
func (g *Escalation) Close() {
	if g != nil {
		g.pinned.Close() // nil is allowed
	}
}

func text(s string) string {
	if strings.IndexFunc(s, unseen) >= 0 || len(s) > 4096 {
		return fmt.Sprintf("%.200q", s)
	}
	return s
}
