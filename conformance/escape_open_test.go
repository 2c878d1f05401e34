//go:build linux

package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/conformance/suite/escape"
)

// openCase is a case that is known to escape or to be broken.
type openCase struct {
	ID      string
	As      string // root or user: only there; empty: everywhere
	Verdict string // escaped or broken
	Why     string
	// Sometimes tells that it is a matter of luck: it may be blocked or usable too.
	Sometimes bool
}

// holds reports whether a verdict is what the list says.
func (o openCase) holds(verdict string) bool {
	return o.Verdict == verdict || o.Sometimes && (verdict == "blocked" || verdict == "usable")
}

// readOpenCases reads what is not closed, as it is for whoever runs this.
func readOpenCases(name string) (map[string]openCase, error) {
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		return nil, err
	}
	var list []openCase
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	me := "user"
	if os.Getuid() == 0 {
		me = "root"
	}
	open := map[string]openCase{}
	for _, o := range list {
		if o.As == "" || o.As == me {
			open[o.ID] = o
		}
	}
	return open, nil
}

// cannotPlay returns why a case cannot be played in this world, "" if it can.
func cannotPlay(w escape.World) string {
	if (w.Masked || w.Bare) && strings.HasPrefix(w.Case.ID, "dg-") {
		return "the case is about another kernel"
	}
	if w.Bare {
		if why := notInTierC(w.Case); why != "" {
			return why
		}
	}
	if w.Bwrap {
		if why := notInTierBwrap(w.Case); why != "" {
			return why
		}
	}
	return w.Case.CannotPlay()
}

// notInTierC tells what of a case tier C has nothing of, "" if nothing.
func notInTierC(c escape.Case) string {
	kind, _, _ := strings.Cut(c.ID, "-")
	switch {
	case kind == "eg":
		return "there are no connections by name"
	case kind == "rc":
		return "nobody judges connections, since there are none"
	case kind == "rs":
		return "the limits are those of tier B"
	case c.InstallsSetuid():
		return "there is no other user"
	case c.Beside != "":
		return "calls have no loopback"
	}
	return ""
}
