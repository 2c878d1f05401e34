package escalation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

func place(t *testing.T) (base string, p sandbox.Profile, b Limits) {
	t.Helper()
	base = must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, dir := range []string{"ws/in", "data/out", "data/hidden/x", "data/repo/.git/hooks", "databank", "else"} {
		must.Do(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	must.Do(t, os.WriteFile(filepath.Join(base, "data/file"), nil, 0o600))
	must.Do(t, os.Symlink("../else", filepath.Join(base, "data/link")))
	p = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: base + "/ws", Hide: []string{base + "/data/hidden"}}
	b = Limits{
		Mode: sandbox.FullAccess, Network: Full, Write: []string{base + "/data"}, Ports: []uint16{80, 443},
		Protect: []string{".git/hooks", ".envrc"},
	}
	return base, p, b
}

func TestNothingCanBeAddedUnlessTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	base, p, _ := place(t)
	for _, w := range []Words{
		{Profile: "danger-full-access"}, {Network: "proxy"}, {Network: "full"}, {Host: "pypi.org"}, {Write: base + "/data/out"},
	} {
		if g, err := (Limits{Ports: []uint16{80, 443}}).Check(p, w); g != nil || err == nil || !strings.Contains(err.Error(), "approval.widen.") {
			t.Errorf("%+v: got %+v, %v", w, g, err)
		}
	}
	if o := (Limits{Ports: []uint16{80}}).Offer(p); o != nil {
		t.Errorf("offered %+v", o)
	}
	if g, err := (Limits{}).Check(p, Words{}); g != nil || err != nil {
		t.Errorf("no words: %+v, %v", g, err)
	}
}

func TestWhatIsNotClearOrBeyondTheBoundsIsRefused(t *testing.T) {
	t.Parallel()
	base, p, b := place(t)
	narrow := b
	narrow.Mode, narrow.Network, narrow.Hosts = sandbox.WorkspaceWrite, Off, []string{"*.good.example", "pypi.org:443"}
	reading := p
	reading.Mode = sandbox.ReadOnly
	proxied, open, degraded := p, p, p
	degraded.Tier = sandbox.TierC
	given := p
	given.Tier = sandbox.TierBwrap
	proxied.Ports, open.Network = []uint16{443}, true
	for _, row := range []struct {
		name string
		b    Limits
		p    sandbox.Profile
		w    Words
		want string
	}{
		{"an unknown profile", b, p, Words{Profile: "root"}, "unknown sandbox profile"},
		{"no wider profile", b, p, Words{Profile: "workspace-write"}, "no wider"},
		{"a stricter profile", b, p, Words{Profile: "read-only"}, "no wider"},
		{"a profile beyond the bounds", narrow, p, Words{Profile: "danger-full-access"}, "at most workspace-write"},
		{"more than everything", b, p, Words{Profile: "danger-full-access", Network: "full"}, "nothing else"},
		{"an unknown network", b, p, Words{Network: "on"}, "unknown network"},
		{"no wider network", b, proxied, Words{Network: "proxy"}, "no wider"},
		{"no network", b, p, Words{Network: "off"}, "no wider"},
		{"a network beyond the bounds", narrow, p, Words{Network: "proxy"}, "approval.widen.network in the configuration gives it nothing"},
		{"the network and a host", b, p, Words{Network: "proxy", Host: "pypi.org"}, "not both"},
		{"a host where all are open", b, open, Words{Host: "pypi.org"}, "every host anyway"},
		{"many hosts", b, p, Words{Host: "*.pypi.org"}, "more than one host"},
		{"no host name", b, p, Words{Host: "pypi.org."}, "no host"},
		{"a URL", b, p, Words{Host: "https://pypi.org"}, "no host"},
		{"a port that is not carried", b, p, Words{Host: "pypi.org:22"}, "80, 443"},
		{"a host beyond the bounds", narrow, p, Words{Host: "evil.example"}, "*.good.example"},
		{"a host at more ports than the bounds", narrow, p, Words{Host: "pypi.org"}, "approval.widen.hosts"},
		{"the host of a pattern's end", narrow, p, Words{Host: "good.example"}, "approval.widen.hosts"},
		{"a relative path", b, p, Words{Write: "data/out"}, "absolute"},
		{"a path with ..", b, p, Words{Write: base + "/data/out/../../else"}, "absolute"},
		{"a path with a slash at its end", b, p, Words{Write: base + "/data/out/"}, "absolute"},
		{"a path with a newline", b, p, Words{Write: base + "/data/out\n"}, "invisible characters"},
		{"a path that turns around", b, p, Words{Write: base + "/data/\u202eout"}, "invisible characters"},
		{"a link", b, p, Words{Write: base + "/data/link"}, base + "/else: name that"},
		{"a path through a link", b, p, Words{Write: base + "/data/link/x"}, base + "/else/x"},
		{"a file", b, p, Words{Write: base + "/data/file"}, "is not a directory"},
		{"a folder in a file", b, p, Words{Write: base + "/data/file/x"}, "is not a directory"},
		{"what is not there", b, p, Words{Write: base + "/data/new"}, "does not exist"},
		{"the workspace", b, p, Words{Write: base + "/ws"}, "may write anyway"},
		{"a folder in the workspace", b, p, Words{Write: base + "/ws/in"}, "may write anyway"},
		{"what holds the workspace", b, p, Words{Write: base}, "beside it"},
		{"the root", b, p, Words{Write: "/"}, "beside it"},
		{"a folder that begins like one of the bounds", b, p, Words{Write: base + "/databank"}, "approval.widen.write in the configuration gives it what is in"},
		{"a folder beside the bounds", b, p, Words{Write: base + "/else"}, "approval.widen.write"},
		{"what holds the bounds", b, sandbox.Profile{Mode: sandbox.WorkspaceWrite}, Words{Write: base}, "approval.widen.write"},
		{"a hidden folder", b, p, Words{Write: base + "/data/hidden"}, "hidden"},
		{"a folder in a hidden one", b, p, Words{Write: base + "/data/hidden/x"}, "hidden"},
		{"git's own folder", b, p, Words{Write: base + "/data/repo/.git"}, "sandbox.protect"},
		{"a protected folder", b, p, Words{Write: base + "/data/repo/.git/hooks"}, "sandbox.protect"},
		{"a folder where nothing is written", b, reading, Words{Write: base + "/data/out"}, "widen the profile as well"},
		{"a folder in tier C", b, degraded, Words{Write: base + "/data/out"}, "tier C"},
		{"a host in tier C", b, degraded, Words{Host: "pypi.org"}, "tier C"},
		{"hosts by name in tier C", b, degraded, Words{Network: "proxy"}, "tier C"},
		{"a host in tier A-bwrap", b, given, Words{Host: "pypi.org"}, "tier A-bwrap"},
		{"hosts by name in tier A-bwrap", b, given, Words{Network: "proxy"}, "tier A-bwrap"},
		{"anything where all is open", b, sandbox.Profile{Mode: sandbox.FullAccess}, Words{Write: base + "/data/out"}, "nothing to widen"},
	} {
		g, err := row.b.Check(row.p, row.w)
		if g != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %+v, %v, want %q", row.name, g, err, row.want)
		}
	}
}

