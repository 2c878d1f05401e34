package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/shell/programs"
)

// neutralEnv may be set for any command.
const neutralEnv = "LANG LANGUAGE LC_* TZ CI NODE_ENV DEBUG FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES " +
	"RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GOOS GOARCH CGO_ENABLED GOMAXPROCS VERBOSE TERM " +
	"DOCKER_BUILDKIT DOCKER_SCAN_SUGGEST DOCKER_CLI_HINTS COMPOSE_DOCKER_CLI_BUILD BUILDKIT_PROGRESS CARGO_TERM_COLOR CARGO_INCREMENTAL PYTHONHASHSEED " +
	"PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT PIP_NO_COLOR UV_NO_PROGRESS NPM_CONFIG_LOGLEVEL npm_config_loglevel TF_IN_AUTOMATION TF_INPUT PY_COLORS MYPY_FORCE_COLOR"

// dangerousEnv makes programs load code, find other programs, or speak to other
// hosts. No default covers it, only a rule that names it.
const dangerousEnv = "PATH LD_* DYLD_* BASH_ENV ENV BASHOPTS SHELLOPTS BASH_* IFS PS0 PS1 PS2 PS4 PROMPT_COMMAND CDPATH GLOBIGNORE EXECIGNORE " +
	"GIT_* SSH_* *PAGER* *EDITOR* VISUAL BROWSER LESS* MORE MANOPT MANPATH TAR_* GREP_OPTIONS RIPGREP_* PYTHON* NODE_OPTIONS NODE_PATH NODE_* PERL* RUBY* GEM_* BUNDLE_* " +
	"JAVA_* _JAVA* JDK_* CLASSPATH MAVEN_* GRADLE_* GOFLAGS GOENV GOPROXY GOPATH GOROOT GOTOOLCHAIN GOBIN GOMODCACHE GOCACHE GOSUMDB GONOSUMDB GOPRIVATE GOEXPERIMENT GODEBUG " +
	"CC CXX LD AR AS CPP CFLAGS CXXFLAGS LDFLAGS CGO_* MAKEFLAGS MAKEFILES MFLAGS SHELL CARGO* RUSTC* RUSTFLAGS RUSTUP* npm_* NPM_* YARN_* PNPM_* PIP_* UV_* VIRTUAL_ENV CONDA_* DOCKER_* " +
	"KUBE* AWS_* AZURE_* GOOGLE_* GCLOUD_* GCP_* *_TOKEN *_KEY *_SECRET *_PASSWORD *_proxy *_PROXY CURL_* WGETRC SSL_* REQUESTS_CA_BUNDLE OPENSSL_* HOME TMPDIR TMP TEMP XDG_* " +
	"TERMINFO* TERMCAP HOSTALIASES RESOLV_HOST_CONF LOCALDOMAIN RES_OPTIONS LOCPATH NLSPATH GCONV_PATH MALLOC_* GLIBC_* INPUTRC HISTFILE HISTFILESIZE HISTSIZE HISTCONTROL HISTTIMEFORMAT FIGNORE FPATH MAIL MAILPATH MAILCHECK TIMEFORMAT POSIXLY_CORRECT " +
	"COMMAND_NOT_FOUND* PKG_CONFIG* CMAKE_* AUTOMAKE* ACLOCAL* PHP* LUA_* LUA* R_* JULIA_* ERL_* ELIXIR* MIX_* HEX_* DOTNET_* COMPOSER_* DENO_* BUN_* JQ_* XMLLINT* LS_COLORS TOOLD_* SUDO_* VIM* EXINIT NVIM* EMACS* OLDPWD PWD " +
	"PYTEST_* TOX_* NOX* HATCH_* POETRY_* PDM_* PIPENV_* PIPX_* MYPY* RUFF_CONFIG DJANGO_SETTINGS_MODULE TF_CLI* TF_PLUGIN* TF_REATTACH* TF_DATA_DIR TERRAGRUNT_* ANSIBLE_* PACKER_* VAULT_* HELM_*"

var (
	neutralNames   = sync.OnceValue(func() *nameSet { return newNameSet(neutralEnv) })
	dangerousNames = sync.OnceValue(func() *nameSet { return newNameSet(dangerousEnv) })
)

// IsDangerousEnv reports whether setting the variable can change what programs
// run, load or contact, so that no default may cover it.
func IsDangerousEnv(name string) bool { return !neutralNames().has(name) && dangerousNames().has(name) }

// nameSet holds names and patterns of the form x*, *x and *x*. It does not change.
type nameSet struct {
	names        map[string]bool
	begins, ends [256][]string // by their first, and their last byte
	holds        []string
}

func newNameSet(list string) *nameSet {
	s := &nameSet{names: make(map[string]bool)}
	for text := range strings.FieldsSeq(list) {
		part := strings.Trim(text, "*")
		switch first, last := part[0], part[len(part)-1]; text {
		case part:
			s.names[text] = true
		case part + "*":
			s.begins[first] = append(s.begins[first], part)
		case "*" + part:
			s.ends[last] = append(s.ends[last], part)
		default:
			s.holds = append(s.holds, part)
		}
	}
	return s
}

// has reports whether a name is one of them.
func (s *nameSet) has(name string) bool {
	if name == "" {
		return false
	}
	in := func(part string) bool { return strings.Contains(name, part) }
	begin := func(part string) bool { return strings.HasPrefix(name, part) }
	end := func(part string) bool { return strings.HasSuffix(name, part) }
	return s.names[name] || slices.ContainsFunc(s.begins[name[0]], begin) ||
		slices.ContainsFunc(s.ends[name[len(name)-1]], end) || slices.ContainsFunc(s.holds, in)
}

// matchesAny reports whether one of the patterns, in which * is any text, matches.
func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return programs.Matches(p, s) })
}
