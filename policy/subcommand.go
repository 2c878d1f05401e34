package policy

import (
	"iter"
	"slices"
	"strings"
)

// What programs with subcommands make of their first words. Allowing rules do not
// look here: for them a command is what is written.

// globalOptions lists, for programs with subcommands, the options before the
// subcommand whose value is the next word.
var globalOptions = map[string]string{
	"git":       "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --exec-path",
	"kubectl":   "--context --kubeconfig -n --namespace --cluster --user -s --server --token --as --as-group --request-timeout --cache-dir --certificate-authority --client-key --client-certificate --password --username --profile -v",
	"docker":    "-c --context --config -H --host -l --log-level --tlscacert --tlscert --tlskey",
	"npm":       "--loglevel --prefix --registry --userconfig --globalconfig --cache --workspace -w --script-shell -C --tag --access --otp",
	"npx":       "-p --package -w --workspace",
	"yarn":      "--cwd",
	"pnpm":      "-C --dir --filter -F --loglevel --reporter",
	"bun":       "--cwd -c --config",
	"cargo":     "--config -Z --color -C --manifest-path --target-dir",
	"gh":        "-R --repo",
	"go":        "-C",
	"make":      "-C --directory -f --file --makefile -I --include-dir -j --jobs -l -o -W",
	"systemctl": "-H --host -M --machine -t --type",
	"pip":       "--python --log --proxy --timeout --cert --cache-dir",
	"pip3":      "--python --log --proxy --timeout --cert --cache-dir",
	"apt-get":   "-c -o -t --option --config-file --target-release",
	"apt":       "-c -o -t --option --config-file --target-release",
	"helm":      "--kube-context --kubeconfig -n --namespace",
	"terraform": "-chdir",
	"podman":    "--connection --identity --log-level --root --url -c",
}

// plainOptions lists options before the subcommand that take no value. Of one
// that is in neither list, the next word may be the value or the subcommand.
var plainOptions = map[string]string{
	"git":     "--no-pager -P -p --paginate --bare --no-replace-objects --no-optional-locks --literal-pathspecs --no-advice --version --help -h -v",
	"kubectl": "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --help -h",
	"docker":  "-D --debug --tls --tlsverify --version -v --help",
	"npm": "--silent -s --quiet -q --verbose -d -dd -ddd --json --parseable -p --long -l --global -g --yes -y --force -f --dry-run --offline --prefer-offline --prefer-online " +
		"--ignore-scripts --if-present --workspaces -ws --include-workspace-root -iwr --no-audit --no-fund --no-color --no-save --no-progress --no-update-notifier --foreground-scripts " +
		"--legacy-peer-deps --strict-peer-deps --production --save -S --save-dev -D --save-exact -E --save-optional -O --save-prod -P --save-bundle -B --version -v --help -h",
	"npx":    "--yes -y --no --quiet -q --ignore-existing --version -v --help -h",
	"yarn":   "--silent -s --verbose --json --offline --frozen-lockfile --immutable --non-interactive --no-lockfile --no-progress --version -v --help -h",
	"pnpm":   "-r --recursive -w --workspace-root --silent -s --color --no-color --stream --use-stderr --aggregate-output --if-present --version -v --help -h",
	"bun":    "--bun -b --silent --watch --hot --smol --version -v --help -h",
	"cargo":  "-q --quiet -v -vv --verbose --frozen --locked --offline --list --version -V --help -h",
	"go":     "-h --help",
	"gh":     "--version --help -h",
	"make":   "-B -b -d -e -i -k -n -p -q -r -R -s -S -t -v -w --always-make --dry-run --silent --quiet --keep-going --version --help",
	"pip":    pipPlain,
	"pip3":   pipPlain,
	"helm":   "--debug --help -h",
	"podman": "--remote -r --noout --version -v --help",
}

const pipPlain = "--debug --isolated --require-virtualenv --no-input --verbose -v -vv -vvv --version -V --quiet -q -qq --no-cache-dir --disable-pip-version-check --no-color --help -h"

// maxReadings bounds in how many ways the words of one command are taken.
const maxReadings = 64

// sense is one way in which a program may take its operands: some words that are
// not written, and those that are.
type sense struct {
	head, rest []Word
}

