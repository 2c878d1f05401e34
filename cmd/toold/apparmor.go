package main

import (
	"fmt"
	"os"
	"strings"
)

// apparmorSetting is 1 where user namespaces need an AppArmor profile, as on Ubuntu since 23.10.
const apparmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// apparmorFindings reports AppArmor where it blocks namespaces. Root is exempt.
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

// apparmorCommand installs a profile that allows user namespaces and confines nothing (apparmor.d(5)).
func apparmorCommand(exe string) string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "^", `\^`).Replace(exe)
	profile := fmt.Sprintf(`profile toold "%s" flags=(unconfined) { userns, }`, path)
	return fmt.Sprintf("printf '%%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' '%s' | sudo tee /etc/apparmor.d/toold && sudo apparmor_parser -r /etc/apparmor.d/toold",
		strings.ReplaceAll(profile, "'", `'\''`))
}
