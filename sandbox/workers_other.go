//go:build !linux

package sandbox

import (
	"context"
	"os"
)

// workers is empty: the daemon opens files itself, after its path checks.
type workers struct{ failed func(error) }

func (w *workers) open(_ context.Context, p Profile, canonical string) (*os.File, Report, error) {
	return w.opened(p, canonical, openPortable)
}

func (w *workers) openDir(_ context.Context, p Profile, canonical string) (*os.File, Report, error) {
	return w.opened(p, canonical, openDir)
}

func (*workers) opened(p Profile, canonical string, open func(string) (*os.File, error)) (*os.File, Report, error) {
	_, report, err := Launcher(p, "")
	if err != nil {
		return nil, Report{}, err
	}
	if err := p.CanRead(canonical); err != nil {
		return nil, Report{}, err
	}
	report.Tier, report.Enforced = "path", []string{}
	f, err := open(canonical)
	return f, report, err
}

func (*workers) replace(_ context.Context, p Profile, canonical string, r Replacement) error {
	if _, _, err := Launcher(p, ""); err != nil {
		return err
	}
	if err := p.CanWrite(canonical); err != nil {
		return err
	}
	return replacePortable(canonical, r)
}

func (*workers) close() {}
