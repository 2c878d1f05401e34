package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// secrets returns what no call may read: keys, passwords and tokens in well-known locations, and password hashes,
// which a daemon running as root could read.
func secrets() []string {
	return []string{
		"~/.ssh", "~/.gnupg", "~/.aws", "~/.azure", "~/.kube", "~/.oci",
		"~/.config/gh", "~/.config/gcloud", "~/.config/git/credentials", "~/.config/op", "~/.config/sops",
		"~/.docker/config.json", "~/.git-credentials", "~/.netrc", "~/.npmrc", "~/.pypirc", "~/.pgpass", "~/.pg_service.conf", "~/.postgresql", "~/.my.cnf",
		"~/.cargo/credentials", "~/.cargo/credentials.toml", "~/.gem/credentials", "~/.m2/settings.xml",
		"~/.password-store", "~/.vault-token", "~/.terraform.d/credentials.tfrc.json", "~/.local/share/keyrings",
		"~/.config/hub", "~/.config/glab-cli", "~/.config/rclone", "~/.config/doctl", "~/.config/containers/auth.json", "~/.fly", "~/.s3cfg", "~/.boto",
		"~/.pulumi/credentials.json", "~/.m2/settings-security.xml", "~/.composer/auth.json", "~/.config/composer/auth.json", "~/.cache/huggingface/token",
		"~/.claude.json", "~/.claude/.claude.json", "~/.claude/.credentials.json", "~/.letta/settings.json", "~/.codex/auth.json", "~/.codex/environments.toml", "~/.gemini/oauth_creds.json", "~/.config/github-copilot", "~/.local/share/opencode/auth.json",
		"~/.huggingface/token", "~/.config/pypoetry/auth.toml", "~/.sops", "~/.config/age", "~/.kaggle/kaggle.json", "~/.databrickscfg", "~/.config/stripe", "~/.config/netlify",
		"~/.local/share/containers/auth.json", "~/.vnc/passwd", "~/.bitcoin",
		"~/.mozilla", "~/.thunderbird", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware",
		"~/.bash_history", "~/.zsh_history", "~/.psql_history", "~/.mysql_history",
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
	}
}

func (l *loader) paths(c *Config) {
	c.StateDir = l.stateDir(l.scalar("state_dir"))
	c.Workspace = l.workspace(l.scalar("workspace"), c.StateDir)
	socket := l.scalar("socket")
	if l.text(&c.Socket, socket, "socket"); c.Socket != "" {
		c.Socket = l.absolute(socket)
	}
	c.Policy, c.PolicyPlace = l.policy(l.scalar("policy"))
}

func (l *loader) workspace(s scalar, stateDir string) string {
	if l.purpose == ReachDaemon {
		return ""
	}
	path := l.dir
	if s.set {
		path = l.absolute(s)
	}
	real, err := directory(path)
	if err != nil {
		l.fail(s, "the workspace must be an existing folder: %v", err)
		return ""
	}
	if !s.set && l.discover != nil && stateDir != "" {
		if real, err = l.discover(stateDir, real); err != nil {
			l.faults = append(l.faults, err)
			return ""
		}
	}
	if real == "/" {
		l.fail(s, "the workspace cannot be /: every file would be inside it; name a project folder with --workspace")
		return ""
	}
	if l.home != "" && paths.Within(l.canonical(l.home), real) {
		l.warn("the workspace %s holds your home: calls may change everything in it; a project folder is safer (--workspace)", real)
	}
	return real
}

func directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", path, errors.Unwrap(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", path, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	return filepath.Abs(real)
}

func (l *loader) stateDir(s scalar) string {
	if s.set {
		return l.canonical(l.absolute(s))
	}
	base := l.xdg("XDG_STATE_HOME", ".local/state")
	if base == "" {
		l.faults = append(l.faults, errors.New("cannot tell where to keep state: neither HOME nor XDG_STATE_HOME holds an absolute path; use --state-dir"))
		return ""
	}
	return l.canonical(filepath.Join(base, "toold"))
}

// policy returns the policy file, or the path where it would be. An unreadable file is a fault, not replaced by the
// built-in policy.
func (l *loader) policy(s scalar) (path, place string) {
	if s.set {
		l.namedFile(&path, s, "policy")
		return path, ""
	}
	if l.configDir == "" {
		return "", ""
	}
	path = filepath.Join(l.configDir, "policy.yaml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", path
	} else if err != nil {
		l.faults = append(l.faults, fmt.Errorf("cannot look at the policy: %w", err))
	}
	return path, ""
}

