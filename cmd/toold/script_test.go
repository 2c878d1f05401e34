package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/message"
)

// scriptCommands are what the scripts of testdata/script can do besides running
// programs: they wait for events, which a script cannot.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"call-as":        callAs,
		"call-same-id":   callSameID,
		"await":          awaitSuccess,
		"await-daemon":   awaitDaemon,
		"await-file":     awaitFile,
		"await-gone":     awaitGone,
		"gone":           noneRuns,
		"await-approval": func(ts *testscript.TestScript, _ bool, _ []string) { waitingApproval(ts) },
		"decide":         decideFirst,
		"signal-daemon":  signalDaemon,
		"list-returns":   listReturns,
		"until-decided":  untilDecided,
		"certificate":    makeCertificate,
		"fetch":          fetch,
		"typed":          typed,
		"await-metric":   awaitMetric,
		"collect":        collect,
		"letta-server":   startLetta,
		"unacknowledged": startUnacknowledged,
	}
}

// scriptCondition is what scripts may ask for: [codex] and the other stock agents are whether
// TOOLD_CODEX (and so on) names the program, [systemd] whether a user manager can be tried.
func scriptCondition(name string) (bool, error) {
	if slices.Contains(stockAgents(), name) {
		return os.Getenv("TOOLD_"+strings.ToUpper(name)) != "", nil
	}
	switch name {
	case "systemd":
		return exec.Command("unshare", "--mount", "--pid", "--fork", "sh", "-ec", `
			/lib/systemd/systemd --version && systemctl --version && systemd-analyze --version
			umount --recursive /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup`).Run() == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// until repeats a look until it sees what it waits for, or for five minutes.
func until(ts *testscript.TestScript, what string, look func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 5 * 60 * 50 {
		if look() {
			return
		}
		<-tick.C
	}
	ts.Fatalf("%s did not come", what)
}

func awaitDaemon(ts *testscript.TestScript, _ bool, _ []string) {
	until(ts, "the daemon", func() bool {
		res, err := http.Get("http://" + ts.Getenv("TOOLD_LISTEN") + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// awaitSuccess runs a program again and again until it ends with 0: await PROGRAM ARG...
func awaitSuccess(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, strings.Join(args, " "), func() bool { return ts.Exec(args[0], args[1:]...) == nil })
}

// awaitFile waits until something stands in a file.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "the file", func() bool { info, err := os.Stat(ts.MkAbs(args[0])); return err == nil && info.Size() > 0 })
}

// makeCertificate writes a certificate that nobody signed, for a name that is not this
// machine's, and its key: certificate CERT KEY.
func makeCertificate(ts *testscript.TestScript, _ bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	of := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"box.example"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// noneRuns checks that no process has a text in its command line. What a script starts
// carries $MARK, since others may play the same script.
func noneRuns(ts *testscript.TestScript, _ bool, args []string) {
	if line := running(args[0]); line != "" {
		ts.Fatalf("%s still runs", line)
	}
}

// awaitGone is the same for what the kernel kills in its own time, with a daemon that
// was killed.
func awaitGone(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "the end of "+args[0], func() bool { return running(args[0]) == "" })
}

// running returns a command line that holds a text, "" if there is none.
func running(text string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(text)) {
			return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return ""
}

// toold runs the program in the script's surroundings.
func toold(ts *testscript.TestScript, args ...string) (string, error) {
	path, err := exec.LookPath("toold")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TOOLD_LISTEN", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.Output()
	return string(out), err
}

// waitingApproval waits until a call waits for a person and returns its id.
func waitingApproval(ts *testscript.TestScript) string {
	var list []message.ApprovalRequest
	until(ts, "a question", func() bool {
		out, err := toold(ts, "approvals", "--json")
		return err == nil && json.Unmarshal([]byte(out), &list) == nil && len(list) > 0
	})
	return list[0].ID
}

// decideFirst answers the call that waits: decide approve|deny [flags].
func decideFirst(ts *testscript.TestScript, _ bool, args []string) {
	if out, err := toold(ts, append([]string{args[0], waitingApproval(ts)}, args[1:]...)...); err != nil {
		ts.Fatalf("cannot decide: %v %s", err, out)
	}
}

// listReturns prints the journal's returns, as HTTP lists them: list-returns [FILTER=VALUE].
func listReturns(ts *testscript.TestScript, _ bool, args []string) {
	secret, err := toold(ts, "token", "show", "observer")
	ts.Check(err)
	req, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("TOOLD_LISTEN")+"/v1/messages?"+strings.Join(append(args, "message_types=tool_return_message"), "&"), nil)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(secret))
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
}

// untilDecided waits until the running daemon would decide a call so:
// until-decided ACTION TOOL COMMAND.
func untilDecided(ts *testscript.TestScript, _ bool, args []string) {
	secret, err := toold(ts, "token", "show", "agent")
	ts.Check(err)
	c, err := client.Dial(context.Background(), client.Options{URL: "ws://" + ts.Getenv("TOOLD_LISTEN") + "/v1/ws", Token: strings.TrimSpace(secret)})
	ts.Check(err)
	defer c.Close()
	arguments, err := json.Marshal(map[string]string{"command": args[2]})
	ts.Check(err)
	until(ts, "the decision "+args[0], func() bool {
		said, err := c.ExplainPolicy(context.Background(), client.Call{Tool: args[1], Arguments: json.RawMessage(arguments)})
		ts.Check(err)
		return said.Action == args[0]
	})
}

// signalDaemon sends a signal to the daemon that serves the script's address:
// signal-daemon TERM|KILL.
func signalDaemon(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := os.ReadFile(ts.MkAbs("daemon.pid"))
	ts.Check(err)
	ts.Check(exec.Command("kill", "-"+args[0], strings.TrimSpace(string(pid))).Run())
	if args[0] != "KILL" {
		return
	}
	// A program that it was starting has its lock for a moment longer.
	until(ts, "the end of the daemon's lock", func() bool {
		_, runs, err := statedir.Running(filepath.Join(ts.Getenv("HOME"), ".local/state/toold"))
		return err == nil && !runs
	})
}
