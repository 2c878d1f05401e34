package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Fence records that a client cancelled a call that has not come. It reports false,
// and records nothing, when the client has used the id. Of each client the latest
// most ids are kept. What is fenced is on the disk when Fence returns.
func (j *Journal) Fence(ctx context.Context, client, callID string, most int) (fenced bool, err error) {
	err = j.write.tx(synced, func() error {
		var used int
		err := j.write.row(ctx, "SELECT 1 FROM calls WHERE client = ? AND tool_call_id = ? LIMIT 1", client, callID).Scan(&used)
		if fenced = errors.Is(err, sql.ErrNoRows); !fenced {
			return err
		}
		if _, err = j.write.exec(ctx, "INSERT INTO fences (client, tool_call_id) VALUES (?, ?) ON CONFLICT DO NOTHING", client, callID); err != nil {
			return err
		}
		_, err = j.write.exec(ctx, `DELETE FROM fences WHERE client = ?1 AND id <=
			(SELECT id FROM fences WHERE client = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, client, most)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot journal that tool call %q is cancelled: %w", callID, err)
	}
	return fenced, nil
}

// Unfence forgets a fence, because its call has come and is recorded. It does not
// wait until that is written; failed is told when it cannot be.
func (j *Journal) Unfence(client, callID string, failed func(error)) {
	j.write.later(func() error {
		_, err := j.write.exec(context.Background(), "DELETE FROM fences WHERE client = ? AND tool_call_id = ?", client, callID)
		return err
	}, saying("fence", failed))
}

// Fences returns the fenced ids by client, the oldest first.
func (j *Journal) Fences(ctx context.Context) (map[string][]string, error) {
	rows, err := j.read.QueryContext(ctx, "SELECT client, tool_call_id FROM fences ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal's fences: %w", err)
	}
	defer rows.Close()
	all := map[string][]string{}
	for rows.Next() {
		var client, id string
		if err := rows.Scan(&client, &id); err != nil {
			return nil, fmt.Errorf("cannot read the journal's fences: %w", err)
		}
		all[client] = append(all[client], id)
	}
	return all, rows.Err()
}
