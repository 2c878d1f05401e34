package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/statedir"
)

// teamStore is a store that was set up as docs/operations.md says.
func teamStore(t *testing.T) *postgresServer {
	t.Helper()
	s := startPostgres(t)
	if code, printed := ran(t, "audit", "store", s.url("toold")); code != 0 || !strings.Contains(printed, "no daemon has written") {
		t.Fatalf("audit store: code %d: %s", code, printed)
	}
	text, err := os.ReadFile("../../docs/operations.md")
	noError(t, err)
	_, roles, _ := strings.Cut(string(text), "```sql\n")
	roles, _, _ = strings.Cut(roles, "```")
	noError(t, s.open("toold").Script(t.Context(), roles))
	return s
}

// ran runs toold without a configuration of anybody's, and returns its exit code and what it prints.
func ran(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	return (&member{t: t, home: t.TempDir(), workspace: t.TempDir()}).toold(args...)
}

// member is one of a team, with a daemon of its own.
type member struct {
	t               *testing.T
	home, workspace string
	daemon          *exec.Cmd
}

// newMember starts a daemon that writes to a store as a user.
func newMember(t *testing.T, s *postgresServer, user string) *member {
	t.Helper()
	m := &member{t: t, home: t.TempDir(), workspace: t.TempDir()}
	m.configure(s, user)
	m.serve()
	return m
}

func (m *member) configure(s *postgresServer, user string) { m.configureURL(s.url(user)) }

func (m *member) configureURL(url string) {
	m.t.Helper()
	dir := filepath.Join(m.home, ".config/toold")
	noError(m.t, os.MkdirAll(dir, 0o700))
	noError(m.t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("version: 1\nlisten: 127.0.0.1:0\naudit:\n  store: "+url+"\n"), 0o600))
	noError(m.t, os.WriteFile(m.passFile(), []byte("*:*:*:*:unseen\n"), 0o600))
	noError(m.t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(`version: 1
defaults: {bash: allow, read: allow, write: allow}
commands:
  - {id: no-rm, decision: deny, run: ["rm *"]}
`), 0o600))
}

func (m *member) state() string    { return filepath.Join(m.home, ".local/state/toold") }
func (m *member) passFile() string { return filepath.Join(m.home, "passwords") }
func (m *member) log() string      { return filepath.Join(m.home, "log") }

func (m *member) command(args ...string) *exec.Cmd {
	m.t.Helper()
	path, err := exec.LookPath("toold")
	noError(m.t, err)
	cmd := exec.Command(path, args...)
	cmd.Dir = m.workspace
	cmd.Env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "PGPASSWORD=unseen", "PGPASSFILE=" + m.passFile()}
	return cmd
}

func (m *member) toold(args ...string) (code int, printed string) {
	m.t.Helper()
	cmd := m.command(args...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// says fails unless a command ends with a code and prints a text, which it returns.
func (m *member) says(code int, text string, args ...string) string {
	m.t.Helper()
	got, printed := m.toold(args...)
	if got != code || !strings.Contains(printed, text) {
		m.t.Errorf("toold %q: code %d, want %d and %q: %s", args, got, code, text, printed)
	}
	return printed
}

// serve starts the daemon and returns when it takes calls.
func (m *member) serve() {
	m.t.Helper()
	out, err := os.Create(m.log())
	noError(m.t, err)
	m.daemon = m.command("serve")
	m.daemon.Stderr = out
	noError(m.t, m.daemon.Start())
	noError(m.t, out.Close())
	m.t.Cleanup(m.stop)
	eventually(m.t, "the daemon", func() bool { return strings.HasPrefix(m.ready(), "ready\n") })
}

func (m *member) stop() {
	if m.daemon.ProcessState == nil {
		_ = m.daemon.Process.Signal(os.Interrupt)
		_ = m.daemon.Wait()
	}
}

// ready is what /readyz answers; "" while no daemon does.
func (m *member) ready() string {
	at, runs, err := statedir.Running(m.state())
	if err != nil || !runs || at.URL == "" {
		return ""
	}
	res, err := http.Get("http" + strings.TrimSuffix(strings.TrimPrefix(at.URL, "ws"), "/v1/ws") + "/readyz")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	noError(m.t, err)
	return string(text)
}

// copied waits until the store has all records of the journal.
func (m *member) copied(s *postgresServer, user string) {
	m.t.Helper()
	eventually(m.t, "the copy of all", func() bool {
		_, link := m.toold("audit", "verify")
		_, there := m.toold("audit", "verify", "--postgres", s.url("carol"), "--daemon", user)
		return strings.Contains(there, " "+lastLine(link))
	})
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
