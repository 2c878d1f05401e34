package message

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Widening is what a person adds to the sandbox of one call with their yes to it.
// It holds for that call alone. The zero Widening adds nothing.
type Widening struct {
	Profile string `json:"profile,omitempty" jsonschema:"workspace-write or danger-full-access"`
	Write   string `json:"write,omitempty" jsonschema:"a folder, by its absolute path, in which the call may write"`
	Network string `json:"network,omitempty" jsonschema:"proxy or full"`
	Host    string `json:"host,omitempty" jsonschema:"a host that the call may contact: a name or an address, with :port or without"`
}

// Lines say what a widening lets its call do, for the person who gives it and for
// the model, one sentence for each part. There are none for the zero Widening.
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

// String is the lines as one text; "" for the zero Widening.
func (w Widening) String() string { return strings.Join(w.Lines(), "; ") }

// Recorded is the widening as a record keeps it: nil for the zero Widening.
func (w Widening) Recorded() *Widening {
	if w == (Widening{}) {
		return nil
	}
	return &w
}

// MayWiden is what the person who is asked about a call may add to its sandbox, and
// the most of each: the operator's configuration bounds it (approval.widen). What
// the call has already is not in it.
type MayWiden struct {
	Profile []string `json:"profile,omitempty"` // one of these
	Write   []string `json:"write,omitempty"`   // one of these folders, or one in them
	Network []string `json:"network,omitempty"` // one of these
	Host    []string `json:"host,omitempty"`    // one that one of these patterns stands for; "*" is any
}

// wireWidening is a Widening as it comes. What it asks for must be clear, so a
// member that is not known is a fault.
type wireWidening struct {
	Widening
	faults []fault
}

func (w *wireWidening) bindSelf(raw json.RawMessage) {
	b := &binding{}
	b.bindStruct("widen", raw, reflect.ValueOf(&w.Widening).Elem())
	o, _ := splitObject(raw) // bindStruct has told what is wrong with it
	for _, m := range o {
		switch m.key {
		case "profile", "write", "network", "host":
		default:
			b.fail(join("widen", m.key), "is not known: profile, write, network and host can be widened")
		}
	}
	w.faults = b.faults
}

// widening is what an answer adds, and what is wrong with it.
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
