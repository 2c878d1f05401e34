package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/rogpeppe/go-internal/testscript"
)

// startUnacknowledged puts a proxy before the daemon, at $PROXY, that loses the acknowledgement of each answer, as if
// the return of the call had always come before it.
func startUnacknowledged(ts *testscript.TestScript, _ bool, _ []string) {
	daemon := "ws://" + ts.Getenv("TOOLD_LISTEN")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, _, err := websocket.DefaultDialer.Dial(daemon+r.URL.Path, http.Header{"Authorization": r.Header["Authorization"]})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		go forward(here, there)
		forward(there, here)
	}))
	ts.Defer(s.Close)
	ts.Setenv("PROXY", strings.TrimPrefix(s.URL, "http://"))
}

func forward(from, to *websocket.Conn) {
	defer to.Close()
	for {
		kind, data, err := from.ReadMessage()
		if err == nil && !bytes.Contains(data, []byte(`"approval_resolved"`)) {
			err = to.WriteMessage(kind, data)
		}
		if err != nil {
			return
		}
	}
}