func TestAGrantAddsWhatWasSaidAndNothingElse(t *testing.T) {
	t.Parallel()
	base, p, b := place(t)
	b.Hosts = nil
	reading := p
	reading.Mode = sandbox.ReadOnly
	out := base + "/data/out"
	for _, row := range []struct {
		name   string
		p      sandbox.Profile
		w      Words
		change func(*sandbox.Profile)
	}{
		{"the whole network", p, Words{Network: "full"}, func(p *sandbox.Profile) { p.Network = true }},
		{"hosts by name", p, Words{Network: "proxy"}, func(p *sandbox.Profile) { p.Ports = b.Ports }},
		{"one host", p, Words{Host: "PyPI.org:443"}, func(p *sandbox.Profile) { p.Ports = b.Ports }},
		{"a folder", p, Words{Write: out}, func(p *sandbox.Profile) { p.Write = []string{out} }},
		{"a profile", reading, Words{Profile: "workspace-write"}, func(p *sandbox.Profile) { p.Mode = sandbox.WorkspaceWrite }},
		{"a profile and a folder", reading, Words{Profile: "workspace-write", Write: out}, func(p *sandbox.Profile) {
			p.Mode, p.Write = sandbox.WorkspaceWrite, []string{out}
		}},
		{"everything", p, Words{Profile: "danger-full-access"}, func(p *sandbox.Profile) { p.Mode = sandbox.FullAccess }},
	} {
		g, err := b.Check(row.p, row.w)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		want := row.p
		row.change(&want)
		got := g.Escalate(row.p)
		if pinned := got.Pinned[out] != ""; pinned != (row.w.Write != "") || len(got.Pinned) > 1 {
			t.Errorf("%s: pinned are %v", row.name, got.Pinned)
		}
		got.Pinned = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		g.Close()
	}
	must.Match(t, p, (*Escalation)(nil).Escalate(p))
}

