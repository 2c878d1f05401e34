package policy

import (
	"slices"
	"strings"
	"sync"
)

// unsafeFlags lists, for programs that people allow with "**", the flags that
// run another program, write elsewhere or read other settings. An allowing rule
// covers them only if its pattern or its permit_flags say so. A name ending in *
// is a beginning; a word without "-" is an operand.
var unsafeFlags = map[string]string{
	"git":           "--upload-pack --receive-pack --exec -x --ext-diff --textconv --output -O --open-files-in-pager --template --no-index -c --config --config-env --git-dir --work-tree -C --exec-path* --upload-archive --separate-git-dir -u -o --unsafe-paths --remote",
	"go":            "-exec -toolexec -vettool -overlay -o -modfile -C -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -w -u -ldflags -gcflags -asmflags -gccgoflags -compiler -pkgdir -buildmode -c",
	"gofmt":         "-cpuprofile",
	"less":          "+* -k --lesskey* -o -O --log-file* --LOG-FILE*",
	"date":          "-s --set",
	"awk":           "-f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -p --profile",
	"gawk":          "-f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -p --profile",
	"npm":           "--prefix --script-shell --node-options --userconfig --globalconfig -g --global --location -C --ignore-scripts=false --before script-shell* node-options* --shell --call -c --git --editor --viewer --browser --init-module",
	"npx":           "-c --call -p --package -y --yes --shell",
	"node":          "-e --eval -p --print -r --require --import --loader --experimental-loader -i --interactive --inspect* --env-file* --test-reporter* --watch* --diagnostic* --cpu-prof* --heap-prof* --experimental-config-file* - --run --entry-url --build-snapshot* --snapshot-blob --experimental-sea-config --test-global-setup --openssl-config --icu-data-dir --redirect-warnings --report-* --trace-event-file-pattern --localstorage-file data:*",
	"python":        "-c -i -X -W -",
	"python3":       "-c -i -X -W -",
	"pytest":        "-p -c --rootdir -o --override-ini --basetemp --junitxml --junit-xml --log-file --pastebin --pdbcls --confcutdir --import-mode --debug --tx --rsyncdir --inifile @*",
	"cargo":         "--config -Z --manifest-path --target-dir --out-dir +* -C --lockfile-path --fix",
	"make":          "-f --file --makefile -C --directory -I --include-dir --eval -E SHELL=* MAKEFLAGS=* .SHELLFLAGS=* CC=* CXX=* MAKEFILES=* -o -W *=*",
	"curl":          "-o -O -K -T -x -F -d -X -w -D -c -E -u -U -Q -z --output* --remote-name* --config --upload-file --proxy* --preproxy --form* --data* --json --next -: --resolve --connect-to -L --location* --libcurl --trace* --unix-socket --abstract-unix-socket --stderr --dump-header --cookie-jar --engine --netrc* -n --cert* --key* --cacert --capath --request* --write-out --socks* --doh-url --interface --dns-servers --etag-save --create-dirs --output-dir --hsts --alt-svc --url* --variable --expand-* --ftp* --mail* --telnet-option --quote --egd-file --random-file --crlfile --pinnedpubkey --aws-sigv4 --cookie -b --user -e --referer --delegation --krb --pubkey --hostpubmd5 --parallel-immediate",
	"wget":          "-O -o -a -P -i -e --output* --execute --input-file --post-file --body-file --use-askpass --config --directory-prefix --append-output --load-cookies --save-cookies --warc* --background -b --ca-certificate --rejected-log --hsts-file --base -B -x --method --post-data --body-data",
	"tar":           "--to-command -I --use-compress-program --checkpoint-action --rsh-command --rmt-command -F --info-script --new-volume-script --index-file -P --absolute-names -C --directory -f --file -T --files-from --transform* --xform*",
	"rsync":         "-e --rsh --rsync-path --daemon --config --log-file --password-file --files-from --temp-dir --write-batch --backup-dir",
	"sort":          "-o --output --compress-program -T --temporary-directory --files0-from",
	"rg":            "--pre --hostname-bin -z --search-zip --pre-glob",
	"find":          "-exec -execdir -ok -okdir -delete -fprint* -fls -files0-from",
	"fd":            "-x -X --exec --exec-batch",
	"fdfind":        "-x -X --exec --exec-batch",
	"docker":        "-v --volume --privileged --mount --pid --net --network --cap-add --device --ipc --userns --security-opt -H --host --config -c --context --entrypoint --env-file --volumes-from --cgroup-parent --uts",
	"podman":        "-v --volume --privileged --mount --pid --net --network --cap-add --device --entrypoint --env-file",
	"eslint":        "-c --config --rulesdir --plugin --parser --resolve-plugins-relative-to -o --output-file --fix* --cache-location --cache-file -f --format",
	"jest":          "-c --config --rootDir --globalSetup --testRunner --runner --reporters --setupFiles* --transform --resolver --outputFile --env* --testEnvironment --projects --preset --filter --testSequencer --snapshotSerializers --watchPlugins --moduleLoader --coverageReporters --prettierPath --haste --dependencyExtractor --globalTeardown --testResultsProcessor --coverageDirectory --cacheDirectory",
	"vitest":        "-c --config --root --globalSetup --reporter --outputFile -r --environment --runner --browser* --pool* --coverage.* --execArgv* --api* --ui",
	"prettier":      "--plugin* --config --write -w --config-path --cache-location",
	"tsc":           "--outDir --outFile -p --project --build -b --plugins --declarationDir --tsBuildInfoFile --init --rootDir --generateTrace --generateCpuProfile @*",
	"ruff":          "--config --output-file --cache-dir --fix --unsafe-fixes",
	"mypy":          "--config-file --python-executable --install-types --cache-dir --custom-typeshed-dir --junit-xml --*-report --shadow-file",
	"terraform":     terraformFlags,
	"tofu":          terraformFlags,
	"tflint":        "--init --chdir --config -c --fix --call-module-type",
	"split":         "--filter --additional-suffix",
	"csplit":        "-b --suffix-format",
	"zip":           "-TT --unzip-command",
	"ssh":           "-o -F -E -J -L -R -D -W -i",
	"scp":           "-o -F -S -J",
	"gcc":           compilerFlags,
	"cc":            compilerFlags,
	"g++":           compilerFlags,
	"c++":           compilerFlags,
	"clang":         compilerFlags,
	"clang++":       compilerFlags,
	"unzip":         "-:",
	"install":       "--strip-program*",
	"man":           "-P --pager -H --html* -C --config-file -M --manpath -X --preprocessor -p",
	"bash":          "-c -i -l -s -O --rcfile --init-file -o --login",
	"sh":            "-c -i -l -s -o",
	"sed":           "-i --in-place -f --file -e --expression -s",
	"jq":            "-f --from-file -L --library-path --rawfile --slurpfile",
	"perl":          "-e -E -M* -m* -i* -I* -d* -x",
	"ruby":          "-e -r -i* -I -x",
	"xxd":           "-r",
	"golangci-lint": "-c --config --fix --out-format --path-prefix --output*",
}

