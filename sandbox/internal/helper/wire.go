package helper

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Spec describes how a helper confines itself and what it starts.
type Spec struct {
	Namespaces bool // it was cloned into new namespaces: build the mount view, drop capabilities
	Shared     bool // but without a PID namespace: its processes are among the machine's, and see them
	Listed     bool // without a view: Landlock only allows reading Roots. With Shared, without Namespaces
	Offline    bool // with Listed: no sockets but pairs
	Counted    bool // a control group limits its processes
	Bounded    bool // a control group limits its memory
	External   bool // with Namespaces: bwrap has created them and the view; verify them. The command's streams come first in Handed
	Loopback   bool // it has its own network namespace: bring up loopback
	Landlock   bool
	Seccomp    bool
	Probe      bool // confine, report and end without starting anything
	Again      bool // with Namespaces, not Shared, or unconfined: run another call after this one. The command's streams come first in Handed
	Reserve    bool // start nothing before OrderGo, or without the permit: an eventfd before the command's descriptors

	View
	Kept bool // with Again: keep the view of the previous call; View has only Terminal

	Fixed   []Root   // with External: the existing paths of Protect, and, writable, the directories on the way to them and to Hide
	Outside []string // with External: the daemon's namespaces in the order of NamespaceKinds, as readlink(2) returns them

	Ports    []uint64  // with Loopback: send connections to these ports and DNS queries to the daemon by EventListeners
	Handed   uint64    // number of descriptors before the command's: the trees of Caches in order, and a lock to keep
	Overlays []Overlay // mount these, report each by EventOverlay or EventFailed, and end

	Processes, OpenFiles, FileBytes, MemoryBytes uint64 // 0 = unlimited

	User, Group uint64 // ids of the daemon, to which the helper maps itself

	Dir   string
	DirIs string   // identity of Dir, from Identity; "" = any
	Argv  []string // Argv[0] is an absolute path
	Env   []string
	Room  uint64 // >0: Argv lacks the script, of at most this many bytes; OrderSetScript sets it, OrderGo runs it

	Missing []string // with Room or Again: what did not exist when the daemon looked, which sees what of it appears
}

// View determines the files that a call sees.
type View struct {
	Terminal bool // descriptor 0 is its controlling terminal
	Roots    []Root
	Hide     []string
	Opened   []string // directories below which other calls can restore permissions
	Sockets  []string // local sockets of the machine that the call may connect to; mounted in the view
	Masks    []string // canonical paths that cannot be opened, including what is below
	Protect  []string // canonical paths below writable roots that cannot be changed
	Caches   []Cache
	TmpBytes uint64
}

// apart reports whether the call has its own PID namespace, which ends with the helper.
func (s *Spec) apart() bool { return s.Namespaces && !s.Shared }

func (s *Spec) restricted() bool { return s.Landlock || s.Seccomp }

// Root is a directory that is mounted in the view after / was made read-only and /tmp private.
type Root struct {
	Path     string
	Writable bool
	Is       string // identity, from Identity; "" = any
}

// Cache is a tool cache of the view.
type Cache struct {
	Path string
	From string // directory to mount; "" = a tree that was passed
}

// Overlay is a directory and where changes to it are stored.
type Overlay struct{ Lower, Upper, Work string }

// Order is a request of the daemon.
type Order struct {
	Kind   string // one of the Order constants
	Signal int    // of the orders that signal
	Script string // of OrderSetScript
}

// The orders. The first one of a call is OrderRun; it carries the Spec in a memory file, and descriptors for the
// command.
const (
	OrderRun       = "run"
	OrderSetScript = "set-script" // script of a warm shell; answered by EventScriptSet or EventFailed
	OrderLend      = "lend"       // make connections in the call's network for requests on the accompanying socket
	OrderGo        = "go"         // with sockets of lending calls: start the reserved command, or run the script
	OrderSignal    = "signal"     // to the foreground process group; answered by EventSignalled
	OrderSignalAll = "signal-all" // to every process of the call
	OrderSignalOne = "signal-one" // to the shell alone; answered by EventSignalled
	OrderWake      = "wake"       // CONT to every stopped process of the call
	OrderKill      = "kill"       // SIGKILL to every process of the call
	OrderWaiting   = "waiting"    // answered by EventWaiting
	OrderList      = "list"       // answered by EventMembers
	OrderEnd       = "end"        // answered by EventLeft; kills what still runs; then EventIdle with Again, otherwise the helper ends
)

