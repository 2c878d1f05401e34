package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// setting is a row of the table behind the loader and config.example.yaml.
type setting struct {
	key   string // dotted path; a group has no value
	value string // default, as YAML; after "# ", an example for a setting without a fixed default
	check string // allowed words, or lower and upper limit of a number or duration; upper limit 0 = none; lower limit 0|N = 0 or at least N
	field string // field of Config; "" = the loader has code for it
	doc   string
}

var settings = []setting{
	{"version", "1", "", "", ""},
	{"listen", DefaultListen, "", "Listen", "Where to listen. Port 0 takes any free port. An address that other machines can reach needs tls."},
	{"socket", "# ~/.local/state/toold/toold.sock", "", "", "A Unix socket to listen on as well (mode 0600)."},
	{"tls", "", "", "", "The server's certificate and its key, PEM files. toold's own commands accept only this certificate, whatever its names; agents check it as they do."},
	{"tls.cert", "# server.pem", "", "", ""},
	{"tls.key", "# server-key.pem", "", "", ""},
	{"workspace", "# ~/src/project", "", "", "The directory in which calls work: they may change what is in it, and nothing else. Default: the registered workspace (toold workspaces) or the git repository that contains the current directory, else that directory itself. Never /."},
	{"state_dir", "# ~/.local/state/toold", "", "", "Where the journal, the output of calls and the tokens are kept. It must be outside the workspace. Default: $XDG_STATE_HOME/toold, else ~/.local/state/toold."},
	{"policy", "# policy.yaml", "", "", `The policy file. Default: policy.yaml beside the default configuration file, if it exists; else the built-in policy "careful".`},
	{"allowed_hosts", "[]", "", "", "Host names beyond loopback ones under which clients may reach the daemon."},
	{"allowed_origins", "[]", "", "", "Pages that may talk to the daemon from a browser, such as https://box.example."},
	{"tokens", "\n  - name: agent\n    roles: [agent]\n  - name: approver\n    roles: [approver, observer]\n  - name: observer\n    roles: [observer]", "agent approver observer admin", "", "One token is made for each entry at the first start. Roles: agent (may request calls), approver (may decide), observer (may read), admin (may do what both may). Whoever may request a call may not approve it, unless one entry here names both roles."},

	{"approval", "", "", "", ""},
	{"approval.timeout", "120s", "100ms 24h", "ApprovalTime", "no answer by then is a no"},
	{"approval.widen", "", "", "", "What an approver may add to the sandbox of one call (toold approve ID --network full). By default nothing. Rules that deny, hide and protect remain in force."},
	{"approval.widen.profile", "none", "none workspace-write danger-full-access", "", "the widest"},
	{"approval.widen.network", "off", "off proxy full", "", "the widest"},
	{"approval.widen.hosts", "[]", "", "", "one of these may be opened, written as in egress.allow; with proxy or full, any"},
	{"approval.widen.write", "[]", "", "", "one of these directories, or one in them, may be made writable"},

	{"sandbox", "", "", "", ""},
	{"sandbox.profile", "workspace-write", "workspace-write read-only danger-full-access", "", ""},
	{"sandbox.i_understand_full_access", "false", "true false", "", "must be true for danger-full-access"},
	{"sandbox.network", "off", "off proxy full", "", "proxy: hosts by name, see egress"},
	{"sandbox.write", "[]", "", "", "further directories that calls may change; they must exist"},
	{"sandbox.hide", "[]", "", "", "Further files and directories that calls cannot read. Always hidden: the files of toold itself, and keys and tokens in well-known places (~/.ssh, ~/.gnupg, ~/.aws, ~/.azure, ~/.kube, ~/.config/gh, ~/.config/gcloud, ~/.netrc, ~/.npmrc, ~/.docker/config.json, ~/.git-credentials and others). No wildcards; relative paths start at the directory of this file, not at the workspace."},
	{"sandbox.launcher", "auto", "auto native bwrap", "Sandbox.Launcher", "Who makes the namespaces of calls: native is toold itself. Where the system blocks this, as Ubuntu's AppArmor does, auto falls back to bwrap (/usr/bin/bwrap, 0.8 or later). Calls then run in tier A-bwrap, which confines as much, but has no network: proxy, and tool caches of its own."},
	{"sandbox.allow_degraded", "tier-b", "none tier-b tier-c", "", "Where the machine refuses calls a /proc of their own, as default containers do, they run in tier B: without a namespace of processes, so that they see the command lines of others. Every return reports it; with none they do not run. Where there are no user namespaces at all, tier-c lets the calls of an ordinary user run with less protection, which SECURITY.md describes."},
	{"sandbox.read", "[~/.gitconfig, ~/.config/git]", "", "", "In tier C everything is hidden but the workspace, the directories of write, those of the system (/usr, /etc, /opt and the like) and these. Tiers A and B do not need them."},
	{"sandbox.protect", `["preset:autorun"]`, "", "", "Names that commands can neither create nor change, since other programs run or obey such files: in the workspace and in the directories of write, at any depth. preset:autorun stands for git's hooks and configuration, .envrc, .vscode, .npmrc, .cargo/config.toml, .bashrc and others (docs/policy.md lists them)."},
	{"sandbox.protect_missing", "quarantine", "quarantine report", "", "a call that creates one is ended, and it is removed; report keeps it"},
	{"sandbox.unix_sockets", "[]", "", "", "Unix sockets of the machine that commands may connect to, such as that of an agent for keys. All others are refused, except those that a command makes itself. Docker's socket gives control of the machine."},
	{"sandbox.limits", "", "", "", "Of one call; 0 = unlimited. The sandbox itself needs some of each."},
	{"sandbox.limits.processes", "512", "0|64 1000000", "Sandbox.Limits.Processes", "and threads"},
	{"sandbox.limits.open_files", "4096", "0|64 1048576", "Sandbox.Limits.OpenFiles", ""},
	{"sandbox.limits.file_bytes", "4GiB", "0 0", "Sandbox.Limits.FileBytes", "of one file that it writes"},
	{"sandbox.limits.memory_bytes", "4GiB", "0|16MiB 0", "Sandbox.Limits.MemoryBytes", "of all its processes together"},
	{"sandbox.limits.tmp_bytes", "512MiB", "0|64KiB 0", "Sandbox.Limits.TmpBytes", "of its private /tmp, which is in memory"},
	{"sandbox.caches", "[~/.cache, ~/go/pkg/mod, ~/.npm, ~/.cargo/registry, ~/.cargo/git, ~/.gradle, ~/.m2/repository]", "", "", `Directories in which tools keep what they can make or fetch again. Calls see them and may write, so that builds work; their changes are kept in the state directory, separate for each workspace, and never reach these directories. A directory that does not exist is replaced by one that a variable of its tool names. "caches: []" makes them read-only, as everything else outside the workspace. Passwords in ~/.gradle/gradle.properties belong under hide, or elsewhere.`},
	{"sandbox.egress", "", "", "", "With network: proxy. Calls have a network of their own, in which name lookups and connections to these ports end at toold; programs need no settings. Each host is judged by the rules about hosts when it is requested: deny and ask hold, and a person answers while the program waits. Hosts without a rule are asked too, unless allow lists them, as host, *.host or address, each with :port or for all ports. A name that leads to an address that is not public is refused unless private has that address or its network."},
	{"sandbox.egress.allow", "[]", "", "", ""},
	{"sandbox.egress.private", "[]", "", "", ""},
	{"sandbox.egress.ports", "[80, 443]", "", "", ""},
	{"sandbox.egress.sni_check", "true", "true false", "", "Refuse TLS for a name other than the requested one, which may lead to another host at the same address."},

	{"limits", "", "", "", ""},
	{"limits.max_frame_bytes", "16MiB", "1KiB 1GiB", "Limits.MaxFrameBytes", "a larger frame ends the connection"},
	{"limits.outbox_bytes", "4MiB", "64KiB 1GiB", "Limits.OutboxBytes", "live output kept for a client that reads slowly"},
	{"limits.return_bytes", "30000", "1000B 64MiB", "Limits.ReturnBytes", "of each stream in the answer to a call"},
	{"limits.spool_bytes", "64MiB", "0 0", "Limits.SpoolBytes", "output of a call kept on disk"},
	{"limits.state_bytes", "16GiB", "64MiB 0", "Limits.StateBytes", "of all that is kept: journal, output, quarantine, caches; beyond it the oldest is removed, then new calls are refused"},
	{"limits.record_keep", "87600h", "0 87600h", "Limits.RecordKeep", "how long the journal is kept: parts of up to 64 MiB are removed as a whole"},
	{"limits.spool_keep", "168h", "0 87600h", "Limits.SpoolKeep", "how long the output of a call is kept"},
	{"limits.quarantine_keep", "720h", "0 87600h", "Limits.QuarantineKeep", "how long removed files are kept; toold quarantine lists them"},
	{"limits.caches_keep", "720h", "0 87600h", "Limits.CachesKeep", "how long the changes of calls to tool caches are kept for a workspace in which no daemon works"},
	{"limits.linger", "60s", "0 24h", "Limits.Linger", "how long a call outlives its connection"},
	{"limits.concurrent_calls", "64", "1 10000", "Limits.ConcurrentCalls", "running at the same time; others wait"},
	{"limits.waiting_calls", "1024", "1 1000000", "Limits.WaitingCalls", "more are refused"},
	{"limits.calls_per_connection", "256", "1 1000000", "Limits.CallsPerConnection", "not yet answered; more are refused"},
	{"limits.concurrent_per_connection", "32", "1 10000", "Limits.ConcurrentPerConn", "of concurrent_calls; further ones wait"},
	{"limits.background_calls", "16", "0 10000", "Limits.BackgroundCalls", "running on after their return; more are refused"},
	{"limits.background_per_connection", "8", "1 10000", "Limits.BackgroundPerConn", "of background_calls; more are refused"},
	{"limits.background_timeout", "8h", "1s 720h", "Limits.BackgroundTimeout", "the longest that one may run"},
	{"limits.asked_hosts", "32", "0 4096", "Limits.AskedHosts", "questions about hosts of one running call; more are refused"},
	{"limits.connections", "1024", "1 1000000", "Limits.Connections", "of all clients; more are refused"},
	{"limits.incoming_bytes", "256MiB", "1MiB 1TiB", "Limits.IncomingBytes", "of large frames being received at once, over all connections, and of requests over HTTP and of Codex that are not answered"},
	{"limits.timeout", "120s", "1ms 168h", "Limits.Timeout", "of a call that names none"},
	{"limits.max_timeout", "600s", "1s 168h", "Limits.MaxTimeout", "the longest that a call may name"},
	{"limits.grace", "2s", "0 1m", "Limits.Grace", "between asking a process to end and killing it"},
	{"limits.ping", "30s", "10ms 1h", "Limits.Ping", "between pings of a connection"},
	{"limits.idle", "90s", "10ms 24h", "Limits.Idle", "a connection silent for so long is closed"},

	{"env", "", "", "", "What commands see of the daemon's environment beyond PATH, HOME, USER, LANG and the like. pass takes names, or beginnings of names followed by *. Neither pass nor set may name variables that change what commands mean (LD_PRELOAD, BASH_ENV, GIT_DIR …) and credentials of clouds (AWS_SECRET_ACCESS_KEY …); pass gives none of toold's own. LANG, LC_ALL and LC_CTYPE pass only when they are UTF-8, C, POSIX or en_XX, and LANG is C.UTF-8 where none passes: with other character sets the shell may read a script otherwise than it was judged. set overrides what passes; there, a value that begins with ~/ is a path in your home."},
	{"env.pass", "[]", "", "", ""},
	{"env.set", "{}", "", "", ""},
	{"terminal", "split", "split single off", "Terminal", "What the output of a command goes to unless the call asks for something else: split (stdout and stderr each on a terminal), single (one terminal) or off (pipes)."},
	{"warm_shells", "2", "0 64", "WarmShells", "Shells that are started ahead, each in its own sandbox, and wait for the script of a call, which then begins at once. Each runs one script; a call with another directory, terminal or profile than the one before starts its own. Some 10 MiB of memory each. 0 = none."},
	{"redact", "[]", "", "", "Texts, such as passwords, that are replaced in whatever comes out of calls: output, results and diffs, shown or kept. In what goes in they are replaced where it is recorded, and tokens of well-known services are masked in everything that is."},
	{"log", "", "", "", ""},
	{"log.level", "info", "debug info warn error", "LogLevel", ""},
	{"telemetry", "", "", "", "For operators, see docs/operations.md. Where a collector takes OTLP over HTTP: each call becomes a trace there, without its arguments and output. Off unless set. A collector on another machine needs https."},
	{"telemetry.otlp_endpoint", "# http://127.0.0.1:4318", "", "", ""},
	{"audit", "", "", "", "For a team, see docs/operations.md: a PostgreSQL database that gets a copy of the record of this daemon, and of others. Calls never wait for it. Write no password here: PGPASSWORD, ~/.pgpass, a service file and the other variables of PostgreSQL are read as usual."},
	{"audit.store", "# postgres://alice@db.example.org/audit?sslmode=verify-full", "", "", ""},
}

