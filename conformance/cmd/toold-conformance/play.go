//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/conformance"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
	"github.com/toold/toold/conformance/suite/execution"
)

// result is what became of a case.
type result struct {
	Suite   string `json:"suite"`
	Target  string `json:"target"`
	Version string `json:"version"`
	Played  string `json:"played"` // when, and on which kernel
	ID      string `json:"id"`
	Verdict string `json:"verdict"` // see verdicts
	Why     string `json:"why,omitempty"`
}

// verdicts are those of each suite, in the order of the tables.
var verdicts = map[string][]string{
	"wire":   {"passed", "failed", notApplicable, leftOut},
	"policy": {"passed", "failed", notApplicable, leftOut},
	"exec":   {"passed", "failed", notApplicable, leftOut},
	"escape": {"blocked", "escaped", "usable", "broken", notApplicable, leftOut},
}

const (
	notApplicable = "not applicable" // the target, or its adapter, has nothing of the kind
	leftOut       = "left out"       // the case is about a convention of toold
)

// bad reports whether a target failed.
func (r result) bad() bool {
	return slices.Contains([]string{"failed", "escaped", "broken"}, r.Verdict)
}

// player plays one suite on one target.
type player struct {
	o       options
	built   built
	target  string
	version string
	adapter adapter
	stderr  io.Writer
	alone   sync.RWMutex // write-locked by a case that is played again
}

// job is a case that can be played.
type job struct {
	id   string
	own  string
	play func(ctx context.Context) (verdict, why string)
}

func (p *player) play(ctx context.Context, name string) (list []result, err error) {
	jobs, end, err := p.jobs(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	results := make([]result, len(jobs))
	turns := make(chan struct{}, max(1, p.o.parallel))
	var all sync.WaitGroup
	for i, j := range jobs {
		results[i] = result{name, p.target, p.version, played(), j.id, leftOut, j.own}
		if j.own != "" {
			continue
		}
		turns <- struct{}{}
		// Ends with the case.
		all.Go(func() {
			results[i].Verdict, results[i].Why = j.play(ctx)
			<-turns
		})
	}
	all.Wait()
	return results, context.Cause(ctx)
}

// jobs reads the cases of a suite. end ends what they have started.
func (p *player) jobs(ctx context.Context, name string) (list []job, end func() error, err error) {
	switch end = func() error { return nil }; name {
	case "wire", "policy":
		list, end, err = p.protocolJobs(ctx, name)
	case "exec":
		list, err = p.execJobs()
	case "escape":
		list, err = p.escapeJobs()
	}
	return slices.DeleteFunc(list, func(j job) bool { return !p.o.pattern.MatchString(j.id) }), end, err
}

func (p *player) file(name string) string { return filepath.Join(p.built.cases, name+".jsonl") }

// protocolJobs are the cases about toold's protocol and its decisions.
func (p *player) protocolJobs(ctx context.Context, name string) (list []job, end func() error, err error) {
	if p.target != "toold" {
		return nil, nil, fmt.Errorf("the suite %s is about toold's own protocol: %s does not speak it", name, p.target)
	}
	var cases []conformance.Case
	end = func() error { return nil }
	if name == "wire" {
		cases, err = conformance.Wire(p.built.programs["toold"], p.file("wire"), p.file("wire-own"))
	} else {
		cases, end, err = conformance.Policy(ctx, p.built.programs["toold"], p.built.dir, p.built.cases)
	}
	var serial sync.Mutex // policy cases share their daemons
	for _, c := range cases {
		list = append(list, job{c.ID, "", func(ctx context.Context) (string, string) {
			if c.NotApplicable != "" {
				return notApplicable, c.NotApplicable
			}
			if name == "policy" {
				serial.Lock()
				defer serial.Unlock()
			}
			return p.trial(c.ID, func(base string) (reasons, late []string) { return c.Play(ctx, base) })
		}})
	}
	return list, end, err
}

func (p *player) execJobs() (list []job, err error) {
	lines, err := execution.Read(p.file("exec"), p.file("exec-own"))
	for _, l := range lines {
		if l.Err != nil {
			return nil, fmt.Errorf("%s: %w", l.Place, l.Err)
		}
		list = append(list, job{l.Case.ID, l.Case.Own, func(ctx context.Context) (string, string) { return p.exec(ctx, l.Case) }})
	}
	return list, err
}

func (p *player) escapeJobs() (list []job, err error) {
	cases, err := escape.Read(p.file("escape"), p.file("escape-own"))
	for _, c := range cases {
		list = append(list, job{c.ID, c.Own, func(ctx context.Context) (string, string) { return p.escape(ctx, c) }})
	}
	return list, err
}

// trial plays a case in a directory of its own, again while it is only late.
func (p *player) trial(id string, try suite.Trial) (verdict, why string) {
	base, err := os.MkdirTemp(p.built.dir, "case-")
	if err != nil {
		return "failed", err.Error()
	}
	reasons := try.Play(base, p.turn, func(why string) { fmt.Fprintln(p.stderr, p.target, id, why) })
	if len(reasons) > 0 {
		return "failed", strings.Join(reasons, "\n")
	}
	return "passed", ""
}

func (p *player) exec(ctx context.Context, c execution.Case) (verdict, why string) {
	var inapt error
	verdict, why = p.trial(c.ID, func(base string) (reasons, late []string) {
		reasons, late, err := execution.Play(ctx, p.adapter, base, c)
		if why, ok := errors.AsType[suite.NotApplicable](err); ok {
			inapt = why
			return nil, nil
		}
		if err != nil {
			reasons = append(reasons, err.Error())
		}
		return reasons, late
	})
	if inapt != nil {
		return notApplicable, inapt.Error()
	}
	return verdict, why
}

// turn waits until a case may run: one that is played again runs alone.
func (p *player) turn(again bool) (done func()) {
	if again {
		p.alone.Lock()
		return p.alone.Unlock
	}
	p.alone.RLock()
	return p.alone.RUnlock
}

func (p *player) escape(ctx context.Context, c escape.Case) (verdict, why string) {
	if why := c.CannotPlay(); why != "" {
		return notApplicable, why
	}
	w := escape.World{Case: c, Target: p.target, Programs: p.built.programs, Keep: p.adapter.Files(), User: true}
	got, err := w.Play(ctx)
	if err != nil {
		return "broken", err.Error()
	}
	if got.Bad() {
		got.Why += "\n" + got.Output
	}
	return got.Verdict, got.Why
}
