package programs

import (
	"slices"
	"strings"
)

// MayContact returns hosts that words of the command may name, although nothing is known of these words: ping a.test,
// docker pull a.test/x, openssl s_client -connect a.test:443.
func (c *Command) MayContact(argv []Word) (out []string) {
	texts := c.Name == "git" && !slices.ContainsFunc(c.Sub, func(sub string) bool { return IsField(gitRemotes, sub) })
	if c.Covers != CoversNone || texts {
		return nil
	}
	var known []string
	for _, o := range c.Operands {
		if o.Kind == Net {
			_, host, _ := Contact(o.Word, argv[0].Text)
			known = append(known, host, o.Word.Text)
		}
	}
	for _, w := range argv[1:] {
		isKnown := func(text string) bool { return isURL(text) && strings.HasSuffix(w.Text, text) }
		if len(w.Text) > maxHost || slices.ContainsFunc(known, isKnown) {
			continue
		}
		for _, host := range hostParts(w) {
			if !slices.Contains(known, host) {
				out = append(out, host)
			}
		}
	}
	return out
}

const maxHost = 1 << 10

// gitRemotes are the subcommands of git of which other words than operands may name a host. Of most, words are messages
// and names.
const gitRemotes = "archive send-email imap-send svn p4 fetch-pack send-pack http-fetch http-push"

// hostParts returns what may be a host in a word without blanks: a.test in TCP:a.test:80, -ha.test and u@a.test/x.
func hostParts(w Word) (out []string) {
	if strings.ContainsAny(w.Text, " \t\n") {
		return nil
	}
	parts := strings.FieldsFunc(w.Text, func(c rune) bool { return strings.ContainsRune("=,@:", c) })
	if len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' {
		parts = append(parts, w.Text[2:])
	}
	for i, part := range append(parts, w.Text) { // an address may have colons
		host, _, ends := strings.Cut(strings.TrimPrefix(part, "//"), "/")
		if w.Dynamic && !ends && i >= len(parts)-1 {
			continue
		}
		if host = CleanHost(host); strings.ContainsAny(host, ".:") {
			out = append(out, host)
		}
	}
	return out
}