func (l *loader) namedFile(dst *string, s scalar, key string) {
	if !s.set {
		return
	}
	path := l.absolute(s)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		l.fail(s, "%s: cannot find %s", key, path)
	case info.IsDir():
		l.fail(s, "%s: %s is a folder, expected a file", key, path)
	default:
		*dst = path
	}
}

func (l *loader) sandbox(c *Config) {
	p := &c.Sandbox
	p.Workspace = c.Workspace
	p.Mode, _ = sandbox.ParseMode(l.choice("sandbox.profile"))
	if understood := l.choice("sandbox.i_understand_full_access"); p.Mode == sandbox.FullAccess && understood != "true" {
		l.fail(l.scalar("sandbox.profile"), "sandbox.profile danger-full-access confines nothing: write i_understand_full_access: true beside it to say that you want this")
	}
	p.Network = l.choice("sandbox.network") == "full"
	p.Write = l.writeRoots("sandbox.write")
	c.Escalation.Write = l.writeRoots("approval.widen.write")
	p.Read = l.readRoots(l.list("sandbox.read"))
	l.checkOwnFiles(c)
	p.Hide = l.hidden(c, l.list("sandbox.hide"))
	p.Sockets = l.sockets(c, l.list("sandbox.unix_sockets"))
	c.Lowest = map[string]sandbox.Tier{"tier-b": sandbox.TierB, "tier-c": sandbox.TierC}[l.choice("sandbox.allow_degraded")]
	c.Protect = l.protected(l.list("sandbox.protect"))
	c.Sandbox.Names = c.Protect
	l.widen(c)
	c.ProtectReport = l.choice("sandbox.protect_missing") == "report"
}

func (l *loader) writeRoots(setting string) []string {
	var out []string
	for i, s := range l.list(setting) {
		key := fmt.Sprintf("%s[%d]", setting, i)
		if !s.set {
			continue
		}
		real, err := filepath.EvalSymlinks(l.absolute(s))
		switch {
		case err != nil:
			l.fail(s, "%s: cannot find %s: it must exist", key, l.absolute(s))
			continue
		case real == "/", l.home != "" && paths.Within(l.canonical(l.home), real):
			l.fail(s, "%s cannot be %s: it holds your home; name the folders that calls need", key, real)
			continue
		}
		out = append(out, real)
	}
	return out
}

func defaultReadable() []string { return []string{"~/.gitconfig", "~/.config/git"} }

func (l *loader) readRoots(list []scalar) []string {
	if list == nil {
		for _, path := range defaultReadable() {
			list = append(list, scalar{text: path, set: l.home != ""})
		}
	}
	var out []string
	for i, s := range list {
		if !s.set {
			continue
		}
		real, err := filepath.EvalSymlinks(l.absolute(s))
		switch {
		case err != nil && slices.Contains(defaultReadable(), s.text):
			continue
		case err != nil:
			l.warn("sandbox.read[%d]: %s does not exist: nothing can be read there", i, l.absolute(s))
			continue
		case real == "/":
			l.fail(s, "sandbox.read[%d] cannot be /: name the folders that calls need", i)
			continue
		}
		out = append(out, real)
	}
	return out
}

