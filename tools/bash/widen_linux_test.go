package bash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// site is a workspace, a folder beside it and the tool for them.
type site struct {
	ws, out string
	o       bash.Options
}

func newSite(t *testing.T) site {
	t.Helper()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	s := site{ws: base + "/ws", out: base + "/out"}
	for _, dir := range []string{s.ws, s.out + "/.git/hooks", base + "/quarantine"} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	must.Do(t, os.WriteFile(s.out+"/.envrc", []byte("old\n"), 0o600))
	g := must.Get(protect.New(protect.Options{Roots: []string{s.ws}, Names: []string{".envrc", ".vscode", ".git/hooks"}, Quarantine: base + "/quarantine"}))(t)
	t.Cleanup(g.Close)
	pool := executor.NewPool(1, nil)
	t.Cleanup(pool.Close)
	s.o = bash.Options{
		Workspace: s.ws, Terminal: executor.Off, Env: executor.BaseEnv(executor.EnvOptions{From: os.Environ()}), Protect: g, Pool: pool,
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: s.ws},
	}
	return s
}

// grant is what words add to the site's sandbox.
func (s site) grant(t *testing.T, w escalation.Words) *escalation.Escalation {
	t.Helper()
	g := must.Get(escalation.Limits{Mode: sandbox.FullAccess, Network: escalation.Full, Write: []string{filepath.Dir(s.out)}}.Check(s.o.Profile, w))(t)
	t.Cleanup(g.Close)
	return g
}

// run runs a script in the sandbox, widened by g.
func (s site) run(t *testing.T, script string, g *escalation.Escalation) (tools.Result, string) {
	t.Helper()
	return run(t, build(t, bash.New(s.o), script), tools.IO{Escalation: g})
}

func TestAFolderIsWritableForTheOneCallAndKeepsWhatIsProtected(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	script := `cd ` + s.out + ` 2>/dev/null || exit 0
for f in new .envrc .git/hooks/pre-commit; do (echo new >$f) 2>/dev/null && echo wrote $f; done
mv .git elsewhere 2>/dev/null && echo moved
mkdir .vscode 2>/dev/null && sleep 1000; true`
	if _, out := s.run(t, script, nil); out != "" {
		t.Errorf("before: %q", out)
	}
	r, out := s.run(t, script, s.grant(t, escalation.Words{Write: s.out}))
	if out != "wrote new\n" || r.Failure != tools.ProtectedPath || !strings.Contains(r.Text, ".vscode: it appeared") {
		t.Errorf("widened: %q, %+v", out, r)
	}
	if _, err := os.Stat(s.out + "/.vscode"); err == nil {
		t.Error(".vscode is still there")
	}
	if b, err := os.ReadFile(s.out + "/.envrc"); err != nil || string(b) != "old\n" {
		t.Errorf(".envrc holds %q, %v", b, err)
	}
	if _, out := s.run(t, script, nil); out != "" {
		t.Errorf("after: %q", out)
	}
}

func TestACallDoesNotRunWhenItsFolderIsNotTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(s site) error{
		"a link": func(s site) error {
			return os.Symlink(filepath.Dir(s.out), s.out)
		},
		"a link to where it went": func(s site) error { return os.Symlink(s.out+"-away", s.out) },
		"another folder":          func(s site) error { return os.Mkdir(s.out, 0o700) },
		"nothing":                 func(site) error { return nil },
	} {
		s := newSite(t)
		s.run(t, "true", nil) // or skips
		g := s.grant(t, escalation.Words{Write: s.out})
		must.Do(t, os.Rename(s.out, s.out+"-away"))
		must.Do(t, swap(s))
		r, out := s.run(t, "echo ran; touch "+s.out+"/f "+s.out+"-away/f", g)
		left, _ := filepath.Glob(filepath.Dir(s.out) + "/*/f")
		if r.Failure != tools.SandboxUnavailable || out != "" || len(left) > 0 {
			t.Errorf("%s: printed %q, left %q, %+v", name, out, left, r)
		}
	}
}

func TestFullAccessIsForTheOneCall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	script := "echo x >" + s.out + "/f"
	if r, _ := s.run(t, script, nil); !r.IsError {
		t.Fatalf("without: %+v", r)
	}
	if r, _ := s.run(t, script, s.grant(t, escalation.Words{Profile: "danger-full-access"})); r.IsError || r.Sandbox.Profile != "danger-full-access" || r.Sandbox.Tier != "none" {
		t.Errorf("with: %+v, %+v", r, r.Sandbox)
	}
	if r, _ := s.run(t, script, nil); !r.IsError || r.Sandbox.Profile != "workspace-write" {
		t.Errorf("after: %+v", r)
	}
}

// What tools are told of caches is about the sandbox.
func TestFullAccessFindsNoCachesOfTheSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	set := must.Get(caches.Open(t.Context(), launch.Overlays, filepath.Dir(s.ws)+"/store", []caches.Cache{{Path: s.ws + "/none", Env: "NONE_CACHE"}}))(t)
	t.Cleanup(set.Close)
	s.o.Profile.Caches = set
	s.o.Env = append(s.o.Env, set.Env()...)
	script := `[ -z "$NONE_CACHE" ] || (cd "$NONE_CACHE" && echo there)`
	if _, out := s.run(t, script, nil); out != "there\n" {
		t.Errorf("confined: %q", out)
	}
	if r, out := s.run(t, script, s.grant(t, escalation.Words{Profile: "danger-full-access"})); out != "" || r.IsError {
		t.Errorf("with full access: %q, %+v", out, r)
	}
}
