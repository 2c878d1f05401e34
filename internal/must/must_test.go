package must_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/toold/toold/internal/must"
)

// ended is a test that notes whether it was ended.
type ended struct {
	testing.TB
	by []any
}

func (*ended) Helper() {}

func (e *ended) Fatal(args ...any) { e.by = args }

func TestAnErrorEndsTheTestAndANilPointerDoesNot(t *testing.T) {
	t.Parallel()
	wrong, none, failed := errors.New("wrong"), (*fs.PathError)(nil), &fs.PathError{}
	for name, row := range map[string]struct {
		do   func(testing.TB)
		ends bool
	}{
		"no error":             {func(tb testing.TB) { must.Do[error](tb, nil, nil) }, false},
		"the second error":     {func(tb testing.TB) { must.Do(tb, nil, wrong) }, true},
		"no pointer":           {func(tb testing.TB) { must.Do(tb, none) }, false},
		"a pointer":            {func(tb testing.TB) { must.Do(tb, none, failed) }, true},
		"a result":             {func(tb testing.TB) { must.Get(1, error(nil))(tb) }, false},
		"a result and pointer": {func(tb testing.TB) { must.Get(1, failed)(tb) }, true},
		"result and nil":       {func(tb testing.TB) { must.Get(1, none)(tb) }, false},
	} {
		e := &ended{TB: t}
		row.do(e)
		if (e.by != nil) != row.ends {
			t.Errorf("%s: ended by %v", name, e.by)
		}
	}
}