// hidden returns the paths that calls cannot read: secrets, sandbox.hide and the daemon's own files.
func (l *loader) hidden(c *Config, list []scalar) []string {
	var out []string
	mounts := readMounts()
	add := func(at scalar, path string) {
		path = l.canonical(path)
		for _, path := range append([]string{path}, otherPaths(mounts, path)...) {
			if c.Workspace != "" && paths.Within(c.Workspace, path) {
				l.fail(at, "the workspace %s lies in %s, which is hidden from calls", c.Workspace, path)
			}
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	for _, p := range secrets() {
		for _, path := range l.secretPaths(p) {
			add(scalar{}, path)
		}
	}
	for _, s := range list {
		if s.set && l.checkHidden(c, s) {
			add(s, l.absolute(s))
		}
	}
	for _, p := range append(PolicyFiles(c.Policy), c.StateDir, c.HeadDir(), l.configDir, c.File, c.Socket, c.TLS.Key) {
		if p != "" {
			add(scalar{}, p)
		}
	}
	return out
}

// neededBelow returns the commands' shell or its dynamic loader if it is in a directory, else "".
func (l *loader) neededBelow(dir string) string {
	loaders, _ := filepath.Glob("/lib*/ld-linux*") // the pattern is valid
	for _, path := range append(loaders, "/bin/bash") {
		if paths.Within(path, dir) || paths.Within(l.canonical(path), l.canonical(dir)) {
			return path
		}
	}
	return ""
}

// Homes returns the variables that relocate secrets, with the default locations.
func Homes() map[string]string {
	return map[string]string{
		"XDG_CONFIG_HOME": "~/.config", "XDG_DATA_HOME": "~/.local/share", "XDG_CACHE_HOME": "~/.cache",
		"CODEX_HOME": "~/.codex", "CLAUDE_CONFIG_DIR": "~/.claude", "GNUPGHOME": "~/.gnupg", "DOCKER_CONFIG": "~/.docker",
		"CARGO_HOME": "~/.cargo", "AZURE_CONFIG_DIR": "~/.azure", "PASSWORD_STORE_DIR": "~/.password-store",
		"PGPASSFILE": "~/.pgpass", "PGSERVICEFILE": "~/.pg_service.conf", "PGSSLKEY": "~/.postgresql",
	}
}

// secretPaths returns the locations of a secret, including those that variables set.
func (l *loader) secretPaths(secret string) (paths []string) {
	if path := l.expand(secret); path != "" {
		paths = append(paths, path)
	}
	homes := Homes()
	for _, variable := range slices.Sorted(maps.Keys(homes)) {
		dir := l.getenv(variable)
		rest, ok := strings.CutPrefix(secret, homes[variable])
		isBelow := ok && (rest == "" || rest[0] == '/')
		if isBelow && filepath.IsAbs(dir) {
			paths = append(paths, filepath.Join(dir, rest))
		}
	}
	return paths
}

// checkHidden rejects patterns and warns of missing files, since neither hides anything.
func (l *loader) checkHidden(c *Config, s scalar) bool {
	path := l.absolute(s)
	_, err := os.Lstat(path)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch needed := l.neededBelow(path); {
	case needed != "":
		l.fail(s, "sandbox.hide cannot be %s: it has %s, without which no command starts", path, needed)
		return false
	case !missing:
	case strings.ContainsAny(s.text, "*?[{"):
		l.fail(s, "sandbox.hide takes no wildcards, and no file is called %s: name each file or folder; a policy rule about paths may have wildcards, but binds only what can be known before a command runs", path)
		return false
	case filepath.IsAbs(s.text) || strings.HasPrefix(s.text, "~"):
		l.warn("sandbox.hide: %s does not exist: nothing is hidden there", path)
	default:
		instead := filepath.Join(c.Workspace, s.text)
		if _, err := os.Lstat(instead); err != nil {
			instead = "the full path"
		}
		l.warn("sandbox.hide: %s does not exist: nothing is hidden there; %q counts from the folder of the configuration file: write %s", path, s.text, instead)
	}
	return true
}

// absolute makes a path absolute. It is relative to the directory of the file, or to dir for flags and variables.
func (l *loader) absolute(s scalar) string {
	path := s.text
	if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) {
		l.fail(s, "a path is empty: give one or remove the line")
		return ""
	}
	if strings.HasPrefix(path, "~/") || path == "~" {
		if l.home == "" {
			l.fail(s, "cannot tell what ~ means in %q: HOME is not set", path)
		}
		return l.expand(path)
	}
	base := l.dir
	if s.origin == "" && l.file != "" {
		base = filepath.Dir(l.file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// expand replaces a leading "~". It returns "" if the home directory is unknown.
func (l *loader) expand(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path
	}
	if l.home == "" {
		return ""
	}
	return filepath.Join(l.home, rest)
}

// canonical resolves the links in the existing part of a path. Each path is looked up once, since those of a
// configuration share most of their directories.
func (l *loader) canonical(path string) string {
	if real, known := l.resolved[path]; known {
		return real
	}
	real, parent := path, filepath.Dir(path)
	if parent != path {
		real = filepath.Join(l.canonical(parent), filepath.Base(path))
	}
	if _, err := os.Readlink(real); err == nil {
		if target, err := filepath.EvalSymlinks(real); err == nil {
			real = target
		}
	}
	l.resolved[path] = real
	return real
}
