package daemon

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/store"
)

// openStore opens the team's copy of the journal. A private daemon only keeps what it lacks.
func (d *Daemon) openStore() (err error) {
	if d.Config.Store == "" {
		return nil
	}
	d.journal.Hold(1)
	if d.Single {
		return nil
	}
	if d.store, err = store.New(d.Config.Store, d.journal, d.stored); err != nil {
		return &ConfigurationError{fmt.Errorf("audit.store: %w", err)}
	}
	return nil
}

func (d *Daemon) stored(err error) {
	if err == nil {
		d.Log.Info("the team store has the whole journal")
		return
	}
	d.Log.Warn("cannot copy the journal to the team store; calls go on, and it gets what it lacks later", zap.Error(err))
}
