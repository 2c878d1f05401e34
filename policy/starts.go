package policy

import "strings"

// starters lists programs that start another one by its name, with its own flags,
// and the subcommands with which they do; "*" is none.
var starters = map[string]string{
	"npx": "*", "bunx": "*", "pnpx": "*", "uvx": "*", "npm": "exec x", "pnpm": "exec dlx *", "yarn": "exec dlx *", "bun": "x *",
	"poetry": "run", "pipenv": "run", "uv": "run", "rye": "run", "pdm": "run", "hatch": "run", "pipx": "run", "bundle": "exec",
}

// startedAt returns where in a command the program stands that it starts, such as
// eslint in npx eslint or pytest in python3 -m pytest; 0 where there is none, or
// none that can be told.
func startedAt(argv []Word) int {
	name := baseName(argv[0].Text)
	subcommands, starts := starters[name]
	module := strings.HasPrefix(name, "python")
	named := isField(subcommands, "*")
	for i := 1; i < len(argv) && !argv[i].Dynamic; i++ {
		word := argv[i].Text
		switch {
		case module && word == "-m" && i+1 < len(argv):
			return i + 1
		case strings.HasPrefix(word, "-"):
			if isField(globalOptions[name], word) {
				i++
			}
		case starts && isField(subcommands, word):
			named = true
		case starts && named:
			return i
		default:
			return 0
		}
	}
	return 0
}
