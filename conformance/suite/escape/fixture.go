//go:build linux

package escape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/conformance/suite"
)

// fixture is the content of a world: a home with secrets, a workspace with repositories, a directory outside, a terminal
// of the user, and another daemon, which listens everywhere and logs connections.
type fixture struct {
	base, home, ws, out          string
	log, pwned, output, ret, bin string
	events                       string            // what was decided on the call's connections, a line each
	window, slave                *os.File          // the user's terminal window: both ends
	pid                          int               // of the other daemon
	places                       *strings.Replacer // of the names that cases use
}

func newFixture(ctx context.Context, w World) (*fixture, error) {
	at := func(name string) string { return filepath.Join(w.Base, name) }
	f := &fixture{
		base: w.Base, home: at("home"), ws: at("ws"), out: at("out"), bin: at("bin"),
		log: at("log"), pwned: at("pwned"), output: at("output"), ret: at("return"),
		events: at("events"),
	}
	if err := f.files(); err != nil {
		return nil, err
	}
	var err error
	if f.window, f.slave, err = openWindow(); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	if err := f.startOtherDaemon(w.program("e")); err != nil {
		return nil, fmt.Errorf("the other daemon: %w", err)
	}
	f.places = strings.NewReplacer("@WS@", f.ws, "@OUT@", f.out, "@HOME@", f.home, "@DPID@", strconv.Itoa(f.pid),
		"@E@", w.program("e"), "@LOG@", f.log, "@PWNED@", f.pwned, "@BASE@", f.base, "@RACER@", filepath.Join(f.bin, "racer"))
	return f, f.repositories(ctx)
}

func (f *fixture) files() error {
	for path, text := range map[string]string{
		f.log:                                     "",
		f.events:                                  "",
		f.out + "/victim.txt":                     "ORIGINAL\n",
		f.ws + "/README":                          "hello\n",
		f.ws + "/.env":                            "KEY=DOTENVSECRET\n",
		f.ws + "/.bashrc":                         "# mine\n",
		f.ws + "/evil/pre-commit":                 "#!/bin/sh\ntouch " + f.pwned + "\n",
		f.ws + "/evil/config":                     "[core]\n\tfsmonitor = touch " + f.pwned + "; false\n",
		f.ws + "/sub/file":                        "sub\n",
		f.home + "/.bashrc":                       "# mine\n",
		f.home + "/.profile":                      "# mine\n",
		f.home + "/.gitconfig":                    "[user]\n\tname = a\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n",
		f.home + "/.ssh/id_rsa":                   "SSHSECRET\n",
		f.home + "/.aws/credentials":              "AWSSECRET\n",
		f.home + "/.netrc":                        "NETRCSECRET\n",
		f.home + "/.gnupg/secring":                "GPGSECRET\n",
		f.home + "/.config/gh/hosts.yml":          "GHSECRET\n",
		f.home + "/.config/toold/token":           "TOKENSECRET\n",
		f.home + "/.docker/config.json":           "DOCKERSECRET\n",
		f.home + "/.local/state/other/journal.db": "JOURNALSECRET\n",
		f.home + "/.app/notes":                    "notes\n",
		f.home + "/.cache/tool/entry":             "entry\n",
		f.home + "/.local/share/other/state":      "state\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.Contains(text, "SECRET") {
			mode = 0o600
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

// repositories makes the workspace a repository with another one in it.
func (f *fixture) repositories(ctx context.Context) error {
	out, code := f.runOutside(ctx, `cd @WS@ && git init -q && cd sub && git init -q && git add -A && git commit -qm s &&
		cd .. && git add README .env .bashrc evil && git -c advice.addEmbeddedRepo=false add sub && git commit -qm first &&
		mkdir -p .git/hooks sub/.git/hooks`, nil)
	if code != 0 {
		return fmt.Errorf("git: %s", out)
	}
	return nil
}

// startOtherDaemon starts the daemon that cases attack, and waits until it listens.
func (f *fixture) startOtherDaemon(program string) error {
	cmd := exec.Command(program, "daemon", f.log, f.home, f.home+"/.local/state/other/journal.db")
	cmd.Env = append(f.env(nil), "API_KEY=ENVSECRET", "DAEMONENV=1")
	if _, err := cmd.StdinPipe(); err != nil { // it runs until the world ends
		return err
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		return fmt.Errorf("it said %q (%v)", line, err)
	}
	f.pid = cmd.Process.Pid
	return nil
}

// env is the environment of what runs outside.
func (f *fixture) env(vars map[string]string) []string {
	env := []string{
		"HOME=" + f.home, "PATH=" + os.Getenv("PATH") + ":" + f.bin, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"SBOUT=" + f.output, "RETURN=" + f.ret, "EVENTS=" + f.events,
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// runOutside runs a script outside the sandbox, as the user would. Its background processes end with the world.
func (f *fixture) runOutside(ctx context.Context, text string, vars map[string]string) (output string, code int) {
	limit, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if f.places != nil {
		text = f.places.Replace(text)
	} else {
		text = strings.ReplaceAll(text, "@WS@", f.ws)
	}
	kept, err := os.CreateTemp(f.base, "outside-")
	if err != nil {
		return err.Error(), -1
	}
	defer os.Remove(kept.Name())
	defer kept.Close()
	cmd := exec.CommandContext(limit, "bash", "-c", text)
	cmd.Dir, cmd.Env = f.base, f.env(vars)
	cmd.Stdout, cmd.Stderr = kept, kept // a file: nobody waits for what runs on
	err = cmd.Run()
	said, _ := os.ReadFile(kept.Name())
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return err.Error() + ": " + string(said), -1
	}
	return strings.TrimSpace(string(said)), cmd.ProcessState.ExitCode()
}

// calls are those of a case, with the places that it names.
func (f *fixture) calls(c Case) ([]suite.Call, int, error) {
	c.Command, c.Setup = f.places.Replace(translate(c.Command, commandPhrases())), f.places.Replace(c.Setup)
	return c.calls()
}
