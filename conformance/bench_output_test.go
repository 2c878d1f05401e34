//go:build linux

package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// stamps prints lines that hold the time at which each was printed, in
// microseconds.
const stamps = `exec 9<> <(:); for i in {1..300}; do echo "${EPOCHREALTIME//[.,]/}"; read -t 0.004 -u 9; done; true`

// age is how old a stamp is.
func age(line string, now time.Time) (time.Duration, bool) {
	us, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return now.Sub(time.UnixMicro(us)), err == nil
}

// BenchmarkLatency is the time from a byte's being printed to its being at the
// client, laid beside a bare pipe.
func BenchmarkLatency(b *testing.B) {
	for _, terminal := range []string{"split", "off"} {
		b.Run(terminal, func(b *testing.B) {
			r := newRig(b, nil)
			agent := r.dial(client.Options{})
			var s samples
			for b.Loop() {
				r.bash(agent, stamps, terminal, client.Events{Output: func(_ message.OutputDelta, data []byte) {
					now := time.Now()
					for line := range strings.Lines(string(data)) {
						if d, ok := age(line, now); ok {
							s.ours = append(s.ours, d)
						}
					}
				}})
				s.floor = append(s.floor, pipeLatency(b)...)
			}
			s.report(b, "pipe")
		})
	}
}

func pipeLatency(b *testing.B) (list []time.Duration) {
	b.Helper()
	cmd := exec.Command("bash", "-c", stamps)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if d, ok := age(lines.Text(), time.Now()); ok {
			list = append(list, d)
		}
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return list
}

// BenchmarkBulk is 256 MiB from a command to a client that reads all it gets,
// laid beside a bare pipe or terminal. What the client did not get live, because
// it was slower than the command, is told as skipped.
func BenchmarkBulk(b *testing.B) {
	const size = 256 << 20
	script := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)
	for _, terminal := range []string{"split", "off"} {
		for _, form := range []string{"text", "binary"} {
			b.Run(terminal+"/"+form, func(b *testing.B) {
				r := newRig(b, nil)
				agent := r.dial(client.Options{Binary: form == "binary"})
				var ours, bare time.Duration
				var got int64
				for b.Loop() {
					begun := time.Now()
					r.bash(agent, script, terminal, client.Events{Output: func(_ message.OutputDelta, data []byte) { got += int64(len(data)) }})
					middle := time.Now()
					bareBulk(b, script, terminal, size)
					ours, bare = ours+middle.Sub(begun), bare+time.Since(middle)
				}
				total := float64(b.N) * size
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(got)/(1<<20)/ours.Seconds(), "MiB/s-live")
				b.ReportMetric(float64(got)/total/float64(ours)*float64(bare), "x-rate-of-bare")
				b.ReportMetric(float64(ours)/float64(bare), "x-time-of-bare")
				b.ReportMetric(1-float64(got)/total, "skipped")
			})
		}
	}
}

// bareBulk runs a command and reads its output from a pipe or a terminal.
func bareBulk(b *testing.B, script, terminal string, size int64) {
	b.Helper()
	cmd := exec.Command("bash", "-c", script)
	if terminal == "off" {
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if n, _ := io.Copy(io.Discard, out); n != size {
			b.Fatalf("%d bytes came", n)
		}
	} else {
		// As toold has it: a terminal that changes nothing.
		cmd.Args[2] = "stty -opost; " + script
		master, terminal, err := suite.OpenTerminal()
		if err != nil {
			b.Fatal(err)
		}
		defer master.Close()
		cmd.Stdin, cmd.Stdout = terminal, terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = cmd.Start()
		terminal.Close()
		if err != nil {
			b.Fatal(err)
		}
		if n, _ := io.Copy(io.Discard, master); n < size {
			b.Fatalf("%d bytes came", n)
		}
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBesideFlood is a small call beside one that prints all the time, laid
// beside one alone: on the same connection, whose client reads, and on another than
// that of a client that does not read.
func BenchmarkBesideFlood(b *testing.B) {
	// Prints now and then, so that the time is that of the daemon and not of a
	// processor that is busy with the flood.
	const flood = `exec 9<> <(:); while :; do printf '%065536d' 0; read -t 0.01 -u 9; done`
	b.Run("same-connection", func(b *testing.B) {
		r := newRig(b, nil)
		agent := r.dial(client.Options{})
		var s samples
		for range 100 {
			s.floor = append(s.floor, r.oneCall(agent))
		}
		ended := make(chan error, 1)
		// Ends when the call is cancelled below.
		go func() {
			_, err := agent.Call(b.Context(), client.Call{ID: "flood", Tool: "bash", Arguments: map[string]any{"command": flood, "terminal": "off"}}, client.Events{})
			ended <- err
		}()
		for b.Loop() {
			for range 100 {
				s.ours = append(s.ours, r.oneCall(agent))
			}
		}
		if err := agent.Cancel("flood", ""); err != nil {
			b.Fatal(err)
		}
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		s.report(b, "alone")
	})
	b.Run("stalled-client", func(b *testing.B) {
		r := newRig(b, nil)
		agent := r.dial(client.Options{})
		stalled, err := dial(b.Context(), r.daemon, "stalled", 0, r.daemon.tokens["agent"], func(*conn, int, []byte) {}, func() {})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(stalled.close)
		var s samples
		for range 100 {
			s.floor = append(s.floor, r.oneCall(agent))
		}
		stalled.pause()
		frame := fmt.Sprintf(`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"flood","tool_name":"bash","arguments":{"command":%s,"terminal":"off"}}}`, text(flood))
		if err := stalled.send(websocket.TextMessage, []byte(frame)); err != nil {
			b.Fatal(err)
		}
		resetPeak(r.daemon.pid)
		before := memory(r.daemon.pid, "VmRSS")
		for b.Loop() {
			for range 100 {
				s.ours = append(s.ours, r.oneCall(agent))
			}
		}
		s.report(b, "alone")
		b.ReportMetric(float64(memory(r.daemon.pid, "VmHWM")-before)/(1<<20), "MiB-grown")
	})
}

func (r *rig) oneCall(c *client.Client) time.Duration {
	begun := time.Now()
	r.bash(c, "true", "off", client.Events{})
	return time.Since(begun)
}
