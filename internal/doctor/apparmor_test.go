package doctor

import (
	"os/exec"
	"strings"
	"testing"
)

// The command is a person's to copy: a shell must make of it the profile that is meant.
func TestTheCommandForAppArmorMakesAProfile(t *testing.T) {
	t.Parallel()
	for exe, path := range map[string]string{
		"/usr/local/bin/toold": `"/usr/local/bin/toold"`,
		"/home/o'neil/a b/t*[": `"/home/o'neil/a b/t\*\["`,
	} {
		command := apparmorCommand(exe)
		write, _, ok := strings.Cut(command, " | sudo tee /etc/apparmor.d/toold && sudo apparmor_parser -r /etc/apparmor.d/toold")
		if !ok {
			t.Fatalf("got %s", command)
		}
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", write).CombinedOutput()
		want := "abi <abi/4.0>,\ninclude <tunables/global>\nprofile toold " + path + " flags=(unconfined) { userns, }\n"
		if err != nil || string(out) != want {
			t.Errorf("%v: got\n%swant\n%s", err, out, want)
		}
	}
}
