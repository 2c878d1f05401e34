//go:build linux

package conformance

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// small ends the daemon and puts a small file system into a directory of its, for as long
// as the test lasts.
func (r *rig) small(dir, options string) {
	r.tb.Helper()
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.RemoveAll(dir + ".head"); err != nil { // that of a journal which is covered now
		r.tb.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		r.tb.Skipf("cannot mount a small file system (%v): run as root to test a full disk", err)
	}
	r.tb.Cleanup(func() {
		if err := errors.Join(r.daemon.stop(syscall.SIGTERM), syscall.Unmount(dir, syscall.MNT_DETACH)); err != nil {
			r.tb.Error(err)
		}
	})
}

// TestAFullStateFolderCostsNoCallItsAnswer fills the disk on which the journal is. What
// cannot be written down does not run, and is answered; when there is room again all
// goes on. A daemon does not say that it is ready when it cannot write.
func TestAFullStateFolderCostsNoCallItsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.small(r.site.state, "size=4m,mode=700")
	ballast := filepath.Join(r.site.state, "ballast")
	fill := func() { _ = os.WriteFile(ballast, make([]byte, 8<<20), 0o600) } // as much as there is room for
	room := func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	r.restart()
	c := r.dial(client.Options{})
	once := client.Call{ID: "once", Tool: "bash", Arguments: map[string]any{"command": "echo once | tee -a once"}}
	r.same(c, once, "")
	held := client.Call{ID: "held", Tool: "bash", Arguments: map[string]any{"command": "echo held >>once; until [ -e go ]; do read -t 0.05 <> <(:); done; echo done"}}
	ended := make(chan message.ToolReturn, 1)
	began := make(chan struct{})
	// Ends when the file go is there.
	go func() {
		ret, err := r.dial(client.Options{}).Call(t.Context(), held, client.Events{Started: func(message.ToolStarted) { close(began) }})
		if err != nil {
			t.Error(err)
		}
		ended <- ret
	}()
	<-began
	r.ready(200, "ready")
	fill()
	r.ready(503, "full")
	refused := 0
	for range 1000 { // until the room inside of the journal is used up too
		ret, err := r.try(c, "echo x >>ran", "off", client.Events{})
		if err != nil {
			t.Fatal(err)
		}
		if ret.Status != "success" {
			refused++
			if !strings.Contains(ret.Result, "nothing ran") || !strings.Contains(ret.Result, "no space left") {
				t.Fatalf("refused with %q", ret.Result)
			}
		}
		if refused == 3 {
			break
		}
	}
	if refused == 0 {
		t.Error("a full disk went unnoticed")
	}
	// What ran is not run again, and no return says that it did not run.
	r.same(c, once, "once")
	if err := os.WriteFile(filepath.Join(r.site.workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	first := <-ended
	if again := r.same(c, held, "done"); again.ID != first.ID {
		t.Errorf("a return in memory is repeated as %+v, was %+v", again, first)
	}
	if text, err := os.ReadFile(filepath.Join(r.site.workspace, "once")); err != nil || string(text) != "once\nheld\n" {
		t.Errorf("ran: %q, %v", text, err)
	}
	room()
	r.ready(200, "ready")
	r.bash(c, "echo after", "off", client.Events{})
	fill()
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if d, err := startDaemon(t.Context(), r.program, r.site); err == nil {
		// There may be room inside of the journal: then it can write.
		r.daemon = d
		if ret, err := r.try(r.dial(client.Options{}), "true", "off", client.Events{}); err != nil {
			t.Errorf("a daemon that was ready on a full disk: %v, %+v", err, ret)
		}
		return
	} else if text := err.Error(); !strings.Contains(text, "full") && !strings.Contains(text, "no space left") {
		t.Error(err)
	}
	room()
	r.restart()
	r.bash(r.dial(client.Options{}), "echo again", "off", client.Events{})
}

// same makes a call and wants its result. Unless result is empty the call is a repeat.
func (r *rig) same(c *client.Client, call client.Call, result string) message.ToolReturn {
	r.tb.Helper()
	ret, err := c.Call(r.tb.Context(), call, client.Events{})
	if err != nil || ret.Status != "success" || !strings.Contains(ret.Result, result) || ret.Replayed != (result != "") {
		r.tb.Errorf("call %s: %v, %+v", call.ID, err, ret)
	}
	return ret
}

// ready waits until /readyz answers so.
func (r *rig) ready(status int, text string) {
	r.tb.Helper()
	var last string
	if !suite.Poll(patience, func() bool {
		res, err := http.Get(r.daemon.http + "/readyz")
		if err != nil {
			r.tb.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		last = fmt.Sprint(res.StatusCode, " ", string(body))
		return res.StatusCode == status && strings.Contains(last, text) && !strings.Contains(last, r.site.state)
	}) {
		r.tb.Errorf("/readyz answers %q, want %d and %q", last, status, text)
	}
}

// TestADaemonIsNotReadyWithoutItsJournal: what it would write is lost, or cannot be
// written. It runs nothing meanwhile, and goes on when the file is back.
func TestADaemonIsNotReadyWithoutItsJournal(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.dial(client.Options{})
	once := client.Call{ID: "once", Tool: "bash", Arguments: map[string]any{"command": "echo once | tee -a once"}}
	r.same(c, once, "")
	file := filepath.Join(r.site.state, "journal", "00000001.log")
	steps := []struct {
		name     string
		do, undo func() error
	}{
		{"deleted or replaced", func() error { return os.Rename(file, file+".away") }, func() error { return os.Rename(file+".away", file) }},
		{"deleted or replaced", func() error {
			return errors.Join(os.Rename(file, file+".away"), os.WriteFile(file, nil, 0o600))
		}, func() error { return os.Rename(file+".away", file) }},
		{"permission denied", func() error { return os.Chmod(r.site.state, 0) }, func() error { return os.Chmod(r.site.state, 0o700) }},
	}
	if os.Getuid() == 0 { // who may do everything
		steps = steps[:len(steps)-1]
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		r.ready(503, s.name)
		r.same(c, once, "once")
		if ret, err := r.try(c, "echo x >>ran", "off", client.Events{}); err != nil || ret.Status != "error" {
			t.Errorf("%s: %v, %+v", s.name, err, ret)
		}
		if err := s.undo(); err != nil {
			t.Fatal(err)
		}
		r.ready(200, "ready")
	}
	if _, err := os.Stat(filepath.Join(r.site.workspace, "ran")); err == nil {
		t.Error("a call ran that could not be recorded")
	}
}

// TestAFullWorkspaceLeavesOldFilesAsTheyAre writes more than there is room for, and into
// a tree that is read-only.
func TestAFullWorkspaceLeavesOldFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.small(r.site.workspace, "size=2m,mode=755")
	const content = "old content\n"
	old := filepath.Join(r.site.workspace, "old")
	if err := os.WriteFile(old, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	r.restart()
	c := r.dial(client.Options{})
	fails := func(what, tool string, args map[string]any) {
		t.Helper()
		ret, err := c.Call(t.Context(), client.Call{Tool: tool, Arguments: args}, client.Events{})
		if err != nil || ret.Status != "error" || ret.Result == "" {
			t.Errorf("%s: %v, %+v", what, err, ret)
		}
		got, err := os.ReadFile(old)
		list, err2 := os.ReadDir(r.site.workspace)
		if err != nil || err2 != nil || string(got) != content || len(list) != 1 {
			t.Errorf("%s: the old file holds %.30q (%v), and there are %d files (%v)", what, got, err, len(list), err2)
		}
	}
	big := strings.Repeat("z", 3<<20)
	fails("a write", "write_file", map[string]any{"file_path": "old", "content": big})
	fails("a new file", "write_file", map[string]any{"file_path": "new", "content": big})
	fails("an edit", "edit_file", map[string]any{"file_path": "old", "old_string": "old", "new_string": big})
	if err := syscall.Mount("", r.site.workspace, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	fails("a write into a read-only tree", "write_file", map[string]any{"file_path": "old", "content": "new content\n"})
	fails("an edit in a read-only tree", "edit_file", map[string]any{"file_path": "old", "old_string": "old", "new_string": "new"})
	if ret := r.bash(c, "cat old", "off", client.Events{}); !strings.Contains(ret.Result, content) {
		t.Errorf("a read-only tree cannot be read: %+v", ret)
	}
}
