package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toold/toold/internal/must"
)

func TestNamesAreOneFormOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.org": "example.org", "EXAMPLE.org": "example.org", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"_srv.example": "_srv.example", "localhost": "localhost", "1.example": "1.example",
	} {
		if got, err := ParseName(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ".", "example.org.", "a..b", ".a", "-a.example", "a-.example", "a b", "a\x00.example", "evil.example\x00.good.example",
		"bücher.example", "\u212a.example", "\u017f.example", "a/b", "a:80", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "::1", "1.2.3.4.5", "a.0x10",
		strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "aa", "user@host", "a%b", "*.example",
	} {
		if got, err := ParseName(text); err == nil {
			t.Errorf("%q is the name %q", text, got)
		}
	}
}

func TestPatternsMatchWholeLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, host string
		port          uint16
		want          bool
	}{
		{"pypi.org", "pypi.org", 443, true},
		{"PyPI.org", "pypi.org", 80, true},
		{"pypi.org", "files.pypi.org", 443, false},
		{"*.pypi.org", "files.pypi.org", 443, true},
		{"*.pypi.org", "pypi.org", 443, false},
		{"*.pypi.org", "evilpypi.org", 443, false},
		{"pypi.org:443", "pypi.org", 443, true},
		{"pypi.org:443", "pypi.org", 80, false},
		{"*.pypi.org:443", "a.b.pypi.org", 443, true},
		{"10.0.0.1", "10.0.0.1", 80, true},
		{"10.0.0.1:80", "10.0.0.1", 80, true},
		{"::1", "::1", 80, true},
		{"[2606:4700::1]:443", "2606:4700::1", 443, true},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil || p.Matches(c.host, c.port) != c.want {
			t.Errorf("%s for %s:%d: %v, %v", c.pattern, c.host, c.port, !c.want, err)
		}
	}
	for _, text := range []string{"", "*", "*.", "*.*.org", "a.*", "http://a", "a:0", "a:65536", "a:x", "a.", "10.0.0.0/8"} {
		if _, err := ParsePattern(text); err == nil {
			t.Errorf("%q is a pattern", text)
		}
	}
}

func TestOnlyPublicAddressesAreFit(t *testing.T) {
	t.Parallel()
	s := New(Options{Private: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	for _, text := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"198.18.0.1", "::1", "::", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
		"64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "::127.0.0.1", "fec0::1",
		// The registries of IANA, the first and the last address of each entry.
		"0.255.255.255", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.255.255.255", "169.254.0.0", "169.254.255.255", "172.31.255.255",
		"192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.2", "192.168.255.255", "192.175.48.6",
		"198.19.255.255", "198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.254", "239.255.255.255", "168.63.129.16", "::ffff:168.63.129.16",
		"64:ff9b::a83f:8110", "64:ff9b:1::a00:1", "100::1", "100:0:0:1::1", "2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1",
		"2001:1ff:ffff::1", "2001:db8::1", "2002:a83f:8110::1", "2620:4f:8000::1", "3fff::1", "3fff:fff::1", "5f00::1", "5f00:ffff::1", "fc00::1", "fdff::1", "fe80::1",
		"febf::1", "fecf::1", "ff00::1", "4000::1", "8000::1", "e000::1", "1fff::1", "200::1", "400::1", "::ffff:0:7f00:1", "::ffff:10.0.0.1",
	} {
		if s.unfit(netip.MustParseAddr(text)) == nil {
			t.Errorf("%s may be contacted", text)
		}
	}
	for _, text := range []string{"8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "168.63.129.17", "2001:200::1", "2a00:1450::1", "2003::1", "2620:4f:8001::1", "3ffd::1", "10.1.2.3", "::ffff:10.1.2.3"} {
		if err := s.unfit(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s.unfit(netip.Addr{}) == nil {
		t.Error("no address may be contacted")
	}
}

func serve(t *testing.T, o Options) (*Server, net.Conn) {
	t.Helper()
	dns := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	asker := must.Get(net.Dial("udp", dns.LocalAddr().String()))(t)
	tcp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := New(o)
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{tcp}) })
	t.Cleanup(func() { stop(); serving.Wait(); asker.Close() })
	return s, asker
}

func question(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n := must.Get(dnsmessage.NewName(name))(t)
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	b := must.Get(m.Pack())(t)
	return b
}

