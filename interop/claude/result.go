package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/message"
)

// answer converts a return to the result of Claude Code's tool. A call that did nothing is denied, so that the model
// reads an error.
func (e event) answer(ret message.ToolReturn) Answer {
	failed := ret.Status != "success" && ret.ExitCode == nil
	replaces := e.Tool == "Edit" || e.Tool == "Write" // their results repeat the request
	if failed || replaces && ret.Decision.IsEdited() {
		return Answer{Deny: ret.Result}
	}
	switch e.Tool {
	case "Bash":
		return Answer{Result: bashResult{Stdout: clipped(ret), Interrupted: ret.Cancelled}}
	case "Read":
		return Answer{Result: e.read(ret)}
	case "Edit":
		return Answer{Result: editResult{
			FilePath: e.text("file_path"), OldString: e.text("old_string"), NewString: e.text("new_string"),
			Patch: hunks(ret.Diff), ReplaceAll: string(e.arguments["replace_all"]) == "true",
		}}
	case "Write":
		kind := "update"
		if ret.File != nil && ret.File.Operation == "create" {
			kind = "create"
		}
		return Answer{Result: writeResult{Type: kind, FilePath: e.text("file_path"), Content: e.text("content"), Patch: hunks(ret.Diff)}}
	case "TaskStop":
		return Answer{Result: map[string]string{"message": ret.Result, "task_id": e.text("call_id"), "task_type": "local_bash"}}
	}
	return Answer{Result: ret.Result}
}

// bashResult has both streams in Stdout, in the order of the writes.
type bashResult struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	Interrupted bool   `json:"interrupted"`
}

// mostShown is the size in bytes up to which Claude Code shows a result to its model.
const mostShown = 28 << 10

func clipped(ret message.ToolReturn) string {
	if len(ret.Result) <= mostShown {
		return ret.Result
	}
	head, tail := ret.Result[:mostShown/2], ret.Result[len(ret.Result)-mostShown/2:]
	// len(head) includes lines above the output, so a little output is returned twice.
	notice := fmt.Sprintf("\n[… output is left out here; bash_output {\"call_id\": %q, \"stream\": \"combined\", \"offset\": %d} returns it …]\n", ret.CallID, max(0, len(head)-1000))
	return strings.ToValidUTF8(head, "") + notice + strings.ToValidUTF8(tail, "")
}

type readResult struct {
	Type string   `json:"type"`
	File readFile `json:"file"`
}

type readFile struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int64  `json:"numLines"`
	StartLine  int64  `json:"startLine"`
	TotalLines int64  `json:"totalLines"`
}

func (e event) read(ret message.ToolReturn) readResult {
	f := readFile{FilePath: e.text("file_path"), Content: ret.Result, StartLine: 1}
	var offset int64
	if json.Unmarshal(e.arguments["offset"], &offset) == nil {
		f.StartLine = cmp.Or(offset, 1)
	}
	if ret.File != nil {
		f.NumLines = ret.File.Lines
		f.TotalLines = f.StartLine + f.NumLines - 1
		if ret.File.TotalLines != nil {
			f.TotalLines = *ret.File.TotalLines
		}
	}
	return readResult{"text", f}
}

type editResult struct {
	FilePath     string  `json:"filePath"`
	OldString    string  `json:"oldString"`
	NewString    string  `json:"newString"`
	OriginalFile *string `json:"originalFile"` // not known
	Patch        []hunk  `json:"structuredPatch"`
	UserModified bool    `json:"userModified"`
	ReplaceAll   bool    `json:"replaceAll"`
}

type writeResult struct {
	Type         string  `json:"type"`
	FilePath     string  `json:"filePath"`
	Content      string  `json:"content"`
	Patch        []hunk  `json:"structuredPatch"`
	OriginalFile *string `json:"originalFile"` // not known
}

type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

func hunks(diff *string) []hunk {
	list := []hunk{}
	if diff == nil {
		return list
	}
	for line := range strings.Lines(*diff) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "@@ -"); ok {
			h := hunk{OldLines: 1, NewLines: 1, Lines: []string{}}
			before, after, _ := strings.Cut(rest, " +")
			span(before, &h.OldStart, &h.OldLines)
			after, _, _ = strings.Cut(after, " @@")
			span(after, &h.NewStart, &h.NewLines)
			list = append(list, h)
			continue
		}
		if len(list) > 0 && line != "" && strings.ContainsRune(" +-\\", rune(line[0])) {
			last := &list[len(list)-1]
			last.Lines = append(last.Lines, line)
		}
	}
	return list
}

func span(text string, start, lines *int) {
	if n, _ := fmt.Sscanf(text, "%d,%d", start, lines); n == 1 {
		*lines = 1
	}
}
