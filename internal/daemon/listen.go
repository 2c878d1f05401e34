package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/interop/mcp"
	"github.com/toold/toold/message"
)

// Locks and addresses of a killed process remain in use for a moment.
const (
	retryFor   = 5 * time.Second
	retryEvery = 20 * time.Millisecond
)

// retryWhileTaken repeats try while a killed daemon may still use the resource.
func retryWhileTaken(ctx context.Context, try func() error, taken func(error) bool) error {
	tick := time.Tick(retryEvery)
	for start := time.Now(); ; {
		err := try()
		if err == nil || !taken(err) || time.Since(start) > retryFor {
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return err
		}
	}
}

// Lock locks the state directory for serving.
func Lock(ctx context.Context, cfg config.Config) (lock *statedir.Lock, err error) {
	if err := MakeStateDir(cfg); err != nil {
		return nil, err
	}
	err = retryWhileTaken(ctx, func() error { lock, err = statedir.Serve(cfg.StateDir); return err }, func(err error) bool {
		_, served := errors.AsType[*statedir.ServedError](err)
		return served
	})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func listenTCP(ctx context.Context, address string) (l net.Listener, err error) {
	err = retryWhileTaken(ctx, func() error { l, err = loopback.Listen("tcp", address); return err }, inUse)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; is another toold running? choose another address with --listen, e.g. --listen 127.0.0.1:0", address, err)
	}
	return l, nil
}

// systemdListener returns the socket from systemd (sd_listen_fds(3)), or nil. Programs that are started later do not
// inherit it.
func systemdListener(address string) (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	f := os.NewFile(3, "systemd")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the socket of systemd: %w", err)
	}
	if l.Addr().Network() != "tcp" || l.Addr().String() != address {
		l.Close()
		return nil, fmt.Errorf("cannot listen on %s: the socket of systemd is %s; change one of them", address, l.Addr())
	}
	return l, nil
}

func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// MakeStateDir creates the state directory.
func MakeStateDir(cfg config.Config) error {
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("cannot make the state directory: %w; choose another one with --state-dir", err)
	}
	return nil
}

func (d *Daemon) listen(ctx context.Context) error {
	l, err := systemdListener(d.Config.Listen)
	if l == nil && err == nil {
		l, err = listenTCP(ctx, d.Config.Listen)
	}
	if err != nil {
		return err
	}
	d.listeners = append(d.listeners, l)
	if d.Config.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(d.Config.TLS.Cert, d.Config.TLS.Key)
		if err != nil {
			return &ConfigurationError{fmt.Errorf("cannot use the TLS certificate: %w", err)}
		}
		d.listeners[0] = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	d.pipe = loopback.NewPipe()
	d.listeners = append(d.listeners, d.pipe)
	if d.Config.Socket == "" {
		return nil
	}
	s, err := listenUnix(d.Config.Socket)
	if err != nil {
		return err
	}
	d.listeners = append(d.listeners, s)
	return nil
}

// listenUnix listens on a socket that only the owner can use. It replaces a stale socket.
func listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("cannot listen on %s: another process serves it", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := (&net.ListenConfig{Control: makePrivate}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm() != 0o600 {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot protect %s: %w", path, err)
	}
	return l, nil
}

// makePrivate sets the mode of a socket that has no file yet. Linux creates the file with it; elsewhere others can
// connect until the chmod.
func makePrivate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // other systems refuse it
}

// Origin returns the web origin of the daemon's own pages.
func (d *Daemon) Origin() string {
	scheme := "http"
	if d.Config.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + d.listeners[0].Addr().String()
}

// URL returns the URL to which clients connect.
func (d *Daemon) URL() string {
	return "ws" + strings.TrimPrefix(d.Origin(), "http") + "/v1/ws"
}

// newMCP creates the handler of /mcp, which is a client of this daemon with its caller's token.
func (d *Daemon) newMCP(approvals *approval.Queue[message.ApprovalRequest]) *mcp.Handler {
	page := func(id string) string { return d.Origin() + server.PathOfQuestion(id) }
	return mcp.NewHandler(mcp.HTTPOptions{
		Options: mcp.Options{Question: d.Question, Page: page, Version: d.Version, Fault: d.fault},
		JoinFor: func(mine func(message.ApprovalRequest) bool, asked func(message.ApprovalRequest)) (leave func()) {
			return server.JoinFor(approvals, mine, asked)
		},
		Dial: func(ctx context.Context, p mcp.Caller) (*client.Client, error) {
			return client.Dial(ctx, client.Options{Dial: d.pipe.Dial, Token: p.Secret, Name: "mcp", Version: d.Version, Workspace: p.Dir})
		},
		MaxBody: d.Config.Limits.MaxFrameBytes, Linger: d.Config.Limits.Linger,
	})
}

func (d *Daemon) serveMCP(w http.ResponseWriter, r *http.Request, token server.Token) {
	decides := slices.Contains(token.Roles, server.Approver) || slices.Contains(token.Roles, server.Admin)
	d.mcp.Serve(w, r, mcp.Caller{Token: token.Name, Secret: token.Secret, Decides: decides, Dir: r.URL.Query().Get("workspace")})
}

// connectionSlots returns the limit of connections of all calls: at six descriptors each, half of the process's
// descriptors.
func connectionSlots() int {
	const maxSlots = 16 << 10
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 12*maxSlots {
		return maxSlots
	}
	return max(1, int(limit.Cur/12))
}
