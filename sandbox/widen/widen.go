// Package widen is what a person may add to the sandbox of one call: a wider
// profile, a folder, the network or a host.
//
// The operator's configuration bounds it (Bounds), a person's answer names it
// (Words), and a Grant is what of both became of it: it was checked, and holds the
// folder that was meant. It decides nothing by itself, and nothing here outlives the
// one call.
package widen

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/sandbox"
)

// Network is how much of the network a call has. The zero value is none.
type Network int

// The networks, named as in the configuration.
const (
	Off   Network = iota // a network of its own, with nothing in it
	Proxy                // hosts by name, each decided on
	Full                 // that of the machine
)

// String returns the network's name in configuration and on the wire.
func (n Network) String() string { return [...]string{"off", "proxy", "full"}[n] }

// ParseNetwork reads a network's name.
func ParseNetwork(s string) (Network, error) {
	for _, n := range []Network{Off, Proxy, Full} {
		if s == n.String() {
			return n, nil
		}
	}
	return Off, fmt.Errorf("unknown network %q: expected off, proxy or full", s)
}

// Words are what an answer asks to add, as it was written. The zero Words add
// nothing.
type Words struct {
	Profile string // a mode of the sandbox
	Write   string // a folder
	Network string
	Host    string // a name or an address, with :port or without
}

// Bounds are the most that the operator lets a person add. The zero Bounds let
// nothing be added.
type Bounds struct {
	Mode    sandbox.Mode // the widest; ReadOnly = none
	Write   []string     // folders, canonical: one of them, or one in them
	Network Network      // the widest
	Hosts   []string     // as egress.ParsePattern reads them; with a Network any host may be added
	Ports   []uint16     // on which hosts are reached
	Protect []string     // names that no call may change, so that no folder below one is added
}

// Offer is what may be added to the sandbox of a call, for people: one of each list.
type Offer struct {
	Profile []string
	Write   []string // one of these folders, or one in them
	Network []string
	Host    []string // patterns; "*" is any host
}

// Offer tells what may be added to a profile; nil when that is nothing.
func (b Bounds) Offer(p sandbox.Profile) *Offer {
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

// networkOf is the network that a profile gives.
func networkOf(p sandbox.Profile) Network {
	switch {
	case p.Network || p.Mode == sandbox.FullAccess:
		return Full
	case len(p.Ports) > 0:
		return Proxy
	}
	return Off
}

// Grant is what a person has added to the sandbox of one call. A nil Grant adds
// nothing. Who gets one must call Close when the call has ended. Its other methods may be
// called from several goroutines.
type Grant struct {
	words   Words // in their canonical form
	mode    sandbox.Mode
	network Network
	ports   []uint16
	host    string
	port    uint16 // 0 = any
	alone   bool   // there is no other network than to host
	is      string // which folder Words.Write is
	held    *os.File
}

// Check makes a Grant of words for a call that would run under p, if that is within
// the bounds. The error says why not, and which setting governs that. Words that add
// nothing make no Grant.
func (b Bounds) Check(p sandbox.Profile, w Words) (*Grant, error) {
	if w == (Words{}) {
		return nil, nil
	}
	switch {
	case p.Mode == sandbox.FullAccess:
		return nil, errors.New("nothing confines the call, so there is nothing to widen")
	case p.Tier == sandbox.TierC && (w.Write != "" || w.Host != "" || w.Network == Proxy.String()):
		return nil, errTierC
	case unnamed(p) && (w.Host != "" || w.Network == Proxy.String()):
		return nil, errUnnamed
	}
	g := &Grant{words: w, ports: b.Ports}
	for _, check := range []func(*Grant, sandbox.Profile) error{b.profile, b.net, b.single, b.folder} {
		if err := check(g, p); err != nil {
			return nil, err
		}
	}
	return g, nil
}

var errTierC = errors.New("calls run in tier C here, without a view of the files and a network of their own: neither a folder nor a host nor the network proxy can be added")

// unnamed reports whether calls can make no connections by name on this machine.
func unnamed(p sandbox.Profile) bool {
	return p.Tier == sandbox.TierBwrap || p.Tier == sandbox.TierC
}

var errUnnamed = errors.New("calls run in tier A-bwrap here, in a network that toold cannot lead anywhere: neither a host nor the network proxy can be added")

func (b Bounds) profile(g *Grant, p sandbox.Profile) error {
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

func (b Bounds) net(g *Grant, p sandbox.Profile) error {
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

// atMost says what a bound lets through.
func atMost(some bool, most string) string {
	if !some {
		return "nothing"
	}
	return "at most " + most
}

// beyond refuses what the configuration does not let people add.
func beyond(what, key, most string) error {
	return fmt.Errorf("%s is more than may be added to this call: approval.widen.%s in the configuration gives it %s", what, key, most)
}

// Words are what was added, in its canonical form.
func (g *Grant) Words() Words {
	if g == nil {
		return Words{}
	}
	return g.words
}

// Folder is the folder that the call may write besides; "" = none.
func (g *Grant) Folder() string { return g.Words().Write }

// Widen is the profile with what was added. The folder is pinned: the sandbox does not
// start when another one is there by then.
func (g *Grant) Widen(p sandbox.Profile) sandbox.Profile {
	if g == nil {
		return p
	}
	p.Mode = max(p.Mode, g.mode)
	if folder := g.Folder(); folder != "" {
		p.Write = append(slices.Clone(p.Write), folder)
		p.Pinned = map[string]string{folder: g.is}
	}
	switch {
	case g.network == Full:
		p.Network, p.Ports = true, nil
	case g.network == Proxy, g.host != "" && networkOf(p) == Off:
		p.Ports = g.ports
	}
	return p
}

// Lets reports whether a host was added, and with it nothing but that: then the call
// may contact no other.
func (g *Grant) Lets(host string, port uint16) (lets, alone bool) {
	if g == nil {
		return false, false
	}
	return g.host != "" && g.host == host && (g.port == 0 || g.port == port), g.alone
}

// Close lets the folder go.
func (g *Grant) Close() {
	if g != nil {
		g.held.Close() // allowed on nil
	}
}

// text is a word of an answer in an error.
func text(s string) string {
	if strings.IndexFunc(s, unseen) >= 0 || len(s) > 4096 {
		return fmt.Sprintf("%.200q", s)
	}
	return s
}
