package helper

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Spec says what a helper does with itself and what it starts.
type Spec struct {
	Namespaces bool // it was cloned into fresh namespaces: build the mount view, drop capabilities
	Shared     bool // but not into a pid namespace: its processes are among the machine's, and see them
	Listed     bool // no view hides anything: Landlock lets it read nothing but Roots. Goes with Shared, without Namespaces
	Offline    bool // with Listed: it makes no sockets but pairs
	Counted    bool // a control group bounds the number of its processes
	Given      bool // with Namespaces: bwrap has made them and the view: look whether they hold. The streams of the command come first of Handed
	Loopback   bool // it has a network namespace of its own: bring its loopback up
	Landlock   bool
	Seccomp    bool
	Terminal   bool // descriptor 0 is its controlling terminal
	Probe      bool // confine, report and end: start nothing
	Hold       bool // start nothing before OrderGo, nor without the permit: an eventfd before the command's descriptors

	Roots    []Root
	Hide     []string
	Sockets  []string // local sockets of the machine that the call may connect to; put into the view
	Masks    []string // canonical paths over which nothing can be opened
	Protect  []string // canonical paths below writable roots that stay as they are
	Fixed    []Root   // with Given: which of Protect there are, and, writable, the folders on the way to them and to Hide
	Outside  []string // with Given: the daemon's namespaces of the NamespaceKinds in turn, as readlink(2) tells them; it may be in none
	TmpBytes uint64

	Ports    []uint64 // with Loopback: connections to these and questions for names go to the daemon by EventDoors
	Caches   []Cache
	Handed   uint64    // descriptors that come before the command's: the trees of Caches in turn, and a lock to be held
	Overlays []Overlay // make these, report each by EventOverlay or EventFailed, and end; nothing else is done then

	Processes, OpenFiles, FileBytes, MemoryBytes uint64 // 0 = unlimited

	User, Group uint64 // who the daemon is, and who the helper makes itself in the namespaces that it was cloned into

	Dir   string
	DirIs string   // which folder Dir must be, as FolderID tells; "" = whichever is there
	Argv  []string // Argv[0] is an absolute path
	Env   []string
	Room  uint64 // >0: Argv lacks the script, a bash's last argument of at most so many bytes; OrderGive brings it, OrderGo starts it
}

// apart reports whether the call's processes have a namespace of their own, which
// holds them, numbers them and ends with the helper.
func (s *Spec) apart() bool { return s.Namespaces && !s.Shared }

// Root is one directory that is put back into the view after / was made
// read-only and /tmp private.
type Root struct {
	Path     string
	Writable bool
	Is       string // which folder it must be, as FolderID tells; "" = whichever is there
}

// FolderID tells one folder from all others that are there at the same time.
func FolderID(device, inode uint64) string { return fmt.Sprintf("%d:%d", device, inode) }

// Cache is one tool cache of the view.
type Cache struct {
	Path string
	From string // the folder that is seen there; empty = a tree that was handed over
}

// Overlay is a folder and where the changes to it go.
type Overlay struct{ Lower, Upper, Work string }

// Order is one request of the daemon.
type Order struct {
	Kind   string // one of the Order constants
	Signal int    // of the orders that signal
	Script string // of OrderGive
}

// The orders. The first one is always OrderRun; it carries the Spec in a memory
// file and perhaps one more descriptor for the command.
const (
	OrderRun       = "run"
	OrderGive      = "give"       // the script of a shell that was started without; answered by EventGiven or EventFailed
	OrderLend      = "lend"       // to make connections in the call's network for who asks at the socket that comes with it
	OrderGo        = "go"         // with sockets of those who lend theirs: what was held may start, what was given may run
	OrderSignal    = "signal"     // to the foreground process group; answered by EventSignalled
	OrderSignalAll = "signal-all" // to every process of the call
	OrderSignalOne = "signal-one" // to the shell alone; answered by EventSignalled
	OrderWake      = "wake"       // CONT to every process of the call that is stopped
	OrderKill      = "kill"       // SIGKILL to every process of the call
	OrderWaiting   = "waiting"    // answered by EventWaiting
	OrderList      = "list"       // answered by EventMembers
	OrderEnd       = "end"        // answered by EventLeft; whatever still runs is killed, the helper ends
)

