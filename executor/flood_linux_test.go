package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

// Lines that alternate fill what is held of a stream before the reports of all its
// bytes are matched.
func TestTheOrderOfMuchOutputIsSaidToBeExactOnlyWhereItIs(t *testing.T) {
	must.Long(t)
	t.Parallel()
	requireProgram(t, "perl")
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		for _, width := range []int{300, 300, 300, 2000, 9000} {
			m, e := merge(t, nil, in(t, mode, fmt.Sprintf(`perl -e '
				for (my $i = 1; $i <= 3000; $i += 2) {
					syswrite STDOUT, "$i " . ("x" x %d) . "\n";
					syswrite STDERR, ($i + 1) . "\n";
				}'`, width)))
			wrong := 0
			for i, line := range strings.Split(strings.TrimSuffix(m.all.String(), "\n"), "\n") {
				if number, _, _ := strings.Cut(line, " "); number != fmt.Sprint(i+1) {
					wrong++
				}
			}
			if e.Exact && wrong > 0 {
				t.Errorf("%v, lines of %d bytes: the order is said to be exact, and %d lines are elsewhere", mode, width, wrong)
			}
		}
	}
}
