//go:build linux

package escape

import (
	"regexp"
	"strings"
)

// phrase has the script for a setup, command or check in words. A script that begins with "- " is the reason why the
// case cannot be played.
type phrase struct{ pattern, script string }

func setupPhrases() []phrase {
	return []phrase{
		{`^as root: install at (\S+) a root-owned`, `[ -u @OUT@/suid ]`}, // see makeWorld
		{`^mount (a second filesystem|the home a second time) at `, `:`}, // see makeWorld
		{`^loop: renameat2\(RENAME_EXCHANGE\) between directory (\S+) and symlink (\S+) -> (\S+) for`, `mkdir -p $1 && echo INSIDE > $1/victim.txt && ln -s $3 $2 && { @E@ exchange $1 $2 >/dev/null 2>&1 & }`},
		{`^cwd=(\S+), swapped for a symlink to (\S+) `, `mkdir -p $1 && ln -s $2 $1.link && { @E@ exchange $1 $1.link >/dev/null 2>&1 & }`},
		{`^warm pool: create a new nested repository`, `git init -q @WS@/late`},
		{`^config: sandbox.profile=danger-full-access without`, `:`},
		{`^user.max_user_namespaces=0 `, `:`},
		{`^mask one file in /proc `, `:`},
		{`^outer seccomp denies landlock_create_ruleset`, `:`},
		{`(?s)^net=proxy [^;]*;(.*)$`, `$1`},
		{`^net=proxy `, `:`},
	}
}

func commandPhrases() []phrase {
	return []phrase{
		{`^write_file \{"path":"(\S+)/mnt/x"\}$`, `write_file {"path":"$1/mnt/x","content":"x"}`},
		{`^write to its hooks$`, `echo x > @WS@/late/.git/hooks/h`},
		{`^edit_file \{"path":"([^"]*)",\.\.\.\}$`, `edit_file {"path":"$1","old_string":"hello","new_string":"bye"}`},
		{`(?s)^((curl|dig) .*)$`, `PATH=$$PATH:@BASE@/bin; $1`},
		{`^program without proxy support connects to (\S+):(\d+)$`, `@E@ say $1 $2`},
		{`^TLS ClientHello with SNI (\S+) to (\S+):(\d+)$`, `@E@ hello $2 $3 $1`},
	}
}

func checkPhrases() []phrase {
	return append(egressPhrases(), []phrase{
		{`^(tool returns )?status error$`, `[ "$$STATUS" = error ]`},
		{`^status error that names the protected path$`, `[ "$$STATUS" = error ] && grep -q '\.git' "$$SBOUT"`},
		{`^status error "read-only profile"$`, `[ "$$STATUS" = error ] && grep -q 'read-only' "$$SBOUT"`},
		{`^status error, stage landlock$`, `grep -q landlock "$$SBOUT"`},
		{`^status error sandbox_unavailable, stage clone, errno ENOSPC$`, `grep -q 'user namespaces\|clone' "$$SBOUT"`},
		{`^status error, or tier B announced in metadata$`, `[ "$$STATUS" = error ] || grep -q '"tier":"B"' "$$RETURN"`},
		{`^(any )?results? contains (\w+)$`, `grep -q $2 "$$SBOUT"`},
		{`^some results contain the inside content$`, `grep -q INSIDE "$$SBOUT"`},
		{`^(\w+) in result( when reads are confined)?$`, `grep -q $1 "$$SBOUT"`},
		{`^result is an error or \(profile reads everything\)`, `[ "$$STATUS" = error ] || grep -q ORIGINAL "$$SBOUT"`},
		{`^daemon memory grows$`, `[ "$$GROWTH" -gt 67108864 ]`},
		{`^daemon RSS grows by more than the read cap$`, `[ "$$GROWTH" -gt 67108864 ]`},
		{`^capped result$`, `[ "$$(stat -c %s "$$SBOUT")" -lt 4000000 ]`},
		{`^(\S+) contains (\w+)$`, `grep -q $2 $1`},
		{`^mode (\d+) kept$`, `[ "$$(stat -c %a @WS@/README)" = $1 ]`},
		{`^mode, xattrs or owner changed$`, `[ "$$(stat -c %a:%u @WS@/README)" != "600:$$(id -u)" ] || ! getfattr -n user.k @WS@/README >/dev/null`},
		{`^daemon starts$`, `[ "$$STARTED" = 1 ]`},
		{`^exit status 78 and a message$`, `[ "$$RC" = 3 ] && [ -s "$$SBOUT" ]`},                                       // 3 is what toold ends with then
		{`^policy decides: xdev allowed or refused, documented$`, `[ "$$STATUS" = success ] && grep -qx x @WS@/mnt/x`}, // what counts is the path
		{`^hi is printed`, `[ "$$STATUS" = success ] && grep -qx hi "$$SBOUT"`},
		{`^a host /proc is visible inside$`, `[ "$$STATUS" = success ] && grep -q '"enforced":\[\]' "$$RETURN"`},
	}...)
}

// translate returns the script for a text of a case.
func translate(text string, phrases []phrase) string {
	text = strings.TrimSpace(text)
	for _, p := range phrases {
		re := regexp.MustCompile(p.pattern)
		if m := re.FindStringSubmatchIndex(text); m != nil {
			return string(re.ExpandString(nil, p.script, text, m))
		}
	}
	return text
}

// egressPhrases are the checks of cases about connections by name.
func egressPhrases() []phrase {
	return []phrase{
		{`^server sees a (request|connection)$`, `grep -qE 'HIT tcp:(203\.0\.113\.5|93\.184\.216\.66):' @LOG@`},
		{`^DENY event with the name$`, `grep -q '"action":"deny"' "$$EVENTS"`},
		{`^DENY event with ip:port$`, `grep -q '203\.0\.113\.5:80' "$$RETURN"`},
		{`^reply received$`, `grep -q 'reply:hello from' "$$SBOUT"`},
		{`^DENY \(resolved address class\)$`, `grep -q 'no public address' "$$RETURN"`},
		{`^DENY when sni_check=true$`, `grep -q 'TLS' "$$RETURN" && ! grep -q ':443 said .*evil' @LOG@`},
		{`^any query leaves the machine$`, `grep -q '^ASKED' @LOG@`},
		{`^REFUSED$`, `grep -q REFUSED "$$SBOUT"`},
	}
}
