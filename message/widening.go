package message

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Widening is what a person added to the sandbox of one call. The zero value adds nothing.
type Widening struct {
	Profile string `json:"profile,omitempty" jsonschema:"workspace-write or danger-full-access"`
	Write   string `json:"write,omitempty" jsonschema:"a directory, by its absolute path, in which the call may write"`
	Network string `json:"network,omitempty" jsonschema:"proxy or full"`
	Host    string `json:"host,omitempty" jsonschema:"a host that the call may contact: a name or an address, with :port or without"`
}

// Lines describes the widening to people and models, one clause per line.
func (w Widening) Lines() (lines []string) {
	switch w.Profile {
	case "":
	case "danger-full-access":
		lines = append(lines, "nothing confines it: it may read, change and remove whatever toold's user may, and use every network (profile danger-full-access)")
	case "workspace-write":
		lines = append(lines, "it may change what is in the workspace (profile workspace-write)")
	default:
		lines = append(lines, "it runs in the profile "+w.Profile)
	}
	if w.Write != "" {
		lines = append(lines, "it may make, change and remove whatever is in "+w.Write+", but not what sandbox.protect names")
	}
	switch w.Network {
	case "":
	case "full":
		lines = append(lines, "it may contact every host, and every service of this machine (network full)")
	case "proxy":
		lines = append(lines, "it may contact hosts by name, each judged by the policy when it is asked for (network proxy)")
	default:
		lines = append(lines, "it has the network "+w.Network)
	}
	if w.Host != "" {
		lines = append(lines, "it may contact "+w.Host)
	}
	return lines
}

// String joins the Lines.
func (w Widening) String() string { return strings.Join(w.Lines(), "; ") }

// Recorded returns &w, or nil if w is zero.
func (w Widening) Recorded() *Widening {
	if w == (Widening{}) {
		return nil
	}
	return &w
}

// MayWiden is what a Widening may add (approval.widen), without what the call already has. Each field of a Widening
// must be one of these, or empty.
type MayWiden struct {
	Profile []string `json:"profile,omitempty"`
	Write   []string `json:"write,omitempty"` // directories; the Widening may name one below
	Network []string `json:"network,omitempty"`
	Host    []string `json:"host,omitempty"` // patterns; "*" is any host
}

type wireWidening struct {
	Widening
	faults []fault
}

func (w *wireWidening) bindSelf(raw json.RawMessage) {
	b := &binding{}
	b.bindStruct("widen", raw, reflect.ValueOf(&w.Widening).Elem())
	o, _ := splitObject(raw)
	for _, m := range o {
		switch m.Name {
		case "profile", "write", "network", "host":
		default:
			b.fail(join("widen", m.Name), "is not known: profile, write, network and host can be widened")
		}
	}
	w.faults = b.faults
}

func (w *wireWidening) widening(approve bool) (Widening, string) {
	switch {
	case w == nil:
		return Widening{}, ""
	case len(w.faults) > 0:
		return Widening{}, sentence(w.faults)
	case !approve && w.Widening != Widening{}:
		return Widening{}, "an answer of no widens nothing; leave out widen, or approve"
	}
	return w.Widening, ""
}