// target returns a pointer that the decoder sets for a setting, or nil for a group.
func (s setting) target() any {
	switch {
	case s.key == "tokens":
		return new([]rawToken)
	case strings.HasPrefix(s.value, "["):
		return new([]scalar)
	case s.value == "{}":
		return new(map[string]scalar)
	case s.value == "":
		return nil
	}
	return new(scalar)
}

// settings decodes a mapping of the configuration file at the key path, "" for the document.
func (d *decoder) settings(n ast.Node, path string, targets map[string]any) error {
	if err := d.refuseIndirection(n); err != nil {
		return err
	}
	entries, err := d.entries(n, path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		key := keyText(e.Key)
		full := join(path, key)
		target, known := targets[full]
		switch {
		case !known || strings.Contains(key, "."):
			d.note(d.unknownKey(key, positionOf(e.Key), keysIn(path), path))
		case target == nil:
			d.note(d.settings(e.Value, full, targets))
		default:
			d.note(d.value(e.Value, reflect.ValueOf(target).Elem(), full))
		}
	}
	return nil
}

func keysIn(path string) (keys []string) {
	for _, s := range settings {
		key, ok := strings.CutPrefix(s.key, path)
		key = strings.TrimPrefix(key, ".")
		isBelow := ok && key != "" && join(path, key) == s.key
		if isBelow && !strings.Contains(key, ".") {
			keys = append(keys, key)
		}
	}
	return keys
}

