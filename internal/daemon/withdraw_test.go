package daemon_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/statedir"
)

// Clients send their tokens to the published address, which another program may take once it is closed.
func TestAnAddressIsPublishedOnlyWhileTheDaemonListens(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(base, "config.yaml"), nil, 0o600))
	cfg := must.Get(config.Load(config.Options{
		Path: filepath.Join(base, "config.yaml"), Dir: base, Workspace: t.TempDir(), StateDir: filepath.Join(base, "state"), Listen: "127.0.0.1:0",
		Getenv: func(string) string { return "" },
	}))(t)
	lock := must.Get(daemon.Lock(t.Context(), cfg))(t)
	defer lock.Close()
	var address string
	listens := func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	withdrawn := 0
	d := must.Get(daemon.New(t.Context(), daemon.Options{Config: cfg, Tokens: daemon.FreshTokens(cfg), Log: zap.NewNop(), Withdraw: func() error {
		if withdrawn++; withdrawn == 1 && !listens() {
			t.Error("the address is withdrawn after it is closed")
		}
		return lock.Withdraw()
	}}))(t)
	address = must.Get(url.Parse(d.URL()))(t).Host
	must.Do(t, lock.Publish(statedir.Daemon{URL: d.URL()}))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	must.Do(t, d.Serve(ctx))
	at, ok, err := statedir.Running(cfg.StateDir)
	if withdrawn == 0 || ok || err != nil || listens() {
		t.Errorf("withdrawn %d times, published as %+v, %v", withdrawn, at, err)
	}
}
