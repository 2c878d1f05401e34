//go:build linux

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scene is what may explain a failure that nobody can repeat: the end of the daemon's
// log, the processes below it, and how busy the machine is.
func (d *daemon) scene() string {
	if d == nil {
		return "there is no daemon; " + busy()
	}
	list := processes()
	text := d.log.text() + "\nprocesses:"
	if !d.alive() {
		text = fmt.Sprintf("the daemon has ended (%v); %s", d.status, text)
	}
	for _, line := range below(list, d.pid, 1) {
		text += "\n" + line
	}
	return text + fmt.Sprintf("\n%d processes on the machine; %s", len(list), busy())
}

// process is what is shown of one.
type process struct {
	pid, parent, state, command string
}

// processes lists those that the machine has, by their pid.
func processes() (list []process) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range files {
		stat, err := os.ReadFile(path)
		name, rest, ok := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if err != nil || !ok || len(fields) < 2 {
			continue // it has ended
		}
		_, comm, _ := strings.Cut(string(name), "(")
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if line = bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte{' '})); len(line) == 0 {
			line = []byte("(" + comm + ")")
		}
		list = append(list, process{filepath.Base(filepath.Dir(path)), fields[1], fields[0], string(line)})
	}
	return list
}

// below shows a process and its descendants, each further to the right.
func below(list []process, pid any, depth int) (lines []string) {
	const most = 60
	at := slices.IndexFunc(list, func(p process) bool { return p.pid == fmt.Sprint(pid) })
	if at < 0 {
		return nil
	}
	p := list[at]
	lines = []string{fmt.Sprintf("%*s%s %s %.160q", 2*depth, "", p.pid, p.state, p.command)}
	for _, child := range list {
		if child.parent == p.pid && len(lines) < most {
			lines = append(lines, below(list, child.pid, depth+1)...)
		}
	}
	return lines
}

// busy is the load of the machine, and how much of the last seconds work has waited
// for processors, memory and disks (proc_pressure(5)), where the kernel tells.
func busy() string {
	load, _ := os.ReadFile("/proc/loadavg")
	text := "load " + strings.TrimSpace(string(load))
	for _, what := range []string{"cpu", "memory", "io"} {
		pressure, _ := os.ReadFile("/proc/pressure/" + what)
		if first, _, ok := strings.Cut(string(pressure), "\n"); ok {
			text += "; " + what + " " + first
		}
	}
	return text
}

// story is what clients saw, for a reason.
func story(frames []frame, since time.Time) string {
	var b strings.Builder
	for i, f := range frames {
		if i == 10 && len(frames) > 14 {
			fmt.Fprintf(&b, "\n  … %d more", len(frames)-14)
		}
		if i < 10 || i >= len(frames)-4 {
			fmt.Fprintf(&b, "\n  %6.3f s on %s: %.500s", f.at.Sub(since).Seconds(), f.conn, text(f.value))
		}
	}
	return b.String()
}
