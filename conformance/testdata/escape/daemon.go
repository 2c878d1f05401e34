//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// daemon stands in for what else runs on the machine of a developer: servers on
// loopback, the internet and the metadata service, local sockets, and secrets in
// memory, environment and open files. Whatever reaches it stands in the log.
// daemon LOG HOME JOURNAL prints "ready" and runs until it is killed.
func daemon(a args) int {
	file, err := os.OpenFile(a.text(0), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l := &logbook{to: file}
	l.signals()
	journal, err := os.Open(a.text(2))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	secret := []byte(strings.ToUpper("mem" + "secret"))
	if _, _, err := addKey(nil); err != nil {
		l.line("NOTE no key: " + err.Error())
	}
	if err := l.listen(a.text(1)); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) // until the world ends
	fmt.Fprintln(io.Discard, journal.Name(), string(secret))
	return 0
}

// logbook takes lines from several goroutines.
type logbook struct {
	mu sync.Mutex
	to io.Writer
}

func (l *logbook) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.to, text)
}

func (l *logbook) signals() {
	news := make(chan os.Signal, 16)
	signal.Notify(news, unix.SIGUSR1, unix.SIGUSR2, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGIO, unix.SIGCONT)
	// Ends with the process.
	go func() {
		for s := range news {
			l.line("SIGNAL " + s.String())
		}
	}()
}

func (l *logbook) listen(home string) error {
	for _, at := range internet() {
		if err := l.stream("tcp", at, at); err != nil && !strings.Contains(at, "::") { // a machine may have no IPv6
			return err
		}
	}
	for _, at := range []string{"203.0.113.5:53", "127.0.0.1:5353", "93.184.216.34:443"} {
		if err := l.packets("udp", at); err != nil {
			return err
		}
	}
	resolver := &names{log: l, asked: map[string]int{}}
	if err := resolver.serve("127.0.0.53:53"); err != nil {
		return err
	}
	paths := []string{
		"/run/docker.sock", "/run/containerd.sock", "/run/user/1001/bus", "/run/systemd.sock", "/tmp/hosttmp.sock",
		home + "/.app/ipc.sock", home + "/.ssh-agent.sock",
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := l.stream("unix", path, path); err != nil {
			return err
		}
	}
	if err := l.stream("unix", "@/tmp/.X11-unix/X0", "@/tmp/.X11-unix/X0"); err != nil {
		return err
	}
	if err := l.stream("unixpacket", home+"/.app/seq.sock", home+"/.app/seq.sock"); err != nil {
		return err
	}
	return l.packets("unixgram", "/run/journal.sock", home+"/.app/dgram.sock")
}

// internet are the addresses at which somebody answers: of this machine, of the world
// outside, and of a cloud's metadata. 203.0.113.5 is one of this machine's own.
func internet() []string {
	list := []string{"127.0.0.1:7777", "[::1]:7777", "127.0.0.1:80", "203.0.113.5:80", "203.0.113.5:443", "203.0.113.5:7777", "169.254.169.254:80", "169.254.169.254:7777"}
	for _, host := range []string{"34", "35", "36", "37", "66"} {
		list = append(list, "93.184.216."+host+":80", "93.184.216."+host+":443")
	}
	return list
}

// stream accepts connections. Each is in the log before anything is read of it.
func (l *logbook) stream(network, at, name string) error {
	listener, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	// Ends with the process.
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			l.line("HIT " + strings.TrimSuffix(network, "packet") + ":" + name)
			// Ends with the connection.
			go func() {
				defer c.Close()
				text, _ := bufio.NewReader(c).ReadString('\n')
				l.line("HIT " + network + ":" + name + " said " + printable(text))
				fmt.Fprintf(c, "hello from %s\n", name)
			}()
		}
	}()
	return nil
}

// printable is a text as one line of the log.
func printable(text string) string {
	quoted := strconv.Quote(strings.TrimSpace(text))
	return quoted[1 : len(quoted)-1]
}

func (l *logbook) packets(network string, at ...string) error {
	for _, name := range at {
		c, err := net.ListenPacket(network, name)
		if err != nil {
			return err
		}
		// Ends with the process.
		go func() {
			b := make([]byte, 4096)
			for {
				n, _, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				l.line(fmt.Sprintf("HIT %s:%s said %q", network, name, b[:n]))
			}
		}()
	}
	return nil
}

// socat stands in for the tool of that name, in the one form that is used:
// -u UNIX-LISTEN:path,fork OPEN:path,append.
func socat(a args) int {
	var from, to string
	for _, word := range a {
		kind, rest, _ := strings.Cut(word, ":")
		path, _, _ := strings.Cut(rest, ",")
		switch kind {
		case "UNIX-LISTEN":
			from = path
		case "OPEN":
			to = path
		}
	}
	l, err := net.Listen("unix", from)
	if err != nil {
		return 1
	}
	signal.Ignore(syscall.SIGHUP)
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		out, err := os.OpenFile(to, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return 1
		}
		io.Copy(out, c)
		out.Close()
		c.Close()
	}
}
