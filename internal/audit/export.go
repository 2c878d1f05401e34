package audit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/message"
)

// Names of the files of an export, which docs/verify_export.py reads.
const (
	exportMessages  = "messages.jsonl"
	exportManifest  = "manifest.json"
	exportSignature = "manifest.sig"
)

// Message is a line of an export.
type Message struct {
	Number    int64           `json:"number"`
	Time      string          `json:"time"`
	Direction string          `json:"direction"`
	Client    string          `json:"client"`
	Message   json.RawMessage `json:"message"`
}

// Lines writes the messages up to number last as lines of JSON, and returns how many. It continues after an error
// about a part of the journal or a message, and returns the first.
func Lines(ctx context.Context, record *journal.Journal, last int64, to io.Writer) (count int, lost error) {
	query := journal.Query{Ascending: true, Limit: 1000}
	for {
		page, err := record.List(ctx, query)
		lost = cmp.Or(lost, err)
		for _, m := range page.Messages {
			if m.Seq > last {
				return count, lost
			}
			line, err := message.Encode(Message{m.Seq, message.Instant(m.Time), m.Direction, m.Client, message.Record(m.Body).Whole()})
			if err == nil {
				_, err = to.Write(append(line, '\n'))
			}
			if err != nil {
				return count, err
			}
			count, lost = count+1, cmp.Or(lost, m.Lost)
		}
		if !page.HasMore {
			return count, lost
		}
		query.After = page.NextAfter
	}
}

// Manifest describes an export and is signed.
type Manifest struct {
	Form       int             `json:"toold_export"`
	Messages   int             `json:"messages"`
	SHA256     string          `json:"sha256"` // of messages.jsonl
	Checkpoint seal.Checkpoint `json:"checkpoint"`
	Key        string          `json:"key"` // public key that signed the manifest, in hex
}

// Export writes the messages and a signed manifest to a new directory. If messages are lost, it writes no manifest.
func Export(ctx context.Context, record *journal.Journal, dir string) (m Manifest, err error) {
	last := record.Last()
	c, err := record.Checkpoint() // covers everything that is exported
	if err != nil {
		return m, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return m, err
	}
	m = Manifest{Form: 1, Checkpoint: c, Key: hex.EncodeToString(c.Key)}
	if m.Messages, m.SHA256, err = exportFile(ctx, record, last, filepath.Join(dir, exportMessages)); err != nil {
		return m, fmt.Errorf("%s has what can be read, and is not signed: %w", filepath.Join(dir, exportMessages), err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	text = append(text, '\n')
	signature, err := record.Key().Manifest(text)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, exportManifest), text, 0o600), os.WriteFile(filepath.Join(dir, exportSignature), signature, 0o600))
	}
	if err != nil {
		return m, err
	}
	return m, nil
}

func exportFile(ctx context.Context, record *journal.Journal, last int64, path string) (count int, sum string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(f, hash))
	count, err = Lines(ctx, record, last, out)
	err = errors.Join(err, out.Flush(), f.Sync(), f.Close())
	return count, hex.EncodeToString(hash.Sum(nil)), err
}
