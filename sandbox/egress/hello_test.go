package egress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toold/toold/internal/must"
)

func record(piece []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{typeHandshake, 3, 1}, uint16(len(piece))), piece...)
}

func greeting(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	// Ends when the pipe is closed.
	go func() {
		defer close(done)
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(t.Context())
	}()
	head := make([]byte, 5)
	must.Get(io.ReadFull(server, head))(t)
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	must.Get(io.ReadFull(server, body))(t)
	server.Close()
	<-done
	return append(head, body...)
}

func withExtensions(extensions ...[]byte) []byte {
	all := slices.Concat(extensions...)
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 0x01, 1, 0)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(all))), all...)
	return record(append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...))
}

func naming(kind byte, names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(binary.BigEndian.AppendUint16(append(list, kind), uint16(len(n))), n...)
	}
	body := append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)
	return append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(body))), body...)
}

func scattered(hello []byte) (all []byte) {
	for _, b := range hello[5:] {
		all = append(all, record([]byte{b})...)
	}
	return all
}

func TestTheNameInTLSIsFoundHoweverItIsSent(t *testing.T) {
	t.Parallel()
	real := greeting(t, "pkg.example")
	for what, c := range map[string]struct {
		said, name string
	}{
		"a real client":         {string(real), "pkg.example"},
		"a byte a record":       {string(scattered(real)), "pkg.example"},
		"upper case":            {string(withExtensions(naming(0, "PKG.example"))), "pkg.example"},
		"no name":               {string(withExtensions()), ""},
		"a real one of no name": {string(greeting(t, "127.0.0.1")), ""},
		"a web request":         {"GET / HTTP/1.0\r\n\r\n", ""},
		"one letter":            {"G", ""},
		"nothing":               {"", ""},
		"bytes beside TLS":      {"\x13\x03\x01\x19\x03", ""},
	} {
		for way, from := range map[string]io.Reader{
			"at once": strings.NewReader(c.said), "byte for byte": iotest.OneByteReader(strings.NewReader(c.said)),
		} {
			first, name, err := readFirst(from)
			rest, _ := io.ReadAll(from)
			if err != nil || name != c.name || string(first)+string(rest) != c.said {
				t.Errorf("%s, %s: the name is %q, %v; %d of %d bytes are left", what, way, name, err, len(first)+len(rest), len(c.said))
			}
		}
	}
}

func TestWhatIsOddAboutTLSIsRefused(t *testing.T) {
	t.Parallel()
	good := withExtensions(naming(0, "pkg.example"))
	alert, empty, long := []byte{21, 3, 1, 0, 2, 1, 90}, record(nil), slices.Clone(good)
	long[6] = 1 // 64 KiB
	for what, said := range map[string][]byte{
		"two lists":              withExtensions(naming(0, "pkg.example"), naming(0, "evil.example")),
		"two names":              withExtensions(naming(0, "pkg.example", "evil.example")),
		"no name in the list":    withExtensions(naming(0)),
		"another kind of name":   withExtensions(naming(1, "evil.example")),
		"several kinds of names": withExtensions(naming(0, "pkg.example"), naming(1, "evil.example")),
		"NUL":                    withExtensions(naming(0, "evil.example\x00.pkg.example")),
		"a dot at the end":       withExtensions(naming(0, "pkg.example.")),
		"an address":             withExtensions(naming(0, "10.0.0.1")),
		"an alert first":         slices.Concat(alert, good),
		"an empty record":        slices.Concat(empty, good),
		"another message":        record([]byte{2, 0, 0, 0}),
		"too long":               long,
		"cut extensions":         withExtensions(naming(0, "pkg.example")[:8]),
	} {
		if first, name, err := readFirst(bytes.NewReader(said)); !errors.Is(err, errHello) {
			t.Errorf("%s: passed on as %q for %q, %v", what, first, name, err)
		}
	}
	for kind := range 5 {
		for _, version := range []uint16{0, 0x0002, 0x0103, 0x0200, 0x0201, 0x02ff, 0x0300, 0x0301, 0x0401, 0x0fff, 0x1603, 0xfeff} {
			said := slices.Clone(good)
			said[0] = byte(20 + kind)
			binary.BigEndian.PutUint16(said[1:], version)
			if _, _, err := readFirst(bytes.NewReader(said)); !errors.Is(err, errHello) && (said[0] != typeHandshake || said[1] != 3) {
				t.Errorf("content type %d, version %04x: %v", said[0], version, err)
			}
		}
	}
	if _, _, err := readFirst(bytes.NewReader(good[:len(good)-1])); !errors.Is(err, errEnded) {
		t.Errorf("one that ends early: %v", err)
	}
}

