package launch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Probe tests each layer of the sandbox in a helper of its own. It takes some ten milliseconds.
func Probe(ctx context.Context) []Feature {
	_, view := probe(ctx, helper.Spec{Namespaces: true})
	var failed *sandbox.StageError
	var clone error
	if errors.As(view, &failed) && failed.Stage == "clone" {
		clone = view
	}
	usual := helper.Spec{Namespaces: clone == nil, Shared: failed != nil && failed.Stage == stageProc, Loopback: clone == nil}
	_, net := probe(ctx, usual)
	locked, landlock := probe(ctx, helper.Spec{Landlock: true})
	usual.Seccomp = true
	filtered, seccomp := probe(ctx, usual)

	detail := ""
	if landlock == nil {
		detail = fmt.Sprintf("version %d", locked.ABI)
	}
	sockets := "connections to local sockets are judged"
	switch {
	case clone != nil:
		sockets = "no local sockets but pairs, without user namespaces"
	case !filtered.Brokered:
		sockets = "no local sockets but pairs: to judge connections takes Linux 5.19, kernel.yama.ptrace_scope below 2 and no outer filter that does so"
	}
	if clone != nil { // reported once
		view, net = errNeedsNamespaces, errNeedsNamespaces
	}
	return []Feature{
		feature("user namespaces", "", clone),
		feature("private view of the file system and of processes", "", view),
		feature("network namespace", "", net),
		feature("landlock", detail, landlock),
		feature("seccomp", sockets, seccomp),
	}
}

var errNeedsNamespaces = errors.New("needs user namespaces")

func feature(name, detail string, err error) Feature {
	f := Feature{Name: name, OK: err == nil, Detail: detail}
	var failed *sandbox.StageError
	switch {
	case errors.As(err, &failed):
		f.Why, f.Fix = fmt.Sprintf("%s: %v", failed.Stage, failed.Err), failed.Advice
	case err != nil:
		f.Why = err.Error()
	}
	return f
}

// probe starts a helper that only confines itself.
func probe(ctx context.Context, spec helper.Spec, handed ...*os.File) (helper.Event, error) {
	spec.Probe, spec.Dir = true, "/"
	p, err := prepare(spec, handed)
	if err != nil {
		return helper.Event{}, err
	}
	event, err := p.await(ctx)
	if err != nil {
		return helper.Event{}, err
	}
	p.control.Close()
	p.proxyListeners.close()
	err = p.cmd.Wait()
	p.via.wait()
	return event, err
}

// prepare starts a helper that runs no command.
func prepare(spec helper.Spec, handed []*os.File) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	p := new(Process)
	return p, p.launch(Command{Stdin: null, Stdout: null, Stderr: null}, spec, handed)
}