// Event is one report of the helper.
type Event struct {
	Kind     string // one of the Event constants
	Stage    string // of EventFailed
	Errno    int    // of EventFailed; 0 when no system call failed
	Text     string // of EventFailed
	ABI      int    // of EventStarted: the Landlock version in force, 0 = none
	Brokered bool   // of EventStarted: connections to local sockets are judged; false = there are none
	Status   int    // of EventExited: the raw wait status of the shell
	Alone    bool   // of EventExited: nothing else of the call runs
	Runnable bool   // of EventMembers: one of them runs or waits for a disk
	Wait     string // of EventWaiting: one of the Wait constants; "" = nobody waits
	Reads    bool   // of EventWaiting: it sleeps in a read, so nothing but input goes on with it
	Sole     bool   // of EventWaiting: and it has no other thread
	Deaf     bool   // of EventWaiting: it reads where no input comes
	Members  []Member
}

// The events. EventStarted or EventFailed comes first.
const (
	EventStarted   = "started"
	EventFailed    = "failed"
	EventGiven     = "given" // the script is ready to run
	EventExited    = "exited"
	EventAlone     = "alone"     // the last process of the call ended after the shell did
	EventSignalled = "signalled" // kill(2) has returned
	EventMembers   = "members"
	EventWaiting   = "waiting" // Members holds the one that waits, if any
	EventLimit     = "limit"   // Text names the limit that the call has met
	EventRefused   = "refused" // Text names a local socket of the machine that was not connected to
	EventLeft      = "left"
)

// These come with descriptors: of a mount; of the socket for names and those for
// connections.
const (
	EventOverlay = "overlay"
	EventDoors   = "doors" // before EventStarted
)

// How a process waits for input.
const (
	WaitLine     = "line"
	WaitPassword = "password"
	WaitKeys     = "tui" // single keys, as editors and pagers take them
)

// The limits that the helper itself watches.
const (
	LimitMemory    = "memory"    // everything is killed for it
	LimitProcesses = "processes" // no more could be started
)

// Member is one process of a call.
type Member struct {
	PID     int
	Command string
}

// maxMembers bounds a report, so that it always fits one packet.
const maxMembers = 64

// fields is the wire form of every message: key, NUL, value, NUL, and so on.
// None of the values can hold NUL (the kernel could not take it in a path, an
// argument or the environment either), so nothing is escaped, and bytes that
// are not valid UTF-8 arrive as they were. JSON would have replaced them: what
// runs would not be what was judged.
type fields struct {
	b   []byte
	err error
}

func (f *fields) text(key, value string) {
	if strings.IndexByte(value, 0) >= 0 && f.err == nil {
		f.err = fmt.Errorf("the %s holds a NUL byte", key)
	}
	f.b = append(append(append(append(f.b, key...), 0), value...), 0)
}

func (f *fields) texts(key string, values []string) {
	for _, v := range values {
		f.text(key, v)
	}
}

func (f *fields) number(key string, n uint64) {
	if n != 0 {
		f.text(key, strconv.FormatUint(n, 10))
	}
}

func (f *fields) truth(key string, v bool) {
	if v {
		f.text(key, "1")
	}
}

var errGarbled = errors.New("garbled message between daemon and helper")

// each calls use for every field of a message.
func each(b []byte, use func(key, value string) error) error {
	s := string(b)
	for s != "" {
		key, rest, ok := strings.Cut(s, "\x00")
		value, rest, ok2 := strings.Cut(rest, "\x00")
		if !ok || !ok2 {
			return errGarbled
		}
		if err := use(key, value); err != nil {
			return err
		}
		s = rest
	}
	return nil
}

