//go:build linux

// Command toold-conformance plays the published cases against an implementation that runs
// commands for an agent: toold itself, or another for which there is an adapter.
//
//	go run ./conformance/cmd/toold-conformance -suite exec,escape -target bash
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
)

// adapter makes a target of an implementation.
type adapter interface {
	suite.Target

	// Version says which one it is; the error, why it cannot be played here.
	Version(ctx context.Context) (string, error)

	// Files are those that it needs, wherever they are.
	Files() []string
}

// adapters returns all adapters by name. programs are those that were built.
func adapters(programs map[string]string) map[string]adapter {
	return map[string]adapter{
		"toold": toold{program: programs["toold"]},
		"codex": codex{program: os.Getenv("TOOLD_CODEX")},
		"srt":   srt{program: os.Getenv("TOOLD_SRT")},
		"ssh":   ssh{},
		"bash":  bash{},
	}
}

func main() {
	if escape.InWorld(func(w escape.World) suite.Target { return adapters(w.Programs)[w.Target] }) {
		return
	}
	closeOnExec()
	for name, value := range map[string]string{"USER": "user", "LANG": "C.UTF-8", "TERM": "xterm"} { // as a login has them
		if os.Getenv(name) == "" {
			os.Setenv(name, value)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "toold-conformance:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

// closeOnExec keeps the inherited descriptors of this process from targets, which would be blamed for passing them on.
func closeOnExec() {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// options are what the command line says.
type options struct {
	suites, targets []string
	pattern         *regexp.Regexp
	cases           string
	files           []string // to read instead of playing
	json, markdown  bool
	parallel        int
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("toold-conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	suites := f.String("suite", "exec,escape", "the suites to play: exec (commands and how they end), escape (attacks on a sandbox); of toold also wire (its protocol) and policy (its decisions)")
	targets := f.String("target", "toold", "what is played: toold, codex (TOOLD_CODEX names the program), srt (TOOLD_SRT), ssh, bash")
	pattern := f.String("run", "", "play only the cases whose id matches this regular expression")
	f.StringVar(&o.cases, "cases", "", "the folder of the case files (default: that of this module)")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each case")
	f.BoolVar(&o.markdown, "markdown", false, "print tables, of what the files that are named have from -json if there are any")
	f.IntVar(&o.parallel, "parallel", 2*runtime.GOMAXPROCS(0), "so many cases at the same time")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.files = f.Args(); len(o.files) > 0 && !o.markdown {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	o.suites, o.targets = strings.Split(*suites, ","), strings.Split(*targets, ",")
	for _, name := range o.suites {
		if verdicts[name] == nil {
			return o, fmt.Errorf("unknown suite %q: there are wire, policy, exec and escape", name)
		}
	}
	o.pattern, err = regexp.Compile(*pattern)
	return o, err
}

// run plays what the command line names and reports whether no target failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (ok bool, err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return false, err
	}
	if len(o.files) > 0 {
		reports, err := read(o.files)
		if err != nil {
			return false, err
		}
		return write(stdout, o, reports)
	}
	b, err := build(ctx, o)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	var reports []report
	for _, name := range o.targets {
		a := adapters(b.programs)[name]
		if a == nil {
			return false, fmt.Errorf("unknown target %q: there are toold, codex, srt, ssh and bash", name)
		}
		version, err := a.Version(ctx)
		if err != nil {
			return false, fmt.Errorf("%s cannot be played: %w", name, err)
		}
		for _, s := range o.suites {
			p := player{o: o, built: b, target: name, version: version, adapter: a, stderr: stderr}
			results, err := p.play(ctx, s)
			if err != nil {
				return false, err
			}
			if len(results) > 0 {
				reports = append(reports, results)
			}
		}
	}
	if len(reports) == 0 {
		return false, fmt.Errorf("no case has an id that matches %q", o.pattern)
	}
	return write(stdout, o, reports)
}
