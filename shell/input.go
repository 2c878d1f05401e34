package shell

import (
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// Code that a program takes from its standard input is not known. What is known of
// it is followed all the same, for the rules that deny.

// fromInput follows the text that a shell finds on its standard input.
func (w *walker) fromInput(s *state) {
	text := s.input
	if text == "" {
		return
	}
	w.opaque("a shell runs its standard input", "")
	w.apart(s, func(sub *state) {
		sub.input = ""
		w.script(text, w.child(sub, nil))
	})
}

// isInput reports whether a word names standard input.
func (w *walker) isInput(a word, s *state) bool {
	if !a.known() {
		return false
	}
	for _, path := range w.fromDirs(a.text, s) {
		if kind, _ := procPath(strings.TrimPrefix(path, procDir)); inProc(path) && kind == procInput {
			return true
		}
	}
	return false
}

// say records what echo, printf and cat print.
func (w *walker) say(args []word, s *state) {
	switch args[0].text {
	case "cat":
		w.said += s.input
	case "echo", "printf":
		for _, a := range args[1:] {
			w.said += a.text + " "
		}
		w.said = strings.ReplaceAll(w.said, `\n`, "\n") + "\n"
	}
	if len(w.said) > maxScript {
		w.said = ""
	}
}

// inputByDetour records that a program takes code from an open file that it is given
// under another name than the usual ones.
func (w *walker) inputByDetour(args []word, s *state, source string) {
	argv := policyWords(args)
	found := false
	for i, a := range args[1:] {
		if !a.known() || !strings.Contains(a.text, "stdin") && !strings.Contains(a.text, "fd/") {
			continue
		}
		for _, text := range mayBePaths(a.text) {
			for _, path := range w.fromDirs(text, s) {
				if inProc(path) && text != "" && len(path) < len(procDir+"/thread-self/task/self/fd/")+20 {
					argv[i+1] = policy.Word{Text: strings.TrimSuffix(a.text, text) + "/dev/stdin"}
					found = true
				}
			}
		}
	}
	if found && programs.Parse(argv).Code && !programs.Parse(policyWords(args)).Code {
		w.opaque("a program may run what it reads from an open file", source)
	}
}