func (l *loader) scalar(key string) scalar { return *l.raw[key].(*scalar) }
func (l *loader) list(key string) []scalar { return *l.raw[key].(*[]scalar) }

// fields sets the fields of Config that the table describes fully.
func (l *loader) fields(c *Config) {
	for _, s := range settings {
		if s.field == "" {
			continue
		}
		v := reflect.ValueOf(c).Elem()
		for name := range strings.SplitSeq(s.field, ".") {
			v = v.FieldByName(name)
		}
		l.set(v.Addr().Interface(), s)
	}
}

// set reads the default of a setting, then its value, into a *string, *int64, *uint64 or *time.Duration.
func (l *loader) set(dst any, s setting) {
	words := strings.Fields(s.check)
	for _, v := range []scalar{{text: s.value, set: true}, l.scalar(s.key)} {
		switch dst := dst.(type) {
		case *string:
			if len(words) > 0 {
				l.oneOf(dst, v, s.key, words...)
			} else {
				l.text(dst, v, s.key)
			}
		case *time.Duration:
			low, _ := time.ParseDuration(words[0])
			high, _ := time.ParseDuration(words[1])
			l.duration(dst, v, s.key, low, high)
		case *int64:
			l.number(dst, v, s)
		case *uint64:
			n := int64(*dst)
			l.number(&n, v, s)
			*dst = uint64(n)
		}
	}
}

func (l *loader) choice(key string) (word string) {
	l.set(&word, settings[slices.IndexFunc(settings, func(s setting) bool { return s.key == key })])
	return word
}
