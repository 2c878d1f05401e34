package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
)

// keptCaches is a state directory with the stores of some workspaces, each of which has
// 64 KiB and was used as many hours ago as its name has letters.
func keptCaches(t *testing.T, names ...string) (cfg config.Config, store func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	cfg = config.Config{StateDir: dir, Limits: config.Limits{CachesKeep: 24 * time.Hour, SpoolKeep: time.Hour, RecordKeep: time.Hour, QuarantineKeep: time.Hour, StateBytes: 1 << 30}}
	store = func(name string) string { return filepath.Join(dir, "caches", name+"-0123456789ab") }
	for _, name := range names {
		must.Do(t, os.MkdirAll(filepath.Join(store(name), "go-1/changed"), 0o700))
		for file, text := range map[string]string{
			store(name) + "/lock": "", store(name) + "/go-1/changed/file": strings.Repeat("x", 2*rest), store(name) + ".of": dir + "/" + name,
		} {
			must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		}
		used := time.Now().Add(-time.Duration(len(name)) * time.Hour)
		must.Do(t, os.Chtimes(store(name)+"/lock", used, used))
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return cfg, store
}

// rest is more than the journal may add meanwhile: zeros behind its last record, its index.
const rest = 1 << 20

func left(t *testing.T, store func(string) string, names ...string) string {
	t.Helper()
	var found []string
	for _, name := range names {
		if _, err := os.Lstat(store(name)); err == nil {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// keptJournal is the journal of a state directory.
func keptJournal(t *testing.T, cfg config.Config) *journal.Journal {
	t.Helper()
	j := must.Get(journal.Open(t.Context(), cfg.StateDir, journal.Self()))(t)
	t.Cleanup(func() { j.Close() })
	return j
}

func keptBytes(t *testing.T, cfg config.Config) int64 {
	t.Helper()
	n := must.Get(KeptBytes(cfg))(t)
	return n
}

// began begins a call, and returns where its output is: 2 MiB, some hours old.
func began(t *testing.T, cfg config.Config, j *journal.Journal, id string, hours int) (k journal.Key, output string) {
	t.Helper()
	rec, _, err := j.Begin(t.Context(), journal.Call{Client: "agent", ID: id, Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	output = filepath.Join(spoolDir(cfg), fmt.Sprint(rec.Key))
	then := time.Now().Add(-time.Duration(hours) * time.Hour)
	must.Do(t, errors.Join(os.MkdirAll(output, 0o700), os.WriteFile(output+"/stdout", make([]byte, 2*rest), 0o600), os.Chtimes(output+"/stdout", then, then)))
	return rec.Key, output
}

func ended(t *testing.T, j *journal.Journal, k journal.Key) {
	t.Helper()
	must.Get(j.Finish(k, journal.Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-", seq), []byte(`{}`), nil
	}))(t)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestOldOutputIsRemovedAndThatOfRunningCallsIsNot(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	j := keptJournal(t, cfg)
	k, old := began(t, cfg, j, "old", 2)
	ended(t, j, k)
	k, young := began(t, cfg, j, "young", 0)
	ended(t, j, k)
	_, running := began(t, cfg, j, "running", 2)
	must.Do(t, newPruner(cfg, j).prune(t.Context()))
	if exists(old) || !exists(young) || !exists(running) {
		t.Errorf("of the old, the young and the running call are left: %v %v %v", exists(old), exists(young), exists(running))
	}
}

// Of output, quarantine and caches, what was used least lately goes first.
func TestTheOldestGoesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	cfg, store := keptCaches(t, "a", "ccc")
	cfg.Limits.SpoolKeep = 24 * time.Hour
	j := keptJournal(t, cfg)
	k, output := began(t, cfg, j, "call", 2)
	ended(t, j, k)
	all := keptBytes(t, cfg)
	for _, want := range []struct {
		bytes            int64
		ccc, output, one bool
	}{{all + rest, true, true, true}, {all - 10, false, true, true}, {all - 5*rest/2, false, false, true}, {all - 9*rest/2, false, false, false}} {
		cfg.Limits.StateBytes = want.bytes
		if err := newPruner(cfg, j).prune(t.Context()); err != nil {
			t.Errorf("%d of %d bytes: %v", want.bytes, all, err)
		}
		if exists(store("ccc")) != want.ccc || exists(output) != want.output || exists(store("a")) != want.one {
			t.Errorf("%d of %d bytes: left are %v %v %v, want %+v", want.bytes, all, exists(store("ccc")), exists(output), exists(store("a")), want)
		}
	}
}

// fillPart records calls until there is a part of the journal that may go.
func fillPart(t *testing.T, j *journal.Journal, client string) {
	t.Helper()
	before := must.Get(j.Parts())(t)
	text := []byte(`{"text":"` + strings.Repeat("x ", 30<<10) + `"}`)
	for i := 0; ; i++ {
		rec, _, err := j.Begin(t.Context(), journal.Call{Client: client, ID: fmt.Sprint(i), Message: text}, journal.Decision{Action: "allow"})
		if err != nil {
			t.Fatal(err)
		}
		ended(t, j, rec.Key)
		if parts, err := j.Parts(); err != nil {
			t.Fatal(err)
		} else if len(parts) > len(before) {
			return
		}
	}
}

// What calls record is removed as it grows, whether or not they print anything.
func TestTheGrowthOfTheRecordAloneIsBounded(t *testing.T) {
	must.Long(t)
	t.Parallel()
	cfg, _ := keptCaches(t)
	cfg.Limits.StateBytes = 32 << 20
	j := keptJournal(t, cfg)
	k := newPruner(cfg, j)
	text := strings.Repeat("x", 50<<10)
	for i := range 700 {
		rec, _, err := j.Begin(t.Context(), journal.Call{Client: "agent", ID: fmt.Sprint(i), Message: []byte(`{"text":"` + text + `"}`)}, journal.Decision{Action: "allow"})
		if err != nil {
			t.Fatal(err)
		}
		ended(t, j, rec.Key)
		select {
		case <-k.wake:
			must.Do(t, k.prune(t.Context()))
		default:
		}
	}
	if kept := keptBytes(t, cfg); kept > cfg.Limits.StateBytes*9/8 {
		t.Errorf("%d bytes are kept, of at most %d", kept, cfg.Limits.StateBytes)
	}
}

// What calls print and keep in caches does not push out the record of calls before them.
func TestTheRecordGoesLast(t *testing.T) {
	t.Parallel()
	cfg, store := keptCaches(t, "a")
	j := keptJournal(t, cfg)
	fillPart(t, j, "agent")
	now := time.Now().Add(time.Hour)
	must.Do(t, os.Chtimes(store("a")+"/lock", now, now))
	cfg.Limits.StateBytes = keptBytes(t, cfg) - 10
	must.Do(t, newPruner(cfg, j).prune(t.Context()))
	if parts, err := j.Parts(); err != nil || len(parts) != 1 || exists(store("a")) {
		t.Errorf("%d parts of the record are left, %v, and the cache: %v", len(parts), err, exists(store("a")))
	}
}

// What calls print that have not ended cannot be removed, and nothing of the record is for it.
func TestNoRecordGoesForTheOutputOfCallsThatRun(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	j := keptJournal(t, cfg)
	fillPart(t, j, "agent")
	cfg.Limits.StateBytes = keptBytes(t, cfg) + rest
	running, output := began(t, cfg, j, "running", 0)
	k := newPruner(cfg, j)
	if err := k.prune(t.Context()); err == nil || !strings.Contains(err.Error(), "limits.state_bytes") {
		t.Errorf("the limit is %v", err)
	}
	if parts, err := j.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("%d parts of the record are left, %v", len(parts), err)
	}
	ended(t, j, running)
	if err := k.prune(t.Context()); err != nil || exists(output) {
		t.Errorf("after its end: %v, its output is there: %v", err, exists(output))
	}
	if parts, err := j.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("%d parts of the record are left, %v", len(parts), err)
	}
}

// When nothing more can be removed no new call is taken, and those that run end.
func TestNoCallIsTakenBeyondTheLimit(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	j := keptJournal(t, cfg)
	running, output := began(t, cfg, j, "running", 2)
	cfg.Limits.StateBytes = 1000
	k := newPruner(cfg, j)
	if err := k.prune(t.Context()); err == nil || !strings.Contains(err.Error(), "limits.state_bytes") {
		t.Errorf("the limit is %v", err)
	}
	_, _, err := j.Begin(t.Context(), journal.Call{Client: "agent", ID: "new", Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
	if err == nil || !strings.Contains(err.Error(), "limits.state_bytes") || !exists(output) {
		t.Errorf("a new call: %v", err)
	}
	if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "limits.state_bytes") {
		t.Errorf("it is ready: %v", err)
	}
	ended(t, j, running)
	k.cfg.Limits.StateBytes = 1 << 30
	if err := errors.Join(k.prune(t.Context()), j.Ready()); err != nil {
		t.Error(err)
	}
	began(t, cfg, j, "new", 0)
}

func TestToolCachesDoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	names := []string{"a", "bb", "ccc"}
	for _, c := range []struct {
		why    string
		change func(cfg *config.Config)
		want   string
	}{
		{"nothing is too much", func(*config.Config) {}, "a bb ccc"},
		{"a workspace is gone", func(cfg *config.Config) { os.Remove(cfg.StateDir + "/bb") }, "a ccc"},
		{"two were not used for long", func(cfg *config.Config) { cfg.Limits.CachesKeep = 90 * time.Minute }, "a"},
		{"one is too much", func(cfg *config.Config) { cfg.Limits.StateBytes = keptBytes(t, *cfg) - 10 }, "a bb"},
	} {
		cfg, store := keptCaches(t, names...)
		j := keptJournal(t, cfg)
		c.change(&cfg)
		if err := newPruner(cfg, j).prune(t.Context()); err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
		if got := left(t, store, names...); got != c.want {
			t.Errorf("%s: %s are left, want %s", c.why, got, c.want)
		}
	}
}

// Of a store that cannot be measured no one knows how much has to go for it: it goes itself.
func TestNothingElseGoesForACacheThatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	cfg, store := keptCaches(t, "a", "ccc")
	j := keptJournal(t, cfg)
	fillPart(t, j, "agent")
	call, output := began(t, cfg, j, "ended", 0)
	ended(t, j, call)
	chain := strings.Repeat("/"+strings.Repeat("d", 200), 11)
	must.Do(t, errors.Join(os.MkdirAll(store("a")+"/one"+chain, 0o700), os.MkdirAll(store("a")+"/two"+chain, 0o700)))
	must.Do(t, os.Rename(store("a")+"/two", store("a")+"/one"+chain+"/two")) // longer than a path can be
	k := newPruner(cfg, j)
	err := k.prune(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot measure") || exists(store("a")) || !exists(store("ccc")) || !exists(output) {
		t.Errorf("%v; it is there: %v, the other: %v, output: %v", err, exists(store("a")), exists(store("ccc")), exists(output))
	}
	if parts, err := j.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("%d parts of the record are left, %v", len(parts), err)
	}
	if err := errors.Join(k.prune(t.Context()), j.Ready()); err != nil {
		t.Error(err)
	}
}

func TestNothingElseGoesForACacheThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	cfg, store := keptCaches(t, "ccc")
	j := keptJournal(t, cfg)
	fillPart(t, j, "agent")
	call, output := began(t, cfg, j, "ended", 0)
	ended(t, j, call)
	must.Do(t, errors.Join(os.Remove(store("ccc")+"/lock"), os.Mkdir(store("ccc")+"/lock", 0o700)))
	old := time.Now().Add(-3 * time.Hour)
	must.Do(t, os.Chtimes(store("ccc")+"/lock", old, old))
	cfg.Limits.StateBytes = keptBytes(t, cfg) - 10
	if err := newPruner(cfg, j).prune(t.Context()); err == nil || j.Ready() == nil || !exists(output) {
		t.Errorf("%v; calls are taken: %v, the output is there: %v", err, j.Ready() == nil, exists(output))
	}
	if parts, err := j.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("%d parts of the record are left, %v", len(parts), err)
	}
}