// Encode gives the wire form of the specification. It fails when a text holds NUL.
func (s *Spec) Encode() ([]byte, error) {
	var f fields
	for key, v := range s.truths() {
		f.truth(key, *v)
	}
	for key, v := range s.numbers() {
		f.number(key, *v)
	}
	for _, r := range s.Roots {
		if r.Writable {
			f.text("write", r.Path)
		} else {
			f.text("read", r.Path)
		}
		if r.Is != "" {
			f.text("is", r.Is)
		}
	}
	f.texts("hide", s.Hide)
	f.texts("socket", s.Sockets)
	f.texts("protect", s.Protect)
	f.texts("mask", s.Masks)
	f.texts("outside", s.Outside)
	for _, r := range s.Fixed {
		if r.Writable {
			f.text("pin", r.Path)
		} else {
			f.text("fixed", r.Path)
		}
		f.text("fixed-is", r.Is)
	}
	for _, port := range s.Ports {
		f.number("port", port)
	}
	for _, c := range s.Caches {
		f.text("cache", c.Path)
		f.text("cache-from", c.From)
	}
	for _, o := range s.Overlays {
		f.text("lower", o.Lower)
		f.text("upper", o.Upper)
		f.text("work", o.Work)
	}
	f.text("dir", s.Dir)
	f.text("dir-is", s.DirIs)
	f.texts("arg", s.Argv)
	f.texts("env", s.Env)
	return f.b, f.err
}

func (s *Spec) truths() map[string]*bool {
	return map[string]*bool{
		"namespaces": &s.Namespaces, "given": &s.Given, "shared": &s.Shared, "listed": &s.Listed, "offline": &s.Offline, "counted": &s.Counted, "loopback": &s.Loopback, "landlock": &s.Landlock,
		"seccomp": &s.Seccomp, "terminal": &s.Terminal, "probe": &s.Probe, "hold": &s.Hold,
	}
}

func (s *Spec) numbers() map[string]*uint64 {
	return map[string]*uint64{
		"tmp-bytes": &s.TmpBytes, "room": &s.Room, "processes": &s.Processes, "open-files": &s.OpenFiles, "handed": &s.Handed,
		"user": &s.User, "group": &s.Group,
		"file-bytes": &s.FileBytes, "memory-bytes": &s.MemoryBytes,
	}
}

// last is the element that further fields belong to.
func last[T any](list *[]T) *T {
	if len(*list) == 0 {
		*list = make([]T, 1)
	}
	return &(*list)[len(*list)-1]
}

// DecodeSpec is the inverse of Encode. An unknown key is an error: daemon and
// helper are one binary.
func DecodeSpec(b []byte) (Spec, error) {
	var s Spec
	truths, numbers := s.truths(), s.numbers()
	texts := map[string]func(string){
		"write":  func(v string) { s.Roots = append(s.Roots, Root{Path: v, Writable: true}) },
		"is":     func(v string) { last(&s.Roots).Is = v },
		"read":   func(v string) { s.Roots = append(s.Roots, Root{Path: v}) },
		"hide":   func(v string) { s.Hide = append(s.Hide, v) },
		"socket": func(v string) { s.Sockets = append(s.Sockets, v) },
		"dir":    func(v string) { s.Dir = v },
		"dir-is": func(v string) { s.DirIs = v },
		"arg":    func(v string) { s.Argv = append(s.Argv, v) },
		"env":    func(v string) { s.Env = append(s.Env, v) },

		"protect":    func(v string) { s.Protect = append(s.Protect, v) },
		"mask":       func(v string) { s.Masks = append(s.Masks, v) },
		"outside":    func(v string) { s.Outside = append(s.Outside, v) },
		"pin":        func(v string) { s.Fixed = append(s.Fixed, Root{Path: v, Writable: true}) },
		"fixed":      func(v string) { s.Fixed = append(s.Fixed, Root{Path: v}) },
		"fixed-is":   func(v string) { last(&s.Fixed).Is = v },
		"cache":      func(v string) { s.Caches = append(s.Caches, Cache{Path: v}) },
		"cache-from": func(v string) { last(&s.Caches).From = v },
		"lower":      func(v string) { s.Overlays = append(s.Overlays, Overlay{Lower: v}) },
		"upper":      func(v string) { last(&s.Overlays).Upper = v },
		"work":       func(v string) { last(&s.Overlays).Work = v },
	}
	err := each(b, func(key, value string) (err error) {
		if v, ok := truths[key]; ok {
			*v = value == "1"
		} else if v, ok := numbers[key]; ok {
			*v, err = strconv.ParseUint(value, 10, 64)
		} else if set, ok := texts[key]; ok {
			set(value)
		} else if key == "port" {
			var n uint64
			n, err = strconv.ParseUint(value, 10, 16)
			s.Ports = append(s.Ports, n)
		} else {
			err = errGarbled
		}
		return err
	})
	return s, err
}

