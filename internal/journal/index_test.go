package journal

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal/chain"
)

func openIndexHere(t *testing.T, path string) *index {
	t.Helper()
	x, err := openIndex(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// dump is all that is in the index, but for the order of fences of different clients.
func dump(t *testing.T, x *index) (all []string) {
	t.Helper()
	for _, query := range []string{
		"SELECT * FROM calls ORDER BY id", "SELECT * FROM arguments ORDER BY call", "SELECT * FROM messages ORDER BY seq",
		"SELECT client, tool_call_id FROM fences ORDER BY client, id", "SELECT * FROM position",
	} {
		rows, err := x.read.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for {
			row, err := nextRow(rows, len(columns))
			if err != nil {
				t.Fatal(err)
			}
			if row == nil {
				break
			}
			all = append(all, fmt.Sprint(row...))
		}
	}
	return all
}

// take fills an index with the records behind its position, at most so many.
func take(t *testing.T, x *index, records []chain.Record, most int) {
	t.Helper()
	err := x.tx(func() error {
		have, err := scanPosition(x.row(queryPosition))
		if err != nil {
			return err
		}
		f, err := x.filler()
		if err != nil {
			return err
		}
		for _, r := range records[have.Number:min(len(records), int(have.Number)+most)] {
			if err := f.add(r); err != nil {
				return err
			}
		}
		if f.at.Number == 0 {
			return nil
		}
		return f.put()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An index that was filled a little at a time, by two processes in turns, is the same as one
// that is rebuilt at once.
func TestTheIndexIsTheSameHoweverItIsFilled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 4))
		var records []chain.Record
		for i, e := range course(r, newTable(), 80) {
			records = append(records, chain.Record{Mark: chain.Mark{Number: uint64(i + 1)}, Kind: kindOf(e), Time: clock(i), Body: encoded(e)})
		}
		path := filepath.Join(t.TempDir(), "index.db")
		slowly, atOnce := [2]*index{openIndexHere(t, path), openIndexHere(t, path)}, openIndexHere(t, path+"2")
		for range records {
			take(t, slowly[r.IntN(2)], records, r.IntN(5))
		}
		take(t, slowly[0], records, len(records))
		take(t, atOnce, records, len(records))
		if diff := cmp.Diff(dump(t, atOnce), dump(t, slowly[1])); diff != "" {
			t.Fatalf("seed %d (-at once +slowly):\n%s", seed, diff)
		}
	}
}
