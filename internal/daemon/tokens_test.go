package daemon

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/server"
)

func TestTokensAreKnownWhileNoFileCanBeOpened(t *testing.T) {
	t.Parallel()
	revoked := false
	all := []server.Token{
		{Name: "a", Valid: func() bool { return true }},
		{Name: "b", Valid: func() bool { return !revoked }},
	}
	var problem error
	tokens := lasting(func() ([]server.Token, error) {
		if problem != nil {
			return nil, problem
		}
		return all, nil
	})
	names := func() (list []string) {
		for _, token := range tokens() {
			list = append(list, token.Name)
		}
		return list
	}
	for _, step := range []struct {
		problem error
		revoked bool
		want    []string
	}{
		{nil, false, []string{"a", "b"}},
		{fmt.Errorf("cannot list: %w", syscall.EMFILE), false, []string{"a", "b"}},
		{fmt.Errorf("cannot list: %w", syscall.EMFILE), true, []string{"a"}},
		{syscall.EACCES, true, nil},
		{syscall.EMFILE, true, nil},
	} {
		problem, revoked = step.problem, step.revoked
		if got := names(); !slices.Equal(got, step.want) {
			t.Errorf("%v: known are %q, want %q", step.problem, got, step.want)
		}
	}
}
