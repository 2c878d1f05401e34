//go:build linux

package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// escapeCase is one line of a file of escape cases.
type escapeCase struct {
	ID      string
	Profile string // read-only, workspace-write, network-off or full
	Why     string

	Setup   string // a script that runs outside, before the daemon starts
	Command string // what the call does: a script, or calls of other tools

	// Beside is what a call in the background does meanwhile, in the conversation "beside".
	// Conversation is that of the call. See playBeside.
	Beside       string
	Conversation string

	// Scripts that run outside when the call has returned, or while a door that the
	// call opens is open. True is an escape, and broken, respectively.
	MustNotHappen string `json:"must_not_happen"`
	MustHappen    string `json:"must_happen"`

	Observed json.RawMessage // not used
}

func readEscapeCases(paths ...string) ([]escapeCase, error) {
	var out []escapeCase
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the cases: %w", err)
		}
		scanner := bufio.NewScanner(bytes.NewReader(src))
		scanner.Buffer(nil, len(src)+1)
		for n := 1; scanner.Scan(); n++ {
			text := bytes.TrimSpace(scanner.Bytes())
			if len(text) == 0 {
				continue
			}
			var c escapeCase
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&c); err != nil || c.ID == "" {
				return nil, fmt.Errorf("%s:%d: cannot read the case %s: %v", path, n, c.ID, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// openCase is a case that is known to escape or to be broken.
type openCase struct {
	ID      string
	As      string // root or user: only there; empty: everywhere
	Verdict string // escaped or broken
	Why     string
	// Sometimes tells that it is a matter of luck: it may be blocked or usable too.
	Sometimes bool
}

// holds reports whether a verdict is what the list says.
func (o openCase) holds(verdict string) bool {
	return o.Verdict == verdict || o.Sometimes && (verdict == "blocked" || verdict == "usable")
}

// readOpenCases reads what is not closed, as it is for whoever runs this.
func readOpenCases(name string) (map[string]openCase, error) {
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		return nil, err
	}
	var list []openCase
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	me := "user"
	if os.Getuid() == 0 {
		me = "root"
	}
	open := map[string]openCase{}
	for _, o := range list {
		if o.As == "" || o.As == me {
			open[o.ID] = o
		}
	}
	return open, nil
}

// phrase gives the script for what a case says in words. "-" means that the case
// cannot be played, and the rest of the script why.
type phrase struct{ says, script string }

// wordedSetups, wordedCommands and wordedChecks hold what the cases that were not
// written as scripts say.
func wordedSetups() []phrase {
	return []phrase{
		{`^as root: install at (\S+) a root-owned`, `[ -u @OUT@/suid ]`}, // see makeWorld
		{`^mount (a second filesystem|the home a second time) at `, `:`}, // see makeWorld
		{`^loop: renameat2\(RENAME_EXCHANGE\) between directory (\S+) and symlink (\S+) -> (\S+) for`, `mkdir -p $1 && echo INSIDE > $1/victim.txt && ln -s $3 $2 && { @E@ exchange $1 $2 >/dev/null 2>&1 & }`},
		{`^cwd=(\S+), swapped for a symlink to (\S+) `, `mkdir -p $1 && ln -s $2 $1.link && { @E@ exchange $1 $1.link >/dev/null 2>&1 & }`},
		{`^warm pool: create a new nested repository`, `git init -q @WS@/late`},
		{`^config: sandbox.profile=danger-full-access without`, `:`},
		{`^user.max_user_namespaces=0 `, `:`},
		{`^mask one file in /proc `, `:`},
		{`^outer seccomp denies landlock_create_ruleset`, `:`},
		{`(?s)^net=proxy [^;]*;(.*)$`, `$1`},
		{`^net=proxy `, `:`},
	}
}

func wordedCommands() []phrase {
	return []phrase{
		{`^write_file \{"path":"(\S+)/mnt/x"\}$`, `write_file {"path":"$1/mnt/x","content":"x"}`},
		{`^write to its hooks$`, `echo x > @WS@/late/.git/hooks/h`},
		{`^edit_file \{"path":"([^"]*)",\.\.\.\}$`, `edit_file {"path":"$1","old_string":"hello","new_string":"bye"}`},
		{`(?s)^((curl|dig) .*)$`, `PATH=$$PATH:@BASE@/bin; $1`},
		{`^program without proxy support connects to (\S+):(\d+)$`, `@E@ say $1 $2`},
		{`^TLS ClientHello with SNI (\S+) to (\S+):(\d+)$`, `@E@ hello $2 $3 $1`},
	}
}

func wordedChecks() []phrase {
	return append(egressChecks(), []phrase{
		{`^(tool returns )?status error$`, `[ "$$STATUS" = error ]`},
		{`^status error that names the protected path$`, `[ "$$STATUS" = error ] && grep -q '\.git' "$$SBOUT"`},
		{`^status error "read-only profile"$`, `[ "$$STATUS" = error ] && grep -q 'read-only' "$$SBOUT"`},
		{`^status error, stage landlock$`, `grep -q landlock "$$SBOUT"`},
		{`^status error sandbox_unavailable, stage clone, errno ENOSPC$`, `grep -q 'user namespaces\|clone' "$$SBOUT"`},
		{`^status error, or tier B announced in metadata$`, `[ "$$STATUS" = error ] || grep -q '"tier":"B"' "$$RETURN"`},
		{`^(any )?results? contains (\w+)$`, `grep -q $2 "$$SBOUT"`},
		{`^some results contain the inside content$`, `grep -q INSIDE "$$SBOUT"`},
		{`^(\w+) in result( when reads are confined)?$`, `grep -q $1 "$$SBOUT"`},
		{`^result is an error or \(profile reads everything\)`, `[ "$$STATUS" = error ] || grep -q ORIGINAL "$$SBOUT"`},
		{`^daemon memory grows$`, `[ "$$GROWTH" -gt 67108864 ]`},
		{`^daemon RSS grows by more than the read cap$`, `[ "$$GROWTH" -gt 67108864 ]`},
		{`^capped result$`, `[ "$$(stat -c %s "$$SBOUT")" -lt 4000000 ]`},
		{`^(\S+) contains (\w+)$`, `grep -q $2 $1`},
		{`^mode (\d+) kept$`, `[ "$$(stat -c %a @WS@/README)" = $1 ]`},
		{`^mode, xattrs or owner changed$`, `[ "$$(stat -c %a:%u @WS@/README)" != "600:$$(id -u)" ] || ! getfattr -n user.k @WS@/README >/dev/null`},
		{`^daemon starts$`, `[ "$$STARTED" = 1 ]`},
		{`^exit status 78 and a message$`, `[ "$$RC" = 3 ] && [ -s "$$SBOUT" ]`},                                       // 3 is what toold ends with then
		{`^policy decides: xdev allowed or refused, documented$`, `[ "$$STATUS" = success ] && grep -qx x @WS@/mnt/x`}, // what counts is the path
		{`^hi is printed`, `[ "$$STATUS" = success ] && grep -qx hi "$$SBOUT"`},
		{`^a host /proc is visible inside$`, `[ "$$STATUS" = success ] && grep -q '"enforced":\[\]' "$$RETURN"`},
	}...)
}

// script turns what a case says into a script.
func script(text string, phrases []phrase) string {
	text = strings.TrimSpace(text)
	for _, p := range phrases {
		re := regexp.MustCompile(p.says)
		if m := re.FindStringSubmatchIndex(text); m != nil {
			return string(re.ExpandString(nil, p.script, text, m))
		}
	}
	return text
}

// toolCall is one call that a command stands for.
type toolCall struct {
	tool string
	args map[string]any
}

// otherTools finds calls of tools other than bash in a command.
var otherTools = regexp.MustCompile(`\b(read_file|write_file|edit_file) (\{.*?\})(,|$| in a loop)`)

// calls are the calls that a command stands for, and how often they are made.
func (c escapeCase) calls() (list []toolCall, times int, err error) {
	times = 1
	command := script(c.Command, wordedCommands())
	if strings.HasSuffix(command, " in a loop") {
		times = 200
	}
	if strings.HasPrefix(c.Setup, "cwd=") {
		dir, _, _ := strings.Cut(strings.TrimPrefix(c.Setup, "cwd="), ",")
		return []toolCall{{"bash", map[string]any{"command": command, "cwd": dir}}}, 30, nil
	}
	if !strings.HasPrefix(command, "read_file {") && !strings.HasPrefix(command, "write_file {") && !strings.HasPrefix(command, "edit_file {") {
		return []toolCall{{"bash", map[string]any{"command": command, "timeout": 300_000}}}, times, nil
	}
	for _, m := range otherTools.FindAllStringSubmatch(command, -1) {
		args := map[string]any{}
		if err := json.Unmarshal([]byte(m[2]), &args); err != nil {
			return nil, 0, fmt.Errorf("the arguments %s: %w", m[2], err)
		}
		if path, ok := args["path"]; ok {
			args["file_path"] = path
			delete(args, "path")
		}
		list = append(list, toolCall{m[1], args})
	}
	return list, times, nil
}

// takesMemory reports whether a case takes memory until the limit, in one of the ways
// beside rs-05. There the limit is lower than the usual one, which rs-05 tries.
func (c escapeCase) takesMemory() bool {
	return slices.Contains([]string{"rs-08", "rs-09", "rs-10", "rs-13"}, c.ID)
}

// cannotPlay tells why a case cannot be played at all, "" if it can.
func (c escapeCase) cannotPlay() string {
	if c.installsSetuid() && !rootNeedsNoNamespace() {
		return "only root can install a program of root's, for a case that is then played by somebody else"
	}
	for text, phrases := range map[string][]phrase{
		c.Setup: wordedSetups(), c.Command: wordedCommands(), c.MustNotHappen: wordedChecks(), c.MustHappen: wordedChecks(),
	} {
		if why, ok := strings.CutPrefix(script(text, phrases), "- "); ok {
			return why
		}
	}
	switch c.Profile {
	case "read-only", "workspace-write", "network-off", "full":
		return ""
	}
	return fmt.Sprintf("the profile %q is unknown", c.Profile)
}
