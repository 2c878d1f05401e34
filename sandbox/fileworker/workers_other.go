//go:build !linux

package fileworker

import (
	"context"
	"os"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// workers is empty: the daemon opens files itself, after its path checks.
type workers struct{ failed func(error) }

func (w *workers) open(_ context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	return w.opened(p, canonical, openPortable)
}

func (w *workers) openDir(_ context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	return w.opened(p, canonical, openDir)
}

func (*workers) opened(p sandbox.Profile, canonical string, open func(string) (*os.File, error)) (*os.File, sandbox.Report, error) {
	_, report, err := launch.Launcher(p, "")
	if err != nil {
		return nil, sandbox.Report{}, err
	}
	if err := p.CanRead(canonical); err != nil {
		return nil, sandbox.Report{}, err
	}
	report.Tier, report.Enforced = "path", []string{}
	f, err := open(canonical)
	return f, report, err
}

func (*workers) replace(_ context.Context, p sandbox.Profile, canonical string, r Replacement) error {
	if _, _, err := launch.Launcher(p, ""); err != nil {
		return err
	}
	if err := p.CanWrite(canonical); err != nil {
		return err
	}
	return replacePortable(canonical, r)
}

func (*workers) close() {}