func TestTLSForAnotherNameIsNotPassedOn(t *testing.T) {
	t.Parallel()
	evil := withExtensions(naming(0, "evil.example"))
	for what, c := range map[string]struct {
		to     target
		others bool
		passed bool
	}{
		"another name":                {target{name: "pkg.example", port: 443}, false, false},
		"the same name":               {target{name: "evil.example", port: 443}, false, true},
		"an address":                  {target{port: 443}, false, true},
		"another name, not looked at": {target{name: "pkg.example", port: 443}, true, true},
	} {
		s := New(Options{OtherNames: c.others})
		var out bytes.Buffer
		from := bytes.NewReader(evil)
		err := s.forwardFirst(&out, from, c.to)
		_, _ = io.Copy(&out, from) // as join does
		if passed := err == nil; passed != c.passed || passed && !bytes.Equal(out.Bytes(), evil) || !passed && out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes passed on", what, err, out.Len())
		}
		if got := s.Refusals(); !c.passed && (len(got) != 1 || got[0].Host != "pkg.example" || got[0].Port != 443 || !strings.Contains(got[0].Why.Error(), "is for evil.example; sandbox.egress.sni_check")) {
			t.Errorf("%s: the refusals are %+v", what, got)
		}
	}
}

// A TLS server that accepts record versions that were never assigned is not reached
// under another name.
func TestNoRecordVersionHidesTheName(t *testing.T) {
	t.Parallel()
	cert := certificate(t)
	for _, version := range []uint16{0x0000, 0x0103, 0x0201, 0x0302, 0x0401, 0x0fff} {
		said := greeting(t, "evil.example")
		binary.BigEndian.PutUint16(said[1:], version)
		asked := make(chan string, 1)
		inside, outside := net.Pipe()
		done := make(chan struct{})
		// Ends when the pipe is closed.
		go func() {
			defer close(done)
			_ = tls.Server(outside, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				asked <- h.ServerName
				return cert, nil
			}}).HandshakeContext(t.Context())
		}()
		if err := New(Options{}).forwardFirst(inside, bytes.NewReader(said), target{name: "pkg.example", port: 443}); err == nil {
			t.Errorf("record version %04x: the server is asked for %q", version, <-asked)
		}
		inside.Close()
		<-done
	}
}

func certificate(t *testing.T) *tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func FuzzReadFirst(f *testing.F) {
	f.Add(withExtensions(naming(0, "pkg.example")))
	f.Add(scattered(withExtensions(naming(0, "pkg.example"))))
	f.Add([]byte("GET / HTTP/1.0\r\n"))
	f.Add([]byte{22, 2, 1, 0, 1, 1})
	f.Fuzz(func(t *testing.T, said []byte) {
		from := bytes.NewReader(said)
		first, name, err := readFirst(from)
		if err != nil {
			return
		}
		if len(first) > 0 && first[0] >= 20 && first[0] <= 24 && (first[0] != typeHandshake || first[1] != 3) {
			t.Errorf("%.6x is passed on", first)
		}
		rest, _ := io.ReadAll(from)
		if !bytes.Equal(append(first, rest...), said) {
			t.Errorf("what is passed on is not what was said")
		}
		if again, err := ParseName(name); name != "" && (err != nil || again != name) {
			t.Errorf("the name is %q, %v", name, err)
		}
	})
}
