package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/postgres"
)

// postgresServer is a PostgreSQL of a test, on a socket in a directory of its own.
type postgresServer struct {
	tb       testing.TB
	dir, bin string
}

// startPostgres starts one, which ends with the test.
func startPostgres(tb testing.TB) *postgresServer {
	tb.Helper()
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(programs) == 0 {
		tb.Skip("there is no PostgreSQL here: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("/tmp", "pg") // the path of a socket is short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() == 0 { // it refuses to run as root
		must.Do(tb, os.Chown(dir, 65534, 65534))
	}
	s := &postgresServer{tb, dir, filepath.Dir(programs[len(programs)-1])}
	if out, err := s.run("initdb", "-D", s.data(), "-E", "UTF8", "-U", "toold", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		tb.Skipf("PostgreSQL cannot be set up here: %v: %s", err, out)
	}
	s.start()
	tb.Cleanup(s.stop)
	return s
}

func (s *postgresServer) data() string { return filepath.Join(s.dir, "data") }

func (s *postgresServer) run(program string, args ...string) *exec.Cmd {
	args = append([]string{filepath.Join(s.bin, program)}, args...)
	if os.Getuid() == 0 {
		args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	return cmd
}

// start returns when it takes connections. What was killed may end later than its postmaster.
func (s *postgresServer) start() {
	s.tb.Helper()
	var out []byte
	eventually(s.tb, "PostgreSQL", func() bool {
		var err error
		out, err = s.run("pg_ctl", "-D", s.data(), "-l", filepath.Join(s.dir, "log"), "-w", "-t", "600", "-o", "-c listen_addresses= -k "+s.dir, "start").CombinedOutput()
		return err == nil
	})
	s.tb.Logf("%s", out[max(0, len(out)-100):])
}

// stop ends it at once, as a crash would, if it runs.
func (s *postgresServer) stop() {
	if s.run("pg_ctl", "-D", s.data(), "status").Run() != nil {
		return
	}
	if out, err := s.run("pg_ctl", "-D", s.data(), "-m", "immediate", "-w", "-t", "600", "stop").CombinedOutput(); err != nil {
		s.tb.Errorf("PostgreSQL does not stop: %v: %s", err, out)
	}
}

// kill ends it by SIGKILL, whatever it does.
func (s *postgresServer) kill() {
	s.tb.Helper()
	text := must.Get(os.ReadFile(filepath.Join(s.data(), "postmaster.pid")))(s.tb)
	pid, _, _ := strings.Cut(string(text), "\n")
	must.Do(s.tb, exec.Command("kill", "-KILL", pid).Run())
}

// url is the connection string of a user.
func (s *postgresServer) url(user string) string {
	return "postgres://" + user + "@/postgres?host=" + url.QueryEscape(s.dir)
}

// open connects as a user until the test ends.
func (s *postgresServer) open(user string) *postgres.DB {
	s.tb.Helper()
	db := must.Get(postgres.Open(context.WithoutCancel(s.tb.Context()), s.url(user)))(s.tb)
	s.tb.Cleanup(db.Close)
	return db
}

// eventually repeats a look until it sees what it waits for, or for five minutes.
func eventually(tb testing.TB, what string, look func() bool) {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 5 * 60 * 20 {
		if look() {
			return
		}
		<-tick.C
	}
	tb.Fatalf("%s did not come", what)
}
