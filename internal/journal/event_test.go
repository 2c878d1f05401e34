package journal

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/internal/must"
)

// events has one of each kind, empty.
func events() []event {
	return []event{&callEvent{}, &decisionEvent{}, &startedEvent{}, &returnEvent{}, &deliveredEvent{}, &messageEvent{}, &earlyCancelEvent{}, &adoptedEvent{}, &removedEvent{}}
}

// derived are fields that are not kept, since others of the record say the same.
var derived = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "call.Message" }, cmp.Ignore())

// fill sets each field to a value of its own.
func fill(v reflect.Value, n *int) {
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // unexported ones too
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(0, int64(*n)).UTC()))
		return
	case []byte:
		v.SetBytes(fmt.Appendf(nil, "bytes %d", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

var compare = cmp.Options{derived, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()}

// A field that is added and not written to the log fails here.
func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, e := range events() {
		n := 0
		fill(reflect.ValueOf(e).Elem(), &n)
		if c, is := e.(*callEvent); is {
			c.request.body = append(append([]byte(`{"arguments":`), c.call.Arguments...), '}')
		}
		for _, e := range []event{e, reflect.New(reflect.TypeOf(e).Elem()).Interface().(event)} {
			got := reflect.New(reflect.TypeOf(e).Elem()).Interface().(event)
			if err := decode(encoded(e), got, nil); err != nil {
				t.Errorf("%T: %v", e, err)
			}
			if diff := cmp.Diff(e, got, compare); diff != "" {
				t.Errorf("%T (-written +read):\n%s", e, diff)
			}
		}
	}
}

func TestArgumentsAreKeptOnce(t *testing.T) {
	t.Parallel()
	arguments := make([]byte, 10_000)
	e := callEvent{call: Call{Arguments: arguments}, request: sent{body: append([]byte("{"), append(arguments, '}')...)}}
	if n := len(encoded(&e)); n > 11_000 {
		t.Errorf("the record has %d bytes", n)
	}
}

// encoded is an event as it is in the log when nothing is beside it.
func encoded(e event) []byte {
	body, err := encode(e, nil)
	if err != nil {
		panic(err)
	}
	return body
}

// FuzzEvent: what is read, from whatever bytes, is written and read the same.
func FuzzEvent(f *testing.F) {
	for kind, e := range events() {
		n := 0
		fill(reflect.ValueOf(e).Elem(), &n)
		f.Add(kind, encoded(e))
	}
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		all := events()
		if kind < 0 || kind >= len(all) {
			return
		}
		e, again := all[kind], events()[kind]
		if decode(body, e, nil) != nil {
			return
		}
		must.Do(t, decode(encoded(e), again, nil))
		if diff := cmp.Diff(e, again, compare); diff != "" {
			t.Fatal(diff)
		}
	})
}