// goFlags are programs for which -flag and --flag are one, and that bundle none.
var goFlags = map[string]bool{
	"go": true, "gofmt": true, "goimports": true, "staticcheck": true, "godoc": true, "dlv": true, "stringer": true,
	"terraform": true, "tofu": true, "packer": true, "vault": true, "consul": true, "nomad": true,
	"tsc": true, "find": true, "gcc": true, "cc": true, "g++": true, "c++": true, "clang": true, "clang++": true, "java": true, "javac": true, "ffmpeg": true,
}

// compilerFlags run other programs than the compiler's own, load plugins, or write
// elsewhere than beside the source.
const compilerFlags = "-wrapper -fplugin* -fpass-plugin* -load -specs* --specs* -B* -Xlinker -Wl,*plugin* -fuse-ld=*/* -o* -MF* -dumpdir -dumpbase -fdump-* -save-temps* @*"

// terraformFlags write elsewhere, or load providers and modules. The folder of -chdir
// is judged as one that is read.
const terraformFlags = "-plugin-dir -from-module -get-plugins -upgrade -reconfigure -migrate-state -backend-config -state -state-out -backup -out -generate-config-out -auto-approve -destroy"

// unsafeIn returns what tells whether a word of a command is, or could become, an
// unsafe flag, by its index: of the program itself, or of one that it starts.
func unsafeIn(argv []Word) func(i int) bool {
	own := unsafeFor(argv)
	at := startedAt(argv)
	if at == 0 {
		return own
	}
	started := unsafeFor(unversioned(argv[at:]))
	return func(i int) bool { return own(i) || i > at && started(i-at) }
}

// unsafeFor is unsafeIn for the flags of the program itself.
func unsafeFor(argv []Word) func(i int) bool {
	program := baseName(argv[0].Text)
	list := strings.Fields(unsafeFlags[program])
	after, harmless := harmlessGit(program, argv)
	return func(i int) bool {
		w := argv[i]
		if w.Dynamic && (w.Text == "" || w.Text[0] == '-') {
			return len(list) > 0
		}
		return slices.ContainsFunc(list, func(f string) bool {
			return isUnsafe(program, f, w.Text) && (i <= after || !isLetter(f, harmless))
		})
	}
}