func (s sense) operands() []Word {
	if len(s.head) == 0 {
		return s.rest
	}
	return slices.Concat(s.head, s.rest)
}

// readings yields the ways in which a program may take its operands: which of them
// is the subcommand, and what else it may be called.
func readings(name string, words []Word) iter.Seq[sense] {
	return func(yield func(sense) bool) {
		if globalOptions[name] == "" {
			senses(name, operandsOf(words), yield)
			return
		}
		n := 0
		counted := func(s sense) bool {
			n++
			return yield(s)
		}
		for _, rest := range subcommands(name, words) {
			if !senses(name, operandsOf(rest), counted) || n > maxReadings {
				return
			}
		}
	}
}

// senses yields operands as they are, and as they may be called.
func senses(name string, operands []Word, yield func(sense) bool) bool {
	return yield(sense{rest: operands}) && renamed(name, operands, yield)
}

// subcommands returns the words from each place on where the subcommand may
// stand. An option that is not known may take the word after it.
func subcommands(name string, words []Word) (out [][]Word) {
	takes, plain := globalOptions[name], plainOptions[name]
	for i := 0; i < len(words) && len(out) < maxReadings; i++ {
		w := words[i]
		switch {
		case w.Dynamic || !strings.HasPrefix(w.Text, "-"):
			if name == "cargo" && strings.HasPrefix(w.Text, "+") {
				continue // a toolchain
			}
			return append(out, words[i:])
		case isField(takes, w.Text) || i+1 < len(words) && isTruth(words[i+1]):
			i++
		case isField(plain, w.Text) || strings.Contains(w.Text, "="):
		case i+1 < len(words) && !strings.HasPrefix(words[i+1].Text, "-"):
			out = append(out, words[i+1:])
			i++
		}
	}
	if out == nil {
		out = append(out, nil)
	}
	return out
}

// isTruth reports whether a word is the value of an option that is on or off.
func isTruth(w Word) bool { return !w.Dynamic && (w.Text == "true" || w.Text == "false") }

// hasOtherNames reports whether the operands of a program may be taken for others
// than are written.
func hasOtherNames(name string) bool {
	return subcommandNames[name] != "" || name == "podman" || name == "kubectl"
}

// renamed yields the operands with each other name of the subcommand. It reports
// whether yield wants more.
func renamed(name string, operands []Word, yield func(sense) bool) bool {
	if len(operands) == 0 || operands[0].Dynamic {
		return true
	}
	switch name {
	case "podman":
		name = "docker"
	case "npm":
		if first := kebab(operands[0].Text); first != operands[0].Text {
			operands = append([]Word{{Text: first}}, operands[1:]...)
		}
	case "kubectl":
		return resources(operands, yield)
	case "yarn", "pnpm", "bun":
		if !scripts(operands, yield) {
			return false
		}
	}
	for _, g := range groups(name, operands[0].Text) {
		n := named(g, name, operands)
		for i := 0; n > 0 && i < len(g); i++ {
			if !yield(sense{g[i], operands[n:]}) {
				return false
			}
		}
	}
	return true
}

// prepend puts the words of a name before others.
func prepend(name string, rest []Word) []Word {
	out := make([]Word, 0, len(rest)+2)
	for word := range strings.SplitSeq(name, "/") {
		out = append(out, Word{Text: word})
	}
	return append(out, rest...)
}

