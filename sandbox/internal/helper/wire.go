package helper

import (
	"errors"
	"fmt"
	"reflect"
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
	Probe      bool // confine, report and end: start nothing
	Again      bool // with Namespaces, not Shared: hold another call when this one has ended. The streams of the command come first of Handed
	Hold       bool // start nothing before OrderGo, nor without the permit: an eventfd before the command's descriptors

	View
	Kept bool // with Again: the view is that of the call before, and View is empty

	Fixed   []Root   // with Given: which of Protect there are, and, writable, the folders on the way to them and to Hide
	Outside []string // with Given: the daemon's namespaces of the NamespaceKinds in turn, as readlink(2) tells them; it may be in none

	Ports    []uint64  // with Loopback: connections to these and questions for names go to the daemon by EventDoors
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

// View is what the files that a call sees are made from.
type View struct {
	Terminal bool // descriptor 0 is its controlling terminal
	Roots    []Root
	Hide     []string
	Sockets  []string // local sockets of the machine that the call may connect to; put into the view
	Masks    []string // canonical paths over which nothing can be opened
	Protect  []string // canonical paths below writable roots that stay as they are
	Caches   []Cache
	TmpBytes uint64
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

// The orders. The first one of a call is OrderRun; it carries the Spec in a memory
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
	OrderEnd       = "end"        // answered by EventLeft; whatever still runs is killed; then EventIdle with Again, else the helper ends
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
	EventIdle      = "idle" // nothing of the call is left, and the next OrderRun is awaited
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
	PID     int // as the call sees it
	Command string
}

// maxMembers bounds a report, so that it always fits one packet.
const maxMembers = 64

var errGarbled = errors.New("garbled message between daemon and helper")

// The wire form of every message: key, NUL, value, NUL, and so on, for what is not zero.
// None of the values can hold NUL (the kernel could not take it in a path, an argument or
// the environment either), so nothing is escaped, and bytes that are not valid UTF-8
// arrive as they were. JSON would have replaced them: what runs would not be what was
// judged.

// encode appends the wire form of a structure. It fails when a text holds NUL.
func encode(b []byte, prefix string, from reflect.Value) ([]byte, error) {
	var errs []error
	for i := range from.NumField() {
		v, key := from.Field(i), prefix+from.Type().Field(i).Name
		switch {
		case v.IsZero():
		case v.Kind() == reflect.Struct: // embedded: its fields are those of from
			var err error
			b, err = encode(b, prefix, v)
			errs = append(errs, err)
		case v.Kind() == reflect.Slice:
			for n := range v.Len() {
				var err error
				if v.Index(n).Kind() == reflect.Struct {
					b = append(b, key+"\x00\x00"...)
					b, err = encode(b, key+".", v.Index(n))
				} else {
					b, err = encodeOne(b, key, v.Index(n))
				}
				errs = append(errs, err)
			}
		default:
			var err error
			b, err = encodeOne(b, key, v)
			errs = append(errs, err)
		}
	}
	return b, errors.Join(errs...)
}

func encodeOne(b []byte, key string, v reflect.Value) ([]byte, error) {
	text := fmt.Sprint(v)
	b = append(b, key+"\x00"+text+"\x00"...)
	if strings.Contains(text, "\x00") {
		return b, fmt.Errorf("the %s holds a NUL byte", key)
	}
	return b, nil
}

// decode is the inverse of encode. An unknown key is an error: daemon and helper are one
// binary.
func decode(b []byte, into reflect.Value) error {
	for s := string(b); s != ""; {
		key, rest, ok := strings.Cut(s, "\x00")
		value, rest, ok2 := strings.Cut(rest, "\x00")
		if !ok || !ok2 {
			return errGarbled
		}
		if err := decodeOne(into, key, value); err != nil {
			return err
		}
		s = rest
	}
	return nil
}

func decodeOne(into reflect.Value, key, value string) (err error) {
	name, inner, isInner := strings.Cut(key, ".")
	v := into.FieldByName(name)
	switch kind := v.Kind(); {
	case isInner && kind == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		return decodeOne(v.Index(v.Len()-1), inner, value)
	case isInner:
		return errGarbled
	case kind == reflect.Slice:
		element := reflect.New(v.Type().Elem()).Elem()
		if element.Kind() != reflect.Struct {
			err = parse(element, value)
		}
		v.Set(reflect.Append(v, element))
		return err
	}
	return parse(v, value)
}

func parse(v reflect.Value, value string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(value)
	case reflect.Bool:
		v.SetBool(value == "true")
	case reflect.Int:
		n, err := strconv.Atoi(value)
		v.SetInt(int64(n))
		return err
	case reflect.Uint64:
		n, err := strconv.ParseUint(value, 10, 64)
		v.SetUint(n)
		return err
	default:
		return errGarbled
	}
	return nil
}

// Encode gives the wire form of the specification. It fails when a text holds NUL.
func (s *Spec) Encode() ([]byte, error) { return encode(nil, "", reflect.ValueOf(*s)) }

// DecodeSpec is the inverse of Encode.
func DecodeSpec(b []byte) (s Spec, err error) {
	err = decode(b, reflect.ValueOf(&s).Elem())
	return s, err
}

// Encode gives the wire form of the order.
func (o Order) Encode() []byte {
	b, _ := encode(nil, "", reflect.ValueOf(o)) // one with NUL is garbled, and refused
	return b
}

// DecodeOrder is the inverse of Order.Encode.
func DecodeOrder(b []byte) (o Order, err error) {
	err = decode(b, reflect.ValueOf(&o).Elem())
	return o, err
}

// Encode gives the wire form of the event.
func (e Event) Encode() []byte {
	e.Text = strings.ReplaceAll(e.Text, "\x00", "")
	b, _ := encode(nil, "", reflect.ValueOf(e))
	return b
}

// DecodeEvent is the inverse of Event.Encode.
func DecodeEvent(b []byte) (e Event, err error) {
	err = decode(b, reflect.ValueOf(&e).Elem())
	return e, err
}
