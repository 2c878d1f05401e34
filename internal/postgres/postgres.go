// Package postgres runs statements on a PostgreSQL database. A connection string is a URL or NAME=VALUE words,
// completed by the PG* variables, the service file and ~/.pgpass. Errors contain no password; text from a server is
// on one line without control characters.
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
	dialTime       = 10 * time.Second // for a connection
	closeTime      = 2 * time.Second
	maxAnswerBytes = 256 << 20 // four segments of a journal
)

// DB is a connection. It is not safe for concurrent use.
type DB struct {
	conn      *pgconn.PgConn
	remaining *atomic.Int64 // bytes that may still arrive
}

type limitedConn struct {
	net.Conn
	remaining *atomic.Int64
}

func (b limitedConn) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if b.remaining.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the database answers with more than %d bytes", maxAnswerBytes)
	}
	return n, err
}

// Check rejects a connection string that is invalid, or that lets the server choose whether a remote connection is
// encrypted. It accepts sslmode=disable.
func Check(address string) error {
	_, err := parse(address)
	return err
}

func parse(address string) (*pgconn.Config, error) {
	cfg, err := pgconn.ParseConfig(address)
	if rest := strings.Replace(address, "://", "", 1); err != nil && (strings.Contains(rest, ":") || strings.Contains(rest, "pass")) {
		// The error would contain a password.
		return nil, errors.New("the connection string cannot be read: expected postgres://USER@HOST/DATABASE or NAME=VALUE words, without a password")
	}
	if err != nil {
		return nil, err
	}
	attempts := append([]*pgconn.FallbackConfig{{Host: cfg.Host, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	for _, w := range attempts {
		if !local(w.Host) && (w.TLSConfig == nil) != (cfg.TLSConfig == nil) {
			return nil, fmt.Errorf("the connection to %s might be made without TLS: add sslmode=verify-full to the URL, or PGSSLMODE to the environment", w.Host)
		}
	}
	return cfg, nil
}

func local(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.HasPrefix(host, "/") || host == "localhost"
}

type lineError struct{ error }

func (e lineError) Error() string {
	return display.Line(strings.Join(strings.Fields(e.error.Error()), " "))
}
func (e lineError) Unwrap() error { return e.error }

func printable(err error) error {
	if err == nil {
		return nil
	}
	return lineError{err}
}

// Open connects with client encoding UTF-8.
func Open(ctx context.Context, address string) (*DB, error) {
	cfg, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{remaining: new(atomic.Int64)}
	db.remaining.Store(maxAnswerBytes)
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return limitedConn{conn, db.remaining}, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if db.conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		return nil, printable(err)
	}
	return db, nil
}

// Encoding returns the encoding of the database as the server reports it.
func (db *DB) Encoding() string { return db.conn.ParameterStatus("server_encoding") }

// Close ends the connection.
func (db *DB) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = db.conn.Close(ctx)
}

// Row is a row of a query in binary format. The number and types of its columns are those that the server sent.
type Row struct{ columns [][]byte }

// Bytes returns a bytea column, or nil if there is none.
func (r Row) Bytes(i int) []byte {
	if i >= len(r.columns) {
		return nil
	}
	return r.columns[i]
}

// Int returns a bigint column, or 0 if it does not have eight bytes.
func (r Row) Int(i int) int64 {
	if len(r.Bytes(i)) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(r.Bytes(i)))
}

// Text returns a text column.
func (r Row) Text(i int) string { return string(r.Bytes(i)) }

// Statement is a statement and its parameters: string, []byte (bytea) or integers.
type Statement struct {
	SQL  string
	Args []any
}

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
	db.remaining.Store(maxAnswerBytes)
	result := db.conn.ExecParams(ctx, sql, values, nil, formats, []int16{binary}).Read()
	for _, row := range result.Rows {
		rows = append(rows, Row{row})
	}
	return rows, printable(result.Err)
}

// HasTable reports whether a table exists that the user may use.
func (db *DB) HasTable(ctx context.Context, table string) (bool, error) {
	rows, err := db.Query(ctx, `SELECT FROM information_schema.tables WHERE table_name = $1 AND table_schema = ANY (current_schemas(false))`, table)
	return len(rows) > 0, err
}

// Exec runs statements in one transaction.
func (db *DB) Exec(ctx context.Context, list ...Statement) error {
	var b pgconn.Batch
	for _, s := range list {
		values, formats := s.values()
		b.ExecParams(s.SQL, values, nil, formats, nil)
	}
	db.remaining.Store(maxAnswerBytes)
	return printable(db.conn.ExecBatch(ctx, &b).Close())
}

// Script runs the statements in a text in one transaction.
func (db *DB) Script(ctx context.Context, text string) error {
	db.remaining.Store(maxAnswerBytes)
	return printable(db.conn.Exec(ctx, text).Close())
}
