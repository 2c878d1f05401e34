package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

const exampleFile = "../../config.example.yaml"

var update = flag.Bool("update", false, "write "+exampleFile+" anew")

const exampleHead = `# The configuration of toold. Every setting is shown with its default: a line
# that is removed changes nothing. toold runs without any configuration.
#
# Read from --config, TOOLD_CONFIG, or ~/.config/toold/config.yaml. The command
# line overrides the environment (TOOLD_LISTEN, TOOLD_WORKSPACE, TOOLD_POLICY,
# TOOLD_STATE_DIR, TOOLD_LOG_LEVEL), which overrides this file.
#
# Durations have a unit: 500ms, 120s, 10m. Sizes are bytes, or KiB, MiB, GiB.
# Paths may begin with ~/; relative ones start at the directory of this file.
# Unknown keys are errors. Settings that begin with "# " have no fixed default;
# remove the "# " to use them.
`

// example is the table of settings as a commented configuration file.
func example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	for _, s := range settings {
		depth := strings.Count(s.key, ".")
		indent := strings.Repeat("  ", depth)
		value, commented := strings.CutPrefix(s.value, "# ")
		if commented || s.value == "" && optional(s.key) {
			indent = "# " + indent
		}
		note := s.doc
		if words := strings.Fields(s.check); len(words) > 2 && s.key != "tokens" {
			note = strings.TrimSuffix(strings.Join(words, " | ")+"; "+note, "; ")
		}
		if depth == 0 && s.doc != "" || len(note) > 75 {
			if depth == 0 {
				b.WriteString("\n")
			}
			wrapped(&b, strings.TrimPrefix(indent, "# ")+"# ", s.doc)
			note = strings.TrimSuffix(strings.TrimSuffix(note, s.doc), "; ")
		} else if depth == 0 {
			b.WriteString("\n")
		}
		line := strings.TrimSuffix(fmt.Sprintf("%s%s: %s", indent, s.key[strings.LastIndex(s.key, ".")+1:], value), " ")
		if line = strings.Replace(line, ": \n", ":\n", 1); note != "" {
			line = fmt.Sprintf("%-29s # %s", line, note)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// optional reports whether no setting of a group has a fixed default.
func optional(group string) bool {
	return !slices.ContainsFunc(settings, func(s setting) bool {
		return strings.HasPrefix(s.key, group+".") && !strings.HasPrefix(s.value, "# ")
	})
}

func wrapped(b *strings.Builder, mark, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if len(mark)+len(line)+len(word) > 82 {
			b.WriteString(strings.TrimRight(mark+line, " ") + "\n")
			line = ""
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(mark+line, " ") + "\n")
}

// TestTheExampleIsTheTableOfSettings also checks that the example changes nothing. With -update it writes it.
func TestTheExampleIsTheTableOfSettings(t *testing.T) {
	t.Parallel()
	if *update {
		must.Do(t, os.WriteFile(exampleFile, []byte(example()), 0o644))
	}
	text := must.Get(os.ReadFile(exampleFile))(t)
	if diff := cmp.Diff(string(text), example()); diff != "" {
		t.Errorf("go test ./internal/config -update writes config.example.yaml anew (-file +table):\n%s", diff)
	}
	m := newMachine(t)
	want := must.Get(Load(m.options()))(t)
	got := must.Get(m.loadText(t, example()))(t)
	got.Sandbox.Hide = slices.DeleteFunc(got.Sandbox.Hide, func(p string) bool { return p == got.File })
	got.File, got.Text, got.NamesFile = "", nil, want.NamesFile
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example differs from the defaults (-default +example):\n%s", diff)
	}
}

func TestNumbersHaveBounds(t *testing.T) {
	t.Parallel()
	for _, s := range settings {
		bounds := strings.Fields(strings.TrimPrefix(s.check, "0|"))
		_, size := parseSize(s.value)
		_, err := time.ParseDuration(s.value)
		if s.field == "" || !size && err != nil {
			continue
		}
		for _, bound := range bounds {
			if _, ok := parseSize(bound); !ok && size {
				t.Errorf("%s: cannot read %q", s.key, bound)
			}
			if _, err := time.ParseDuration(bound); err != nil && !size {
				t.Errorf("%s: %v", s.key, err)
			}
		}
		if len(bounds) != 2 {
			t.Errorf("%s: expected the least and the most, got %q", s.key, s.check)
		}
	}
}
