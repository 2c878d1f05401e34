package main

import (
	"fmt"
	"os"
	"strings"
)

// apparmorSetting is 1 where programs get the rights in a user namespace only by a
// profile of AppArmor's, as on Ubuntu since 23.10.
const apparmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// apparmorFindings tells of AppArmor where it keeps toold from making namespaces. Root
// is not kept from it.
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
		Mend: apparmorCommand(exe),
	}}
}

// apparmorCommand gives a program the profile by which it may make user namespaces, and
// which confines nothing (apparmor.d(5)).
func apparmorCommand(exe string) string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "^", `\^`).Replace(exe)
	profile := fmt.Sprintf(`profile toold "%s" flags=(unconfined) { userns, }`, path)
	return fmt.Sprintf("printf '%%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' '%s' | sudo tee /etc/apparmor.d/toold && sudo apparmor_parser -r /etc/apparmor.d/toold",
		strings.ReplaceAll(profile, "'", `'\''`))
}