// kebab writes runScript as run-script, which is one to npm.
func kebab(s string) string {
	if strings.ToLower(s) == s {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// scripts yields the operands of programs that take "run x" and "x" for one, and
// pass commands on to the parts of a workspace.
func scripts(operands []Word, yield func(sense) bool) bool {
	run := []Word{{Text: "run"}}
	switch operands[0].Text {
	case "run", "run-script", "exec":
		return len(operands) == 1 || yield(sense{rest: operands[1:]})
	case "workspace", "workspaces", "recursive", "multi", "m", "npm":
		for i := 1; i < len(operands) && i < 6; i++ {
			if !yield(sense{rest: operands[i:]}) || !yield(sense{run, operands[i:]}) {
				return false
			}
		}
		return true
	}
	return yield(sense{run, operands})
}

// resources yields the operands of kubectl with each name of the kind of object:
// "pod/x", "pods x" and "po x" are one.
func resources(operands []Word, yield func(sense) bool) bool {
	if len(operands) < 2 || operands[1].Dynamic {
		return true
	}
	n := 0
	for kind := range strings.SplitSeq(strings.ToLower(operands[1].Text), ",") {
		kind, object, split := strings.Cut(kind, "/")
		kind, _, _ = strings.Cut(kind, ".") // deployments.apps
		names := resourceGroups()[kind]
		if names == nil {
			names = []string{kind}
		}
		for _, other := range names {
			head := []Word{operands[0], {Text: other}}
			if split {
				head = append(head, Word{Text: object})
			}
			if !yield(sense{head, operands[2:]}) {
				return false
			}
		}
		if n += len(names); n > maxReadings {
			return true
		}
	}
	return true
}

// broughtWords are the words that equivalents, and other names of them, bring into a command.
const broughtWords = "exec x compose"

// equivalents returns other commands that mean this one: what a rule says of them
// holds for it. Those of programs that are not wanted may be left out.
func equivalents(c command, wanted func(program string) bool) (out [][]Word) {
	if len(c.argv) < 2 {
		return nil
	}
	name, rest := c.name, c.argv[1:]
	as := func(names string, words []Word) {
		if program, _, _ := strings.Cut(names, "/"); wanted(program) {
			out = append(out, prepend(names, words))
		}
	}
	switch {
	case name == "npm" || name == "yarn" || name == "pnpm" || name == "bun":
		if wanted("npx") {
			return runsPackage(name, rest)
		}
	case name == "npx" || name == "bunx" || name == "pnpx":
		if !wanted("npx") && !wanted("npm") {
			return nil
		}
		rest = unversioned(rest)
		if name != "npx" || !slices.Equal(rest, c.argv[1:]) {
			as("npx", rest)
		}
		as("npm/exec", rest)
	case name == "docker-compose":
		as("docker/compose", rest)
	case (name == "docker" || name == "podman") && rest[0].Text == "compose":
		as("docker-compose", rest[1:])
	case isPip(name):
		as("pip", rest)
		as("pip3", rest)
	case strings.HasPrefix(name, "python") && len(rest) > 1:
		return runsModule(rest)
	}
	return out
}

// runsPackage returns "npx x" for "npm exec x" and the like.
func runsPackage(name string, words []Word) (out [][]Word) {
	for _, rest := range subcommands(name, words) {
		if len(rest) < 2 {
			continue
		}
		switch sub := rest[0].Text; {
		case sub == "exec" || sub == "dlx", sub == "x" && (name == "npm" || name == "bun"):
			out = append(out, prepend("npx", unversioned(rest[1:])))
		}
	}
	return out
}

// unversioned takes the version away from the package that is run: prisma@latest
// runs what prisma does.
func unversioned(words []Word) []Word {
	shared := true
	for i, w := range words {
		if w.Dynamic || strings.HasPrefix(w.Text, "-") {
			continue
		}
		if name := unversionedName(w.Text); name != w.Text {
			if shared {
				words, shared = slices.Clone(words), false
			}
			words[i].Text = name
		}
		if i == 0 || !isField(globalOptions["npx"], words[i-1].Text) {
			return words
		}
	}
	return words
}

// unversionedName is the name of a package without its version.
func unversionedName(s string) string {
	if at := strings.LastIndexByte(s, '@'); at > 0 {
		return s[:at]
	}
	return s
}

// withoutVersion takes the version away from a program that another runs: npx npm@10.
func withoutVersion(program string) string {
	if at := strings.LastIndexByte(program, '@'); at > 0 && !strings.Contains(program[at:], "/") {
		return program[:at]
	}
	return program
}

// isPip reports whether a program is pip under one of its names: pip3, pip3.12.
func isPip(name string) bool {
	version, ok := strings.CutPrefix(name, "pip")
	return ok && strings.Trim(version, "0123456789.") == ""
}

// runsModule returns the command that "python -m name" is.
func runsModule(words []Word) [][]Word {
	for i, w := range words[:len(words)-1] {
		if w.Dynamic || !strings.HasPrefix(w.Text, "-") {
			return nil
		}
		if w.Text != "-m" {
			continue
		}
		out := [][]Word{words[i+1:]}
		if words[i+1].Text == "pip" {
			out = append(out, prepend("pip3", words[i+2:]))
		}
		return out
	}
	return nil
}
