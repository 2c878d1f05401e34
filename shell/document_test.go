package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func TestADocumentThatIsOnlyWrittenMayHoldAnything(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	a := newAnalyser(ws)
	p := judging(t, ws, 0)
	for _, script := range []string{
		"cat > Dockerfile <<'EOF'\nRUN apt-get update && \\\n    apt-get install -y git\nEOF",
		"cat >> src/Makefile <<\"END\"\nall: a \\\n  b\n\tsudo id\nEND\n",
		"set -e\nmkdir -p src && cat <<'EOF' > src/a.sh\necho \"$name{1,2}\" \\\nEOF\\\nEOF \nEOF\nls src\n",
		"cat > a <<'A'\nx\\\nA\n\ncat > b <<'B'\n" + strings.Repeat("{", 200) + "\nB\nls",
	} {
		if d := p.Decide(a.Effects(script, ws)); d.Action != policy.Allow {
			t.Errorf("%s\n%v by %s: %s", script, d.Action, d.Rule, d.Reason)
		}
	}
}

func TestNothingHidesBehindADocument(t *testing.T) {
	must.Long(t)
	t.Parallel()
	ws, _ := must.Workspace(t)
	a := newAnalyser(ws)
	bin := t.TempDir()
	must.Program(t, filepath.Join(bin, "evil"), []byte("#!/bin/bash\n: >\"$RAN\"\n"))
	seen, hidden := 0, 0
	for _, before := range []string{"", "'\n", "\"\n", "echo '\n", "echo \\\n", "# \\\n", "cat <<A\n", "cat() { bash; }\n", "function cat if true; then bash; fi\n", "for i in 1 2; do\n", "set -e\n", "cd . &&\n", "cat > g <<'A'\nA\n"} {
		for _, document := range []string{"cat > f <<'EOF'", "cat <<\"EOF\" >> f", "cat > f <<EOF", "cat > f <<-'EOF'", "cat > f <<'EOF' ", "cd . && cat > f <<'EOF'", "cat > f <<'EOF' \\", "xargs cat > f <<'EOF'", "cat <<'EOF' | bash"} {
			for _, end := range []string{"EOF", "EOF\\", "EOF ", "\tEOF", "x \\\nEOF", "\\\nEOF", "'\nEOF", "'\nevil\nEOF", "A\nevil\nEOF"} {
				for _, after := range []string{"evil\nEOF", "evil\nEOF\nevil", "'\nevil\nEOF", "'", "A", "done\nevil", "cat() { bash; }\ndone"} {
					script := before + document + "\n" + end + "\n" + after
					if sees(a.Effects(script, ws)) {
						seen++
						continue
					}
					hidden++
					if runs(t, bin, script) {
						t.Errorf("bash ran evil in\n%s", script)
					}
				}
			}
		}
	}
	if seen == 0 || hidden == 0 {
		t.Errorf("evil was seen in %d scripts, and not in %d", seen, hidden)
	}
}

func sees(effects []policy.Effect) bool {
	return slices.ContainsFunc(effects, func(e policy.Effect) bool {
		return e.Kind == policy.Opaque || e.Kind == policy.Exec && (len(e.Argv) == 0 || e.Argv[0].Dynamic || slices.Contains([]string{"evil", "bash"}, e.Argv[0].Text))
	})
}

func runs(t *testing.T, bin, script string) bool {
	t.Helper()
	dir := t.TempDir()
	bash := exec.CommandContext(t.Context(), "/bin/bash", "--noprofile", "--norc", "-c", script)
	bash.Dir, bash.Env = dir, []string{"PATH=" + bin + ":/bin:/usr/bin", "RAN=" + filepath.Join(dir, "ran")}
	_ = bash.Run() // most are wrong somewhere
	_, err := os.Stat(filepath.Join(dir, "ran"))
	return err == nil
}
