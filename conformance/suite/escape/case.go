//go:build linux

package escape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/lazyregexp"
)

// Case is one line of a file of escape cases.
type Case struct {
	ID      string
	Own     string // why it is about toold only; empty: it is about any implementation
	Profile string // read-only, workspace-write, network-off or full
	Why     string

	Setup   string // a script that runs outside, before the daemon starts
	Command string // what the call does: a script, or calls of other tools

	// Beside is the script of a background call in the conversation "beside"; see startBackground. Conversation is that of
	// the call.
	Beside       string
	Conversation string

	// Scripts that run outside when the call has returned, or while a door that the
	// call opens is open. True is an escape, and broken, respectively.
	MustNotHappen string `json:"must_not_happen"`
	MustHappen    string `json:"must_happen"`
}

// Read reads files of escape cases.
func Read(paths ...string) ([]Case, error) {
	var bad error
	cases, err := suite.ReadLines(func(place string, text []byte) (c Case) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil || c.ID == "" {
			bad = errors.Join(bad, fmt.Errorf("%s: cannot read the case %s: %v", place, c.ID, err))
		}
		return c
	}, paths)
	return cases, errors.Join(err, bad)
}

// otherTools finds calls of tools other than bash in a command.
var otherTools = lazyregexp.New(`\b(read_file|write_file|edit_file) (\{.*?\})(,|$| in a loop)`)

// calls are the calls that a command stands for, and how often they are made.
func (c Case) calls() (list []suite.Call, times int, err error) {
	times = 1
	command := translate(c.Command, commandPhrases())
	if strings.HasSuffix(command, " in a loop") {
		times = 200
	}
	if strings.HasPrefix(c.Setup, "cwd=") {
		dir, _, _ := strings.Cut(strings.TrimPrefix(c.Setup, "cwd="), ",")
		return []suite.Call{{Tool: "bash", Arguments: map[string]any{"command": command, "cwd": dir}}}, 30, nil
	}
	if !strings.HasPrefix(command, "read_file {") && !strings.HasPrefix(command, "write_file {") && !strings.HasPrefix(command, "edit_file {") {
		return []suite.Call{{Tool: "bash", Arguments: map[string]any{"command": command, "timeout": 300_000}}}, times, nil
	}
	for _, m := range otherTools().FindAllStringSubmatch(command, -1) {
		args := map[string]any{}
		if err := json.Unmarshal([]byte(m[2]), &args); err != nil {
			return nil, 0, fmt.Errorf("the arguments %s: %w", m[2], err)
		}
		if path, ok := args["path"]; ok {
			args["file_path"] = path
			delete(args, "path")
		}
		list = append(list, suite.Call{Tool: m[1], Arguments: args})
	}
	return list, times, nil
}

// CannotPlay reports why a case cannot be played at all, "" if it can.
func (c Case) CannotPlay() string {
	if c.InstallsSetuid() && !rootNeedsNoNamespace() {
		return "only root can install a program of root's, for a case that is then played by somebody else"
	}
	for text, phrases := range map[string][]phrase{
		c.Setup: setupPhrases(), c.Command: commandPhrases(), c.MustNotHappen: checkPhrases(), c.MustHappen: checkPhrases(),
	} {
		if why, ok := strings.CutPrefix(translate(text, phrases), "- "); ok {
			return why
		}
	}
	switch c.Profile {
	case "read-only", "workspace-write", "network-off", "full":
		return ""
	}
	return fmt.Sprintf("the profile %q is unknown", c.Profile)
}

// Cases about connections by name begin their setup with "net=proxy allow HOST…",
// after which may come words, and after ";" a script.
const proxySetup = "net=proxy "

// ByName reports whether a case is about connections by name.
func (c Case) ByName() bool { return strings.HasPrefix(c.Setup, proxySetup) }

// Hosts are those that the configuration of a case lists.
func (c Case) Hosts() []string {
	words, _, _ := strings.Cut(c.Setup, ";")
	return regexp.MustCompile(`[\w.*-]+\.example(:\d+)?`).FindAllString(words, -1)
}
