package shell

import (
	"testing"

	"github.com/toold/toold/policy"
)

func TestWhatALinkLeadsToElsewhereIsNotKnown(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	for script, want := range map[string]bool{
		"mv link y; cat y/passwd":                                   true, // it is there already
		"mv link y; cd y; cat passwd":                               true,
		"mv link y; echo x > y":                                     true,
		"mv link src/; cat src/link/x":                              true,
		"mv link src; cat src/link/x":                               true,
		"mv li* y; cat y/x":                                         true,
		"mv -t src link; cat src/link/x":                            true,
		"cd src; mv ../link y; cat y/x":                             true,
		"cp -a link y; cat y/x":                                     true,
		"cp --no-dereference link y; cat y/x":                       true,
		"mkdir -p a/b; ln -s ../../src a/b/x; mv a/b/x x; cat x":    true,
		"mkdir -p a/b; ln -s ../../src a/b/x; mv a/b c; cat c/x/y":  true,
		"mkdir -p a/b; ln -s ../../src a/b/x; cp -r a/b c; cat c/x": true,
		"mkdir -p a/b; ln -s ../../src a/b; mv a/b/src x; cat x/y":  true,
		"mv link y; cat a.txt":                                      false,
		"mv link y; cat yy":                                         false,
		"ln -s src new; mv -T new current":                          false,
		"ln -sfn src current; cat current/main.go":                  false,
		"mv a.txt c.txt; cat c.txt":                                 false,
		"mv src lib; cat lib/x":                                     false,
		"cp -r src lib; cat lib/x":                                  false,
		"cp inside/main.go x; cat x":                                false,
	} {
		opaque := false
		for _, e := range analysed(t, ws, script) {
			opaque = opaque || e.Kind == policy.Opaque
		}
		if opaque != want {
			t.Errorf("%s: opaque is %v", script, opaque)
		}
	}
}