// harmlessLetters lists, for subcommands of git, the flags of one letter that mean
// something else there than where they run a program or change a setting.
var harmlessLetters = map[string]string{
	"add": "u", "push": "uo", "stash": "u", "status": "u", "fetch": "uo", "commit": "ucCxo", "switch": "cC", "branch": "ucC", "clone": "o", "pull": "o",
	"diff": "ucC", "log": "ucC", "show": "ucC", "blame": "cC", "grep": "cCo", "ls-files": "ucxo", "ls-remote": "o", "cherry-pick": "x", "clean": "x", "rebase": "C", "apply": "C",
}

// harmlessGit returns where a git command has its subcommand, and the letters of
// flags that are harmless after it; -1 and nothing for every other command.
func harmlessGit(program string, argv []Word) (at int, letters string) {
	if program != "git" {
		return -1, ""
	}
	rest := subcommands(program, argv[1:])
	if len(rest) != 1 || len(rest[0]) == 0 || rest[0][0].Dynamic {
		return -1, ""
	}
	return len(argv) - len(rest[0]), harmlessLetters[rest[0][0].Text]
}

// isLetter reports whether a flag is one of some letters.
func isLetter(flag, letters string) bool {
	return len(flag) == 2 && strings.Contains(letters, flag[1:])
}

// isUnsafe compares one listed flag with a word.
func isUnsafe(program, flag, word string) bool {
	if strings.Contains(flag, "*") && matchToken(flag, word) || flag == word {
		return true
	}
	name, _, _ := strings.Cut(word, "=")
	switch {
	case goFlags[program] && strings.HasPrefix(word, "-"):
		return strings.TrimLeft(name, "-") == strings.TrimLeft(flag, "-")
	case strings.HasPrefix(word, "--"):
		return len(name) > 3 && strings.HasPrefix(flag, "--") && strings.HasPrefix(strings.TrimRight(flag, "*"), name)
	case strings.HasPrefix(word, "-") && len(flag) == 2 && flag[0] == '-':
		return strings.Contains(word[1:], flag[1:])
	}
	return false
}

// inlineCode lists interpreters and the flags after which code stands in the
// command itself. "" means that the program also takes code from its input when
// it is given no file.
var inlineCode = map[string]string{
	"python": "-c -", "python3": "-c -", "python2": "-c -", "node": "-e --eval -p --print -pe -", "nodejs": "-e --eval -p --print -", "deno": "eval repl",
	"perl": "-e -E -", "ruby": "-e -", "php": "-r -R -B -E -a", "lua": "-e -", "luajit": "-e -", "Rscript": "-e", "R": "-e",
	"bash": "-c -s", "sh": "-c -s", "dash": "-c -s", "zsh": "-c -s", "ksh": "-c -s", "fish": "-c", "csh": "-c", "tcsh": "-c",
	"vim": "-c --cmd + -S -s", "vi": "-c --cmd + -S -s", "nvim": "-c --cmd + -S -s", "emacs": "--eval -f -l",
	"sqlite3": ".shell .system .import", "psql": "-c", "mysql": "-e", "osascript": "-e", "bun": "-e --eval", "ts-node": "-e",
	"make": "--eval -",
}

// codeFlags lists the flags of programs that are no interpreters after which a
// command stands that they run.
var codeFlags = map[string]string{
	"tar":         "--checkpoint-action --to-command -I --use-compress-program --rsh-command --rmt-command -F --info-script --new-volume-script",
	"bsdtar":      "--use-compress-program",
	"git":         "-c --config-env --exec-path=* --upload-pack --receive-pack --exec -x --ext-diff -O* --open-files-in-pager -u --config",
	"go":          "-exec -toolexec -vettool -overlay",
	"rsync":       "-e --rsh --rsync-path",
	"ssh":         "-o -F",
	"scp":         "-o -F -S",
	"sftp":        "-o -F -S",
	"zip":         "-TT --unzip-command",
	"split":       "--filter",
	"sort":        "--compress-program",
	"rg":          "--pre --hostname-bin",
	"fd":          "-x -X --exec --exec-batch",
	"fdfind":      "-x -X --exec --exec-batch",
	"man":         "-P --pager -H --html* -X --preprocessor",
	"npm":         "--script-shell --node-options --shell --call --git --editor --viewer --browser",
	"npx":         "-c --call",
	"make":        "SHELL=* .SHELLFLAGS=* MAKEFLAGS=* --eval",
	"gcc":         "-wrapper -fplugin*",
	"install":     "--strip-program",
	"sed":         "--expression",
	"less":        "+*",
	"more":        "+*",
	"watch":       "*",
	"entr":        "*",
	"script":      "-c --command",
	"flock":       "-c --command",
	"su":          "-c --command",
	"runuser":     "-c --command",
	"eslint":      "--rulesdir --resolve-plugins-relative-to",
	"cargo":       "--config",
	"systemd-run": "*",
}

