// Package postgres runs statements on a PostgreSQL database. A connection string names it as
// for other programs: a URL or NAME=VALUE words, completed by the PG* variables, the service
// file and ~/.pgpass.
//
// The package knows no table. Errors have no password in them, and what a server says is on
// one line, without control characters.
package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toold/toold/internal/display"
)

const (
	dialTime    = 10 * time.Second // for a connection
	closeTime   = 2 * time.Second
	answerBytes = 256 << 20 // of one answer: four parts of a journal
)

// DB is a connection. One goroutine uses it at a time.
type DB struct {
	conn *pgconn.PgConn
	left *atomic.Int64 // how much of an answer may come
}

// bounded is a connection over which no more may come.
type bounded struct {
	net.Conn
	left *atomic.Int64
}

func (b bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if b.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the database answers with more than %d bytes", answerBytes)
	}
	return n, err
}

// Check returns an error for a connection string that cannot be read, or one that leaves it to
// the server, or to somebody in between, whether a connection to another machine is encrypted.
func Check(address string) error {
	_, err := parse(address)
	return err
}

func parse(address string) (*pgconn.Config, error) {
	cfg, err := pgconn.ParseConfig(address)
	if rest := strings.Replace(address, "://", "", 1); err != nil && (strings.Contains(rest, ":") || strings.Contains(rest, "pass")) {
		// It may have a password, which the error would repeat.
		return nil, errors.New("the connection string cannot be read: expected postgres://USER@HOST/DATABASE or NAME=VALUE words, without a password")
	}
	if err != nil {
		return nil, err
	}
	ways := append([]*pgconn.FallbackConfig{{Host: cfg.Host, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	for _, w := range ways {
		if !local(w.Host) && (w.TLSConfig == nil) != (cfg.TLSConfig == nil) {
			return nil, fmt.Errorf("the connection to %s might be made without TLS: add sslmode=verify-full to the URL, or PGSSLMODE to the environment", w.Host)
		}
	}
	return cfg, nil
}

// local reports whether a host is this machine: the directory of a socket, or a loopback
// address.
func local(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.HasPrefix(host, "/") || host == "localhost"
}

// said is an error that may have the words of a server.
type said struct{ error }

func (e said) Error() string { return display.Line(strings.Join(strings.Fields(e.error.Error()), " ")) }
func (e said) Unwrap() error { return e.error }

// printable is err with a text that is safe to show.
func printable(err error) error {
	if err == nil {
		return nil
	}
	return said{err}
}

// Open connects. Texts are UTF-8, whatever the user prefers for other programs.
func Open(ctx context.Context, address string) (*DB, error) {
	cfg, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{left: new(atomic.Int64)}
	db.left.Store(answerBytes)
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return bounded{conn, db.left}, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if db.conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		return nil, printable(err)
	}
	return db, nil
}

// Encoding is that of the database, as PostgreSQL calls it; any text, since the server says it.
func (db *DB) Encoding() string { return db.conn.ParameterStatus("server_encoding") }

// Close ends the connection.
func (db *DB) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = db.conn.Close(ctx) // nothing depends on it
}

// Row is what a query returns for a row, in the binary format of the columns' types. It may
// be any: a server answers what it likes.
type Row struct{ columns [][]byte }

// Bytes is a column of type bytea; empty when there is none.
func (r Row) Bytes(i int) []byte {
	if i >= len(r.columns) {
		return nil
	}
	return r.columns[i]
}

// Int is a column of type bigint; 0 for one of another type.
func (r Row) Int(i int) int64 {
	if len(r.Bytes(i)) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(r.Bytes(i)))
}

// Text is a column of type text.
func (r Row) Text(i int) string { return string(r.Bytes(i)) }

// Statement is one statement, with the values of its parameters: string, []byte (of type
// bytea) or integers.
type Statement struct {
	SQL  string
	Args []any
}

// values are the arguments as the protocol has them.
func (s Statement) values() (values [][]byte, formats []int16) {
	const text, bytes = 0, 1
	for _, a := range s.Args {
		format := int16(text)
		var v []byte
		switch a := a.(type) {
		case string:
			v = []byte(a)
		case []byte:
			v, format = a, bytes
		default:
			v = fmt.Append(nil, a)
		}
		values, formats = append(values, v), append(formats, format)
	}
	return values, formats
}

// Query runs a statement and returns its rows.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (rows []Row, err error) {
	values, formats := Statement{sql, args}.values()
	const binary = 1
	db.left.Store(answerBytes)
	result := db.conn.ExecParams(ctx, sql, values, nil, formats, []int16{binary}).Read()
	for _, row := range result.Rows {
		rows = append(rows, Row{row})
	}
	return rows, printable(result.Err)
}

// Has reports whether there is a table that the user may use.
func (db *DB) Has(ctx context.Context, table string) (bool, error) {
	rows, err := db.Query(ctx, `SELECT FROM information_schema.tables WHERE table_name = $1 AND table_schema = ANY (current_schemas(false))`, table)
	return len(rows) > 0, err
}

// Exec runs statements together. All of them take effect, or none.
func (db *DB) Exec(ctx context.Context, list ...Statement) error {
	var b pgconn.Batch
	for _, s := range list {
		values, formats := s.values()
		b.ExecParams(s.SQL, values, nil, formats, nil)
	}
	db.left.Store(answerBytes)
	return printable(db.conn.ExecBatch(ctx, &b).Close())
}

// Script runs the statements of a text together, as Exec does.
func (db *DB) Script(ctx context.Context, text string) error {
	db.left.Store(answerBytes)
	return printable(db.conn.Exec(ctx, text).Close())
}
