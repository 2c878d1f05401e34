package daemon

import (
	"fmt"
	"os"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/metrics"
	"github.com/toold/toold/internal/store"
)

func (d *Daemon) metricsSource() metrics.Source {
	return metrics.Source{
		Version: d.Version, States: d.calls.States, Journal: d.journal.Bytes, Masks: d.maskedPaths, Dropped: d.traces.Dropped,
		Clients: func() int { return d.server.Clients() }, // created later
		Warm:    func() int64 { return d.shells.Counts().Waiting },
		Hits:    func() int64 { return d.shells.Counts().Hits },
		Started: func() int64 { return d.shells.Counts().Started },
		Ahead:   func() int64 { return d.shells.Counts().Ahead },
		Failed:  d.failures.count.Load,
	}
}

func (d *Daemon) maskedPaths() (n int) {
	_ = d.workspaces.Each(func(_ string, w *workspace) error {
		if set := w.masks.Usual(); set != nil {
			n += len(set.Hidden) + len(set.Fixed)
		}
		return nil
	})
	return n
}

// failures counts failures of warm shells and file workers, which calls do not notice.
type failures struct {
	count atomic.Int64
	last  atomic.Value // text
}

// reportFailure counts a failure, and logs it unless it repeats the last.
func (d *Daemon) reportFailure(err error) {
	d.failures.count.Add(1)
	if last := d.failures.last.Swap(err.Error()); last != err.Error() {
		d.Log.Warn("a warm shell or a process that opens files failed; calls go on without it", zap.Error(err))
	}
}

// reportTraceFailure logs a failure to send traces. The exporter calls it once until it succeeds again.
func (d *Daemon) reportTraceFailure(err error) {
	d.Log.Warn("cannot send traces; calls go on, and what is not sent is dropped", zap.String("setting", "telemetry.otlp_endpoint"), zap.Error(err))
}

// openStore opens the team's copy of the journal, if it is configured. A private daemon does not copy, but keeps the
// parts of the journal that the copy lacks, for the next permanent daemon.
func (d *Daemon) openStore() (err error) {
	if d.Config.Store == "" {
		return nil
	}
	d.journal.Hold(1)
	if d.Single {
		return nil
	}
	if d.store, err = store.New(d.Config.Store, d.journal, d.reportStore); err != nil {
		return &ConfigurationError{fmt.Errorf("audit.store: %w", err)}
	}
	return nil
}

// reportStore logs changes of the state of the copy; nil = it is complete.
func (d *Daemon) reportStore(err error) {
	if err == nil {
		d.Log.Info("the team store has the whole journal")
		return
	}
	d.Log.Warn("cannot copy the journal to the team store; calls go on, and it gets what it lacks later", zap.Error(err))
}

// NewLogger returns a logger that writes text on a terminal, otherwise JSON.
func NewLogger(w *os.File, level string) *zap.Logger {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		at = zapcore.InfoLevel
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(enc)
	if executor.IsTerminal(w) {
		encoder = zapcore.NewConsoleEncoder(enc)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(w), at))
}