// codeFlagLists are codeFlags, each flag apart.
var codeFlagLists = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for name, flags := range codeFlags {
		out[name] = strings.Fields(flags)
	}
	return out
})

// runsFlag reports whether a flag of the command carries a command.
func runsFlag(name string, argv []Word) bool {
	list := codeFlagLists()[name]
	if len(list) == 0 {
		return false
	}
	after, harmless := harmlessGit(name, argv)
	for i, w := range argv[1:] {
		for _, f := range list {
			if (isUnsafe(name, f, w.Text) || f == "*") && (i < after || !isLetter(f, harmless)) {
				return true
			}
		}
	}
	return false
}

// codeFromInput are the interpreters that read code from standard input when
// they are given no operand.
const codeFromInput = " python python3 python2 node nodejs perl ruby php lua bash sh dash zsh ksh fish csh tcsh deno "

// codeCommands are subcommands that run the words, or the text, after them, or that
// send or show what no file rule has seen.
var codeCommands = []string{
	"git bisect run", "git submodule foreach", "git filter-branch", "git difftool", "git mergetool",
	"git instaweb", "git send-email", "git credential", "git daemon",
	"git svn", "git p4", "git cvsimport", "git cvsexportcommit", "git cvsserver", "git archimport", "git imap-send", "git shell", "git http-backend", "git http-fetch", "git http-push",
	"git remote-http", "git remote-https", "git remote-ftp", "git remote-ftps", "git web--browse", "git maintenance start", "git maintenance register",
	"git remote-ext", "git remote-fd", "git merge-index", "git for-each-repo", "git submodule--helper", "git bisect--helper",
	"npm exec", "npm x", "npm explore", "yarn exec", "yarn dlx", "pnpm exec", "pnpm dlx",
}

// codeSubcommands are codeCommands in parts: the words of each by its program.
var codeSubcommands = sync.OnceValue(func() map[string][][]string {
	out := make(map[string][][]string)
	for _, c := range codeCommands {
		words := strings.Fields(c)
		out[words[0]] = append(out[words[0]], words[1:])
	}
	return out
})

// runsWords reports whether a command is one of codeCommands.
func runsWords(argv []Word) bool {
	_, ok := runsWordsAt(argv)
	return ok
}

// runsWordsAt is runsWords with the index of the last word that tells so.
func runsWordsAt(argv []Word) (at int, ok bool) {
	name := baseName(argv[0].Text)
	subcommands, some := codeSubcommands()[name]
	if !some {
		return 0, false
	}
	words := skipGlobals(name, argv[1:])
	for _, these := range subcommands {
		if beginsWith(words, these) {
			return len(argv) - len(words) + len(these) - 1, true
		}
	}
	return 0, false
}

// beginsWith reports whether a command's words begin with these.
func beginsWith(words []Word, these []string) bool {
	if len(words) < len(these) {
		return false
	}
	for i, text := range these {
		if words[i].Text != text {
			return false
		}
	}
	return true
}

// alwaysCode are programs whose script is their first operand, their input, or a
// file of commands: no argument makes them harmless.
const alwaysCode = " awk gawk mawk nawk eval source . ed ex m4 at batch crontab gdb expect tclsh "

// isInlineCode reports whether a command carries code that no rule has seen.
func isInlineCode(argv []Word) bool {
	name := interpreterName(baseName(argv[0].Text))
	switch {
	case runsFlag(name, argv) || runsWords(argv) || takesInput(argv):
		return true
	case strings.Contains(alwaysCode, " "+name+" "):
		return true
	case name == "sed":
		_, safe, _ := sedUsage(argv[1:])
		return !safe
	}
	flags, known := inlineCode[name]
	if !known {
		return false
	}
	for _, w := range argv[1:] {
		switch {
		case w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
			return true
		case w.Text == "--version" || w.Text == "-V" || w.Text == "--help":
			return false
		case isCodeFlag(flags, w.Text):
			return true
		case !strings.HasPrefix(w.Text, "-"):
			return false // what follows belongs to the program that is run
		}
	}
	return strings.Contains(codeFromInput, " "+name+" ")
}

// isCodeFlag reports whether a word is one of the flags before code, alone, with
// the code attached, or bundled with other letters.
func isCodeFlag(flags, word string) bool {
	for f := range strings.FieldsSeq(flags) {
		switch {
		case word == f:
			return true
		case f == "-":
		case f[0] == '+' || f[0] == '.' || f[0] == '-':
			bundled := len(f) == 2 && f[0] == '-' && len(word) > 2 && word[0] == '-' && word[1] != '-' && strings.Contains(word, f[1:])
			if bundled || strings.HasPrefix(word, f) {
				return true
			}
		}
	}
	return false
}
