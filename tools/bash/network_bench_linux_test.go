package bash_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// source sends size bytes of zeroes to whoever connects.
func source(b *testing.B, size int) net.Listener {
	b.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	b.Cleanup(func() { l.Close() })
	// Ends when the listener is closed.
	go func() {
		chunk := make([]byte, 1<<20)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for range size / len(chunk) {
				if _, err := c.Write(chunk); err != nil {
					break
				}
			}
			c.Close()
		}
	}()
	return l
}

// BenchmarkEgress tells how fast a call receives by name, divided by how fast it
// receives with the host's network.
func BenchmarkEgress(b *testing.B) {
	const size = 128 << 20
	l := source(b, size)
	i := newInternet(b)
	i.address = l.Addr().String()
	_, port, err := net.SplitHostPort(i.address)
	if err != nil {
		b.Fatal(err)
	}
	receive := func(host, port string, change func(*bash.Options, *tools.IO)) float64 {
		r, out := i.run(b, fmt.Sprintf("exec 3<>/dev/tcp/%s/%s; begin=$EPOCHREALTIME; head -c %d <&3 | wc -c; echo $begin $EPOCHREALTIME", host, port, size), nil, change)
		var n int64
		var begin, end float64
		if _, err := fmt.Sscan(strings.ReplaceAll(out, "\r", ""), &n, &begin, &end); err != nil || n != size || r.IsError {
			b.Fatalf("%s: %v: %q, %+v", host, err, out, r)
		}
		return size / (end - begin) / 1e6
	}
	direct, byName := bothWays(b, port, receive)
	b.ReportMetric(byName, "MB/s")
	b.ReportMetric(byName/direct, "ratio")
}

// bothWays measures in turn with the host's network, at a port of this machine, and by
// name, and returns the middle of each.
func bothWays(b *testing.B, port string, measure func(host, port string, change func(*bash.Options, *tools.IO)) float64) (direct, byName float64) {
	b.Helper()
	var with, without []float64
	for b.Loop() {
		with = append(with, measure("127.0.0.1", port, func(o *bash.Options, _ *tools.IO) { o.Profile.Network = true }))
		without = append(without, measure("pkg.example", "80", nil))
	}
	slices.Sort(with)
	slices.Sort(without)
	return with[len(with)/2], without[len(without)/2]
}

// BenchmarkContact tells how long a connection takes from the question for the name
// to the first byte, by name and with the host's network.
func BenchmarkContact(b *testing.B) {
	i := newInternet(b)
	_, port, err := net.SplitHostPort(i.address)
	if err != nil {
		b.Fatal(err)
	}
	const rounds = 50
	contact := func(host, port string, change func(*bash.Options, *tools.IO)) float64 {
		r, out := i.run(b, fmt.Sprintf("begin=$EPOCHREALTIME; for i in {1..%d}; do exec 3<>/dev/tcp/%s/%s; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; read -r -n 1 <&3; done; echo $begin $EPOCHREALTIME", rounds, host, port), nil, change)
		var begin, end float64
		if _, err := fmt.Sscan(out, &begin, &end); err != nil || r.IsError {
			b.Fatalf("%s: %v: %q, %+v", host, err, out, r)
		}
		return (end - begin) / rounds * 1e6
	}
	direct, byName := bothWays(b, port, contact)
	b.ReportMetric(byName, "us")
	b.ReportMetric(byName-direct, "us-more")
}
