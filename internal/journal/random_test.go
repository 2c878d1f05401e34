package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// naive is a journal as it is read from its log, record after record, without an index.
type naive struct {
	calls    []Record // with their arguments
	messages []placed
}

func readNaive(t *testing.T, j *Journal) (n naive) {
	t.Helper()
	tab := newTable()
	arguments := map[Key][]byte{}
	dir := texts{dir: j.files.log}
	must.Do(t, chain.Read(j.files.log, chain.Mark{}, j.write.end(), func(rec chain.Record) error {
		e, err := decodeRecord(rec, dir)
		if err != nil {
			return err
		}
		if e, is := e.(*callEvent); is {
			arguments[Key(e.key)] = e.call.Arguments
		}
		tab.apply(e, rec.Number, rec.Time)
		var call *Call
		if known := tab.calls[callOf(e)]; known != nil {
			call = &known.Call
		}
		for _, m := range (taken{event: e, time: rec.Time}).messages(call) {
			p := placed{Message: m}
			for _, r := range tab.calls {
				if m.CallID != "" && r.ID == m.CallID && r.Client == m.Client && r.AgentID == m.AgentID {
					p.workspace = r.Workspace
				}
			}
			n.messages = append(n.messages, p)
		}
		return nil
	}))
	for _, k := range slices.Sorted(maps.Keys(tab.calls)) {
		r := tab.calls[k].Record
		r.Arguments = arguments[k]
		n.calls = append(n.calls, r)
	}
	return n
}

// some draws from a few values, the empty one included.
func some(r *rand.Rand, name string) string {
	if n := r.IntN(4); n > 0 {
		return fmt.Sprint(name, n)
	}
	return ""
}

// live does something at random.
func live(t *testing.T, r *rand.Rand, j *Journal, i int) {
	t.Helper()
	failed := func(error) {}
	var err error
	k := Key(1 + r.IntN(i+1))
	build := func(seq int64) (string, []byte, error) {
		size := 10
		if r.IntN(20) == 0 {
			size = 70_000
		}
		return fmt.Sprint("return-", seq), fmt.Appendf(nil, `{"result":"%s text-%d"}`, strings.Repeat("y", size), r.IntN(9)), nil
	}
	outcome := Outcome{Status: some(r, "status"), Canonical: some(r, "tool"), OTID: some(r, "otid"), Decision: Decision{Action: some(r, "action"), By: []string{"", "person", "policy"}[r.IntN(3)]}}
	decision := Decision{Action: []string{"allow", "ask", "deny"}[r.IntN(3)], By: []string{"policy", "deadline"}[r.IntN(2)]}
	switch r.IntN(9) {
	case 0, 1, 2:
		c := Call{
			Client: some(r, "client"), ID: fmt.Sprint("id-", i/2), Origin: message.Origin{
				AgentID: some(r, "agent"), ConversationID: some(r, "conv"), RunID: some(r, "run"), StepID: some(r, "step"),
				OTID: some(r, "otid"), GroupID: some(r, "group"), SenderID: some(r, "sender"),
			}, Workspace: some(r, "/work"), Tool: some(r, "name"), Canonical: some(r, "tool"), ArgsHash: "h",
			BackgroundOf: some(r, "call"), MessageType: some(r, "type"), Message: []byte(`{}`), Arguments: fmt.Appendf(nil, `{"command":"text-%d \"quoted\""}`, r.IntN(9)),
		}
		if c.Message = fmt.Appendf(nil, `{"arguments":%s}`, c.Arguments); r.IntN(4) == 0 {
			_, _, err = j.Answer(t.Context(), c, r.IntN(2) == 0, outcome, build)
		} else {
			_, _, err = j.receive(t.Context(), soon, c, Received, decision, nil)
		}
	case 3:
		err = j.Decide(k, []State{Waiting, Intended}[r.IntN(2)], decision)
	case 4:
		err = j.Start(k, "p", some(r, "/spool"))
	case 5, 6:
		_, err = j.Finish(k, outcome, build)
	case 7:
		j.Delivered(k, failed)
	case 8:
		_, err = j.Append(Message{
			Type: some(r, "type"), Direction: In, Client: some(r, "client"), CallID: fmt.Sprint("id-", r.IntN(i+1)/2), Origin: message.Origin{AgentID: some(r, "agent"), OTID: some(r, "otid")}, Body: []byte(`{}`),
		})
	}
	if err != nil && !errors.Is(err, ErrState) && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

// Whatever is recorded, by which process, and however it is cut into chunks: each query gives, page
// by page, what a look at every record of the log gives, also when hashes are the same for different texts.
func TestQueriesGiveWhatTheLogHas(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for seed := range must.Seeds(t, 2) { // one of each kind
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			dir := t.TempDir()
			handle := func() *Journal {
				j := must.Get(open(t.Context(), dir, Self(), func(dir string) (files, error) {
					f, err := openFiles(dir)
					f.segment, f.chunk = 20_000, 16
					if seed%2 == 1 {
						f.hashMask = 0x7
					}
					return f, err
				}))(t)
				t.Cleanup(func() { _ = j.Close() }) // it may be closed
				return j
			}
			handles := [2]*Journal{handle(), handle()}
			for i := range 600 {
				live(t, r, handles[r.IntN(2)], i)
				if i%100 == 99 {
					n := r.IntN(2)
					handles[n].settle()
					if i == 399 {
						removeAll(t, handles[n])
					}
					for _, j := range append(handles[:], handles[:]...) { // what each has still to write is written first
						must.Do(t, j.write.look())
					}
					for _, j := range handles {
						compareQueries(t, r, j)
					}
					must.Do(t, handles[n].Close())
					handles[n] = handle()
				}
			}
			sound(t, dir)
		})
	}
}

