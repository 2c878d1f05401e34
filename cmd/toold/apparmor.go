package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/internal/console"
)

// apparmorSetting is 1 where user namespaces need an AppArmor profile.
const apparmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

func apparmorFindings() []finding {
	restricted, err := os.ReadFile(apparmorSetting)
	if err != nil || strings.TrimSpace(string(restricted)) != "1" || os.Getuid() == 0 {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []finding{{
		Name: "AppArmor", Is: "it gives the rights in user namespaces only to programs with a profile; toold may have one, and does without where bwrap has one",
		Fix: apparmorCommand(exe),
	}}
}

// apparmorProfile allows a program user namespaces (apparmor.d(5), AppArmor 4).
func apparmorProfile(exe string) []string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "^", `\^`).Replace(exe)
	return []string{"abi <abi/4.0>,", "include <tunables/global>", fmt.Sprintf(`profile toold "%s" flags=(unconfined) { userns, }`, path)}
}

func apparmorCommand(exe string) string {
	return fmt.Sprintf("printf '%%s\\n' %s | sudo tee /etc/apparmor.d/toold && sudo apparmor_parser -r /etc/apparmor.d/toold", console.Quote(apparmorProfile(exe), true))
}