// The store of a daemon that runs stays.
func TestACacheInUseIsNotPruned(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	cfg.Workspace, cfg.Limits.StateBytes = t.TempDir(), 1000
	must.Do(t, recordOwner(cfg))
	open := must.Get(caches.Open(t.Context(), launch.Overlays, cfg.CacheStore(), nil))(t)
	defer open.Close()
	big := filepath.Join(cfg.CacheStore(), "file")
	must.Do(t, os.WriteFile(big, make([]byte, 8<<10), 0o600))
	_ = newPruner(cfg, keptJournal(t, cfg)).prune(t.Context()) // it is too much
	if _, err := os.Lstat(big); err != nil {
		t.Fatalf("what is in use was removed: %v", err)
	}
}

// Calls that fill a tool cache cost neither the record nor the output of other calls.
func TestNothingElseGoesForACacheInUse(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	cfg.Workspace = t.TempDir()
	must.Do(t, recordOwner(cfg))
	j := keptJournal(t, cfg)
	fillPart(t, j, "agent")
	call, output := began(t, cfg, j, "ended", 0)
	ended(t, j, call)
	cfg.Limits.StateBytes = keptBytes(t, cfg) + rest
	open := must.Get(caches.Open(t.Context(), launch.Overlays, cfg.CacheStore(), nil))(t)
	must.Do(t, os.WriteFile(filepath.Join(cfg.CacheStore(), "file"), make([]byte, cfg.Limits.StateBytes), 0o600))
	k := newPruner(cfg, j)
	for range 2 {
		if err := k.prune(t.Context()); err == nil || !strings.Contains(err.Error(), "limits.state_bytes") || !exists(output) {
			t.Errorf("the limit is %v, the output is there: %v", err, exists(output))
		}
	}
	open.Close()
	if err := errors.Join(k.prune(t.Context()), j.Ready()); err != nil || exists(cfg.CacheStore()) {
		t.Errorf("when it is not used: %v, it is there: %v", err, exists(cfg.CacheStore()))
	}
	if parts, err := j.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("%d parts of the record are left, %v", len(parts), err)
	}
}
