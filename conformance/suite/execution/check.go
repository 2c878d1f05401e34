//go:build linux

package execution

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/conformance/suite"
)

// runChecks lists what can be expected of a command on any target, beside its output; see
// StreamCheck.
func runChecks() map[string]func(r *run, want json.RawMessage) string {
	return map[string]func(r *run, want json.RawMessage) string{
		"status":    func(r *run, want json.RawMessage) string { return compare(r.status, want) },
		"exit_code": func(r *run, want json.RawMessage) string { return compare(float64(r.result.Exit), want) },
		"signal": func(r *run, want json.RawMessage) string {
			if r.result.Signal == suite.UnknownSignal && r.result.Exit > 128 {
				return ""
			}
			return compare(r.result.Signal, want)
		},
		"within_s": number(func(r *run, s float64) string {
			limit := time.Duration(s * float64(time.Second))
			if r.elapsed > hopelessFactor*limit {
				return fmt.Sprintf("is %v: it took %v", limit, r.elapsed)
			}
			r.p.late.Check("within_s is", r.elapsed, limit)
			return ""
		}),
		"min_s": number(func(r *run, s float64) string {
			if r.elapsed.Seconds() < s {
				return fmt.Sprintf("is %v: it took %v", s, r.elapsed)
			}
			return ""
		}),
		"stdout_only_token": func(r *run, _ json.RawMessage) string {
			return suite.Differs(strings.ReplaceAll(r.result.Stdout, r.token+"\n", ""), "")
		},
		"no_process": func(r *run, want json.RawMessage) string { return r.noProcess(texts(want)[0]) },
		"no_process_after_s": func(r *run, _ json.RawMessage) string {
			return "" // noProcess looks
		},
		"side_effects": func(r *run, want json.RawMessage) string {
			e, err := ReadEffects(want)
			if err != nil {
				return err.Error()
			}
			defer e.CleanUp(r.dir())
			if e.ProcessAlive != "" {
				return "cannot be checked: it needs a call in the background"
			}
			return e.Check(r.dir())
		},
	}
}

// hopelessFactor times its limit is how long a command may take to be played again.
const hopelessFactor = 10

// ownExpectations are those about the protocol or the daemon of toold.
var ownExpectations = strings.Fields(`exit_codes_all truncated error_type reason results last_event events events_not spool_bytes
	leftover_reported reassembled_exact stream_text_no_replacement rlimit_nofile_equals_daemon_start no_leak daemon_rss_growth_mb_max daemon_alive`)

// known reports whether there is a check for an expectation.
func known(name string) bool {
	_, check := StreamCheck(name)
	return check != nil || runChecks()[name] != nil || slices.Contains(ownExpectations, name)
}

func number(check func(r *run, n float64) string) func(r *run, raw json.RawMessage) string {
	return func(r *run, raw json.RawMessage) string {
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil {
			return "cannot be understood: " + err.Error()
		}
		return check(r, n)
	}
}

func (r *run) dir() string { return filepath.Join(r.p.base, "ws") }

func (r *run) noProcess(prefix string) string {
	return NoProcess(r.p.c, prefix, r.p.mark, r.p.base, time.Second)
}

// NoProcess returns the process of a case whose command line still begins with prefix after soon, or does again within
// the time that the case names; "" if there is none.
func NoProcess(c Case, prefix, mark, base string, soon time.Duration) string {
	suite.Poll(soon, func() bool { return Alive(prefix, mark, base) == "" })
	if line := Alive(prefix, mark, base); line != "" {
		return "is still there: " + line
	}
	var after float64
	if raw, ok := c.Expect["no_process_after_s"]; ok && json.Unmarshal(raw, &after) == nil {
		suite.Poll(time.Duration(after*float64(time.Second)), func() bool { return Alive(prefix, mark, base) != "" })
		if line := Alive(prefix, mark, base); line != "" {
			return "came back: " + line
		}
	}
	return ""
}

// Alive returns a process whose command line begins with prefix, with or without the directory of its program, and that
// belongs to a case by its mark, environment or directory; "" if there is none.
func Alive(prefix, mark, base string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			continue
		}
		line := strings.TrimRight(strings.ReplaceAll(string(raw), "\x00", " "), " ")
		program, rest, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(filepath.Base(program)+" "+rest, prefix) && !strings.HasPrefix(line, prefix) {
			continue
		}
		if strings.Contains(line, mark) || belongs(filepath.Dir(path), base) {
			return path + ": " + line
		}
	}
	return ""
}

// belongs reports whether a process names a directory in its environment, or runs in it.
func belongs(proc, base string) bool {
	env, _ := os.ReadFile(filepath.Join(proc, "environ"))
	dir, _ := os.Readlink(filepath.Join(proc, "cwd"))
	return bytes.Contains(env, []byte(base)) || strings.HasPrefix(dir, base)
}

// killLeftovers kills the remaining processes of a case.
func killLeftovers(mark, base string) {
	files, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range files {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if pid != os.Getpid() && (bytes.Contains(line, []byte(mark)) || belongs(proc, base)) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Effects are the files that a case expects, and what it expects of what goes on.
type Effects struct {
	NoFile    string         `json:"no_file"`
	FileLines map[string]int `json:"file_lines"`
	Cleanup   string         `json:"cleanup"`

	// Of a call in the background, which only toold has:
	ProcessAlive     string `json:"process_alive"`
	ListedAsLeftover bool   `json:"listed_as_leftover"`
	KillableByID     bool   `json:"killable_by_id"`
}

// ReadEffects reads the expectation side_effects.
func ReadEffects(raw json.RawMessage) (e Effects, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("cannot be understood: %w", err)
	}
	return e, nil
}

// Check returns which file in a workspace is not as expected, "" if all are.
func (e Effects) Check(dir string) string {
	at := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	if _, err := os.Lstat(at(e.NoFile)); e.NoFile != "" && !errors.Is(err, fs.ErrNotExist) {
		return e.NoFile + " is there"
	}
	for name, lines := range e.FileLines {
		got, err := os.ReadFile(at(name))
		if n := strings.Count(string(got), "\n"); err != nil || n != lines {
			return fmt.Sprintf("%s has %d lines, want %d (%v)", name, n, lines, err)
		}
	}
	return ""
}

// CleanUp runs the script that removes what the case has made.
func (e Effects) CleanUp(dir string) {
	if e.Cleanup == "" {
		return
	}
	cmd := exec.Command("sh", "-c", e.Cleanup)
	cmd.Dir = dir
	cmd.Run()
}
