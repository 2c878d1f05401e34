package texts

import "github.com/toold/toold/internal/lazyregexp"

// The functions below recognise commands whose output is known in part.

// temporary matches commands that print the path of a new file or directory below /tmp.
var temporary = lazyregexp.New(`^mktemp( (-[dq]+|--directory|--quiet|-d?t [\w.]+|/tmp/[\w.]+))*( 2> ?/dev/null)?$`)

// lookups matches commands that print the path of a program.
var lookups = lazyregexp.New(`^(?:(?:which|type -P) ([\w.+-]+)|command -v ((?:python|node|pip|go|cargo|java|php|ruby|perl|git)[\d.]*))(?: 2> ?/dev/null)?$`)

// counts matches commands that print a number or nothing.
var counts = lazyregexp.New(`^(?:wc -[clmw](?: ?< ?"?[\w./$-]+"?)?|nproc|getconf _NPROCESSORS_ONLN|date \+%s|id -[gu]|` +
	`stat (?:-c ?|--format=)'?%[sYXZ]'? (?:[\w./-]+|"[\w./$-]+")|git rev-list --count [\w./^~@-]+|pgrep -c[fx]? [\w.-]+|grep -[Fivwx]*c[EFivwx]* ` + grepPattern + `(?: ?<? ?[\w./]+)?)(?: 2> ?/dev/null)?$`)

const grepPattern = `(?:[\w.:/^]+|'[^'-][^']*'|"[^"$\\` + "`" + `-][^"$\\` + "`" + `]*")`

// firstWords matches pipes that print the first word of a line of wc.
var firstWords = lazyregexp.New(`(?:^|\| )wc -[clmw] [\w./]+ \| (?:awk '\{ ?print ?\$1;? ?\}'|cut -d ?' ' -f ?1)$`)

// sequences matches commands that print numbers. What follows the first number is no flag.
var sequences = lazyregexp.New(`^seq \d+(?: \d+| "?\$\w+"?| \$\(\([^()]*\)\))*$`)

// Output is what is known of what a command prints.
type Output struct {
	Count     bool   // a number or nothing
	Numbers   bool   // numbers
	Temporary bool   // the path of a new file or directory below /tmp
	Program   string // the path of this program
}

// Outputs returns what is known of what a pipe prints. last is its last command; plain means that no program is redefined
// by a function.
func Outputs(pipe, last string, plain bool) (o Output) {
	if m := lookups().FindStringSubmatch(pipe); m != nil {
		o.Program = m[1] + m[2]
	}
	o.Temporary = temporary().MatchString(pipe)
	o.Numbers = plain && sequences().MatchString(pipe)
	o.Count = counts().MatchString(last) || plain && firstWords().MatchString(pipe)
	return o
}
