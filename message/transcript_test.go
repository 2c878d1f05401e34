package message

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/internal/must"
)

var update = flag.Bool("update", false, "write the decoded frames into testdata")

// TestFramesOfEveryDialectDecodeAsWritten reads testdata/*.txtar. Each file of
// an archive is one connection: a line that starts with > tells what the frame
// above it meant.
func TestFramesOfEveryDialectDecodeAsWritten(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		archive := must.Get(txtar.ParseFile(name))(t)
		for i, file := range archive.Files {
			got := transcript(file.Data)
			if diff := cmp.Diff(string(file.Data), got); diff != "" && !*update {
				t.Errorf("%s, %s: (-want +got)\n%s", name, file.Name, diff)
			}
			archive.Files[i].Data = []byte(got)
		}
		if *update {
			must.Do(t, os.WriteFile(name, txtar.Format(archive), 0o644))
		}
	}
}

func transcript(data []byte) string {
	var b strings.Builder
	d := &Decoder{}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 || line[0] == '>' {
			continue
		}
		in, errs := d.Decode(line)
		fmt.Fprintf(&b, "%s\n%s", line, describe(in, errs))
	}
	return b.String()
}

func describe(in []Inbound, errs []*Error) string {
	var b strings.Builder
	for _, i := range in {
		if r, ok := i.(*Request); ok {
			fmt.Fprintf(&b, "> request %s id=%q otid=%q agent=%q run=%q step=%q\n", r.Dialect, r.ID, r.OTID, r.AgentID, r.RunID, r.StepID)
			if r.Item != "" {
				fmt.Fprintf(&b, ">   one answer for %s\n", r.Item)
			}
			if r.Most != nil {
				fmt.Fprintf(&b, ">   at most %d characters\n", *r.Most)
			}
			for _, c := range r.Calls {
				fmt.Fprintf(&b, ">   %s %q %s", c.ID, c.Name, c.Arguments)
				if c.Invalid != "" {
					fmt.Fprintf(&b, " REFUSED: %s", c.Invalid)
				}
				b.WriteString("\n")
			}
			continue
		}
		text, err := json.Marshal(i)
		fmt.Fprintf(&b, "> %T %s %v\n", i, text, err)
	}
	for _, e := range errs {
		fmt.Fprintf(&b, "> %s request=%q call=%q\n", e, e.RequestID, e.CallID)
	}
	return strings.ReplaceAll(b.String(), " <nil>\n", "\n")
}