// Encode gives the wire form of the order.
func (o Order) Encode() []byte {
	var f fields
	f.text("kind", o.Kind)
	f.number("signal", uint64(o.Signal))
	if o.Script != "" {
		f.text("script", o.Script)
	}
	return f.b
}

// DecodeOrder is the inverse of Order.Encode.
func DecodeOrder(b []byte) (Order, error) {
	var o Order
	err := each(b, func(key, value string) (err error) {
		switch key {
		case "kind":
			o.Kind = value
		case "signal":
			o.Signal, err = strconv.Atoi(value)
		case "script":
			o.Script = value
		default:
			err = errGarbled
		}
		return err
	})
	return o, err
}

// Encode gives the wire form of the event.
func (e Event) Encode() []byte {
	var f fields
	f.text("kind", e.Kind)
	f.text("stage", e.Stage)
	f.text("text", strings.ReplaceAll(e.Text, "\x00", ""))
	f.number("errno", uint64(e.Errno))
	f.number("abi", uint64(e.ABI))
	f.number("status", uint64(e.Status))
	f.truth("brokered", e.Brokered)
	f.truth("alone", e.Alone)
	f.truth("runnable", e.Runnable)
	f.text("wait", e.Wait)
	f.truth("reads", e.Reads)
	f.truth("sole", e.Sole)
	f.truth("deaf", e.Deaf)
	for _, m := range e.Members {
		f.text("member", strconv.Itoa(m.PID)+" "+strings.ReplaceAll(m.Command, "\x00", " "))
	}
	return f.b
}

// DecodeEvent is the inverse of Event.Encode.
func DecodeEvent(b []byte) (Event, error) {
	var e Event
	numbers := map[string]*int{"errno": &e.Errno, "abi": &e.ABI, "status": &e.Status}
	texts := map[string]*string{"kind": &e.Kind, "stage": &e.Stage, "text": &e.Text, "wait": &e.Wait}
	truths := map[string]*bool{"brokered": &e.Brokered, "alone": &e.Alone, "runnable": &e.Runnable, "reads": &e.Reads, "sole": &e.Sole, "deaf": &e.Deaf}
	err := each(b, func(key, value string) (err error) {
		if v, ok := texts[key]; ok {
			*v = value
		} else if v, ok := truths[key]; ok {
			*v = value == "1"
		} else if v, ok := numbers[key]; ok {
			*v, err = strconv.Atoi(value)
		} else if key == "member" {
			pid, command, _ := strings.Cut(value, " ")
			m := Member{Command: command}
			m.PID, err = strconv.Atoi(pid)
			e.Members = append(e.Members, m)
		} else {
			err = errGarbled
		}
		return err
	})
	return e, err
}
