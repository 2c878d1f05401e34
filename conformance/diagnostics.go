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

// diagnostics describes what may explain a failure that cannot be repeated: the end of the daemon's log, its processes,
// and the load of the machine.
func (d *daemon) diagnostics() string {
	if d == nil {
		return "there is no daemon; " + systemLoad()
	}
	list := processes()
	text := d.log.text() + "\nprocesses:"
	if !d.alive() {
		text = fmt.Sprintf("the daemon has ended (%v); %s", d.status, text)
	}
	for _, line := range processTree(list, d.pid, 1) {
		text += "\n" + line
	}
	return text + fmt.Sprintf("\n%d processes on the machine; %s", len(list), systemLoad())
}

type process struct {
	pid, parent, state, command string
}

// processes lists the processes of the machine.
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

// processTree shows a process and its descendants, indented by depth.
func processTree(list []process, pid any, depth int) (lines []string) {
	const limit = 60
	at := slices.IndexFunc(list, func(p process) bool { return p.pid == fmt.Sprint(pid) })
	if at < 0 {
		return nil
	}
	p := list[at]
	lines = []string{fmt.Sprintf("%*s%s %s %.160q", 2*depth, "", p.pid, p.state, p.command)}
	for _, child := range list {
		if child.parent == p.pid && len(lines) < limit {
			lines = append(lines, processTree(list, child.pid, depth+1)...)
		}
	}
	return lines
}

// systemLoad describes the load of the machine and, where the kernel has them, its pressure stalls (proc_pressure(5)).
func systemLoad() string {
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

// transcript lists what clients received, shortened.
func transcript(frames []frame, since time.Time) string {
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
