package helper

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

func fullSpec() Spec {
	return Spec{
		Namespaces: true, External: true, Shared: true, Listed: true, Offline: true, Counted: true, Bounded: true, Loopback: true, Landlock: true, Seccomp: true, Probe: true, Again: true, Kept: true, Reserve: true,
		View: View{
			Terminal: true, TmpBytes: 1,
			Roots: []Root{{"/work space", true, ""}, {"/tmp/x\xff", false, "8:1"}},
			Hide:  []string{"/home/u/.ssh", "/a=b"}, Masks: []string{"/w/.env"}, Protect: []string{"/work space/.git/config"},
			Sockets: []string{"/run/s"}, Caches: []Cache{{"/c", ""}, {"/d e", "/own"}},
		},
		Fixed: []Root{{"/work space/.git", true, "8:2"}, {"/work space/.git/config", false, "8:3"}}, Outside: []string{"net:[4026531840]"},
		Room: 5, Missing: []string{"/a=b"}, User: 17, Group: 18, Processes: 2, OpenFiles: 3, FileBytes: 4, MemoryBytes: 1 << 63,
		Ports: []uint64{80, 65535}, Handed: 2, Overlays: []Overlay{{"/l", "/u", "/w"}},
		Dir: "/tmp/x\xff", DirIs: "8:4", Argv: []string{"/bin/bash", "-c", "echo \xfe\n"}, Env: []string{"A=", "B=c\nd=e"},
	}
}

func TestSpecArrivesAsItWas(t *testing.T) {
	t.Parallel()
	for _, want := range []Spec{{}, fullSpec()} {
		b := must.Get(want.Encode())(t)
		got := must.Get(DecodeSpec(b))(t)
		must.Match(t, want, got)
	}
}

// Whoever adds a field to Spec finds out here when it does not travel.
func TestFullSpecHasEveryField(t *testing.T) {
	t.Parallel()
	v := reflect.ValueOf(fullSpec())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("fullSpec leaves %s unset", v.Type().Field(i).Name)
		}
	}
}

func TestNULIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Spec{
		"argument":    {Argv: []string{"/bin/bash", "a\x00env\x00LD_PRELOAD=x"}},
		"environment": {Env: []string{"A=\x00"}},
		"folder":      {Dir: "/\x00"},
		"root":        {View: View{Roots: []Root{{"/tmp\x00write\x00/etc", true, ""}}}},
		"hidden path": {View: View{Hide: []string{"\x00"}}},
		"protected":   {View: View{Protect: []string{"/a\x00write\x00/"}}},
	} {
		if b, err := s.Encode(); err == nil {
			t.Errorf("%s with NUL was encoded as %q", name, b)
		}
	}
}

func TestEventArrivesAsItWas(t *testing.T) {
	t.Parallel()
	want := Event{
		Kind: EventMembers, Stage: "s", Text: "t", Errno: 1, ABI: 7, Status: 256, Alone: true, Runnable: true,
		Wait: WaitLine, Reads: true, Sole: true, Deaf: true,
		Members: []Member{{12, "sleep 3"}, {13, ""}},
	}
	got := must.Get(DecodeEvent(want.Encode()))(t)
	must.Match(t, want, got)
}

func FuzzDecodeSpec(f *testing.F) {
	full := fullSpec()
	b, _ := full.Encode()
	f.Add(b)
	f.Add([]byte("Dir\x00"))
	f.Add([]byte("Processes\x00-1\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		spec, err := DecodeSpec(b)
		if err != nil {
			return
		}
		again, err := spec.Encode()
		if err != nil {
			t.Fatalf("a decoded specification cannot be encoded: %v", err)
		}
		same, err := DecodeSpec(again)
		if err != nil || !cmp.Equal(spec, same) {
			t.Fatalf("%q changed on the way: %v", b, err)
		}
	})
}

func FuzzDecodeMessages(f *testing.F) {
	f.Add(Order{Kind: OrderSignal, Signal: 2}.Encode())
	f.Add(Order{Kind: OrderSetScript, Script: "echo \xff\n"}.Encode())
	f.Add(Event{Kind: EventLeft, Members: []Member{{1, "x"}}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := DecodeOrder(b); err == nil && bytes.Contains([]byte(o.Kind), []byte{0}) {
			t.Error("an order's kind holds NUL")
		}
		_, _ = DecodeEvent(b)
	})
}
