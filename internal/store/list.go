package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/postgres"
)

// Call is a call in a store.
type Call struct {
	journal.Record        // including Arguments
	Daemon         string // OWNER/ID
	Err            error  // why it cannot be read, for instance because rows were changed
}

// List calls yield for the calls that a query selects, of the daemons that name selects (see prefix; "" = all),
// latest first, until yield returns false. It ignores the keys and Text of the query.
func List(ctx context.Context, address, name string, q journal.CallQuery, yield func(Call) bool) error {
	return withDB(ctx, address, func(db *postgres.DB) error { return list(ctx, db, name, q, yield) })
}

func list(ctx context.Context, db *postgres.DB, name string, q journal.CallQuery, yield func(Call) bool) error {
	where, args := conditions(name, q)
	at := page{time: math.MaxInt64}
	for {
		rows, err := db.Query(ctx, fmt.Sprintf(pageQuery, where, pageCalls), append([]any{at.time, at.owner, at.daemon, at.number}, args...)...)
		if err != nil || len(rows) == 0 {
			return err
		}
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && pageOf(rows[n]) == pageOf(rows[0]) {
				n++
			}
			at = pageOf(rows[0])
			c := gather(ctx, db, rows[:n])
			if (c.Err != nil || q.Fits(&c.Record)) && !yield(c) {
				return nil
			}
			rows = rows[n:]
		}
	}
}

// page is the call after which a page of a listing begins.
type page struct {
	time          int64
	owner, daemon string
	number        int64
}

func pageOf(r postgres.Row) page { return page{r.Int(0), r.Text(1), r.Text(2), r.Int(3)} }

const pageCalls = 100

// pageQuery returns all records of some calls, latest call first.
const pageQuery = `WITH found AS (
	SELECT c.time, c.owner, c.daemon, c.number, c.call FROM toold_records c
	WHERE c.kind = 1 AND c.call > 0 AND (c.time, c.owner, c.daemon, c.number) < ($1, $2, $3, $4) %s
	ORDER BY c.time DESC, c.owner DESC, c.daemon DESC, c.number DESC LIMIT %d)
SELECT f.time, f.owner, f.daemon, f.number, r.segment, r.start, r.record FROM found f
JOIN toold_records r ON r.owner = f.owner AND r.daemon = f.daemon AND r.call = f.call AND r.call > 0
ORDER BY f.time DESC, f.owner DESC, f.daemon DESC, f.number DESC, r.number`

// conditions selects a superset of the calls that a query selects.
func conditions(name string, q journal.CallQuery) (where string, args []any) {
	var s strings.Builder
	add := func(condition, value string) {
		if value != "" {
			args = append(args, column(value))
			fmt.Fprintf(&s, " AND "+condition, 4+len(args))
		}
	}
	const exists = "EXISTS (SELECT 1 FROM toold_records e WHERE e.owner = c.owner AND e.daemon = c.daemon AND e.call = c.call AND e.call > 0 AND "
	add("starts_with(c.owner || '/' || c.daemon, $%d)", prefix(name))
	add("(c.agent = $%[1]d AND c.agent <> '' OR c.client = $%[1]d)", q.Agent)
	add("c.workspace = $%d", q.Workspace)
	add(exists+"e.tool = $%d)", q.Tool)
	add(exists+"e.decision = $%d)", q.Action)
	if q.Asked {
		s.WriteString(" AND " + exists + "(e.decision = 'ask' OR e.decided_by IN ('person', 'beforehand', 'deadline')))")
	}
	if !q.Since.IsZero() {
		fmt.Fprintf(&s, " AND c.time >= %d", q.Since.UnixNano())
	}
	return s.String(), args
}

// gather assembles a call from its rows, and checks that they belong to it.
func gather(ctx context.Context, db *postgres.DB, rows []postgres.Row) Call {
	p := pageOf(rows[0])
	d := Daemon{Owner: p.owner, ID: p.daemon}
	c := Call{Daemon: d.Name()}
	var records []chain.Record
	for _, row := range rows {
		r, err := chain.Parse(uint32(row.Int(4)), row.Int(5), row.Bytes(6))
		if err != nil {
			c.Err = err
			return c
		}
		records = append(records, r)
	}
	if first := records[0]; first.Kind != journal.KindCall || first.Time.UnixNano() != p.time || int64(first.Number) != p.number {
		c.Err = errors.New("its row says other than its record")
		return c
	}
	c.Record, c.Err = journal.Gather(records, chain.Copy{Read: newReader(ctx, db, d).read})
	return c
}
