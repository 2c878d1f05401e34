package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"
)

// CallQuery selects calls. Empty fields select all.
type CallQuery struct {
	After, Before Key // recorded after and before these
	Since         time.Time
	ID, Agent     string
	Workspace     string // canonical
	Tool          string // its own name
	Action        string // of the decision
	Asked         bool   // a person was to decide
	// Text is in the arguments or in the return as they are recorded, or begins with the
	// name of the tool. The caller looks closer.
	Text      string
	Limit     int  // 0 = 100
	Ascending bool // the first ones; default the last ones, the latest first
}

// Select returns the calls that a query selects, with their Arguments.
func (j *Journal) Select(ctx context.Context, q CallQuery) ([]Record, error) {
	if err := j.settle(ctx); err != nil {
		return nil, fmt.Errorf("cannot read the journal's calls: %w", err)
	}
	after, err := j.keyBefore(ctx, q.Since)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal's calls: %w", err)
	}
	q.After = max(q.After, after)
	where, args := q.conditions()
	order, limit := "DESC", 100
	if q.Ascending {
		order = "ASC"
	}
	if q.Limit > 0 {
		limit = q.Limit
	}
	rows, err := j.index.read.QueryContext(ctx, "SELECT "+callColumns+", a.text"+callTables+"LEFT JOIN arguments a ON a.call = c.id WHERE "+where+" ORDER BY c.id "+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal's calls: %w", err)
	}
	defer rows.Close()
	var list []Record
	for rows.Next() {
		var arguments []byte
		r, err := scanRecord(longer{rows, &arguments})
		if err != nil {
			return nil, err
		}
		r.Arguments = arguments
		list = append(list, r)
	}
	return list, rows.Err()
}

// longer is a row with one column more.
type longer struct {
	scanner
	last any
}

func (l longer) Scan(dest ...any) error { return l.scanner.Scan(append(dest, l.last)...) }

func (q CallQuery) conditions() (where string, args []any) {
	before := q.Before
	if before == 0 {
		before = math.MaxInt64
	}
	all := []string{"c.id > ? AND c.id < ?"}
	args = []any{q.After, before}
	add := func(column, value string) {
		if value != "" {
			all, args = append(all, column+" = ?"), append(args, value)
		}
	}
	add("c.tool_call_id", q.ID)
	add("c.agent_id", q.Agent)
	add("c.workspace", q.Workspace)
	if q.Action == "deny" {
		all = append(all, "c.decision_action = 'deny'") // as partial indexes want it
	} else {
		add("c.decision_action", q.Action)
	}
	add("c.canonical_tool", q.Tool)
	if q.Asked {
		all = append(all, asked)
	}
	if q.Text != "" {
		quoted, _ := json.Marshal(q.Text) // a text can always be
		in := string(quoted[1 : len(quoted)-1])
		all = append(all, "(instr(a.text, ?) OR instr(m.body, ?) OR instr(a.text, ?) OR instr(m.body, ?) OR instr(?, c.tool_name))")
		args = append(args, in, in, q.Text, q.Text, q.Text)
	}
	return strings.Join(all, " AND "), args
}

// asked selects the calls on which a person was to decide.
const asked = "(c.decision_by IN ('person', 'beforehand', 'deadline') OR c.decision_action = 'ask')"

// keyBefore is the last call that was recorded before a time, whose keys are in their order.
func (j *Journal) keyBefore(ctx context.Context, at time.Time) (Key, error) {
	if at.IsZero() {
		return 0, nil
	}
	j.write.known.RLock()
	last := j.write.table.lastKey
	j.write.known.RUnlock()
	var err error
	n := sort.Search(int(last), func(i int) bool {
		var received int64
		row := j.index.read.QueryRowContext(ctx, "SELECT coalesce((SELECT received_at FROM calls WHERE id > ? ORDER BY id LIMIT 1), ?)", i, int64(math.MaxInt64))
		if scan := row.Scan(&received); scan != nil && err == nil {
			err = scan
		}
		return received >= at.UnixNano()
	})
	return Key(n), err
}
