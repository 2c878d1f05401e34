// Command skipped summarises the events of "go test -json", with the skipped tests by reason. It
// fails if a test fails.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one event; see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type report struct {
	output map[string]string   // by test, and by package
	skips  map[string][]string // by reason
	failed bool
	seen   int // packages
}

func main() {
	r := report{output: make(map[string]string), skips: make(map[string][]string)}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
	r.print()
	if r.failed || r.seen == 0 {
		os.Exit(1)
	}
}

func (r *report) read(in io.Reader) error {
	events := json.NewDecoder(in)
	for {
		var e event
		err := events.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the events: %w; the input is that of go test -json", err)
		}
		r.event(e)
	}
}

func (r *report) event(e event) {
	id := strings.TrimSpace(e.Package + " " + e.Test)
	if e.Action == "start" {
		r.seen++
	}
	switch e.Action {
	case "output":
		r.output[id] += e.Output
	case "build-output":
		fmt.Print(e.Output)
	case "build-fail":
		r.failed = true
	case "skip":
		if e.Test != "" {
			r.skip(e)
		}
	case "fail":
		r.failed = true
		fmt.Print(r.output[id])
	case "pass":
		if e.Test == "" {
			fmt.Printf("ok  \t%s\t%.3fs\n", e.Package, e.Elapsed)
		}
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		delete(r.output, id)
	}
}

func (r *report) skip(e event) {
	why := "it gives no reason"
	for line := range strings.Lines(r.output[e.Package+" "+e.Test]) {
		text := strings.TrimSpace(line)
		if _, said, ok := strings.Cut(text, "_test.go:"); ok {
			_, why, _ = strings.Cut(said, ": ")
		}
	}
	why = strings.TrimPrefix(why, "not applicable: ")
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "") + "…"
	}
	r.skips[why] = append(r.skips[why], e.Package[strings.LastIndexByte(e.Package, '/')+1:]+" "+e.Test)
}

// Limits of a line.
const (
	maxReason = 160
	maxNamed  = 4
)

func (r *report) print() {
	for _, why := range slices.Sorted(maps.Keys(r.skips)) {
		tests := r.skips[why]
		slices.Sort(tests)
		named := strings.Join(tests[:min(len(tests), maxNamed)], ", ")
		if more := len(tests) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		fmt.Printf("skipped: %s: %s\n", why, named)
	}
}
