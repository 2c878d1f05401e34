package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/toold/toold/internal/redact"
)

const bom = "\ufeff" // byte order mark

func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// notText returns why data is not text, or "". any accepts 8-bit encodings.
func notText(data []byte, any bool) string {
	const next = "; convert it (for example with iconv), or read it with encoding \"base64\""
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "it is UTF-16 text" + next
	case bytes.IndexByte(data, 0) >= 0:
		return "it is binary (it contains a NUL byte); inspect it with bash (file, strings, xxd), or read it with encoding \"base64\""
	case any || utf8.Valid(data):
		return ""
	}
	return "it is not valid UTF-8 (perhaps text in an older encoding)" + next
}

// countLines counts lines, including an unterminated last one.
func countLines(data []byte) int64 {
	n := int64(bytes.Count(data, []byte("\n")))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// beginning returns at most most bytes of a longer text, cut between characters. It masks a secret that the cut
// splits.
func beginning(text []byte, most int) []byte {
	n := min(most, max(len(text)-1, 0))
	for back := 0; back < utf8.UTFMax-1 && n > back; back++ {
		if utf8.RuneStart(text[n-back]) {
			return redact.Part(text, 0, n-back)
		}
	}
	return redact.Part(text, 0, n)
}

// content reads a whole file. size is a hint, since the file may grow.
func (o Options) content(f *os.File, size int64, file target) ([]byte, error) {
	tooLarge := problem("file_path", "%s has more than the %d bytes that this tool handles; use bash", file.name(), o.MaxWrite)
	if size > o.MaxWrite {
		return nil, tooLarge
	}
	var data bytes.Buffer
	data.Grow(int(size) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, o.MaxWrite+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > o.MaxWrite {
		return nil, tooLarge
	}
	return data.Bytes(), nil
}
