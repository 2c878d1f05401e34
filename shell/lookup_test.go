package shell

import (
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func TestAProgramThatWasLookedUpIsFollowed(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for script, followed := range map[string]bool{
		`P=$(which cat); $P a.txt`:                         true,
		`P=$(type -P cat 2>/dev/null); "$P" a.txt`:         true,
		`$(which cat) a.txt`:                               true,
		`$(which no-such-program-anywhere) a.txt`:          false,
		`PATH=/tmp:$PATH; P=$(which cat); $P a.txt`:        false,
		`PATH=; P=$(which cat); $P a.txt`:                  false,
		`which() { echo ./own; }; $(which cat) a.txt`:      false,
		`hash -p ./own cat; P=$(type -P cat); $P a.txt`:    false,
		`P=$(which cat; echo x); $P a.txt`:                 false,
		`P=$(which "$1"); $P a.txt`:                        false,
		`read -r PATH < f; P=$(which cat); $P a.txt`:       false,
		`BASH_CMDS[cat]=./own; P=$(type -P cat); $P a.txt`: false,
	} {
		effects := analysed(t, ws, script)
		reads := slices.ContainsFunc(effects, func(e policy.Effect) bool { return e.Kind == policy.Read && e.Path == ws+"/a.txt" })
		opaque := slices.ContainsFunc(effects, func(e policy.Effect) bool {
			return e.Kind == policy.Opaque || e.Kind == policy.Env && (e.Name == "PATH" || e.Name == "BASH_CMDS")
		})
		if followed != (reads && !opaque) {
			t.Errorf("%s: %+v", script, effects)
		}
	}
}

func TestAFileThatTheScriptWritesIsCodeWhenItRuns(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for script, code := range map[string]bool{
		`echo x > run; ./run a.txt`:                        true,
		`echo x > run; ./run`:                              true,
		`cp a.txt src/run; src/run --all`:                  true,
		`cd src; echo x > run; ../src/run a`:               true,
		`echo x > other; ./run a.txt`:                      false,
		`echo x > a.txt; ./run a.txt`:                      false,
		`./run a.txt; echo x > run`:                        false,
		`echo x > /usr/bin/cat; cat run`:                   false,
		`if test -e b.txt; then echo x > run; fi; ./run a`: true,
	} {
		found := slices.ContainsFunc(analysed(t, ws, script), func(e policy.Effect) bool {
			return e.Kind == policy.Opaque && e.Code && e.Why == "it runs a file that the script itself writes"
		})
		if found != code {
			t.Errorf("%s: it runs what it writes: %v, want %v", script, found, code)
		}
	}
}

func TestATemplateBehindAnUnknownFlagIsNoticed(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for _, script := range []string{`mktemp --frob out/a.XXXXXX`, `x=$(p); mktemp "-$x" out/a.XXXXXX`, `mktemp -d out/a.XXXXXX`} {
		effects := analysed(t, ws, script)
		if !slices.ContainsFunc(effects, func(e policy.Effect) bool { return e.Kind == policy.Write && e.Path == ws+"/out/a.XXXXXX" }) {
			t.Errorf("%s: %+v", script, effects)
		}
	}
}
