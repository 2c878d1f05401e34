package policy

import "testing"

func TestATemporaryFileIsWrittenWhereMktempPutsIt(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Presets: []string{"shell-workspace"}})
	for command, want := range map[string]string{
		"mktemp": "/tmp/tmp.XXXXXXXXXX", "mktemp -d": "/tmp/tmp.XXXXXXXXXX", "mktemp -d -q": "/tmp/tmp.XXXXXXXXXX", "mktemp -t a.XXX": "/tmp/a.XXX",
		"mktemp a.XXX": "a.XXX", "mktemp -d build/a.XXX": "build/a.XXX", "mktemp -p src": "src/tmp.XXXXXXXXXX", "mktemp --tmpdir=src a.XXX": "src/a.XXX",
		"mktemp --suffix=.go /srv/a.XXX": "/srv/a.XXX", "mktemp --tmpdir a.XXX": "/tmp/a.XXX",
	} {
		e := run(command)
		u := describe(e.Argv)
		if len(u.Operands) != 1 || u.Operands[0].Kind != Write || u.Operands[0].Word.Text != want {
			t.Errorf("%s: %+v, want a write of %s", command, u.Operands, want)
		}
		if d := p.Decide([]Effect{e}); d.Action != Allow {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
	decidesAll(t, p, Ask, []string{"mktemp --frob", "mktemp …", "mktemp -p …", "mktemp a b"}...)
}
