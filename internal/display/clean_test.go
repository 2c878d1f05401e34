package display

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanShowsWhatAPersonWouldSeeInTheEnd(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext\n":                          "plain\n\ttext\n",
		"a\r\nb\r\n":                               "a\nb\n",
		"\x1b[1;31mred\x1b[0m \x1b[38:5:1mx":       "red x",
		"\x1b]0;title\atext":                       "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bPdevice\x1b\\ok":                      "ok",
		"\x1b(Bok\x1b7\x1b=":                       "ok",
		" 10%\r 50%\r100%\ndone\n":                 "100%\ndone\n",
		"Downloading\rDone\n":                      "Done\n",
		"keeps the last\r":                         "keeps the last",
		"erased\r\x1b[K\nnext":                     "\nnext",
		"|\b/\b-\b\\\b done":                       " done",

		"\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 1\n": "added 1\n", // npm
		"⠙ a\x1b[2K\x1b[1G⠹ b\x1b[2K\x1b[1Gbuilt\n":             "built\n",   // ora
		"10%\x1b[G20%\x1b[0G30%\n":                              "30%\n",
		"in |\x1b[1D/\x1b[D-\x1b[D.\n10%\x1b[999D20%\n":         "in .\n20%\n",
		"gone\x1b[2K\ngone\x1b[1K\nkept\x1b[K\nkept\x1b[0K\n":   "\n\nkept\nkept\n",
		"a\x1b[5Gb\x1b[?2Kc\x1b[2Jd\x1b[0De":                    "abce",

		// Lines that are drawn again, as by docker, log-update, pnpm and tqdm.
		"a 1%\nb 1%\n\x1b[2A\x1b[2Ka 2%\n\x1b[2Kb 2%\ndone\n":   "a 2%\nb 2%\ndone\n",
		"a 1%\nb 1%\n\x1b[2F\x1b[Ka 2%\x1b[E\x1b[Kb 2%\x1b[E\n": "a 2%\nb 2%\n\n",
		"a 1%\nb 1%\n\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gdone\n":  "done\n",
		"kept\na 1%\nb 1%\n\x1b[2A\x1b[Jdone\n":                 "kept\ndone\n",
		"\ra 1%\n\rb 1%\x1b[A\ra 2%\n\rb 2%\x1b[A\n\n":          "a 2%\nb 2%\n",
		"a 1%\nb 1%\nc 1%\n\x1b[3A\x1b[2Ka 2%\x1b[3B\n":         "a 2%\nb 1%\nc 1%\n\n",
		"a\nb\n\x1b[A":   "a\nb",
		"a\n\x1b[9Ab\nc": "b\nc",
		"Compiling a\n\x1b[1A\x1b[K Compiling b\r\n\x1b[1A\x1b[KFinished\r\n": "Finished\n",

		"b\bbo\bol\bld":                "bold",
		"a\n\b\bb":                     "a\nb",
		"é\bx":                         "x",
		"bell\a nul\x00 del\x7f ff\f":  "bell nul^@ del^? ff^L",
		"bad \xff\xfe utf":             "bad \ufffd\ufffd utf",
		"c1 \u009b31m":                 "c1 31m",
		"\x1b]0;never ends\nnext line": "\nnext line",
		"\x1b[31\nnext":                "\nnext",
		"\x1b[31\x1b[0mx":              "x",
		"\x1b":                         "",
		"\x1b[":                        "",
		"":                             "",
	} {
		if got := Clean([]byte(in)); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("a\rb\b\x1b[31mc\x1b]0;t\a\xff\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := Clean(in)
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		control := func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }
		if i := strings.IndexFunc(out, control); i >= 0 {
			t.Fatalf("control character left in %q", out)
		}
		if again := Clean([]byte(out)); again != out {
			t.Fatalf("%q cleaned again is %q", out, again)
		}
		redrawn := strings.Contains(string(in), "\x1b[")
		if !redrawn && strings.Count(out, "\n") < strings.Count(string(in), "\n") {
			t.Fatalf("lines of %q are missing in %q", in, out)
		}
	})
}