func compareQueries(t *testing.T, r *rand.Rand, j *Journal) {
	t.Helper()
	n := readNaive(t, j)
	same := func(what string, want, is any, err error) {
		t.Helper()
		a, _ := json.Marshal(want) // as texts: large ones take long otherwise
		b, _ := json.Marshal(is)
		if string(a) == "null" {
			a = []byte("[]")
		}
		if string(b) == "null" {
			b = []byte("[]")
		}
		if err != nil || string(a) != string(b) {
			t.Fatalf("%s: %v\nlog:   %.2000s\nindex: %.2000s", what, err, a, b)
		}
	}
	for range 40 {
		q := randomCalls(r, n)
		is, err := j.Select(t.Context(), q)
		same(fmt.Sprintf("calls %+v", q), n.selected(q), is, err)
		for m, pages := randomMessages(r, n), 1+30*r.IntN(2); pages > 0; pages-- {
			page, err := j.List(t.Context(), m)
			want := n.listed(m)
			same(fmt.Sprintf("messages %+v", m), want, page.Messages, err)
			if len(want) == 0 {
				break
			}
			last, next := want[len(want)-1].ID, page.NextBefore
			if m.Ascending {
				m.After, next = last, page.NextAfter
			} else {
				m.Before = last
			}
			if more := len(n.listed(m)) > 0; page.HasMore != more || next != last {
				t.Fatalf("messages %+v: more %v, the next page begins at %q", m, page.HasMore, next)
			}
		}
	}
	bare := func(fits func(*Record) bool, newest bool, most int) (list []Record) {
		for _, c := range n.calls {
			if c.Arguments = nil; fits(&c) {
				list = append(list, c)
			}
		}
		if newest {
			slices.Reverse(list)
		}
		return list[:min(most, len(list))]
	}
	client, agent, conv := some(r, "client"), some(r, "agent"), some(r, "conv")
	callID := []string{"", fmt.Sprint("id-", r.IntN(320))}[r.IntN(2)]
	is, err := j.Ended(t.Context(), client, callID, 7)
	same("ended", bare(func(c *Record) bool {
		return !c.ReturnedAt.IsZero() && (client == "" || c.Client == client) && (callID == "" || c.ID == callID)
	}, true, 7), is, err)
	is, err = j.Ran(t.Context(), client, agent, conv, 7)
	same("ran", bare(func(c *Record) bool {
		return !c.ReturnedAt.IsZero() && c.SpoolDir != "" && c.Client == client && c.AgentID == agent && c.ConversationID == conv
	}, true, 7), is, err)
	is, err = j.Undelivered(t.Context(), client, 7)
	same("untold", bare(func(c *Record) bool { return c.State == Returned && c.BackgroundOf != "" && c.Client == client }, false, 7), is, err)
	for range 20 {
		id := fmt.Sprint("id-", r.IntN(320))
		first := func(fits func(*Record) bool) (Record, error) {
			if list := bare(fits, true, 1); len(list) > 0 {
				return list[0], nil
			}
			return Record{}, ErrNotFound
		}
		for what, f := range map[string]struct {
			find func() (Record, error)
			fits func(*Record) bool
		}{
			"FindFunc": {func() (Record, error) {
				return j.FindFunc(t.Context(), id, func(c *Call) bool { return c.Client == client })
			}, func(c *Record) bool { return c.Client == client && c.ID == id }},
			"FindAs":  {func() (Record, error) { return j.FindAs(t.Context(), client, agent, id) }, func(c *Record) bool { return c.Client == client && c.AgentID == agent && c.ID == id }},
			"FindAny": {func() (Record, error) { return j.FindAny(t.Context(), id) }, func(c *Record) bool { return c.ID == id }},
		} {
			want, missing := first(f.fits)
			is, err := f.find()
			if errors.Is(err, missing) {
				err = nil
			}
			same(what+" "+id, want, is, err)
		}
	}
}

