package launch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Overlays mounts overlays in a helper, in order. For each it returns the mount, or the reason why there is none. The
// helper then ends: a mount exists as long as a descriptor of it, which the daemon and the sandboxes of its calls
// have.
func Overlays(ctx context.Context, list []helper.Overlay) (trees []*os.File, reasons []error, err error) {
	trees, reasons = make([]*os.File, len(list)), make([]error, len(list))
	p, err := prepare(helper.Spec{Namespaces: true, Overlays: list}, nil)
	if errors.Is(err, sandbox.ErrUnavailable) {
		for i := range reasons {
			reasons[i] = err
		}
		return trees, reasons, nil
	}
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, p.destroy)
	defer stop()
	for i := range list {
		if trees[i], reasons[i], err = p.overlay(); err != nil {
			break
		}
	}
	p.control.Close()
	if err = errors.Join(err, p.cmd.Wait()); err != nil {
		for _, tree := range trees {
			tree.Close() // nil is allowed
		}
		return nil, nil, err
	}
	return trees, reasons, nil
}

func (p *Process) overlay() (tree *os.File, reason, err error) {
	event, files, err := p.nextFiles()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("cannot hear of the tool caches: %w", err)
	case event.Kind != helper.EventOverlay || len(files) != 1:
		return nil, fmt.Errorf("cannot %s: %w", event.Stage, failureOf(event)), nil
	}
	return files[0], nil, nil
}
