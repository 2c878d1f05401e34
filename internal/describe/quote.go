package describe

import (
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

// plain matches words that need no quotes; program is stricter, for the first word.
var (
	plain      = lazyregexp.New(`^[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:,@%+=-]*$`)
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	program    = lazyregexp.New(`^[A-Za-z0-9_./-]+$`)
	reserved   = lazyregexp.New(`^(case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$`)
)

// Quote returns a command line that a shell splits into these words. With command, the first word names a program,
// and must not be read as an assignment or a reserved word.
func Quote(words []string, command bool) string {
	line := make([]string, len(words))
	for i, w := range words {
		bare := plain().MatchString(w)
		if command && i == 0 {
			bare = bare && program().MatchString(w) && !reserved().MatchString(w)
		}
		name, value := "", w
		if assigned := assignment().FindString(w); !command {
			name, value = assigned, w[len(assigned):]
		}
		if line[i] = w; !bare {
			line[i] = name + "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