// What holds for other calls must not change with this one.
func TestAGrantLeavesTheProfileOfOtherCallsAlone(t *testing.T) {
	t.Parallel()
	base, p, b := place(t)
	p.Write = append(make([]string, 0, 4), base+"/databank")
	g := must.Get(b.Check(p, Words{Write: base + "/data/out"}))(t)
	defer g.Close()
	g.Escalate(p)
	if more := p.Write[:2:2]; more[1] != "" || len(p.Pinned) > 0 {
		t.Errorf("the profile has become %q, %v", more, p.Pinned)
	}
}

func TestOneHostIsAllThatAHostOpens(t *testing.T) {
	t.Parallel()
	_, p, b := place(t)
	b.Network, b.Hosts = Off, []string{"*.good.example", "10.0.0.1:80"}
	for _, row := range []struct {
		word, host  string
		port        uint16
		lets, alone bool
	}{
		{"a.good.example", "a.good.example", 443, true, true},
		{"A.Good.Example:443", "a.good.example", 443, true, true},
		{"a.good.example:443", "a.good.example", 80, false, true},
		{"a.good.example", "b.good.example", 443, false, true},
		{"10.0.0.1:80", "10.0.0.1", 80, true, true},
	} {
		g, err := b.Check(p, Words{Host: row.word})
		if err != nil {
			t.Errorf("%s: %v", row.word, err)
			continue
		}
		if lets, alone := g.Lets(row.host, row.port); lets != row.lets || alone != row.alone {
			t.Errorf("%s lets %s:%d %v, alone %v", row.word, row.host, row.port, lets, alone)
		}
	}
	// Where hosts can be contacted by name anyhow, the one is added to them.
	p.Ports = b.Ports
	g := must.Get(b.Check(p, Words{Host: "a.good.example"}))(t)
	if lets, alone := g.Lets("a.good.example", 80); !lets || alone {
		t.Errorf("lets %v, alone %v", lets, alone)
	}
	if lets, alone := (*Escalation)(nil).Lets("a.good.example", 80); lets || alone {
		t.Error("no grant lets a host be contacted")
	}
}

func TestPeopleAreOfferedWhatTheyMayAdd(t *testing.T) {
	t.Parallel()
	base, p, b := place(t)
	data := []string{base + "/data"}
	reading, proxied, open := p, p, p
	reading.Mode, proxied.Ports, open.Network = sandbox.ReadOnly, []uint16{443}, true
	degraded := p
	degraded.Tier = sandbox.TierC
	given := p
	given.Tier = sandbox.TierBwrap
	few := Limits{Hosts: []string{"pypi.org"}, Write: data}
	for _, row := range []struct {
		name string
		b    Limits
		p    sandbox.Profile
		want *Offer
	}{
		{"much", b, p, &Offer{Profile: []string{"danger-full-access"}, Write: data, Network: []string{"proxy", "full"}, Host: []string{"*"}}},
		{"to one who reads", b, reading, &Offer{Profile: []string{"workspace-write", "danger-full-access"}, Write: data, Network: []string{"proxy", "full"}, Host: []string{"*"}}},
		{"beside a proxy", b, proxied, &Offer{Profile: []string{"danger-full-access"}, Write: data, Network: []string{"full"}, Host: []string{"*"}}},
		{"with the network", b, open, &Offer{Profile: []string{"danger-full-access"}, Write: data}},
		{"in tier A-bwrap", b, given, &Offer{Profile: []string{"danger-full-access"}, Network: []string{"full"}, Write: []string{base + "/data"}}},
		{"in tier C", b, degraded, &Offer{Profile: []string{"danger-full-access"}, Network: []string{"full"}}},
		{"with everything", b, sandbox.Profile{Mode: sandbox.FullAccess}, nil},
		{"few", few, p, &Offer{Write: data, Host: []string{"pypi.org"}}},
		{"few to one who reads", few, reading, &Offer{Host: []string{"pypi.org"}}},
	} {
		if diff := cmp.Diff(row.want, row.b.Offer(row.p)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}

// FuzzCheck looks for words that widen beyond the bounds.
func FuzzCheck(f *testing.F) {
	for _, w := range []Words{{}, {Profile: "workspace-write"}, {Network: "full"}, {Host: "[::1]:443"}, {Write: "/data/x"}, {Host: "*.x"}} {
		f.Add(w.Profile, w.Write, w.Network, w.Host)
	}
	b := Limits{Network: Proxy, Hosts: []string{"pypi.org"}, Write: []string{"/nowhere/at/all"}, Ports: []uint16{443}}
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/ws"}
	f.Fuzz(func(t *testing.T, profile, write, network, host string) {
		g, err := b.Check(p, Words{profile, write, network, host})
		if err != nil {
			return
		}
		defer g.Close()
		got := g.Escalate(p)
		if got.Mode != p.Mode || got.Network || len(got.Write) > 0 {
			t.Errorf("%q %q %q %q widen to %+v", profile, write, network, host, got)
		}
	})
}
