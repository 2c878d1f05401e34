package journal_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// BenchmarkLongJournal is the life of a call in a journal with a million messages,
// laid beside that in one with few, in turn.
func BenchmarkLongJournal(b *testing.B) {
	short, long := open(b, b.TempDir()), longJournal(b, 500_000)
	ctx := context.WithoutCancel(b.Context())
	var few, many []time.Duration
	n := 0
	for b.Loop() {
		for range 200 {
			n++
			begun := time.Now()
			must(b, plainCycle(ctx, short, n))
			middle := time.Now()
			must(b, plainCycle(ctx, long, n))
			few, many = append(few, middle.Sub(begun)), append(many, time.Since(middle))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(many).Microseconds()), "µs-p50")
	b.ReportMetric(float64(median(many))/float64(median(few)), "x-short")
}

// plainCycle is the life of a call as most clients send it.
func plainCycle(ctx context.Context, j *journal.Journal, n int) error {
	c := call(fmt.Sprint("call_", n))
	c.AgentID, c.ConversationID, c.RunID, c.StepID, c.OTID = "", "", "", "", ""
	rec, _, err := j.Begin(ctx, c, allow)
	if err != nil {
		return err
	}
	body := make([]byte, 0, 1200)
	_, err = j.Finish(ctx, rec.Key, journal.Outcome{Status: "success", OTID: message.NewID("otid")}, func(seq int64) (string, []byte, error) {
		id := message.NewID("message")
		return id, fmt.Appendf(body, `{"id":%q,"seq_id":%d,"result":"%01000d"}`, id, seq, 0), nil
	})
	return err
}

// longJournal is a journal with some calls, which the database itself makes: copies
// of one that was journalled, each with ids of its own.
func longJournal(b *testing.B, calls int) *journal.Journal {
	b.Helper()
	dir := b.TempDir()
	j, err := journal.Open(b.Context(), dir, journal.Self())
	must(b, err)
	must(b, plainCycle(b.Context(), j, 0))
	must(b, j.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	must(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
	must(b, err)
	for _, table := range []struct {
		name  string
		fresh map[string]string // columns that each copy has for itself
	}{
		{"messages", map[string]string{
			"seq": "o.seq + 2*n.i", "id": "'message-' || " + ordered, "otid": "iif(o.otid = '', '', 'otid-' || " + ordered + ")",
			"tool_call_id": "'copy_' || n.i",
		}},
		{"calls", map[string]string{"id": "o.id + n.i", "tool_call_id": "'copy_' || n.i", "return_seq": "o.return_seq + 2*n.i"}},
		{"arguments", map[string]string{"call": "o.call + n.i"}},
	} {
		must(b, copies(db, table.name, table.fresh, calls))
	}
	return open(b, dir)
}

// ordered makes the rest of an id as message.NewID does: later ones are greater.
const ordered = "printf('%08x-%04x-7000-8000-%s', n.i >> 16, n.i & 65535, lower(hex(randomblob(6))))"

// copies adds n copies of all that is in a table.
func copies(db *sql.DB, table string, fresh map[string]string, n int) error {
	rows, err := db.Query("SELECT name FROM pragma_table_info('" + table + "')")
	if err != nil {
		return err
	}
	defer rows.Close()
	var columns, values []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		columns = append(columns, name)
		values = append(values, cmp.Or(fresh[name], "o."+name))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	_, err = db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO %s (%s) SELECT %s FROM n JOIN %s o`, n, table, strings.Join(columns, ", "), strings.Join(values, ", "), table))
	return err
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