func ask(t *testing.T, to net.Conn, packet []byte) dnsmessage.Message {
	t.Helper()
	must.Get(to.Write(packet))(t)
	buf := make([]byte, 4<<10)
	n := must.Get(to.Read(buf))(t)
	var m dnsmessage.Message
	must.Do(t, m.Unpack(buf[:n]))
	return m
}

func publicly(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func TestAnswersSayWhatWasDecided(t *testing.T) {
	t.Parallel()
	s, asker := serve(t, Options{
		Allow: func(_ context.Context, host string, _ []uint16) error {
			if host == "no.example" {
				return errors.New("no")
			}
			return nil
		},
		Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			if host == "missing.example" {
				return nil, errors.New("no such host")
			}
			return publicly(ctx, host)
		},
	})
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		answers int
	}{
		{"yes.example.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"YES.example.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"yes.example.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 0},
		{"yes.example.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, 0},
		{"no.example.", dnsmessage.TypeA, dnsmessage.RCodeRefused, 0},
		{"missing.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"a\x00b.example.", dnsmessage.TypeA, dnsmessage.RCodeRefused, 0},
		{"1.2.3.4.", dnsmessage.TypeA, dnsmessage.RCodeRefused, 0},
	} {
		m := ask(t, asker, question(t, c.name, c.kind))
		if m.RCode != c.code || len(m.Answers) != c.answers || m.ID != 7 || m.Questions[0].Name.String() != c.name {
			t.Errorf("%q: %+v", c.name, m)
		}
	}
	if got := s.Refusals(); len(got) != 1 || got[0].Host != "no.example" || got[0].Port != 0 || got[0].Why.Error() != "no" {
		t.Errorf("refusals are %+v", got)
	}
}

func TestGarbageIsNotAnswered(t *testing.T) {
	t.Parallel()
	_, asker := serve(t, Options{Allow: func(context.Context, string, []uint16) error { return nil }, Lookup: publicly})
	good := question(t, "yes.example.", dnsmessage.TypeA)
	response := append([]byte(nil), good...)
	response[2] |= 0x80
	for _, packet := range [][]byte{{}, {1}, good[:len(good)-3], response} {
		must.Get(asker.Write(packet))(t)
	}
	good[1] = 9
	if m := ask(t, asker, good); m.ID != 9 || len(m.Answers) != 1 {
		t.Errorf("the first answer is %+v", m)
	}
}

func TestACallCannotAskForNamesWithoutEnd(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	for i := range maxNames {
		if _, err := s.recordOf(string(rune('a'+i%26)) + strings.Repeat("b", i/26) + ".example"); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := s.recordOf("one.more.example"); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
	if n, err := s.recordOf("a.example"); err != nil || s.byAddr[n.address] != n {
		t.Errorf("a known name: %v, %v", n, err)
	}
}

func FuzzParseQuestion(f *testing.F) {
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03yes\x07example\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		q, head, ok := parseQuestion(packet)
		if !ok {
			return
		}
		s := New(Options{Allow: func(context.Context, string, []uint16) error { return nil }, Lookup: publicly})
		if reply := s.reply(t.Context(), head, q); reply != nil {
			var m dnsmessage.Message
			if err := m.Unpack(reply); err != nil || m.ID != head.ID || !m.Response {
				t.Errorf("the reply is %+v, %v", m, err)
			}
		}
	})
}

func FuzzParseName(f *testing.F) {
	f.Add("example.org")
	f.Add("a\x00.b")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := ParseName(text)
		if err != nil {
			return
		}
		if again, err := ParseName(name); err != nil || again != name || strings.ContainsAny(name, "\x00 /:*ABC") {
			t.Errorf("%q became %q, then %q, %v", text, name, again, err)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("%q is an address", name)
		}
	})
}

// No name server says that loopback is elsewhere.
func TestLocalhostIsNotLookedUp(t *testing.T) {
	t.Parallel()
	s := New(Options{Allow: func(context.Context, string, []uint16) error { return nil }})
	for _, host := range []string{"localhost", "box.localhost"} {
		n := must.Get(s.recordOf(host))(t)
		if found, err := s.addresses(t.Context(), n, 80); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s is %v, %v", host, found, err)
		}
	}
}