func randomCalls(r *rand.Rand, n naive) CallQuery {
	q := CallQuery{Limit: 1 + r.IntN(20), Ascending: r.IntN(2) == 0}
	for _, f := range []struct {
		field *string
		name  string
	}{{&q.Agent, "agent"}, {&q.Workspace, "/work"}, {&q.Tool, "tool"}, {&q.Action, "action"}} {
		if r.IntN(4) == 0 {
			*f.field = some(r, f.name)
		}
	}
	if r.IntN(4) == 0 {
		q.Agent = some(r, "client") // the name of its token
	}
	q.Asked = r.IntN(5) == 0
	if r.IntN(6) == 0 {
		q.Action = []string{"ask", "deny", "allow"}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		q.Text = []string{"text-1", "text-2", `"quoted"`, `\"quoted\"`, "say name1 aloud", "yyyyyyyyyyyyyyyyyyyy", "nothing"}[r.IntN(7)]
	}
	if len(n.calls) > 0 {
		some := func() *Record { return &n.calls[r.IntN(len(n.calls))] }
		if r.IntN(4) == 0 {
			q.After = some().Key
		}
		if r.IntN(4) == 0 {
			q.Before = some().Key
		}
		if r.IntN(4) == 0 {
			q.Since = some().ReceivedAt
		}
	}
	return q
}

func (n naive) selected(q CallQuery) (list []Record) {
	quoted := strings.ReplaceAll(strings.ReplaceAll(q.Text, `\`, `\\`), `"`, `\"`)
	for _, c := range n.calls {
		has := q.Text == "" || strings.Contains(q.Text, c.Tool)
		for _, text := range []string{string(c.Arguments), string(c.Result)} {
			has = has || strings.Contains(text, q.Text) || strings.Contains(text, quoted)
		}
		if has && c.Key > q.After && (q.Before == 0 || c.Key < q.Before) && q.Fits(&c) {
			list = append(list, c)
		}
	}
	if !q.Ascending {
		slices.Reverse(list)
	}
	return list[:min(cmp.Or(q.Limit, 100), len(list))]
}

func randomMessages(r *rand.Rand, n naive) Query {
	q := Query{Limit: 1 + r.IntN(20), Ascending: r.IntN(2) == 0}
	for _, f := range []struct {
		field *string
		name  string
	}{
		{&q.Client, "client"},
		{&q.AgentID, "agent"},
		{&q.ConversationID, "conv"},
		{&q.RunID, "run"},
		{&q.StepID, "step"},
		{&q.OTID, "otid"},
		{&q.GroupID, "group"},
		{&q.SenderID, "sender"},
		{&q.Status, "status"},
		{&q.Workspace, "/work"},
	} {
		if r.IntN(6) == 0 {
			*f.field = some(r, f.name)
		}
	}
	if r.IntN(5) == 0 {
		q.CallID = fmt.Sprint("id-", r.IntN(300))
	}
	if r.IntN(4) == 0 {
		q.MessageTypes = []string{"type1", returnType}
	}
	if len(n.messages) > 0 {
		some := func() *placed { return &n.messages[r.IntN(len(n.messages))] }
		if r.IntN(4) == 0 {
			q.Before = some().ID
		}
		if r.IntN(4) == 0 {
			q.After = some().ID
		}
		if r.IntN(4) == 0 {
			q.AfterSeq = some().Seq
		}
	}
	return q
}

func (n naive) listed(q Query) (list []Message) {
	seq := func(id string, without int64) int64 {
		for _, m := range n.messages {
			if m.ID == id {
				return m.Seq
			}
		}
		return without
	}
	before, after := seq(q.Before, 1<<62), max(seq(q.After, 0), q.AfterSeq)
	for _, m := range n.messages {
		fits := m.Seq < before && m.Seq > after
		for _, f := range [][2]string{
			{q.Client, m.Client},
			{q.AgentID, m.AgentID},
			{q.ConversationID, m.ConversationID},
			{q.RunID, m.RunID},
			{q.StepID, m.StepID},
			{q.OTID, m.OTID},
			{q.GroupID, m.GroupID},
			{q.SenderID, m.SenderID},
			{q.Status, m.Status},
			{q.Workspace, m.workspace},
			{q.CallID, m.CallID},
		} {
			fits = fits && (f[0] == "" || f[0] == f[1])
		}
		if fits && (len(q.MessageTypes) == 0 || slices.Contains(q.MessageTypes, m.Type)) {
			list = append(list, m.Message)
		}
	}
	if !q.Ascending {
		slices.Reverse(list)
	}
	list = list[:min(q.Limit, len(list))]
	return list[:fitting(list, q.Limit)]
}