// Event is a report of the helper.
type Event struct {
	Kind     string // one of the Event constants
	Stage    string // of EventFailed
	Errno    int    // of EventFailed; 0 if no system call failed
	Text     string // of EventFailed
	ABI      int    // of EventStarted: version of Landlock, 0 = none
	Brokered bool   // of EventStarted: connections to local sockets are judged; false = there are no such sockets
	Status   int    // of EventExited: raw wait status of the shell
	Alone    bool   // of EventExited: nothing else of the call runs
	Runnable bool   // of EventMembers: one of them runs or waits for a disk
	Wait     string // of EventWaiting: one of the Wait constants; "" = none waits
	Reads    bool   // of EventWaiting: it sleeps in a read, so only input can continue it
	Sole     bool   // of EventWaiting: it has no other thread
	Deaf     bool   // of EventWaiting: it reads where no input arrives
	Members  []Member
}

// The events. EventStarted or EventFailed comes first.
const (
	EventStarted   = "started"
	EventFailed    = "failed"
	EventScriptSet = "script-set" // the script is ready to run
	EventExited    = "exited"
	EventAlone     = "alone"     // the last process of the call ended after the shell did
	EventSignalled = "signalled" // kill(2) has returned
	EventMembers   = "members"
	EventWaiting   = "waiting" // Members contains the waiting process, if any
	EventLimit     = "limit"   // Text is the limit that the call has reached
	EventRefused   = "refused" // Text is a local socket of the machine that was refused
	EventLeft      = "left"
	EventIdle      = "idle" // nothing of the call remains; the helper waits for OrderRun
)

// These carry descriptors: a mount; the socket for DNS and the listeners.
const (
	EventOverlay   = "overlay"
	EventListeners = "listeners" // before EventStarted
)

// How a process waits for input.
const (
	WaitLine     = "line"
	WaitPassword = "password"
	WaitKeys     = "tui" // single keys, as for editors and pagers
)

// The limits that the helper itself enforces.
const (
	LimitMemory    = "memory"    // all processes are killed
	LimitProcesses = "processes" // no more could be started
)

// Member is a process of a call.
type Member struct {
	PID     int // in the call's namespace
	Command string
}

// maxMembers limits an event, so that it fits into a packet.
const maxMembers = 64

var errGarbled = errors.New("garbled message between daemon and helper")

// The wire form of a message: key, NUL, value, NUL, and so on, for non-zero fields. No value can contain NUL (the
// kernel accepts none in paths, arguments or the environment either), so nothing is escaped, and invalid UTF-8 is
// preserved. JSON would replace it, and what runs would differ from what was judged.

// encode appends the wire form of a structure. It returns an error if a string contains NUL.
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
	text := plain(v)
	b = append(b, key+"\x00"+text+"\x00"...)
	if strings.Contains(text, "\x00") {
		return b, fmt.Errorf("the %s holds a NUL byte", key)
	}
	return b, nil
}

// plain returns the text of a string, a number or a boolean. It does without fmt, which nothing else needs in a call.
func plain(v reflect.Value) string {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// decode is the inverse of encode. An unknown key is an error, since daemon and helper are the same binary.
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
	isSlice := v.Kind() == reflect.Slice
	isStructs := isSlice && v.Type().Elem().Kind() == reflect.Struct
	switch {
	case isInner && isStructs && v.Len() > 0:
		return decodeOne(v.Index(v.Len()-1), inner, value)
	case isInner:
		return errGarbled
	case isSlice:
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

// Encode returns the wire form of the specification, or an error if a string contains NUL.
func (s *Spec) Encode() ([]byte, error) { return encode(nil, "", reflect.ValueOf(*s)) }

// DecodeSpec is the inverse of Encode.
func DecodeSpec(b []byte) (s Spec, err error) {
	err = decode(b, reflect.ValueOf(&s).Elem())
	return s, err
}

// Encode returns the wire form of the order.
func (o Order) Encode() []byte {
	b, _ := encode(nil, "", reflect.ValueOf(o)) // an order with NUL is truncated, and rejected
	return b
}

// DecodeOrder is the inverse of Order.Encode.
func DecodeOrder(b []byte) (o Order, err error) {
	err = decode(b, reflect.ValueOf(&o).Elem())
	return o, err
}

// Encode returns the wire form of the event.
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
