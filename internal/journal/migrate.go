package journal

import (
	"context"
	"embed"
	"fmt"
)

// migrations holds N.sql for each version N of the schema, which leads there
// from N-1.
//
//go:embed migrations
var migrations embed.FS

// version is the newest schema, the one this program works with.
const version = 7

// migrate brings the schema up to version. The caller is in a transaction: a
// second daemon that starts at the same time waits and finds the work done.
func (w *writer) migrate(ctx context.Context) error {
	var have int
	if err := w.row(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if have > version {
		return fmt.Errorf("a newer toold wrote it (schema %d, this program knows %d); update toold or use another state directory", have, version)
	}
	for v := have + 1; v <= version; v++ {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", v))
		if err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA user_version = %d", text, v)); err != nil {
			return fmt.Errorf("cannot migrate to schema %d: %w", v, err)
		}
		if v == 6 {
			if err := w.sealAll(ctx); err != nil {
				return fmt.Errorf("cannot migrate to schema %d: %w", v, err)
			}
		}
	}
	return nil
}
